import type { IncomingMessage, ServerResponse } from 'node:http';
import type { DomainError } from '../domain/errors.js';
import type { Lease } from './byte-budget.js';

/** Times and bounds of one listener; tests shorten them. */
export interface ListenerLimits {
  /** The request line and headers must be complete in this time. */
  readonly headersMs: number;
  /** Time for a TLS handshake, and the number that may be under way. */
  readonly handshakeMs: number;
  readonly handshakes: number;
  /** Time for which an idle connection is kept for its next request. */
  readonly keepAliveMs: number;
  /** Time in which a new connection must send its first byte where the connection table is nearly full. */
  readonly firstByteMs: number;
  /** Interval between two looks for connections over their time. */
  readonly checkMs: number;
  /** A JSON body must be complete in this time. */
  readonly bodyMs: number;
  /** Time for a partner's call, the reading of its body aside; its quota headers may take `quotaMs` more. */
  readonly callMs: number;
  readonly quotaMs: number;
  /** Time by which a slow test key's answer comes late; a part of `callMs`. */
  readonly slowMs: number;
  /**
   * Bytes and time that the rest of an answered request may take before its connection is cut: an immediate
   * cut would lose the response to a reset.
   */
  readonly drainBytes: number;
  readonly drainMs: number;
  /**
   * Time without movement in either direction after which a connection is cut: its caller does not read the
   * response.
   */
  readonly stallMs: number;
  /** Connections open at once; see ConnectionTable for the connection that gives way to a newcomer. */
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
   * Time without a byte after which a proven form counts as stalled; an address may have `stalledOfAddress`
   * of those.
   */
  readonly stalledMs: number;
  readonly stalledOfAddress: number;
  /**
   * Least average rate in bytes a second: a slower streamed body is refused once `graceMs` of waiting have
   * passed (rule 6.13).
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
  slowMs: 8000,
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

/** An HTTP request with its response. */
export interface Exchange {
  readonly requestId: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly limits: ListenerLimits;
  /** Address of the caller, as bounds for each caller count it; see CallerAddresses. */
  readonly address: string;
  /** `performance.now()`. */
  readonly startedAt: number;
  /** Template of the matched route. */
  route: string;
  keyId: string | undefined;
  /** Bytes of the body that were read. */
  bytesIn: number;
  /** Bytes of the response's body. */
  bytesOut: number;
  /** True where the caller waits for `100 Continue` before it sends the body. */
  awaitsContinue: boolean;
  /**
   * The connection ends with this response: the listener is stopping, or the end of the message is in doubt.
   */
  connectionClose: boolean;
  /** The request was given up, so that its end is not waited for. */
  abandoned: boolean;
  /** Headers of every response on this exchange. */
  readonly headers: Record<string, string>;
  /**
   * Memory held for the body, paid for by the caller's address until its key is known, then by the partner.
   */
  readonly lease: Lease;
  /** True while the request is carried out: it will be to its end, even when the connection goes. */
  working: boolean;
  /** The connection is gone, so that nothing can be sent. */
  gone: boolean;
  /** The request has been logged. */
  logged: boolean;
  /** Set by the sender of a streamed response: frees its resources when the connection goes. */
  onGone: (() => void) | undefined;
  /** Set by the reader of the body: ends the reading when the parser gives the request up. */
  abortBody: ((error: DomainError) => void) | undefined;
}

/** Sends `100 Continue` where the caller waits for it; called right before a body is read. */
export function sendContinue(exchange: Exchange): void {
  if (!exchange.awaitsContinue) return;
  exchange.awaitsContinue = false;
  exchange.response.writeContinue();
}
