import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Authenticator } from '../../../core/codec/authenticator.js';
import { replaceFile } from '../../../core/files/durable.js';
import { ifPresent } from '../../../core/files/if-present.js';
import { LineLog } from '../../../core/files/line-log.js';
import { makeDirectory } from '../../../core/files/make-directory.js';
import { type ServiceEvent, TOPICS, type Topic } from '../../domain/events.js';
import { parseEvent } from '../../domain/parse-event.js';

export const DEAD_LETTER_FILE = 'dead-letters.log';
export const REPLAY_POSITION_FILE = 'dead-letters.position';

export interface KeptDeadLetter {
  /** The number of the line, from 1, over all topics. */
  readonly number: number;
  readonly at: number;
  readonly reason: string;
  /** The event. Undefined if the line is not as it was written here. Nothing is done with such a line. */
  readonly event: ServiceEvent | undefined;
  /** True for such a line that names no topic. It is shown in each topic, and stays where it is. */
  readonly isOfNoTopic: boolean;
  readonly line: string;
}

export interface DeadLetterReader {
  readonly authenticator: Authenticator;
  /** Lines without a code are taken, too: a version that made none wrote them. */
  readonly acceptWithoutMac: boolean;
}

const MAC_LABEL = 'dead-letter';

type Positions = Partial<Record<Topic, number>>;

/**
 * Events that no consumer could handle: authenticated JSON lines in a file that only grows (mode 0600), and beside it,
 * for each topic, the number up to which they were replayed. Both are on disk when a call resolves. One process at a
 * time may use them.
 */
export class DeadLetterFile {
  readonly #directory: string;
  readonly #reader: DeadLetterReader;
  readonly #log: LineLog;
  #positions: Positions;

  private constructor(directory: string, reader: DeadLetterReader, log: LineLog, positions: Positions) {
    this.#directory = directory;
    this.#reader = reader;
    this.#log = log;
    this.#positions = positions;
  }

  /** Opens the files. The event of a line that a kill cut short comes again, so nothing is lost with that line. */
  static async open(directory: string, reader: DeadLetterReader): Promise<DeadLetterFile> {
    await makeDirectory(directory);
    const positions = await readPositions(directory);
    const log = await LineLog.open({ path: join(directory, DEAD_LETTER_FILE) });
    return new DeadLetterFile(directory, reader, log, positions);
  }

  async append(event: ServiceEvent, reason: string, at: number): Promise<void> {
    const { topic, id, kind, key, at: happenedAt, data } = event;
    const content = { at, reason, topic, event: { id, kind, key, at: happenedAt, data } };
    await this.appendLine(
      JSON.stringify({
        ...content,
        mac: this.#reader.authenticator.sign(MAC_LABEL, Buffer.from(JSON.stringify(content))),
      }),
    );
  }

  /** Appends a line that is in the file already once more. */
  async appendLine(text: string): Promise<void> {
    await this.#log.append(`${text}\n`);
  }

  /** Returns the dead letters that were not replayed yet, and all lines of no topic, oldest first. */
  list(topic: Topic, limit: number): Promise<readonly KeptDeadLetter[]> {
    return this.#find(topic, limit, () => true);
  }

  /** Returns the dead letters that were not replayed yet, oldest first. A line without a topic is left out. */
  replayable(topic: Topic, limit: number): Promise<readonly KeptDeadLetter[]> {
    return this.#find(topic, limit, ({ isOfNoTopic }) => !isOfNoTopic);
  }

  async #find(
    topic: Topic,
    limit: number,
    isWanted: (deadLetter: KeptDeadLetter) => boolean,
  ): Promise<readonly KeptDeadLetter[]> {
    const from = this.#positions[topic] ?? 0;
    const kept: KeptDeadLetter[] = [];
    let number = 0;
    for await (const { text } of this.#log.lines()) {
      number += 1;
      if (kept.length === limit) break;
      const deadLetter = parseDeadLetter(this.#reader, text!.toString('utf8'), number, topic);
      if (deadLetter === undefined || (number <= from && !deadLetter.isOfNoTopic)) continue;
      if (isWanted(deadLetter)) kept.push(deadLetter);
    }
    return kept;
  }

  async markReplayed(topic: Topic, number: number): Promise<void> {
    const positions = { ...this.#positions, [topic]: number };
    await replaceFile(join(this.#directory, REPLAY_POSITION_FILE), JSON.stringify(positions));
    this.#positions = positions;
  }

  close(): Promise<void> {
    return this.#log.close();
  }
}

/**
 * @returns undefined for a dead letter of another topic. One without a valid code and topic is shown in each topic
 */
function parseDeadLetter(
  { authenticator, acceptWithoutMac }: DeadLetterReader,
  line: string,
  number: number,
  wanted: Topic,
): KeptDeadLetter | undefined {
  const { mac, ...content } = parsedLine(line) ?? {};
  const { at, reason, topic, event } = content;
  const isOfNoTopic = TOPICS.every((known) => known !== topic);
  if (topic !== wanted && !isOfNoTopic) return undefined;
  const isOurs =
    mac === undefined
      ? acceptWithoutMac
      : typeof mac === 'string' && authenticator.verify(MAC_LABEL, Buffer.from(JSON.stringify(content)), mac);
  const reading = isOurs ? parseEvent(wanted, event) : undefined;
  if (reading?.ok !== true || typeof at !== 'number' || typeof reason !== 'string') {
    return {
      number,
      at: typeof at === 'number' ? at : 0,
      reason: 'the line is not authenticated, or it is damaged',
      event: undefined,
      isOfNoTopic,
      line,
    };
  }
  return { number, at, reason, event: reading.event, isOfNoTopic: false, line };
}

/** @returns undefined if the text is not a JSON object */
function parsedLine(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const parsed = JSON.parse(line) as unknown;
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

async function readPositions(directory: string): Promise<Positions> {
  const path = join(directory, REPLAY_POSITION_FILE);
  const text = await ifPresent(readFile(path, 'utf8'));
  if (text === undefined) return {};
  const parsed = parsedLine(text);
  if (parsed === undefined)
    throw new Error(
      `${path} is damaged: restore it, or remove it. Without the file, every dead letter counts as not replayed`,
    );
  return Object.fromEntries(
    TOPICS.flatMap((topic) =>
      Number.isSafeInteger(parsed[topic]) ? [[topic, parsed[topic] as number]] : [],
    ),
  );
}
