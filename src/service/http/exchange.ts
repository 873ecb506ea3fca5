import type { IncomingMessage, ServerResponse } from 'node:http';
import type { DomainError } from '../../core/domain/errors.js';
import { DEFAULT_LARGE_BYTES, LEAST_LARGE_RATE, SLOT_LIFE_SECONDS } from '../domain/upload.js';
import type { RouteName } from '../ports/observer.js';
import type { Lease } from './byte-budget.js';

/** The limits of one listener. Times are in milliseconds. Tests shorten them. */
export interface ListenerLimits {
  /** The time limit for the request line and headers. */
  readonly headersMs: number;
  /** The time limit of a TLS handshake, and the most concurrent handshakes. */
  readonly handshakeMs: number;
  readonly handshakes: number;
  /** How long an idle connection is kept for its next request. */
  readonly keepAliveMs: number;
  /** The time limit for the first byte of a new connection while the connection table is nearly full. */
  readonly firstByteMs: number;
  /** The interval between two checks for connections that exceed a time limit. */
  readonly checkMs: number;
  /** The time limit for a whole JSON body. */
  readonly bodyMs: number;
  /**
   * The time limit of a partner's call, without the reading of its body. The quota headers may take `quotaMs`
   * more.
   */
  readonly callMs: number;
  readonly quotaMs: number;
  /** The delay of a response to a slow test key. It is part of `callMs`, except for a streamed form. */
  readonly slowMs: number;
  /**
   * The most bytes and time for reading the rest of a request after its response. Beyond them the connection
   * is cut. Cutting the connection immediately would reset it and lose the response.
   */
  readonly drainBytes: number;
  readonly drainMs: number;
  /**
   * How long a connection may be silent in both directions before it is cut. A silent caller does not read
   * the response.
   */
  readonly stallMs: number;
  /** The most open connections. ConnectionTable describes which connection is evicted for one more. */
  readonly connections: number;
  /** The most concurrent upload forms whose signed fields have not arrived or are being checked. */
  readonly forms: number;
  /** The most forms of one address whose signed fields have not arrived. */
  readonly formsOfAddress: number;
  /** The time limit for the signed fields of a form. */
  readonly fieldsMs: number;
  /** How long a streamed body may send nothing before it fails. */
  readonly idleMs: number;
  /**
   * How long an authenticated form may send nothing before it counts as stalled. One address may have
   * `stalledOfAddress` such forms.
   */
  readonly stalledMs: number;
  readonly stalledOfAddress: number;
  /**
   * The minimum average rate of a streamed body, in bytes per second. A slower body is rejected after
   * `graceMs` of waiting (rule 6.13). A download that the caller reads more slowly is cut (rule 6.18).
   */
  readonly minRate: number;
  readonly graceMs: number;
  /**
   * The time limit for a whole streamed body, equal to the life of an upload slot. A large file gets in addition the
   * time that it takes at `minLargeRate` (rule 7.13).
   */
  readonly streamMs: number;
  /** The largest file that a caller may send for any purpose, in bytes. */
  readonly largeBytes: number;
  /** The time limit for the body of an issuing with a large file. The reserved id of the proof lives an hour. */
  readonly largeIssueMs: number;
  /** The minimum average rate of a large file, in bytes per second. */
  readonly minLargeRate: number;
  /** The most concurrent downloads of one partner. */
  readonly downloadsOfPartner: number;
  /** The calls that all partners share evenly while the main thread is busy. See RunningCalls. */
  readonly calls: number;
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
  streamMs: SLOT_LIFE_SECONDS * 1000,
  largeBytes: DEFAULT_LARGE_BYTES,
  largeIssueMs: 45 * 60_000,
  minLargeRate: LEAST_LARGE_RATE,
  downloadsOfPartner: 16,
  calls: 128,
};

/** An HTTP request with its response. */
export interface Exchange {
  readonly requestId: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly limits: ListenerLimits;
  /** The address group of the caller, as limits per caller use it. See CallerAddresses. */
  readonly address: string;
  /** The start time, as `performance.now()` returned it. */
  readonly startedAt: number;
  /** The template of the matched route. */
  route: RouteName;
  keyId: string | undefined;
  partnerId: string | undefined;
  /** The error that was sent as the response. */
  refusal: DomainError | undefined;
  /** The bytes read of the request body. */
  bytesIn: number;
  /** The bytes of the response body. */
  bytesOut: number;
  /** True while the caller waits for `100 Continue` before it sends the body. */
  awaitsContinue: boolean;
  /**
   * True when the connection closes after this response. The listener is stopping, or the end of the message
   * is unclear.
   */
  connectionClose: boolean;
  /** True when the request was abandoned, so its end is not awaited. */
  abandoned: boolean;
  /** Headers of every response to this request. */
  readonly headers: Record<string, string>;
  /**
   * The memory held for the body. The caller's address pays for it until the key is known, then the partner.
   */
  readonly lease: Lease;
  /** True while the request runs. */
  working: boolean;
  /** True once the connection has closed, so nothing can be sent. */
  gone: boolean;
  /** True once the request was logged. */
  logged: boolean;
  /**
   * Frees the resources of a streamed response when the connection closes. Set by the sender of the response.
   */
  onGone: (() => void) | undefined;
  /** Gives up the running call when the connection closes. Set before the call runs. */
  giveUp: (() => void) | undefined;
  /** Stops the reading of the body when the parser abandons the request. Set by the reader of the body. */
  abortBody: ((error: DomainError) => void) | undefined;
}

/** Sends `100 Continue` to a caller that waits for it. Called just before a body is read. */
export function sendContinue(exchange: Exchange): void {
  if (!exchange.awaitsContinue) return;
  exchange.awaitsContinue = false;
  exchange.response.writeContinue();
}
