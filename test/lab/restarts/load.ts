/** The calls of partners while processes restart. */
import { setTimeout as delay } from 'node:timers/promises';
import { inParallel } from '../../fixtures/service.js';
import { wav } from '../../fixtures/wav.js';

const CLIENTS = 8;
const RETRY_MS = 200;
const ANSWER_MS = 60_000;

export interface Figures {
  calls: number;
  /** Calls that were repeated, by their first outcome. */
  repeated: Record<string, number>;
  failed: number;
  acknowledged: number;
  lost: number;
}

interface Slot {
  readonly uploadId: string;
  readonly url: string;
  readonly fields: Readonly<Record<string, string>>;
}

/** Clients that create a slot, post a file and verify it, and repeat a failed call once. */
export class Load {
  readonly figures: Figures = { calls: 0, repeated: {}, failed: 0, acknowledged: 0, lost: 0 };
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #violation: (what: string) => void;
  /** The ids of the uploads that were acknowledged since the last check. */
  readonly #uploads: string[] = [];
  #isStopped = false;

  constructor(url: string, apiKey: string, violation: (what: string) => void) {
    this.#url = url;
    this.#headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
    this.#violation = violation;
  }

  /** Resolves when all clients have stopped. */
  async start(): Promise<void> {
    await Promise.all(Array.from({ length: CLIENTS }, (_, client) => this.#client(client)));
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Verifies every upload again that was acknowledged since the last check. */
  async checkAcknowledged(): Promise<void> {
    const uploads = this.#uploads.splice(0);
    this.figures.acknowledged += uploads.length;
    await inParallel(uploads, CLIENTS, async (uploadId) => {
      if ((await this.#call('verify', () => this.#verify(uploadId), [200])) !== undefined) return;
      this.figures.lost += 1;
      this.#violation(`the acknowledged upload ${uploadId} is lost`);
    });
  }

  async #client(client: number): Promise<void> {
    const file = wav(2000, {}, client + 1);
    while (!this.#isStopped) {
      const slot = (await this.#call(
        'slot',
        () => this.#post('/v1/uploads', '{"purpose":"verify"}'),
        [201],
      )) as Slot | undefined;
      if (slot === undefined) continue;
      const post = () => {
        const form = new FormData();
        for (const [field, value] of Object.entries(slot.fields)) form.append(field, value);
        form.append('file', new Blob([file]), 'take.wav');
        return fetch(slot.url, { method: 'POST', body: form, signal: AbortSignal.timeout(ANSWER_MS) });
      };
      // The first attempt may have stored the file before its response was lost. The repeated one is then 409.
      if ((await this.#call('upload', post, [201, 409])) === undefined) continue;
      this.#uploads.push(slot.uploadId);
      await this.#call('verify', () => this.#verify(slot.uploadId), [200]);
    }
  }

  #verify(uploadId: string): Promise<globalThis.Response> {
    return this.#post('/v1/verify', JSON.stringify({ uploadId }));
  }

  #post(path: string, body: string): Promise<globalThis.Response> {
    return fetch(`${this.#url}${path}`, {
      method: 'POST',
      headers: this.#headers,
      body,
      signal: AbortSignal.timeout(ANSWER_MS),
    });
  }

  /** Makes a call, and repeats it once. @returns the body, or undefined if both attempts failed */
  async #call(
    name: string,
    attempt: () => Promise<globalThis.Response>,
    expected: readonly number[],
  ): Promise<unknown> {
    this.figures.calls += 1;
    let outcome = '';
    for (const attemptNumber of [1, 2]) {
      try {
        const answer = await attempt();
        const text = await answer.text();
        if (expected.includes(answer.status)) return JSON.parse(text) as unknown;
        outcome = `${answer.status} ${text.slice(0, 200)}`;
      } catch (error) {
        outcome = `no answer (${(error as { cause?: { code?: string } }).cause?.code ?? String(error)})`;
      }
      if (attemptNumber === 2) break;
      const kind = `${name}: ${outcome.slice(0, 60)}`;
      this.figures.repeated[kind] = (this.figures.repeated[kind] ?? 0) + 1;
      await delay(RETRY_MS);
    }
    this.figures.failed += 1;
    this.#violation(`a call failed twice: ${name}: ${outcome}`);
    return undefined;
  }
}
