import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Route } from '../../contract/route.js';
import type { CallSignal } from '../../operations/attributed.js';
import type { Observer } from '../../ports/observer.js';
import type { RequestLog } from '../../ports/request-log.js';
import type { Ids } from '../../ports/system.js';
import type { ByteBudget } from '../byte-budget.js';
import { type Exchange, type ListenerLimits, MessageEnd } from '../exchange.js';
import { asDomainError, isFault } from '../response/error-response.js';
import { type Response, send, sendError } from '../response/response.js';
import type { CallerAddresses } from './caller-address.js';
import type { CallerConnection } from './connection.js';
import { givenUp } from './deadline.js';
import { traceIdOf } from './trace-context.js';

/** The calls that ended while a listener stopped. */
export interface EndedCalls {
  readonly finished: number;
  /** The calls whose caller did not get the whole response. */
  readonly cut: number;
}

const METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
]);

export interface CallsParts {
  readonly listener: Route['listener'];
  readonly ids: Ids;
  readonly requestLog: RequestLog;
  readonly observer: Observer;
  readonly requestIdHeader?: string;
  readonly limits: ListenerLimits;
  readonly addresses: CallerAddresses;
  readonly budget: ByteBudget;
}

/** The calls of a listener: each is begun, answered and logged once. */
export class Calls {
  readonly #parts: CallsParts;
  readonly #ended = { finished: 0, cut: 0 };
  #isDraining = false;
  #isStopping = false;

  constructor(parts: CallsParts) {
    this.#parts = parts;
  }

  /** Returns how many calls were finished and how many were cut since `drain` or `stop`. */
  get ended(): EndedCalls {
    return this.#ended;
  }

  /** Closes the connection of each call that begins from now on. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Closes the connection of each call, from now on also of calls that run. */
  stop(): void {
    this.#isDraining = this.#isStopping = true;
  }

  /**
   * Answers a request with the response, or the error, that `respond` gives. Every call is logged, even when its
   * caller has left.
   */
  answer(
    connection: CallerConnection,
    request: IncomingMessage,
    response: ServerResponse,
    awaitsContinue: boolean,
    respond: (exchange: Exchange) => Promise<Response>,
  ): void {
    const startedAt = performance.now();
    const exchange = this.#begin(connection, request, response, awaitsContinue);
    const closed = new Promise<void>((resolve) => {
      response.once('close', resolve);
      exchange.gone.addEventListener('abort', () => resolve());
    });
    void Promise.all([this.#carryOut(exchange, respond), closed]).then(() => this.#log(exchange, startedAt));
  }

  #begin(
    connection: CallerConnection,
    request: IncomingMessage,
    response: ServerResponse,
    awaitsContinue: boolean,
  ): Exchange {
    const { ids, requestIdHeader, limits, addresses, budget } = this.#parts;
    const requestId = ids.next('request');
    // Rule 2.12.
    const headers: Record<string, string> = {
      'X-Request-Id': requestId,
      'X-Content-Type-Options': 'nosniff',
    };
    if (requestIdHeader !== undefined) headers[requestIdHeader] = requestId;
    // Node joins repeated headers with a comma and keeps their order.
    const forwardedFor = request.headers['x-forwarded-for'] as string | undefined;
    const address =
      forwardedFor === undefined ? connection.address : addresses.of(connection.remoteAddress, forwardedFor);
    const gone = new AbortController();
    Object.assign(gone.signal, { requestId } satisfies Partial<CallSignal>);
    const exchange: Exchange = {
      request,
      response,
      limits,
      address,
      headers,
      lease: budget.lease(address),
      gone: gone.signal,
      message: new MessageEnd(response, awaitsContinue, this.#isDraining),
      log: {
        requestId,
        traceId: traceIdOf(request.headers['traceparent'] as string | undefined, ids.random),
        route: 'unmatched',
        keyId: undefined,
        partnerId: undefined,
        operator: undefined,
        refusal: undefined,
        bytesIn: 0,
        bytesOut: 0,
      },
    };
    connection.begin(exchange, () => gone.abort(givenUp()));
    response.once('close', () => {
      connection.ended(exchange);
      if (this.#isStopping) connection.destroySoon();
    });
    return exchange;
  }

  async #carryOut(exchange: Exchange, respond: (exchange: Exchange) => Promise<Response>): Promise<void> {
    const { log } = exchange;
    try {
      await send(exchange, await respond(exchange));
    } catch (error) {
      if (isFault(error)) this.#parts.observer.fault(log.route, error, log);
      sendError(exchange, asDomainError(error));
    }
  }

  /** Logs a call whose work has ended, and whose response was sent or whose connection has closed. */
  #log({ request, response, address, lease, log }: Exchange, startedAt: number): void {
    lease.end();
    if (this.#isDraining) this.#ended[response.writableFinished ? 'finished' : 'cut'] += 1;
    const { refusal, ...facts } = log;
    this.#parts.requestLog.request({
      listener: this.#parts.listener,
      method: METHODS.has(request.method!) ? request.method! : 'other',
      status: response.headersSent ? response.statusCode : 0,
      address,
      code: refusal?.code,
      reason: refusal?.reason,
      durationMs: performance.now() - startedAt,
      ...facts,
    });
  }
}
