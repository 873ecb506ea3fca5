import { createHash } from 'node:crypto';
import { GetObjectCommand, ListObjectsV2Command, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import type { Authenticator } from '../../../core/codec/authenticator.js';
import { ServerError } from '../../../core/domain/errors.js';
import type { ErasureJournal, InstallationMarks, Repeat } from '../../ports/journals.js';
import { type BucketConnection, connectBucket, ifPresent, statusOf } from './bucket-connection.js';
import { checkProofId, guarded } from './failure.js';

export interface BucketNotesOptions extends BucketConnection {
  /** Makes and checks the codes of notes. */
  readonly authenticator: Authenticator;
  /** Absent: a client of its own over the connection. */
  readonly client?: S3Client;
}

/** Notes of an installation in its bucket, apart from the keyspace, which may be put back. */
export interface BucketNotes {
  readonly journal: ErasureJournal;
  readonly marks: InstallationMarks;
}

type Erasure = Parameters<ErasureJournal['record']>[0];

/** A slash is in no deliverable's name, so neither their collection nor their lists meet a note. */
const ERASURES = 'erasures/';
const MARKS = 'installation/';
/** The time in milliseconds after which a note is given up. Its caller gets an error, and nothing is decided. */
const NOTE_MS = 6000;
/** Bytes of a note; ours are of some 150. */
const NOTE_BYTES = 4096;
const READ_AT_ONCE = 64;
/** The number of damaged entries that an error names. */
const MAX_NAMED = 20;

/**
 * Opens the notes, which are small objects beside the deliverables: `<prefix>erasures/<proof id>` and
 * `<prefix>installation/<mark>`. A note has a line with a code under the audit secret, which also covers the name,
 * and a line of JSON. Failures of the bucket are DomainError `unavailable` / `store_unavailable`.
 */
export function openBucketNotes(options: BucketNotesOptions): BucketNotes {
  const client = options.client ?? connectBucket(options);
  const notes = new Notes(client, options);
  return {
    journal: {
      async record({ proofId, partnerId, erasedAt }) {
        checkProofId(proofId);
        await notes.write(ERASURES + proofId, { partnerId, erasedAt });
      },
      read: (repeat = (attempt) => attempt(), isHeld = async () => true) =>
        readErasures(notes, repeat, isHeld),
      close: async () => client.destroy(),
    },
    marks: {
      async read() {
        const [beat, epoch] = await Promise.all(
          ['beat', 'epoch'].map(async (mark) => (await notes.read(MARKS + mark)) as number | undefined),
        );
        return { beat: beat ?? 0, epoch: epoch ?? 0 };
      },
      setBeat: (beat) => notes.write(`${MARKS}beat`, beat),
      setEpoch: (epoch) => notes.write(`${MARKS}epoch`, epoch),
    },
  };
}

/** Yields the entries of the journal. The next ones are read while the entries before them are worked on. */
async function* readErasures(
  notes: Notes,
  repeat: Repeat,
  isHeld: (proofId: string) => Promise<boolean>,
): AsyncGenerator<Erasure> {
  const damaged: string[] = [];
  let damagedCount = 0;
  const read = (names: readonly string[]) =>
    Promise.all(
      names.map(async (name): Promise<Erasure | undefined> => {
        const proofId = name.slice(ERASURES.length);
        try {
          const { partnerId, erasedAt } = (await repeat(() => notes.read(name))) as Omit<Erasure, 'proofId'>;
          return { proofId, partnerId, erasedAt };
        } catch (error) {
          if (!(error instanceof DamagedNote)) throw error;
          // A server on a directory that was killed leaves the file that it was writing, under a name of its own.
          if (!(await isHeld(proofId))) return undefined;
          damagedCount += 1;
          if (damaged.length < MAX_NAMED) damaged.push(name);
          return undefined;
        }
      }),
    );
  let ahead: ReturnType<typeof read> = Promise.resolve([]);
  const next = (names: readonly string[]): ReturnType<typeof read> => {
    const before = ahead;
    ahead = read(names);
    // Awaited in its turn; a failure before it is not unhandled.
    ahead.catch(() => undefined);
    return before;
  };
  for await (const names of notes.list(ERASURES, repeat))
    for (let first = 0; first < names.length; first += READ_AT_ONCE)
      for (const erasure of await next(names.slice(first, first + READ_AT_ONCE)))
        if (erasure !== undefined) yield erasure;
  for (const erasure of await next([])) if (erasure !== undefined) yield erasure;
  if (damagedCount > 0)
    throw new ServerError(
      `${damagedCount} entries of the erasure journal were not written by this installation, or were changed: ${damaged.join(', ')}`,
    );
}

/** A note that this installation did not write. */
class DamagedNote extends ServerError {
  override readonly name = 'DamagedNote';
}

class Notes {
  readonly #client: S3Client;
  readonly #options: BucketNotesOptions;

  constructor(client: S3Client, options: BucketNotesOptions) {
    this.#client = client;
    this.#options = options;
  }

  /** Writes a note, which is durable when the promise resolves. */
  write(name: string, value: unknown): Promise<void> {
    const { bucket, prefix, authenticator } = this.#options;
    const text = JSON.stringify(value);
    const body = Buffer.from(`${authenticator.sign(labelOf(name), Buffer.from(text))}\n${text}\n`);
    return guarded('bucket', async () => {
      await this.#client.send(
        new PutObjectCommand({
          Bucket: bucket,
          Key: prefix + name,
          Body: body,
          ContentMD5: createHash('md5').update(body).digest('base64'),
        }),
        { abortSignal: AbortSignal.timeout(NOTE_MS) },
      );
    });
  }

  /**
   * Returns the value of a note, or undefined without one.
   * @throws DamagedNote
   */
  async read(name: string): Promise<unknown> {
    const text = await guarded('bucket', () => this.#text(name));
    if (text === undefined) return undefined;
    const [code = '', json = ''] = text.split('\n');
    if (!this.#options.authenticator.verify(labelOf(name), Buffer.from(json), code))
      throw new DamagedNote(
        `the note ${name} in the bucket was not written by this installation, or was changed`,
      );
    return JSON.parse(json);
  }

  /** Yields the names of the notes under a first part, in pages. */
  async *list(under: string, repeat: Repeat): AsyncGenerator<readonly string[]> {
    const { bucket, prefix } = this.#options;
    let after: string | undefined;
    do {
      const command = new ListObjectsV2Command({
        Bucket: bucket,
        Prefix: prefix + under,
        ...(after === undefined ? {} : { ContinuationToken: after }),
      });
      const page = await repeat(() => guarded('bucket', () => this.#client.send(command)));
      // A console shows a folder as an object of its name.
      yield (page.Contents ?? []).flatMap(({ Key: key }) =>
        key === undefined || key === prefix + under ? [] : [key.slice(prefix.length)],
      );
      after = page.NextContinuationToken;
    } while (after !== undefined);
  }

  async #text(name: string): Promise<string | undefined> {
    const { bucket, prefix } = this.#options;
    try {
      const found = await ifPresent(
        this.#client.send(
          new GetObjectCommand({ Bucket: bucket, Key: prefix + name, Range: `bytes=0-${NOTE_BYTES - 1}` }),
          { abortSignal: AbortSignal.timeout(NOTE_MS) },
        ),
      );
      return await found?.Body?.transformToString();
    } catch (error) {
      // Nothing is in it.
      if (statusOf(error) === 416) return '';
      throw error;
    }
  }
}

function labelOf(name: string): string {
  return `bucket/${name}`;
}
