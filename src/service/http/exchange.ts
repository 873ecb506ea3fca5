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

/** What is logged of a call. Each part that handles the call fills in its members. */
export interface CallLog {
  readonly requestId: string;
  /** The trace id of W3C Trace Context, 32 hexadecimal digits. */
  readonly traceId: string;
  /** The template of the matched route. */
  route: RouteName;
  keyId: string | undefined;
  partnerId: string | undefined;
  /** The name of the operator's token, if it has one. */
  operator: string | undefined;
  /** The error that was sent as the response. */
  refusal: DomainError | undefined;
  /** The bytes read of the request body. */
  bytesIn: number;
  /** The bytes of the response body. */
  bytesOut: number;
}

/** The end of a request's message: who reads its body, and whether another message can follow on the connection. */
export class MessageEnd {
  readonly #response: ServerResponse;
  #awaitsContinue: boolean;
  #isLast: boolean;
  #isAbandoned = false;
  #stopReader: ((error: DomainError) => void) | undefined;

  /**
   * @param awaitsContinue true if the caller waits for `100 Continue` before it sends the body
   * @param isLast true if the connection closes after the response
   */
  constructor(response: ServerResponse, awaitsContinue: boolean, isLast: boolean) {
    this.#response = response;
    this.#awaitsContinue = awaitsContinue;
    this.#isLast = isLast;
  }

  /** Returns true while the caller waits for `100 Continue`. */
  get awaitsContinue(): boolean {
    return this.#awaitsContinue;
  }

  /** Returns true if the connection closes after the response. */
  get isLast(): boolean {
    return this.#isLast;
  }

  /** Returns true if the end of the message is not awaited. */
  get isAbandoned(): boolean {
    return this.#isAbandoned;
  }

  /** Sends `100 Continue` to a caller that waits for it. Called just before the body is read. */
  sendContinue(): void {
    if (!this.#awaitsContinue) return;
    this.#awaitsContinue = false;
    this.#response.writeContinue();
  }

  /** Closes the connection after the response. */
  beLast(): void {
    this.#isLast = true;
  }

  /** Closes the connection after the response, because it is unclear where the message ends. */
  abandon(): void {
    this.#isLast = this.#isAbandoned = true;
  }

  /** Sets how the reader of the body is stopped. Undefined once the reader has ended. */
  readBy(stop: ((error: DomainError) => void) | undefined): void {
    this.#stopReader = stop;
  }

  /** Stops the reader of the body with an error. @returns false when no reader exists */
  stopReader(error: DomainError): boolean {
    const stop = this.#stopReader;
    stop?.(error);
    return stop !== undefined;
  }
}

/** An HTTP request with its response. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly limits: ListenerLimits;
  /** The address group of the caller, as limits per caller use it. See CallerAddresses. */
  readonly address: string;
  /** Headers of every response to this request. */
  readonly headers: Record<string, string>;
  /**
   * The memory held for the body. The caller's address pays for it until the key is known, then the partner.
   */
  readonly lease: Lease;
  /** Aborts when the connection has closed, so nothing can be sent. */
  readonly gone: AbortSignal;
  readonly message: MessageEnd;
  readonly log: CallLog;
}
