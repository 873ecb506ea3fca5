import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { createReadStream } from 'node:fs';
import { parseBase } from '../../client/connection.js';
import { TakemarkError } from '../../client/errors.js';
import {
  type AudioSummary,
  type Client,
  createClient,
  type Progress,
  type Verification,
} from '../../client/index.js';
import { sidecarBytes } from '../../client/source.js';
import { defined } from '../../core/domain/defined.js';
import { type Context, EXIT, RuntimeError } from '../command.js';
import { commonClientOptions, partnerAccess } from '../commands/partner-account.js';
import { type ServiceAccess, serviceAccess } from '../service-access.js';
import { serviceErrorText } from '../service-errors.js';
import { type ProgressBar, printable } from '../terminal.js';
import {
  ambiguousFile,
  asksForDecision,
  asksForReview,
  type FileResult,
  failedFile,
  isAmbiguous,
  problemOf,
} from './file-result.js';
import { type FoundAudio, findAudio, type PassedOver, type Search, type Unfit } from './find-audio.js';
import { type Format, resultWriter } from './result-formats.js';
import { type Judged, ResumeFile } from './resume-file.js';
import { runBatch } from './run-batch.js';

export interface BatchRequest {
  readonly operands: readonly string[];
  readonly apiKey: string;
  readonly search: Search;
  /** True if a skipped file is a failure. */
  readonly strict: boolean;
  readonly format: Format;
  /** True if good files that need no review are not reported. */
  readonly quiet: boolean;
  readonly concurrency: number;
  readonly ordered: boolean;
  /** The path of the state file. */
  readonly resume: string | undefined;
  /** The maximum age of a saved verdict in seconds. */
  readonly maxAgeSeconds: number;
}

/** The most skipped files that the summary names. */
const NAMED_OTHERS = 10;
/** The number of table rows above which files that are not good are listed again at the end. */
const LONG_TABLE = 20;
/** The most files that are listed again. */
const NAMED_AGAIN = 100;
const HASH_CHUNK_BYTES = 1_048_576;

/**
 * Retries for long, because a batch runs unattended: a restart or an overload of the service only delays it.
 */
const RETRY = { maxAttempts: 10, baseDelayMs: 250, maxDelayMs: 60_000 };

/**
 * Verifies any number of files. A file that fails is a result. A failure that would hit every file ends the
 * batch.
 * @returns the exit code
 */
export async function verifyBatch(request: BatchRequest, context: Context): Promise<number> {
  const { terminal, config, signal } = context;
  const access = await serviceAccess(config, config.url);
  const client = createClient({
    baseUrl: config.url,
    retry: RETRY,
    ...commonClientOptions(context),
    ...(await partnerAccess(config)),
  });
  const bar = terminal.progressBar('');
  let state: ResumeFile | undefined;
  try {
    const environment = await beUp(config.url, access, signal);
    if (request.resume !== undefined) {
      const { apiKey, maxAgeSeconds } = request;
      state = await ResumeFile.open(request.resume, {
        apiKey,
        service: parseBase(config.url).href,
        environment,
        maxAgeSeconds,
        now: unixSeconds,
      });
      if (state.ignored > 0)
        terminal.note(
          `${state.ignored} ${state.ignored === 1 ? 'line' : 'lines'} of the state file ignored: too old, of another key or service, or not authentic`,
        );
    }
    const batch = new Batch(request, context, client, state, bar);
    return await batch.run();
  } finally {
    bar.end();
    client.close();
    await state?.close();
  }
}

/**
 * Checks that the service is up and returns its environment. Its retries are short: with the batch's retries,
 * a wrong address would be reported only after minutes.
 */
async function beUp(url: string, access: ServiceAccess, signal: AbortSignal): Promise<string> {
  const client = createClient({ baseUrl: url, ...access });
  try {
    const { environment } = await client.health({ signal });
    return String(environment);
  } finally {
    client.close();
  }
}

function unixSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

class Batch {
  readonly #request: BatchRequest;
  readonly #context: Context;
  readonly #client: Client;
  readonly #state: ResumeFile | undefined;
  readonly #bar: ProgressBar;
  readonly #counts = { good: 0, not_good: 0, failed: 0 };
  /** The number of good files whose evidence needs a person's decision. */
  #toReview = 0;
  /** The number of failed files whose sidecar is ambiguous. */
  #ambiguous = 0;
  readonly #bytes = { done: 0, uploaded: 0 };
  /** The total work, counted in parallel to the run. */
  readonly #total = { files: 0, bytes: 0, known: false };
  /** The first files that are not good, with their problems. */
  readonly #bad: { readonly file: string; readonly problem: string }[] = [];
  #resumed = 0;
  /** The number of skipped files, and the first of them. */
  readonly #others = { count: 0, named: [] as PassedOver[] };
  #unanswered = 0;
  /** The reason why no more files are started. */
  #stop: string | undefined;
  /** Aborts running work when the batch cannot continue. */
  readonly #broken = new AbortController();

  constructor(
    request: BatchRequest,
    context: Context,
    client: Client,
    state: ResumeFile | undefined,
    bar: ProgressBar,
  ) {
    this.#request = request;
    this.#context = context;
    this.#client = client;
    this.#state = state;
    this.#bar = bar;
  }

  async run(): Promise<number> {
    const { format, quiet, concurrency, ordered } = this.#request;
    const { terminal, signal } = this.#context;
    const either = AbortSignal.any([signal, this.#broken.signal]);
    // Each running upload adds a listener, which Node would report as a leak.
    setMaxListeners(0, signal, either);
    const writer = resultWriter(format, terminal);
    writer.begin();
    const counting = this.#count(either);
    try {
      await runBatch<FoundAudio | Unfit, FileResult>({
        jobs: this.#jobs(),
        concurrency,
        ordered,
        work: (found) => this.#judge(found, either),
        report: (entry) => {
          this.#bar.clear();
          if (!quiet || problemOf(entry) !== undefined) writer.write(entry);
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
    if (good + notGood + failed === 0) throw new RuntimeError('no audio files found');
    if (this.#stop !== undefined) throw new RuntimeError(`stopped: ${this.#stop}`);
    if (failed > this.#ambiguous) return EXIT.runtimeError;
    if (notGood > 0) return EXIT.notGood;
    if (this.#ambiguous > 0) return EXIT.ambiguous;
    return this.#toReview > 0 ? EXIT.needsReview : EXIT.good;
  }

  async *#jobs(): AsyncGenerator<FoundAudio | Unfit, void, undefined> {
    const { operands, search, strict } = this.#request;
    for await (const found of findAudio(operands, search)) {
      if (!('passedOver' in found)) {
        yield found;
      } else if (strict) {
        yield { path: found.path, problem: `skipped: ${found.passedOver}` };
      } else {
        this.#others.count += 1;
        if (this.#others.named.length < NAMED_OTHERS) this.#others.named.push(found);
      }
    }
  }

  async #judge(found: FoundAudio | Unfit, signal: AbortSignal): Promise<FileResult> {
    if ('problem' in found)
      return this.#counted(
        found.ambiguous
          ? ambiguousFile(found.path, found.problem)
          : failedFile({ file: found.path }, new Error(found.problem), this.#context.config.url),
      );
    const { path: file, sidecar, sidecarPlace } = found;
    const place = defined({ file, sidecar });
    try {
      // Read the sidecar once, so that the verified, hashed and saved bytes are the same.
      const companion =
        sidecar === undefined
          ? undefined
          : await sidecarBytes(sidecarPlace ? { path: sidecarPlace } : sidecar);
      const result = await this.#verdict(found, companion, signal);
      return this.#counted({ ...place, outcome: result.accepted ? 'good' : 'not_good', result });
    } catch (error) {
      signal.throwIfAborted();
      this.#stop ??= this.#reasonToStop(error);
      return this.#counted(failedFile(place, error, this.#context.config.url));
    }
  }

  async #verdict(
    found: FoundAudio,
    companion: Uint8Array | undefined,
    signal: AbortSignal,
  ): Promise<Verification> {
    if (this.#state === undefined) return this.#ask(found, companion, signal);
    const judged: Judged = {
      audio: await fileDigest(found, signal),
      sidecar: companion === undefined ? undefined : createHash('sha256').update(companion).digest('hex'),
    };
    const known = await this.#state.find(judged);
    if (known !== undefined && (await this.#isStillValid(known, signal))) {
      this.#resumed += 1;
      this.#bytes.done += found.bytes;
      return known;
    }
    const askedAt = unixSeconds();
    const result = await this.#ask(found, companion, signal);
    // Compare with the service's own digest: the verdict of a file that changed during the upload is on other
    // bytes.
    const measured = (result.audio as AudioSummary | undefined)?.sha256;
    if (measured === judged.audio) {
      await this.#state.append(judged, askedAt, result).catch((error: unknown) => {
        this.#broken.abort(error);
        throw error;
      });
    }
    return result;
  }

  /**
   * Returns true while a saved verdict is still valid. A good verdict is valid while its proof has a record,
   * which an erasure deletes, and while the record's evidence needs a decision exactly as before.
   */
  async #isStillValid({ accepted, proofId, decision }: Verification, signal: AbortSignal): Promise<boolean> {
    if (!accepted) return true;
    if (proofId === undefined) return false;
    try {
      const { evidenceReport: report } = await this.#client.readRecord(proofId, { signal });
      // Evidence added later can change whether a decision is needed.
      const asks = report !== undefined && asksForDecision(report);
      return asks === (decision?.status === 'needs_review');
    } catch (error) {
      // The record is gone or this key may not read it: verify the audio again.
      if (error instanceof TakemarkError && (error.status === 404 || error.status === 403)) return false;
      throw error;
    }
  }

  async #ask(found: FoundAudio, sidecar: Uint8Array | undefined, signal: AbortSignal): Promise<Verification> {
    let sent = 0;
    const onProgress = ({ sentBytes }: Progress): void => {
      // A repeated upload starts again at 0 and must not be counted twice.
      const more = Math.max(0, Math.min(sentBytes, found.bytes) - sent);
      sent += more;
      this.#bytes.done += more;
      this.#bytes.uploaded += more;
      this.#draw();
    };
    try {
      const result = await this.#client.verifyFile(found.place ? { path: found.place } : found.path, {
        sidecar,
        signal,
        onProgress,
      });
      this.#unanswered = 0;
      return result;
    } finally {
      this.#bytes.done += found.bytes - sent;
    }
  }

  /** Returns the reason if every later file would fail in the same way. */
  #reasonToStop(error: unknown): string | undefined {
    if (!(error instanceof TakemarkError)) return undefined;
    const { status, code, reason, retryAfterSeconds, message } = error;
    const text = serviceErrorText(error, 'partner', this.#context.config.url);
    if (code === 'tls_failed') return text;
    // A refusal of the form concerns only one upload.
    if (status === 403 && reason?.startsWith('form_') !== true) return message;
    if (
      (status === 429 || status === 503) &&
      retryAfterSeconds !== undefined &&
      retryAfterSeconds * 1000 > RETRY.maxDelayMs
    ) {
      return `${message} The service asks to wait ${retryAfterSeconds} s${this.#state === undefined ? '' : '; after that, run again with the same state file'}`;
    }
    if (code !== 'connection_failed' && code !== 'timed_out') {
      this.#unanswered = 0;
      return undefined;
    }
    this.#unanswered += 1;
    return this.#unanswered >= Math.max(4, this.#request.concurrency) ? text : undefined;
  }

  #counted(entry: FileResult): FileResult {
    this.#counts[entry.outcome] += 1;
    if (entry.outcome !== 'failed' && asksForReview(entry.result)) this.#toReview += 1;
    if (isAmbiguous(entry)) this.#ambiguous += 1;
    const problem = problemOf(entry);
    if (problem !== undefined && this.#bad.length < NAMED_AGAIN)
      this.#bad.push({ file: entry.file, problem });
    return entry;
  }

  /**
   * Walks the files a second time only for the total. Holding all files would cost memory, and waiting for
   * the total would delay the run.
   */
  async #count(signal: AbortSignal): Promise<void> {
    if (!this.#bar.visible) return;
    const { operands, search, strict } = this.#request;
    try {
      for await (const found of findAudio(operands, search)) {
        if (signal.aborted) return;
        if ('passedOver' in found && !strict) continue;
        this.#total.files += 1;
        if ('bytes' in found) this.#total.bytes += found.bytes;
      }
      this.#total.known = true;
    } catch {
      // The bar then has no total. The run itself reports the error.
    }
  }

  #draw(): void {
    const { good, not_good: notGood, failed } = this.#counts;
    const finished = good + notGood + failed;
    const bad = notGood + failed === 0 ? '' : `, ${notGood + failed} not good`;
    const label = `${finished}${this.#total.known ? `/${this.#total.files}` : ''} files${bad}`;
    this.#bar.update(this.#bytes.done, this.#total.known ? this.#total.bytes : undefined, {
      label,
      workedBytes: this.#bytes.uploaded,
    });
  }

  #summarise(): void {
    const { terminal } = this.#context;
    const { good, not_good: notGood, failed } = this.#counts;
    const finished = good + notGood + failed;
    const resumed = this.#resumed === 0 ? '' : ` (${this.#resumed} from the state file)`;
    const ambiguous = this.#ambiguous === 0 ? '' : ` (${this.#ambiguous} ambiguous)`;
    const toReview = this.#toReview === 0 ? '' : ` (${this.#toReview} need review)`;
    if (finished > 0)
      terminal.note(
        `${finished} ${finished === 1 ? 'file' : 'files'}: ${good} good${toReview}, ${notGood} not good, ${failed} failed${ambiguous}${resumed}`,
      );
    if (this.#request.format === 'table' && !this.#request.quiet && finished > LONG_TABLE)
      for (const { file, problem } of this.#bad) terminal.note(`  ${printable(file)}: ${printable(problem)}`);
    const { count, named } = this.#others;
    if (count === 0) return;
    terminal.note(
      `${count} other ${count === 1 ? 'file' : 'files'} skipped${count > named.length ? ', including' : ''}:`,
    );
    for (const { path, passedOver } of named) terminal.note(`  ${printable(path)} (${passedOver})`);
  }
}

/** Returns the SHA-256 of a file. @throws Error if the length changed since the file was found */
async function fileDigest({ path, place, bytes }: FoundAudio, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  let read = 0;
  // Read at most one byte more than expected, so that a growing file is not read forever.
  for await (const chunk of createReadStream(place ?? path, {
    end: bytes,
    highWaterMark: HASH_CHUNK_BYTES,
    signal,
  }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    read += chunk.length;
  }
  if (read !== bytes) throw new Error('the file has changed since it was found');
  return hash.digest('hex');
}
