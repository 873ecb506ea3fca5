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
import { defined } from '../../domain/defined.js';
import { type Context, EXIT, RuntimeError } from '../command.js';
import { commonClientOptions, partnerAccess } from '../commands/partner-account.js';
import { type ServiceAccess, serviceAccess } from '../service-access.js';
import { serviceErrorText } from '../service-errors.js';
import { type ProgressBar, printable } from '../terminal.js';
import { asksForDecision, asksForReview, type FileResult, failedFile, problemOf } from './file-result.js';
import { type FoundAudio, findAudio, type PassedOver, type Search, type Unfit } from './find-audio.js';
import { type Format, resultWriter } from './result-formats.js';
import { type Judged, ResumeFile } from './resume-file.js';
import { runBatch } from './run-batch.js';

export interface BatchRequest {
  readonly operands: readonly string[];
  readonly apiKey: string;
  readonly search: Search;
  /** True where a file that is not looked at is a failure. */
  readonly strict: boolean;
  readonly format: Format;
  /** True where files that are plainly good are not reported. */
  readonly quiet: boolean;
  readonly concurrency: number;
  readonly ordered: boolean;
  /** Path of the state file. */
  readonly resume: string | undefined;
  /** Greatest age of a verdict of the state file. */
  readonly maxAgeSeconds: number;
}

/** Bound of the files that are named as not looked at. */
const NAMED_OTHERS = 10;
/** Files of a table that is longer than a screen: those that are not good are named once more at its end. */
const LONG_TABLE = 20;
/** Bound of the files that are named once more. */
const NAMED_AGAIN = 100;
const HASH_CHUNK_BYTES = 1_048_576;

/**
 * Long retries, because nobody watches: a restart of the service, or a full one, delays a batch and does not
 * end it.
 */
const RETRY = { maxAttempts: 10, baseDelayMs: 250, maxDelayMs: 60_000 };

/**
 * Verifies any number of files. A file that fails is a entry; what would fail every file ends the batch.
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
          `${state.ignored} ${state.ignored === 1 ? 'line' : 'lines'} of the state file not believed: too old, of another key or service, or of another hand`,
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
 * Asked with short retries: with those of a batch, a wrong address would be found out after minutes. @returns
 * the service's environment
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
  /** Good files whose evidence asks for a person's decision. */
  #toReview = 0;
  readonly #bytes = { done: 0, uploaded: 0 };
  /** Work that there is, counted beside the run. */
  readonly #total = { files: 0, bytes: 0, known: false };
  /** The first of the files that are not good, and what is wrong with each. */
  readonly #bad: { readonly file: string; readonly problem: string }[] = [];
  #resumed = 0;
  /** Files of the folders that are not looked at: their number, and the first of them. */
  readonly #others = { count: 0, named: [] as PassedOver[] };
  #unanswered = 0;
  /** Reason why no more files are taken. */
  #stop: string | undefined;
  /** Ends what is running when the batch cannot go on. */
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
    // Each upload listens, as many as run at a time; Node would take that for a leak.
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
    if (good + notGood + failed === 0) throw new RuntimeError('there is no audio to verify');
    if (this.#stop !== undefined) throw new RuntimeError(`stopped: ${this.#stop}`);
    if (failed > 0) return EXIT.runtimeError;
    if (notGood > 0) return EXIT.notGood;
    return this.#toReview > 0 ? EXIT.needsReview : EXIT.good;
  }

  async *#jobs(): AsyncGenerator<FoundAudio | Unfit, void, undefined> {
    const { operands, search, strict } = this.#request;
    for await (const found of findAudio(operands, search)) {
      if (!('passedOver' in found)) {
        yield found;
      } else if (strict) {
        yield { path: found.path, problem: `not looked at: ${found.passedOver}` };
      } else {
        this.#others.count += 1;
        if (this.#others.named.length < NAMED_OTHERS) this.#others.named.push(found);
      }
    }
  }

  async #judge(found: FoundAudio | Unfit, signal: AbortSignal): Promise<FileResult> {
    if ('problem' in found)
      return this.#counted(
        failedFile({ file: found.path }, new Error(found.problem), this.#context.config.url),
      );
    const { path: file, sidecar } = found;
    const place = defined({ file, sidecar });
    try {
      // Read once: what is judged, hashed and remembered is the same.
      const companion = sidecar === undefined ? undefined : await sidecarBytes(sidecar);
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
    if (known !== undefined && (await this.#stillStands(known, signal))) {
      this.#resumed += 1;
      this.#bytes.done += found.bytes;
      return known;
    }
    const askedAt = unixSeconds();
    const result = await this.#ask(found, companion, signal);
    // The service's own digest of what it judged. A file that was changed while it was sent has a verdict,
    // but on something else.
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
   * True while a remembered verdict holds: a good one does while its proof has a record, which erasing takes away, and
   * while the record's evidence asks for a person's decision as it did.
   */
  async #stillStands({ accepted, proofId, decision }: Verification, signal: AbortSignal): Promise<boolean> {
    if (!accepted) return true;
    if (proofId === undefined) return false;
    try {
      const { evidenceReport: report } = await this.#client.readRecord(proofId, { signal });
      // Evidence that came later can ask for a decision, or no longer ask for one.
      const asks = report !== undefined && asksForDecision(report);
      return asks === (decision?.status === 'needs_review');
    } catch (error) {
      // Gone, or not for this key to read: the service is asked anew, with the audio.
      if (error instanceof TakemarkError && (error.status === 404 || error.status === 403)) return false;
      throw error;
    }
  }

  async #ask(found: FoundAudio, sidecar: Uint8Array | undefined, signal: AbortSignal): Promise<Verification> {
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
      const result = await this.#client.verifyFile(found.path, { sidecar, signal, onProgress });
      this.#unanswered = 0;
      return result;
    } finally {
      this.#bytes.done += found.bytes - sent;
    }
  }

  /** Reason of a failure that every file to follow would meet too. */
  #reasonToStop(error: unknown): string | undefined {
    if (!(error instanceof TakemarkError)) return undefined;
    const { status, code, reason, retryAfterSeconds, message } = error;
    const told = serviceErrorText(error, 'partner', this.#context.config.url);
    if (code === 'tls_failed') return told;
    // The form's own refusals say something about one upload.
    if (status === 403 && reason?.startsWith('form_') !== true) return message;
    if (
      (status === 429 || status === 503) &&
      retryAfterSeconds !== undefined &&
      retryAfterSeconds * 1000 > RETRY.maxDelayMs
    ) {
      return `${message} The service asks to wait ${retryAfterSeconds} s${this.#state === undefined ? '' : '; run again with the same state file then'}`;
    }
    if (code !== 'connection_failed' && code !== 'timed_out') {
      this.#unanswered = 0;
      return undefined;
    }
    this.#unanswered += 1;
    return this.#unanswered >= Math.max(4, this.#request.concurrency) ? told : undefined;
  }

  #counted(entry: FileResult): FileResult {
    this.#counts[entry.outcome] += 1;
    if (entry.outcome !== 'failed' && asksForReview(entry.result)) this.#toReview += 1;
    const problem = problemOf(entry);
    if (problem !== undefined && this.#bad.length < NAMED_AGAIN)
      this.#bad.push({ file: entry.file, problem });
    return entry;
  }

  /**
   * Goes through the files a second time, for the total alone: holding them would cost memory, waiting would
   * cost time.
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
      // A bar without a total; the run itself reports what is wrong.
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
    const resumed = this.#resumed === 0 ? '' : ` (${this.#resumed} known from the state file)`;
    const toReview = this.#toReview === 0 ? '' : ` (${this.#toReview} to be reviewed)`;
    if (finished > 0)
      terminal.note(
        `${finished} ${finished === 1 ? 'file' : 'files'}: ${good} good${toReview}, ${notGood} not good, ${failed} failed${resumed}`,
      );
    if (this.#request.format === 'table' && !this.#request.quiet && finished > LONG_TABLE)
      for (const { file, problem } of this.#bad) terminal.note(`  ${printable(file)}: ${printable(problem)}`);
    const { count, named } = this.#others;
    if (count === 0) return;
    terminal.note(
      `${count} ${count === 1 ? 'other was' : 'others were'} not looked at${count > named.length ? ', among them' : ''}:`,
    );
    for (const { path, passedOver } of named) terminal.note(`  ${printable(path)} (${passedOver})`);
  }
}

/** SHA-256 of what a file holds now. @throws Error where it is not as long as it was when it was found */
async function fileDigest({ path, bytes }: FoundAudio, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  let read = 0;
  // To one byte more than is expected: a file that grows without end is not read without end.
  for await (const chunk of createReadStream(path, {
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
