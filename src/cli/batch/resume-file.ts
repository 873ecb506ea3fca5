import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { open } from 'node:fs/promises';
import { Batches } from '../../async/batches.js';
import type { Verification } from '../../client/index.js';
import { LineLog } from '../../files/line-log.js';
import { UsageError } from '../command.js';

const HEADER = headerOf(2);
/** Its verdicts were remembered by path, size and time, and anybody could have written them. */
const FORMER_HEADER = headerOf(1);
/** The longest answer that a verdict can come in, and what stands around it. */
const MAX_LINE_BYTES = 17 * 1_048_576;
/** Length of a SHA-256 in base64url and the space behind it. */
const MAC_CHARACTERS = 43;
const KEY_CHARACTERS = 24;
/** Seconds that a verdict may lie in the future: clocks are set. */
const CLOCK_SLACK_SECONDS = 60;

/**
 * Digests of what was judged: SHA-256 of the audio, and of the sidecar where there is one, in lower-case hex.
 */
export interface Judged {
  readonly audio: string;
  readonly sidecar: string | undefined;
}

/** Whose verdicts are believed, and for how long. */
export interface Trust {
  readonly apiKey: string;
  /** Address of the service. */
  readonly service: string;
  /** Environment by the service's own word. */
  readonly environment: string;
  readonly maxAgeSeconds: number;
  /** Unix seconds. */
  readonly now: () => number;
}

/** The lines that were there when the file was opened. */
interface Found {
  readonly places: ReadonlyMap<string, number>;
  readonly ignored: number;
}

/** Content of a line, behind its MAC. */
interface Remembered {
  readonly audio: string;
  readonly sidecar: string | null;
  /** When it was asked for, in unix seconds. */
  readonly at: number;
  readonly result: Verification;
}

/**
 * Verdicts that a batch was given, so that another run after it need not ask for them again: lines of a MAC
 * and JSON, each durable before its row is reported. A verdict is one on contents, wherever they lie, and it
 * is believed where the MAC is that of the same API key at the same service, and while it is young: a proof
 * may be erased. Memory holds a short key and a place for each line that is believed; verdicts are read when
 * they are asked for.
 */
export class ResumeFile {
  readonly #log: LineLog;
  readonly #batches: Batches<string>;
  readonly #macKey: Buffer;
  readonly #trust: Trust;
  /** Key of the contents to the place of their line. */
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

  /** @throws UsageError for a file that is another thing, or of the former form: it would be written to */
  static async open(path: string, trust: Trust): Promise<ResumeFile> {
    const head = await headOf(path, HEADER.length);
    if (head === FORMER_HEADER)
      throw new UsageError(
        `${path} is a state file of a former version, which nothing vouches for: its verdicts are not believed. Name another file; this one is left as it is`,
      );
    if (!HEADER.startsWith(head)) throw new UsageError(`${path} is not a state file of takemark verify`);
    const macKey = macKeyOf(trust);
    const places = new Map<string, number>();
    let ignored = 0;
    // Readable by its owner alone: proofs are a partner's business.
    const log = await LineLog.open({
      path,
      longestLine: MAX_LINE_BYTES,
      each: ({ start, text }) => {
        if (start === 0) return true;
        const remembered = believed(text, macKey, trust);
        if (remembered === undefined) ignored += 1;
        // The later of two on the same contents counts.
        else places.set(keyOf(remembered.audio, remembered.sidecar), start);
        return true;
      },
    });
    if (log.length === 0) await log.append(HEADER);
    return new ResumeFile(log, macKey, trust, { places, ignored });
  }

  /** Lines of another key or service, of another hand, or too old. */
  get ignored(): number {
    return this.#ignored;
  }

  /** @returns undefined where there is none that is believed */
  async find(judged: Judged): Promise<Verification | undefined> {
    const place = this.#places.get(keyOf(judged.audio, judged.sidecar ?? null));
    if (place === undefined) return undefined;
    // Read again, and so judged again: the file may have been written to, and time has gone by.
    const remembered = believed(await this.#log.lineAt(place), this.#macKey, this.#trust);
    return remembered?.audio === judged.audio && remembered.sidecar === (judged.sidecar ?? null)
      ? remembered.result
      : undefined;
  }

  /**
   * Resolves when the verdict is on disk. Those that come while another write runs share the one after it.
   * @param at when it was asked for, in unix seconds
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

/** RFC 5869. The key that signs lines says nothing of the API key, and is another one for another service. */
function macKeyOf({ apiKey, service, environment }: Trust): Buffer {
  const context = JSON.stringify([service, environment]);
  return Buffer.from(hkdfSync('sha256', apiKey, 'takemark verify state', context, 32));
}

/** Content of a line that is ours and not too old. */
function believed(line: Buffer | undefined, macKey: Buffer, trust: Trust): Remembered | undefined {
  if (line === undefined || line[MAC_CHARACTERS] !== 0x20) return undefined;
  const given = Buffer.from(line.toString('latin1', 0, MAC_CHARACTERS), 'base64url');
  const text = line.subarray(MAC_CHARACTERS + 1);
  const ours = mac(macKey, text);
  if (given.length !== ours.length || !timingSafeEqual(given, ours)) return undefined;
  // Lines of this program have its form.
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

/** Short, because one is held for each line. */
function keyOf(audio: string, sidecar: string | null): string {
  return createHash('sha256').update(`${audio} ${sidecar}`).digest('base64url').slice(0, KEY_CHARACTERS);
}

/** At most that many of a file's first bytes; none where there is no file. */
async function headOf(path: string, bytes: number): Promise<string> {
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
