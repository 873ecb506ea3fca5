import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import type { Verification } from '../../client/index.js';
import { Batches } from '../../core/async/batches.js';
import { LineLog } from '../../core/files/line-log.js';
import { UsageError } from '../command.js';

const HEADER = headerOf(2);
/** The header of version 1, which stored verdicts by path, size and time without a MAC. */
const FORMER_HEADER = headerOf(1);
/** The longest line in bytes: the longest response with a verdict, plus its frame. */
const MAX_LINE_BYTES = 17 * 1_048_576;
/** The length of a SHA-256 MAC in base64url. */
const MAC_CHARACTERS = 43;
const KEY_CHARACTERS = 24;
/** The most seconds that a verdict may be in the future, because clocks get adjusted. */
const CLOCK_SLACK_SECONDS = 60;

/**
 * The lower-case hex SHA-256 of the verified audio and of its sidecar, if there is one.
 */
export interface Judged {
  readonly audio: string;
  readonly sidecar: string | undefined;
}

/** Which saved verdicts are accepted, and for how long. */
export interface Trust {
  readonly apiKey: string;
  /** The address of the service. */
  readonly service: string;
  /** The environment that the service reports. */
  readonly environment: string;
  readonly maxAgeSeconds: number;
  /** Returns the current time in unix seconds. */
  readonly now: () => number;
}

/** The lines that existed when the file was opened. */
interface Found {
  readonly places: ReadonlyMap<string, number>;
  readonly ignored: number;
}

/** The content of a line after its MAC. */
interface Remembered {
  readonly audio: string;
  readonly sidecar: string | null;
  /** The time of the request in unix seconds. */
  readonly at: number;
  readonly result: Verification;
}

/**
 * A file of verdicts that a later run can reuse. Each line has a MAC and JSON, and is durable before its row
 * is reported. A verdict belongs to contents, not to a path. It is accepted if its MAC matches the same API
 * key at the same service and it is recent, because a proof may be erased. Memory holds a short key and an
 * offset per accepted line. Verdicts are read on demand.
 */
export class ResumeFile {
  readonly #log: LineLog;
  readonly #batches: Batches<string>;
  readonly #macKey: Buffer;
  readonly #trust: Trust;
  /** Maps the key of the contents to the offset of its line. */
  readonly #places: ReadonlyMap<string, number>;
  readonly #ignored: number;

  private constructor(log: LineLog, macKey: Buffer, trust: Trust, found: Found) {
    this.#log = log;
    this.#batches = new Batches((lines) => log.append(lines.join('')));
    this.#macKey = macKey;
    this.#trust = trust;
    this.#places = found.places;
    this.#ignored = found.ignored;
  }

  /**
   * Opens or creates the file.
   * @throws UsageError for any other file or for version 1, which must not be overwritten
   */
  static async open(path: string, trust: Trust): Promise<ResumeFile> {
    const head = await headOf(path, HEADER.length);
    if (head === FORMER_HEADER)
      throw new UsageError(
        `${path} is a state file of an older version without authentication, so its verdicts cannot be used. Name another file; this file was not changed`,
      );
    if (!HEADER.startsWith(head)) throw new UsageError(`${path} is not a state file of takemark verify`);
    const macKey = macKeyOf(trust);
    const places = new Map<string, number>();
    let ignored = 0;
    // Readable only by its owner: proofs are confidential to the partner.
    const log = await LineLog.open({
      path,
      longestLine: MAX_LINE_BYTES,
      each: ({ start, text }) => {
        if (start === 0) return true;
        const remembered = believed(text, macKey, trust);
        if (remembered === undefined) ignored += 1;
        // The later of two verdicts on the same contents counts.
        else places.set(keyOf(remembered.audio, remembered.sidecar), start);
        return true;
      },
    });
    if (log.length === 0) await log.append(HEADER);
    return new ResumeFile(log, macKey, trust, { places, ignored });
  }

  /** The number of lines that are too old, of another key or service, or not authentic. */
  get ignored(): number {
    return this.#ignored;
  }

  /** Returns the saved verdict, or undefined if no line is accepted. */
  async find(judged: Judged): Promise<Verification | undefined> {
    const place = this.#places.get(keyOf(judged.audio, judged.sidecar ?? null));
    if (place === undefined) return undefined;
    // Check the line again: the file may have changed, and the verdict may have become too old.
    const remembered = believed(await this.#log.lineAt(place), this.#macKey, this.#trust);
    return remembered?.audio === judged.audio && remembered.sidecar === (judged.sidecar ?? null)
      ? remembered.result
      : undefined;
  }

  /**
   * Appends a verdict and resolves when it is on disk. Verdicts that arrive during a write share the next
   * write.
   * @param at the time of the request, in unix seconds
   */
  append({ audio, sidecar }: Judged, at: number, result: Verification): Promise<void> {
    const remembered: Remembered = { audio, sidecar: sidecar ?? null, at, result };
    const text = JSON.stringify(remembered);
    return this.#batches.add(`${mac(this.#macKey, Buffer.from(text)).toString('base64url')} ${text}\n`);
  }

  async close(): Promise<void> {
    await this.#batches.settled();
    await this.#log.close();
  }
}

/** Derives the MAC key (RFC 5869). It reveals nothing about the API key and differs per service. */
function macKeyOf({ apiKey, service, environment }: Trust): Buffer {
  const context = JSON.stringify([service, environment]);
  return Buffer.from(hkdfSync('sha256', apiKey, 'takemark verify state', context, 32));
}

/** Returns the content of a line that is authentic and not too old. */
function believed(line: Buffer | undefined, macKey: Buffer, trust: Trust): Remembered | undefined {
  if (line === undefined || line[MAC_CHARACTERS] !== 0x20) return undefined;
  const given = Buffer.from(line.toString('latin1', 0, MAC_CHARACTERS), 'base64url');
  const text = line.subarray(MAC_CHARACTERS + 1);
  const ours = mac(macKey, text);
  if (given.length !== ours.length || !timingSafeEqual(given, ours)) return undefined;
  // An authentic line was written by this program, so its form is known.
  const remembered = JSON.parse(text.toString('utf8')) as Remembered;
  const age = trust.now() - remembered.at;
  return age >= -CLOCK_SLACK_SECONDS && age < trust.maxAgeSeconds ? remembered : undefined;
}

function mac(key: Buffer, text: Buffer): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function headerOf(version: number): string {
  return `${JSON.stringify({ takemark: 'verify state', version })}\n`;
}

/** Returns a short key, because one is held in memory per line. */
function keyOf(audio: string, sidecar: string | null): string {
  return createHash('sha256').update(`${audio} ${sidecar}`).digest('base64url').slice(0, KEY_CHARACTERS);
}

/** Returns at most that many of a file's first bytes, or none if the file does not exist. */
async function headOf(path: string, bytes: number): Promise<string> {
  // Before the file is opened, because opening a named pipe waits for a writer.
  const isFile = await stat(path).then(
    (info) => info.isFile(),
    () => true,
  );
  if (!isFile)
    throw new UsageError(`${path} is not a regular file: --resume needs a file that can be read again`);
  const handle = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  try {
    const read = await handle?.read(Buffer.alloc(bytes), 0, bytes, 0);
    return read?.buffer.toString('latin1', 0, read.bytesRead) ?? '';
  } finally {
    await handle?.close();
  }
}
