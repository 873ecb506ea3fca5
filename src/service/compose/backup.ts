import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { createInterface } from 'node:readline';
import { RecordCodec, RecordError } from '../../core/codec/record.js';
import { decodeSnapshot, type SnapshotRow } from '../../core/codec/store-snapshot.js';
import { isOneDevice } from '../../core/files/device.js';
import { replaceFile, syncDirectory, UNFINISHED, writeAll } from '../../core/files/durable.js';
import { ifPresent } from '../../core/files/if-present.js';
import { makeDirectory } from '../../core/files/make-directory.js';
import { Database } from '../adapters/embedded/database.js';
import { formatKey } from '../adapters/embedded/keys.js';
import { ERASURE_JOURNAL_FILE } from '../adapters/journals/erasure-journal.js';
import { OPERATOR_TOKEN_FILE } from '../adapters/signing/operator-token.js';
import { SECRETS_FILE } from '../adapters/signing/secrets.js';
import { systemClock } from '../adapters/system/system.js';
import type { Config } from '../config/config.js';
import { authenticatorOf, openSecrets } from './identity.js';
import { isStoreShared } from './infrastructure.js';
import { NOTED_FILE } from './local-listener.js';

const STORE = 'store';
/**
 * What a backup copies from the data directory, beside the rows of the store. Content keys and journals are left
 * out: an erasure must outlive every backup.
 */
export const COPIED = [
  'assets',
  'dead-letters',
  'signing',
  'clock',
  NOTED_FILE,
  OPERATOR_TOKEN_FILE,
  SECRETS_FILE,
] as const;
/** Directories of unfinished files, which the next start deletes. */
const NEVER_COPIED: ReadonlySet<string> = new Set([join('assets', 'staging')]);
/** What may be in a data directory before a restore. */
const KEPT: readonly string[] = ['content-keys', 'journals', 'lost+found'];

/** The last file of a backup. Without it the backup is not complete. */
const MANIFEST = 'backup.json';
const MANIFEST_BYTES = 4096;
/** The digests of all other files, as `sha256sum --check` reads them. */
const LIST = 'files.sha256';
const LIST_LINE = /^([0-9a-f]{64}) {2}([\w.=@+~-]+(?:\/[\w.=@+~-]+)*)$/;
/** The file in a data directory whose restore has not ended. */
const MARK = 'restore-unfinished';

/** The files that are copied at once. */
const FILES_AT_ONCE = 32;
/** The bytes of rows that are written to the backup's store at once. */
const BATCH_BYTES = 4 * 1024 * 1024;

interface Manifest {
  readonly version: 1;
  readonly environment: string;
  /** The time before the snapshot was read, in unix seconds. */
  readonly takenAt: number;
  readonly rows: number;
  readonly files: number;
  readonly bytes: number;
  /** The SHA-256 of the list of files, in hex. */
  readonly list: string;
}

export interface Backup extends Omit<Manifest, 'version' | 'list'> {
  /** True if the backup is on the device of the data directory, which both would be lost with. */
  readonly isBesideStore: boolean;
}

/**
 * Makes a backup of one machine while its service runs: `takemark operator backup`. The rows are read first. So
 * the files of every proof in the backup exist when they are copied, unless the proof was erased since.
 * @param directory the directory of the backup, which must be empty or absent
 * @param readSnapshot reads the rows from the service
 * @throws Error with a message for the operator
 */
export async function makeBackup(
  config: Config,
  directory: string,
  readSnapshot: (receive: (body: AsyncIterable<Uint8Array>) => Promise<void>) => Promise<void>,
  signal?: AbortSignal,
): Promise<Backup> {
  const { dataDirectory, environment } = config;
  if (isStoreShared(config))
    throw new Error(
      'takemark operator backup is for one machine. Back up the servers of a cluster instead: docs/operating/back-up.md',
    );
  if ((await ifPresent(stat(join(dataDirectory, STORE)))) === undefined)
    throw new Error(`${dataDirectory} has no store: set TAKEMARK_DATA_DIR to the directory of the service`);
  await makeDirectory(directory);
  if ((await readdir(directory)).length > 0)
    throw new Error(`${directory} is not empty: a backup needs a directory of its own`);
  const takenAt = Math.floor(systemClock.now() / 1000);
  const rows = await copyRows(config, join(directory, STORE), readSnapshot);
  const files = new FileCopy(dataDirectory, directory, signal);
  await replaceFile(
    join(directory, LIST),
    files.list(async function* () {
      yield* filesOf(directory, STORE);
      for (const name of COPIED) yield* filesOf(dataDirectory, name);
    }),
  );
  await files.sync();
  const made = { environment, takenAt, rows, files: files.count, bytes: files.bytes };
  const manifest: Manifest = { version: 1, ...made, list: files.listDigest };
  await replaceFile(join(directory, MANIFEST), `${JSON.stringify(manifest)}\n`);
  return { ...made, isBesideStore: await isOneDevice(directory, dataDirectory) };
}

/**
 * Restores a backup into the data directory: `takemark operator restore --from`. Every file is compared with its
 * digest. Until the end, a mark prevents a start, and a repeated call begins again.
 * @param acceptLostJournals restores although no journal of erasures exists
 * @throws Error with a message for the operator
 */
export async function restoreBackup(
  config: Config,
  directory: string,
  { acceptLostJournals = false, signal }: { acceptLostJournals?: boolean; signal?: AbortSignal } = {},
): Promise<Omit<Manifest, 'version' | 'list'>> {
  const { dataDirectory, environment, journalDirectory, mirror } = config;
  if (isStoreShared(config))
    throw new Error('--from is for one machine. A cluster is restored from the backups of its servers');
  const { version: _version, list, ...manifest } = await readManifest(directory);
  if (manifest.environment !== environment)
    throw new Error(
      `${directory} is a backup of the environment ${manifest.environment}, not ${environment}`,
    );
  if ((await digestOf(join(directory, LIST))).sha256 !== list) throw damaged(directory, LIST);
  const journals = [journalDirectory, ...(mirror === undefined ? [] : [mirror.journals])];
  const left = await Promise.all(journals.map((path) => exists(join(path, ERASURE_JOURNAL_FILE))));
  if (!acceptLostJournals && !left.includes(true))
    throw new Error(
      `${journalDirectory} has no journal of erasures, so proofs that were erased after the backup may come back. Set TAKEMARK_JOURNAL_DIR or TAKEMARK_MIRROR_DIR to the present journals, or give --accept-lost-journals and repeat these erasures by hand`,
    );
  await makeDirectory(dataDirectory);
  const mark = join(dataDirectory, MARK);
  const kept = [...KEPT, ...innerNames(config)];
  const found = (await readdir(dataDirectory)).filter((name) => !kept.includes(name) && name !== MARK);
  if (!(await exists(mark))) {
    if (found.length > 0)
      throw new Error(
        `${dataDirectory} is not empty: move ${found.slice(0, 5).join(', ')} away. Keep content-keys and journals where they are`,
      );
    await replaceFile(mark, '');
  }
  // They are of an earlier call that did not end.
  for (const name of found) await rm(join(dataDirectory, name), { recursive: true });
  const files = new FileCopy(directory, dataDirectory, signal);
  await files.restore(listed(directory));
  if (files.count !== manifest.files || files.bytes !== manifest.bytes) throw damaged(directory, LIST);
  await files.sync();
  await rm(mark);
  await syncDirectory(dataDirectory);
  return manifest;
}

/** @throws Error while a restore of the data directory has not ended */
export async function assertRestored({ dataDirectory }: Config): Promise<void> {
  if (await exists(join(dataDirectory, MARK)))
    throw new Error(
      `the restore of ${dataDirectory} did not end: run takemark operator restore --from with the same or another backup again`,
    );
}

/** Copies the rows of a running service to a store of their own. @returns the number of rows */
async function copyRows(
  config: Config,
  directory: string,
  readSnapshot: (receive: (body: AsyncIterable<Uint8Array>) => Promise<void>) => Promise<void>,
): Promise<number> {
  const database = await Database.open(directory);
  let count = 0;
  let format: Uint8Array | undefined;
  try {
    await readSnapshot(async (body) => {
      let batch: SnapshotRow[] = [];
      let bytes = 0;
      const flush = async (): Promise<void> => {
        await database.write(batch);
        count += batch.length;
        [batch, bytes] = [[], 0];
      };
      for await (const rows of decodeSnapshot(body)) {
        for (const row of rows) {
          const [key, value] = row;
          if (key === formatKey) format = Uint8Array.from(value);
          batch.push(row);
          bytes += key.length + value.length;
        }
        if (bytes >= BATCH_BYTES) await flush();
      }
      await flush();
    });
  } finally {
    await database.close();
  }
  // A backup with the secrets of another installation could not be opened.
  const { secrets } = await openSecrets(config);
  try {
    if (format === undefined) throw new RecordError('the store has no format');
    new RecordCodec(authenticatorOf(secrets, 'row', config)).decode(formatKey, format);
  } catch (error) {
    if (!(error instanceof RecordError)) throw error;
    throw new Error(
      `the service has other secrets than ${config.dataDirectory}: set TAKEMARK_DATA_DIR to the directory of the service at this address`,
      { cause: error },
    );
  }
  return count;
}

/** Copies files between two directories, with their digests. */
class FileCopy {
  readonly #from: string;
  readonly #to: string;
  readonly #signal: AbortSignal | undefined;
  readonly #listHash = createHash('sha256');
  readonly #directories = new Set<string>();
  count = 0;
  bytes = 0;

  constructor(from: string, to: string, signal: AbortSignal | undefined) {
    this.#from = from;
    this.#to = to;
    this.#signal = signal;
  }

  /** The digest of the list that was written, in hex. */
  get listDigest(): string {
    return this.#listHash.digest('hex');
  }

  /** Copies files that are not in their place yet, and yields the lines of the list. */
  async *list(names: () => AsyncIterable<string>): AsyncGenerator<Buffer> {
    for await (const batch of inBatches(names())) {
      const found = await Promise.all(
        batch.map(async (name) => {
          const isInPlace = name.startsWith(`${STORE}/`);
          const file = await (isInPlace ? digestOf(join(this.#to, name)) : this.#copy(name));
          return file && { name, ...file };
        }),
      );
      const lines = found.map((file) => {
        if (file === undefined) return '';
        this.count += 1;
        this.bytes += file.bytes;
        return `${file.sha256}  ${file.name}\n`;
      });
      const text = Buffer.from(lines.join(''));
      this.#listHash.update(text);
      yield text;
    }
  }

  /** Copies listed files. @throws Error for a file whose digest differs */
  async restore(files: AsyncIterable<{ readonly name: string; readonly sha256: string }>): Promise<void> {
    for await (const batch of inBatches(files))
      await Promise.all(
        batch.map(async ({ name, sha256 }) => {
          const copied = await this.#copy(name);
          if (copied?.sha256 !== sha256) throw damaged(this.#from, name);
          this.count += 1;
          this.bytes += copied.bytes;
        }),
      );
  }

  /** Makes the names of the copied files durable. */
  async sync(): Promise<void> {
    for (const directory of this.#directories) await syncDirectory(directory);
    await syncDirectory(this.#to);
  }

  /** @returns undefined if the file does not exist: it was deleted since it was found */
  async #copy(name: string): Promise<{ readonly bytes: number; readonly sha256: string } | undefined> {
    this.#signal?.throwIfAborted();
    const source = await ifPresent(open(join(this.#from, name), 'r'));
    if (source === undefined) return undefined;
    try {
      const path = join(this.#to, name);
      await this.#prepare(dirname(path));
      const target = await open(path, 'wx', 0o600);
      try {
        const copied = await digestWhile(source, (chunk, position) => writeAll(target, chunk, position));
        await target.sync();
        return copied;
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  }

  async #prepare(directory: string): Promise<void> {
    if (this.#directories.has(directory)) return;
    await makeDirectory(directory);
    for (let each = directory; each.length > this.#to.length; each = dirname(each))
      this.#directories.add(each);
  }
}

/** Yields the files of an entry of a directory, with `/` between the parts of a name. */
async function* filesOf(directory: string, name: string): AsyncGenerator<string> {
  const found = await ifPresent(stat(join(directory, name)));
  if (found?.isFile() === true) yield name.replaceAll(sep, '/');
  if (found?.isDirectory() !== true || NEVER_COPIED.has(name)) return;
  for (const entry of (await ifPresent(readdir(join(directory, name)))) ?? [])
    if (!entry.startsWith(UNFINISHED)) yield* filesOf(directory, join(name, entry));
}

/** Yields the files of the list of a backup. @throws Error for a line that no backup has */
async function* listed(
  directory: string,
): AsyncGenerator<{ readonly name: string; readonly sha256: string }> {
  const allowed: readonly string[] = [STORE, ...COPIED];
  for await (const line of createInterface({ input: createReadStream(join(directory, LIST)) })) {
    const [, sha256, name] = LIST_LINE.exec(line) ?? [];
    const parts = name?.split('/') ?? [];
    if (sha256 === undefined || name === undefined || !allowed.includes(parts[0]!) || parts.includes('..'))
      throw damaged(directory, LIST);
    yield { name, sha256 };
  }
}

async function readManifest(directory: string): Promise<Manifest> {
  const path = join(directory, MANIFEST);
  const found = await ifPresent(stat(path));
  if (found === undefined)
    throw new Error(`${directory} is not a complete backup: it has no ${MANIFEST}, which is written last`);
  try {
    if (found.size > MANIFEST_BYTES) throw new RangeError('the manifest is too long');
    const manifest = JSON.parse(await readFile(path, 'utf8')) as Partial<Manifest>;
    const numbers = [manifest.takenAt, manifest.rows, manifest.files, manifest.bytes];
    if (manifest.version === 1 && numbers.every(Number.isSafeInteger) && typeof manifest.list === 'string')
      return manifest as Manifest;
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof RangeError)) throw error;
  }
  throw damaged(directory, MANIFEST);
}

function damaged(directory: string, name: string): Error {
  return new Error(
    `${join(directory, name)} is damaged, or of another version of Takemark. Use another backup`,
  );
}

/** Returns the names in the data directory above keys and journals that a setting has put there. */
function innerNames({
  dataDirectory,
  contentKeysDirectory,
  journalDirectory,
  mirror,
}: Config): readonly string[] {
  return [contentKeysDirectory, journalDirectory, mirror?.directory ?? dataDirectory]
    .map((path) => relative(dataDirectory, path).split(sep)[0]!)
    .filter((name) => name !== '' && name !== '..');
}

async function* inBatches<Item>(items: AsyncIterable<Item>): AsyncGenerator<readonly Item[]> {
  let batch: Item[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < FILES_AT_ONCE) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

async function digestOf(path: string): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const handle = await open(path, 'r');
  try {
    return await digestWhile(handle, async () => undefined);
  } finally {
    await handle.close();
  }
}

/** Reads a file to its end. @returns its length in bytes and its SHA-256 in hex */
async function digestWhile(
  handle: FileHandle,
  take: (chunk: Uint8Array, position: number) => Promise<void>,
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of handle.createReadStream({ autoClose: false }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    await take(chunk, bytes);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest('hex') };
}

/** Returns false also if a directory of the path is a file. A start names the setting of such a directory later. */
async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return false;
      throw error;
    },
  );
}
