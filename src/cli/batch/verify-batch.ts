import { setMaxListeners } from 'node:events';
import { TakemarkError } from '../../client/errors.js';
import { createClient, type Client, type Progress } from '../../client/index.js';
import { EXIT, TroubleError, type Surroundings } from '../command.js';
import type { ProgressBar } from '../terminal.js';
import { findAudio, stampOf, type Found, type FoundAudio } from './find-audio.js';
import { ResumeFile, resumeKey } from './resume-file.js';
import { failedRow, type Row } from './row.js';
import { rowWriter, type Format } from './row-formats.js';
import { runBatch } from './run-batch.js';

export interface BatchRequest {
  readonly operands: readonly string[];
  readonly apiKey: string;
  readonly pairs: boolean;
  readonly format: Format;
  readonly concurrency: number;
  readonly ordered: boolean;
  /** Path of the state file. */
  readonly resume: string | undefined;
}

/** Patient, because nobody watches: a restart of the service, or a full one, delays a batch and does not end it. */
const RETRY = { maxAttempts: 10, baseDelayMs: 250, maxDelayMs: 60_000 };

/** Verifies any number of files. A file that fails is a row; what would fail every file ends the batch. @returns the exit code */
export async function verifyBatch(request: BatchRequest, surroundings: Surroundings): Promise<number> {
  const { terminal, config, signal } = surroundings;
  const client = createClient({ baseUrl: config.url, apiKey: request.apiKey, retry: RETRY });
  const state = request.resume === undefined ? undefined : await ResumeFile.open(request.resume);
  const bar = terminal.progressBar('');
  try {
    await beUp(config.url, signal);
    const batch = new Batch(request, surroundings, client, state, bar);
    return await batch.run();
  } finally {
    bar.end();
    client.close();
    await state?.close();
  }
}

/** With the patience of a batch, a wrong address would be found out after minutes. */
async function beUp(url: string, signal: AbortSignal): Promise<void> {
  const client = createClient({ baseUrl: url });
  try {
    await client.health({ signal });
  } finally {
    client.close();
  }
}

class Batch {
  readonly #request: BatchRequest;
  readonly #surroundings: Surroundings;
  readonly #client: Client;
  readonly #state: ResumeFile | undefined;
  readonly #bar: ProgressBar;
  readonly #counts = { good: 0, not_good: 0, failed: 0 };
  readonly #bytes = { done: 0, uploaded: 0 };
  /** What there is to do, while and once it is known. */
  readonly #total = { files: 0, bytes: 0, known: false };
  #resumed = 0;
  #unanswered = 0;
  /** Why no more files are taken. */
  #stop: string | undefined;
  /** Ends what is running when the batch cannot go on. */
  readonly #broken = new AbortController();

  constructor(request: BatchRequest, surroundings: Surroundings, client: Client, state: ResumeFile | undefined, bar: ProgressBar) {
    this.#request = request;
    this.#surroundings = surroundings;
    this.#client = client;
    this.#state = state;
    this.#bar = bar;
  }

  async run(): Promise<number> {
    const { operands, pairs, format, concurrency, ordered } = this.#request;
    const { terminal, signal } = this.#surroundings;
    const either = AbortSignal.any([signal, this.#broken.signal]);
    // Each upload listens, as many as run at a time; Node would take that for a leak.
    setMaxListeners(0, signal, either);
    const writer = rowWriter(format, terminal);
    writer.begin();
    const counting = this.#count(either);
    try {
      await runBatch<Found, Row>({
        jobs: findAudio(operands, { pairs }),
        concurrency,
        ordered,
        work: (found) => this.#judge(found, either),
        report: (row) => {
          this.#bar.clear();
          writer.row(row);
          this.#draw();
        },
        stopped: () => this.#stop !== undefined || signal.aborted,
      });
    } finally {
      this.#broken.abort(new Error('the batch is over'));
      await counting;
      this.#bar.end();
      this.#summarise();
    }
    signal.throwIfAborted();
    const { good, not_good: notGood, failed } = this.#counts;
    if (good + notGood + failed === 0) throw new TroubleError('there is no audio to verify');
    if (this.#stop !== undefined) throw new TroubleError(`stopped: ${this.#stop}`);
    return failed > 0 ? EXIT.trouble : notGood > 0 ? EXIT.notGood : EXIT.good;
  }

  async #judge(found: Found, signal: AbortSignal): Promise<Row> {
    if ('problem' in found) return this.#counted(failedRow({ file: found.path }, new Error(found.problem)));
    const key = resumeKey(this.#surroundings.config.url, found);
    const finished = await this.#state?.find(key);
    if (finished !== undefined) {
      this.#resumed += 1;
      this.#bytes.done += found.bytes;
      return this.#counted(finished);
    }
    const { path: file, sidecar } = found;
    const row = await this.#verify(found, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      this.#stop ??= this.#reasonToStop(error);
      return failedRow({ file, ...(sidecar === undefined ? {} : { sidecar }) }, error);
    });
    // A file that was changed while it was sent has a verdict, but not one to remember it by.
    if (row.outcome !== 'failed' && this.#state !== undefined && (await stampOf(found)) === found.stamp) {
      await this.#state.append(key, row).catch((error: unknown) => {
        this.#broken.abort(error);
        throw error;
      });
    }
    return this.#counted(row);
  }

  async #verify(found: FoundAudio, signal: AbortSignal): Promise<Row> {
    const { path: file, sidecar } = found;
    let sent = 0;
    const onProgress = ({ sentBytes }: Progress): void => {
      // A repeated upload begins again; it is not more of the file.
      const more = Math.max(0, Math.min(sentBytes, found.bytes) - sent);
      sent += more;
      this.#bytes.done += more;
      this.#bytes.uploaded += more;
      this.#draw();
    };
    try {
      const result = await this.#client.verifyFile(file, { sidecar, signal, onProgress });
      this.#unanswered = 0;
      return { file, ...(sidecar === undefined ? {} : { sidecar }), outcome: result.accepted ? 'good' : 'not_good', result };
    } finally {
      this.#bytes.done += found.bytes - sent;
    }
  }

  /** Trouble that every file to follow would meet too. */
  #reasonToStop(error: unknown): string | undefined {
    if (!(error instanceof TakemarkError)) return undefined;
    const { status, code, reason, retryAfterSeconds, message } = error;
    if (code === 'tls_failed') return message;
    // The form's own refusals say something about one upload.
    if (status === 403 && reason?.startsWith('form_') !== true) return message;
    if ((status === 429 || status === 503) && retryAfterSeconds !== undefined && retryAfterSeconds * 1_000 > RETRY.maxDelayMs) {
      return `${message} The service asks to wait ${retryAfterSeconds} s${this.#state === undefined ? '' : '; run again with the same state file then'}`;
    }
    if (code !== 'connection_failed' && code !== 'timed_out') {
      this.#unanswered = 0;
      return undefined;
    }
    this.#unanswered += 1;
    return this.#unanswered >= Math.max(4, this.#request.concurrency) ? `no answer from the service: ${message}` : undefined;
  }

  #counted(row: Row): Row {
    this.#counts[row.outcome] += 1;
    return row;
  }

  /** Goes through the files a second time, for the total alone: holding them would cost memory, waiting would cost time. */
  async #count(signal: AbortSignal): Promise<void> {
    if (!this.#bar.visible) return;
    const { operands, pairs } = this.#request;
    try {
      for await (const found of findAudio(operands, { pairs })) {
        if (signal.aborted) return;
        this.#total.files += 1;
        if ('bytes' in found) this.#total.bytes += found.bytes;
      }
      this.#total.known = true;
    } catch {
      // A bar without a total; the run itself reports what is wrong.
    }
  }

  #draw(): void {
    const { good, not_good: notGood, failed } = this.#counts;
    const finished = good + notGood + failed;
    const bad = notGood + failed === 0 ? '' : `, ${notGood + failed} not good`;
    const label = `${finished}${this.#total.known ? `/${this.#total.files}` : ''} files${bad}`;
    this.#bar.update(this.#bytes.done, this.#total.known ? this.#total.bytes : undefined, { label, workedBytes: this.#bytes.uploaded });
  }

  #summarise(): void {
    const { good, not_good: notGood, failed } = this.#counts;
    const finished = good + notGood + failed;
    const resumed = this.#resumed === 0 ? '' : ` (${this.#resumed} known from the state file)`;
    if (finished > 0) this.#surroundings.terminal.note(`${finished} ${finished === 1 ? 'file' : 'files'}: ${good} good, ${notGood} not good, ${failed} failed${resumed}`);
  }
}
