/**
 * Calls to a cluster whose processes die: each is tried once or until it is answered, and every answer is
 * held to the contract.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Ledger } from './ledger.js';
import type { Cluster, Service, ThreadTimes } from './members.js';
import type { Pulse } from './pulse.js';

/** Time a partner waits for a response, an error included; the service's own limit is 13 s: rule 3.6. */
const ANSWER_LIMIT_MS = 15_000;
/** Limit of uploads and of the operator's calls, which have no limit of their own. */
const LONG_LIMIT_MS = 60_000;
const LONG = /^\/(uploads|operator)\//;
/** Until a repeated call must have been answered: longer than any outage of a run. */
export const SETTLE_LIMIT_MS = 900_000;
const PAUSE_MS = 100;
/** A form must show its signed fields within 2 s, which the service measures from its own time. */
const STOOD_STILL_MS = 1900;

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly listener?: 'partner' | 'operator';
  readonly apiKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly body?: Uint8Array | FormData;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  /** Undefined where the body is no JSON. */
  readonly json: unknown;
  readonly service: string;
  /** The process by whose work alone it is; absent where an earlier attempt may have been another one's. */
  readonly process?: string;
}

export interface ErrorBody {
  readonly error: string;
  readonly code: string;
  readonly reason?: string;
}

/** Beginning of a call: when it was sent, and what its service had done until then. */
interface Beginning {
  readonly at: number;
  /** The life of the service that it goes to. */
  readonly process: string;
  readonly times: ThreadTimes | undefined;
}

export class Calls {
  readonly #cluster: Cluster;
  readonly #ledger: Ledger;
  readonly #pulse: Pulse;
  readonly #out = new Set<string>();
  /** Calls under way, by service. */
  readonly #underWay = new Map<string, number>();
  #next = 0;

  constructor(cluster: Cluster, ledger: Ledger, pulse: Pulse) {
    this.#cluster = cluster;
    this.#ledger = ledger;
    this.#pulse = pulse;
  }

  get services(): readonly Service[] {
    return this.#cluster.services;
  }

  /** The next process in turn, of those that were not taken out. */
  nextService(): Service {
    for (let skipped = 0; ; skipped += 1) {
      this.#next = (this.#next + 1) % this.services.length;
      const service = this.services[this.#next]!;
      if (!this.#out.has(service.name) || skipped === this.services.length) return service;
    }
  }

  /** From now on it gets no calls but such as name it; resolves when it has answered those that it has. */
  async takeOut(name: string): Promise<void> {
    this.#out.add(name);
    for (const deadline = performance.now() + LONG_LIMIT_MS; performance.now() < deadline; await delay(50))
      if ((this.#underWay.get(name) ?? 0) === 0) return;
  }

  putBack(name: string): void {
    this.#out.delete(name);
  }

  /**
   * An attempt. @param patienceMs after which the client gives up
   * @returns undefined where no answer came: it may have taken effect or not
   */
  async send(
    call: Call,
    service = this.nextService(),
    patienceMs = LONG_LIMIT_MS,
  ): Promise<Answer | undefined> {
    const { method, path, listener = 'partner', apiKey, headers, json, body } = call;
    const began: Beginning = {
      at: performance.now(),
      process: this.#cluster.processOf(service.name),
      times: this.#cluster.threadTimes(service.name),
    };
    const name = `${method} ${nameOf(path)}`;
    const underWay = (by: number) =>
      this.#underWay.set(service.name, (this.#underWay.get(service.name) ?? 0) + by);
    underWay(1);
    try {
      const response = await fetch(`${service[listener]}${path}`, {
        method,
        redirect: 'manual',
        signal: AbortSignal.timeout(Math.ceil(patienceMs)),
        headers: {
          ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
          ...(listener === 'operator' ? { authorization: `Bearer ${this.#cluster.operatorToken}` } : {}),
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(json === undefined
          ? body === undefined
            ? {}
            : { body: body as never }
          : { body: JSON.stringify(json) }),
      });
      const bytes = new Uint8Array(await response.arrayBuffer());
      const answer = {
        status: response.status,
        headers: response.headers,
        bytes,
        json: jsonOf(bytes),
        service: service.name,
        ...(began.process === this.#cluster.processOf(service.name) && { process: began.process }),
      };
      this.#ledger.count(`answered ${response.status}`);
      const { took, limit, why } = this.#time(call, service, began);
      if (answer.status === 503)
        this.#ledger.refusal({
          answered: true,
          what: `${name} on ${service.name}: ${describe(answer)} after ${Math.round(took)} ms`,
        });
      if (took > limit)
        this.#ledger.violation(
          `${name} took ${Math.round(took)} ms on ${service.name} (${response.status}; ${why})`,
        );
      // A client that sends nothing for too long gets 408, and on a busy machine a client stops for seconds.
      if (answer.status === 408 && took < STOOD_STILL_MS)
        this.#ledger.violation(`${name} was not waited for by ${service.name}`);
      const wrong = faultOf(answer);
      if (wrong !== undefined) this.#ledger.violation(`${name} on ${service.name}: ${wrong}`);
      return answer;
    } catch (error) {
      const { took, limit, why } = this.#time(call, service, began);
      if (patienceMs < LONG_LIMIT_MS && took >= patienceMs) {
        this.#ledger.count('given up by the client');
        return undefined;
      }
      if (took > limit)
        this.#ledger.violation(
          `${name} was not answered by ${service.name} in ${Math.round(took)} ms (${String(error)}; ${why})`,
        );
      this.#ledger.count('unanswered');
      this.#ledger.refusal({
        answered: false,
        what: `${name} on ${service.name}: unanswered after ${Math.round(took)} ms (${String(error)})`,
      });
      return undefined;
    } finally {
      underWay(-1);
    }
  }

  /**
   * For how long the machine kept other processes waiting meanwhile, or this one, or let the process that was
   * called wait for a processor, is not held against it.
   */
  #time(
    { path }: Call,
    service: Service,
    began: Beginning,
  ): { readonly took: number; readonly limit: number; readonly why: string } {
    const took = performance.now() - began.at;
    const times =
      began.process === this.#cluster.processOf(service.name)
        ? this.#cluster.threadTimes(service.name)
        : undefined;
    const { ran, waited } = between(began.times, times);
    const stall = this.#pulse.longestStall(service, began.at);
    const why = [
      `its thread ran for ${Math.round(ran)} ms`,
      `and waited for a processor for ${Math.round(waited)} ms,`,
      `the others stood still for ${Math.round(stall)} ms`,
    ].join(' ');
    // A run that suspends a process knows why it does not answer.
    if (this.#cluster.wasDisturbed(service.name, began.at)) return { took, limit: Infinity, why };
    return {
      took,
      // A call that nobody answers is a violation whatever its process waited for.
      limit: Math.min(
        LONG_LIMIT_MS - 1000,
        (LONG.test(path) ? LONG_LIMIT_MS : ANSWER_LIMIT_MS) + Math.max(stall, waited),
      ),
      why,
    };
  }

  /**
   * Repeats a call, on one process after another or on the one that is named, until it is answered with
   * something else than "later" (429, 503).
   * @param expected statuses; any other is a violation
   * @throws Error where the answer is none of these, or none comes
   */
  async settle(
    call: Call,
    expected: readonly number[],
    {
      service,
      later = isLater,
    }: { readonly service?: Service | undefined; readonly later?: (answer: Answer) => boolean } = {},
  ): Promise<Answer> {
    const deadline = performance.now() + SETTLE_LIMIT_MS;
    for (let attempt = 0; ; attempt += 1) {
      const answer = await this.send(call, service);
      if (answer !== undefined && !later(answer)) {
        const { process: _, ...ofSeveral } = answer;
        if (expected.includes(answer.status)) return attempt === 0 ? answer : ofSeveral;
        throw this.fail(
          `${call.method} ${nameOf(call.path)} on ${answer.service}: ${answer.status} ${describe(answer)}, expected ${expected.join(' or ')}`,
        );
      }
      if (performance.now() > deadline)
        throw this.fail(
          `${call.method} ${nameOf(call.path)} was never answered: ${answer === undefined ? 'no answer' : `${answer.status} ${describe(answer)}`} at last`,
        );
      await delay(Math.min(1000, PAUSE_MS * 2 ** Math.min(attempt, 4)) * (0.5 + Math.random()));
    }
  }

  fail(what: string): Error {
    this.#ledger.violation(what);
    return new Error(what);
  }
}

/** Times of a thread from one moment to another; nothing where either is not known. */
function between(from: ThreadTimes | undefined, to: ThreadTimes | undefined): ThreadTimes {
  return from === undefined || to === undefined
    ? { ran: 0, waited: 0 }
    : { ran: to.ran - from.ran, waited: to.waited - from.waited };
}

/** Refused for now. A month that is used up is not. */
export function isLater(answer: Answer): boolean {
  return (
    answer.status === 503 ||
    answer.status === 408 ||
    (answer.status === 429 && reasonOf(answer) !== 'quota_exceeded')
  );
}

export function reasonOf(answer: Answer): string | undefined {
  return (answer.json as ErrorBody | undefined)?.reason;
}

export function describe({ json }: Answer): string {
  const { code, reason } = (json ?? {}) as Partial<ErrorBody>;
  return `${code ?? 'no code'}${reason === undefined ? '' : `/${reason}`}`;
}

/** Faults of a response against the contract, whatever was called. */
export function faultOf({
  status,
  headers,
  json,
}: Pick<Answer, 'status' | 'headers' | 'json'>): string | undefined {
  if (headers.get('x-request-id') === null) return `${status} without X-Request-Id`;
  if (status < 400) return undefined;
  const body = (json ?? {}) as Partial<ErrorBody>;
  if (typeof body.error !== 'string' || typeof body.code !== 'string')
    return `${status} without the error body`;
  if (status === 503 || status === 429)
    return /^\d+$/.test(headers.get('retry-after') ?? '') ? undefined : `${status} without Retry-After`;
  return status >= 500 ? `${status} ${body.code}: ${body.error}` : undefined;
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}

/** Without the ids in it. */
function nameOf(path: string): string {
  return path.replace(/\?.*/, '').replaceAll(/[a-z]{3}_[0-9A-Z]{26}/g, '*');
}
