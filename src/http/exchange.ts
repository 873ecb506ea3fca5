import type { IncomingMessage, ServerResponse } from 'node:http';
import type { DomainError } from '../domain/errors.js';
import type { Lease } from './byte-budget.js';

/** Times and bounds of one listener; tests shorten them. */
export interface ListenerLimits {
  /** The request line and headers must be complete in this time. */
  readonly headersMs: number;
  /** A TLS handshake must be complete in this time, and so many may be under way. */
  readonly handshakeMs: number;
  readonly handshakes: number;
  /** How long an idle connection is kept for its next request. */
  readonly keepAliveMs: number;
  /** Where the connection table is nearly full, a new connection says something in this time. */
  readonly firstByteMs: number;
  /** How often the listener looks for connections over their time. */
  readonly checkMs: number;
  /** A JSON body must be complete in this time. */
  readonly bodyMs: number;
  /**
   * A partner's call is answered in this time, its body's reading aside; its quota headers may take `quotaMs`
   * more.
   */
  readonly callMs: number;
  readonly quotaMs: number;
  /**
   * What an answered request may still send before its connection is cut, so that the answer is not lost to a
   * reset.
   */
  readonly drainBytes: number;
  readonly drainMs: number;
  /**
   * A connection on which nothing moves for this long, in either direction, is cut: a caller that does not
   * read its answer.
   */
  readonly stallMs: number;
  /** Connections open at once; see ConnectionTable for whose place a newcomer takes. */
  readonly connections: number;
  /** Upload forms at once that have not shown their signed fields, or whose fields are being looked at. */
  readonly forms: number;
  /** Forms of one address among those without their signed fields. */
  readonly formsOfAddress: number;
  /** The signed fields of a form must have come in this time. */
  readonly fieldsMs: number;
  /** A streamed body that brings no byte for this long has stalled. */
  readonly idleMs: number;
  /**
   * A form that is proven and brings no byte for this long stands still: an address may have
   * `stalledOfAddress` of them.
   */
  readonly stalledMs: number;
  readonly stalledOfAddress: number;
  /**
   * Average rate, in bytes a second, below which a streamed body is refused once `graceMs` of waiting have
   * passed.
   */
  readonly minRate: number;
  readonly graceMs: number;
  /** A streamed body must be complete in this time: the life of an upload slot. */
  readonly streamMs: number;
}

export const DEFAULT_LIMITS: ListenerLimits = {
  headersMs: 20_000,
  handshakeMs: 10_000,
  handshakes: 1024,
  keepAliveMs: 65_000,
  firstByteMs: 3000,
  checkMs: 2000,
  bodyMs: 30_000,
  callMs: 11_000,
  quotaMs: 2000,
  drainBytes: 128 * 1_048_576,
  drainMs: 10_000,
  stallMs: 120_000,
  connections: 4096,
  forms: 512,
  formsOfAddress: 64,
  fieldsMs: 2000,
  idleMs: 30_000,
  stalledMs: 5000,
  stalledOfAddress: 64,
  minRate: 4096,
  graceMs: 30_000,
  streamMs: 15 * 60_000,
};

/** One request and its answer. */
export interface Exchange {
  readonly requestId: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly limits: ListenerLimits;
  /** The caller's, as bounds for each caller count it; see CallerAddresses. */
  readonly address: string;
  /** `performance.now()`. */
  readonly startedAt: number;
  /** Template of the matched route. */
  route: string;
  keyId: string | undefined;
  /** Bytes of the body that were read. */
  bytesIn: number;
  /** Bytes of the answer's body. */
  bytesOut: number;
  /** True where the caller waits for `100 Continue` before it sends the body. */
  awaitsContinue: boolean;
  /** The connection ends with this answer: the listener is stopping, or the message's end is in doubt. */
  connectionClose: boolean;
  /** The request was given up, so that its end is not waited for. */
  abandoned: boolean;
  /** Headers of every answer on this exchange. */
  readonly headers: Record<string, string>;
  /**
   * What is held of the body, paid for by the caller's address until its key is known, then by the partner.
   */
  readonly lease: Lease;
  /** It is being carried out, and will be to its end even when the connection goes. */
  working: boolean;
  /** The connection is gone, so that nothing can be sent. */
  gone: boolean;
  /** Set by whoever streams the answer: frees what it holds when the connection goes. */
  onGone: (() => void) | undefined;
  /** Set by whoever reads the body: ends the reading when the parser gives the request up. */
  abortBody: ((error: DomainError) => void) | undefined;
}

/** Sends `100 Continue` where the caller waits for it; called right before a body is read. */
export function sendContinue(exchange: Exchange): void {
  if (!exchange.awaitsContinue) return;
  exchange.awaitsContinue = false;
  exchange.response.writeContinue();
}
