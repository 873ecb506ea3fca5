import { type FileHandle, mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Authenticator } from '../../codec/authenticator.js';
import { type ServiceEvent, TOPICS, type Topic } from '../../domain/events.js';
import { parseEvent } from '../../domain/parse-event.js';

export const DEAD_LETTER_FILE = 'dead-letters.log';
export const REPLAY_POSITION_FILE = 'dead-letters.position';

export interface KeptLetter {
  /** From 1, over all topics. */
  readonly number: number;
  readonly at: number;
  readonly reason: string;
  /** Undefined where the line is not what was written here: nothing is done with it. */
  readonly event: ServiceEvent | undefined;
  readonly line: string;
}

export interface DeadLetterReader {
  readonly authenticator: Authenticator;
  /** Takes lines without a code, too: those of a version that made none. */
  readonly acceptWithoutMac: boolean;
}

const MAC_LABEL = 'dead-letter';

type Positions = Partial<Record<Topic, number>>;

/**
 * Events that nobody could take: authenticated JSON lines in a file that only grows (mode 0600), and beside
 * it, for each topic, the number up to which they were replayed. Both are on disk when a call resolves. They
 * belong to one process at a time.
 */
export class DeadLetterFile {
  readonly #directory: string;
  readonly #reader: DeadLetterReader;
  readonly #handle: FileHandle;
  #lines: number;
  #length: number;
  #positions: Positions;

  private constructor(
    directory: string,
    reader: DeadLetterReader,
    handle: FileHandle,
    found: { readonly lines: number; readonly length: number; readonly positions: Positions },
  ) {
    this.#directory = directory;
    this.#reader = reader;
    this.#handle = handle;
    this.#lines = found.lines;
    this.#length = found.length;
    this.#positions = found.positions;
  }

  /**
   * A torn last line is what a kill in the middle of a write leaves: the event of it comes again, so it is
   * cut off.
   */
  static async open(directory: string, reader: DeadLetterReader): Promise<DeadLetterFile> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const path = join(directory, DEAD_LETTER_FILE);
    await (await open(path, 'a', 0o600)).close();
    const text = await readFile(path);
    const length = text.lastIndexOf(0x0a) + 1;
    const handle = await open(path, 'r+');
    try {
      if (length < text.length) await handle.truncate(length);
      await handle.sync();
      await syncDirectory(directory);
      return new DeadLetterFile(directory, reader, handle, {
        length,
        lines: linesOf(text.subarray(0, length)).length,
        positions: await readPositions(directory),
      });
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async append(event: ServiceEvent, reason: string, at: number): Promise<void> {
    const { topic, id, kind, key, at: happenedAt, data } = event;
    const letter = { at, reason, topic, event: { id, kind, key, at: happenedAt, data } };
    await this.appendLine(
      JSON.stringify({
        ...letter,
        mac: this.#reader.authenticator.sign(MAC_LABEL, Buffer.from(JSON.stringify(letter))),
      }),
    );
  }

  /** A line that is here already, once more. */
  async appendLine(text: string): Promise<void> {
    const line = Buffer.from(`${text}\n`);
    // At the end of what is known to be good: a write that failed half-way is written over.
    for (let written = 0; written < line.length; )
      written += (await this.#handle.write(line, written, line.length - written, this.#length + written))
        .bytesWritten;
    await this.#handle.sync();
    this.#length += line.length;
    this.#lines += 1;
  }

  /** Those not replayed yet, oldest first. */
  async list(topic: Topic, limit: number): Promise<readonly KeptLetter[]> {
    if (this.#lines === 0) return [];
    const from = this.#positions[topic] ?? 0;
    const text = Buffer.alloc(this.#length);
    await this.#handle.read(text, 0, text.length, 0);
    const letters: KeptLetter[] = [];
    for (const [index, line] of linesOf(text).entries()) {
      if (index < from || letters.length === limit) continue;
      const letter = readLetter(this.#reader, line, index + 1, topic);
      if (letter !== undefined) letters.push(letter);
    }
    return letters;
  }

  async markReplayed(topic: Topic, number: number): Promise<void> {
    const positions = { ...this.#positions, [topic]: number };
    const path = join(this.#directory, REPLAY_POSITION_FILE);
    const partial = await open(`${path}.partial`, 'w', 0o600);
    try {
      await partial.writeFile(JSON.stringify(positions));
      await partial.sync();
    } finally {
      await partial.close();
    }
    await rename(`${path}.partial`, path);
    await syncDirectory(this.#directory);
    this.#positions = positions;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

function linesOf(text: Buffer): readonly string[] {
  return text.toString('utf8').split('\n').slice(0, -1);
}

/**
 * @returns undefined for a letter of another topic; one that nobody vouches for and that names no topic is
 * shown in each
 */
function readLetter(
  { authenticator, acceptWithoutMac }: DeadLetterReader,
  line: string,
  number: number,
  wanted: Topic,
): KeptLetter | undefined {
  const { mac, ...letter } = parsedLine(line);
  const { at, reason, topic, event } = letter;
  if (topic !== wanted && TOPICS.some((known) => known === topic)) return undefined;
  const isOurs =
    mac === undefined
      ? acceptWithoutMac
      : typeof mac === 'string' && authenticator.verify(MAC_LABEL, Buffer.from(JSON.stringify(letter)), mac);
  const reading = isOurs ? parseEvent(wanted, event) : undefined;
  if (reading?.ok !== true || typeof at !== 'number' || typeof reason !== 'string') {
    return {
      number,
      at: typeof at === 'number' ? at : 0,
      reason: 'the line is not authenticated, or it is damaged',
      event: undefined,
      line,
    };
  }
  return { number, at, reason, event: reading.event, line };
}

function parsedLine(line: string): Readonly<Record<string, unknown>> {
  try {
    const parsed = JSON.parse(line) as unknown;
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

async function readPositions(directory: string): Promise<Positions> {
  let text: string;
  try {
    text = await readFile(join(directory, REPLAY_POSITION_FILE), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
  const parsed = JSON.parse(text) as Record<string, unknown>;
  return Object.fromEntries(
    TOPICS.flatMap((topic) =>
      Number.isSafeInteger(parsed[topic]) ? [[topic, parsed[topic] as number]] : [],
    ),
  );
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(dirname(resolve(directory, DEAD_LETTER_FILE)), 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
