/**
 * Calls to a cluster whose processes die. A call is tried once, or repeated until it is answered. Every
 * answer is checked against the contract.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Ledger } from './ledger.js';
import type { Cluster, Service, ThreadTimes } from './members.js';
import type { Pulse } from './pulse.js';

/** How long a partner waits for a response, in milliseconds. The limit of the service is 13 s (rule 3.6). */
const ANSWER_LIMIT_MS = 15_000;
/** The limit for uploads and the operator's calls, in milliseconds. The service sets no limit for them. */
const LONG_LIMIT_MS = 60_000;
/** A call that takes longer has got no answer, in milliseconds. */
const UNANSWERED_MS = LONG_LIMIT_MS - 1000;
const LONG = /^\/(uploads|operator)\//;
/** The deadline of a repeated call, in milliseconds. It is longer than any outage of a run. */
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
  /** Undefined if the body is not JSON. */
  readonly json: unknown;
  readonly service: string;
  /** The process that did all of the work. Absent if an earlier attempt may have reached another process. */
  readonly process?: string;
}

export interface ErrorBody {
  readonly error: string;
  readonly code: string;
  readonly reason?: string;
}

/** The start of a call: its time, and the CPU times of the service's main thread until then. */
interface Beginning {
  readonly at: number;
  /** The process that serves the call. A restart or a pause begins a new one. */
  readonly process: string;
  readonly times: ThreadTimes | undefined;
}

export type Lateness = 'in time' | 'excused' | 'late';

/**
 * Judges the duration of a call. A call is excused if it is late only because the machine stalled another process, or
 * because the called process waited for a processor. All times are in milliseconds.
 */
export function latenessOf({
  path,
  took,
  stall,
  waited,
}: {
  readonly path: string;
  readonly took: number;
  /** The longest time for which another process did not answer. */
  readonly stall: number;
  /** The time for which Linux let the called process wait for a processor. */
  readonly waited: number;
}): Lateness {
  const limit = LONG.test(path) ? UNANSWERED_MS : ANSWER_LIMIT_MS;
  if (took <= limit) return 'in time';
  // A stall excuses no call without an answer, because it is measured at other processes.
  const isExcused = took <= Math.min(UNANSWERED_MS, limit + stall) || took - waited <= ANSWER_LIMIT_MS;
  return isExcused ? 'excused' : 'late';
}

export class Calls {
  readonly #cluster: Cluster;
  readonly #ledger: Ledger;
  readonly #pulse: Pulse;
  readonly #out = new Set<string>();
  /** The number of calls in flight, by service. */
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

  /** Returns the next service in turn. Services that were taken out are skipped. */
  nextService(): Service {
    for (let skipped = 0; ; skipped += 1) {
      this.#next = (this.#next + 1) % this.services.length;
      const service = this.services[this.#next]!;
      if (!this.#out.has(service.name) || skipped === this.services.length) return service;
    }
  }

  /**
   * Sends the service no further calls, unless a call names it. Resolves when the calls in flight are
   * answered.
   */
  async takeOut(name: string): Promise<void> {
    this.#out.add(name);
    for (const deadline = performance.now() + LONG_LIMIT_MS; performance.now() < deadline; await delay(50))
      if ((this.#underWay.get(name) ?? 0) === 0) return;
  }

  putBack(name: string): void {
    this.#out.delete(name);
  }

  /**
   * Sends a call once.
   * @param patienceMs the time after which the client gives up
   * @returns undefined if no answer came, in which case the outcome is unknown
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
      const { took, lateness, why } = this.#time(call, service, began);
      if (answer.status === 503)
        this.#ledger.refusal({
          answered: true,
          what: `${name} on ${service.name}: ${describe(answer)} after ${Math.round(took)} ms`,
        });
      if (lateness === 'late')
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
      const { took, lateness, why } = this.#time(call, service, began);
      if (patienceMs < LONG_LIMIT_MS && took >= patienceMs) {
        this.#ledger.count('given up by the client');
        return undefined;
      }
      if (lateness === 'late')
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

  /** Returns how long a call took, and whether that was too long. Counts a call that the machine has delayed. */
  #time(
    { path }: Call,
    service: Service,
    began: Beginning,
  ): { readonly took: number; readonly lateness: Lateness; readonly why: string } {
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
    // The run itself suspended the process, so the delay is expected.
    if (this.#cluster.wasDisturbed(service.name, began.at)) return { took, lateness: 'in time', why };
    const lateness = latenessOf({ path, took, stall, waited });
    if (lateness === 'excused') this.#ledger.count('calls excused, because the machine delayed them');
    return { took, lateness, why };
  }

  /**
   * Repeats a call until its answer is not "later" (429, 503). The call goes to one service after another, or
   * to the named one.
   * @param expected statuses; any other status is a violation
   * @throws Error if the answer has another status, or no answer comes
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

/** Returns the CPU times of a thread between two moments, or zeros if either is unknown. */
function between(from: ThreadTimes | undefined, to: ThreadTimes | undefined): ThreadTimes {
  return from === undefined || to === undefined
    ? { ran: 0, waited: 0 }
    : { ran: to.ran - from.ran, waited: to.waited - from.waited };
}

/** Returns whether the call was refused for now. A used-up month does not count as "later". */
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

/** Returns how a response violates the contract. */
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

/** Returns the path without its ids. */
function nameOf(path: string): string {
  return path.replace(/\?.*/, '').replaceAll(/[a-z]{3}_[0-9A-Z]{26}/g, '*');
}
