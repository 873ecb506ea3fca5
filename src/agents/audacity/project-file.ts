import { createHash } from 'node:crypto';
import { copyFile, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DOCUMENT_LIMITS, DocumentError, decodeDocument } from './project-document.js';
import { type ClipState, type ProjectState, readProjectState } from './project-state.js';

/** Greatest project that is copied to be read, with its log. */
export const MAX_PROJECT_BYTES = 4_294_967_296;
/** Most bytes of one sample block. */
const MAX_BLOCK_BYTES = 16_777_216;

/** Samples of a source as float32, channel after channel. */
export interface SourceSamples {
  /** SHA-256 of each channel's samples, lower-case hex. */
  readonly channelSha256: readonly string[];
}

/** Project as it was read once. */
export interface ProjectReading {
  readonly state: ProjectState;
  /** Digest of the document that was saved last: another one means that the user has saved. */
  readonly savedSha256: string;
  samplesOf(clip: ClipState): readonly Buffer[];
  close(): Promise<void>;
}

/** Marks of a project's files: unlike ones mean that something was written. */
export async function projectMark(project: string): Promise<string> {
  const marks = await Promise.all(
    [project, `${project}-wal`].map((file) =>
      stat(file, { bigint: true }).then(
        ({ size, mtimeNs }) => `${size} ${mtimeNs}`,
        () => 'absent',
      ),
    ),
  );
  return marks.join(' | ');
}

/**
 * Reads a project that Audacity has open and locked: a copy of the database and of its log is opened in its
 * place.
 * @returns undefined where Audacity wrote while the copy was made: try again
 * @throws DocumentError where the project is too large, or cannot be understood
 */
export async function readProject(project: string): Promise<ProjectReading | undefined> {
  const mark = await projectMark(project);
  const sizes = await Promise.all(
    [project, `${project}-wal`].map((file) =>
      stat(file).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  if (sizes.reduce((sum, size) => sum + size, 0) > MAX_PROJECT_BYTES)
    throw new DocumentError('the project is too large to be copied');
  const directory = await mkdtemp(join(tmpdir(), 'takemark-audacity-'));
  try {
    const copy = join(directory, 'project.aup3');
    await copyFile(project, copy);
    await copyFile(`${project}-wal`, `${copy}-wal`).catch(ignoreAbsent);
    if ((await projectMark(project)) !== mark) {
      await rm(directory, { recursive: true, force: true });
      return undefined;
    }
    return await openCopy(copy, () => rm(directory, { recursive: true, force: true }));
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

function ignoreAbsent(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}

async function openCopy(copy: string, discard: () => Promise<void>): Promise<ProjectReading | undefined> {
  const { Database } = await loadSqlite();
  const database = new Database(copy);
  try {
    // A log can be read without shared memory only by one who has the database alone.
    database.exec('PRAGMA locking_mode=EXCLUSIVE');
    const saved = document(database.get('SELECT dict, doc FROM project'));
    // Unsaved edits; the row is there while there are any.
    const current = document(database.get('SELECT dict, doc FROM autosave')) ?? saved;
    if (current === undefined) {
      database.close();
      await discard();
      return undefined;
    }
    return {
      state: readProjectState(decodeDocument(current.dict, current.doc)),
      savedSha256: createHash('sha256')
        .update(saved?.doc ?? '')
        .digest('hex'),
      samplesOf: (clip) =>
        clip.blocks.map((blocks) => Buffer.concat(blocks.map((block) => readBlock(database, block)))),
      async close() {
        database.close();
        await discard();
      },
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Samples of a block as float32; a negative number stands for that many samples of silence. */
function readBlock(database: SqliteDatabase, block: number): Buffer {
  if (block <= 0) {
    if (-block * 4 > MAX_BLOCK_BYTES) throw new DocumentError('a block is too large');
    return Buffer.alloc(-block * 4);
  }
  const row = database.get(
    'SELECT sampleformat, length(samples) AS bytes, samples FROM sampleblocks WHERE blockid = ?',
    [block],
  );
  if (row === null || !(row['samples'] instanceof Uint8Array))
    throw new DocumentError('a block of samples is missing');
  const samples = Buffer.from(row['samples']);
  if (samples.length > MAX_BLOCK_BYTES) throw new DocumentError('a block is too large');
  return toFloats(samples, Number(row['sampleformat']));
}

/** Sample formats by the number in the database. Audacity keeps 24 bits in four bytes. */
const FORMATS = { int16: 0x00020001, int24: 0x00040001, float: 0x0004000f } as const;

function toFloats(samples: Buffer, format: number): Buffer {
  if (format === FORMATS.float) return samples;
  const width = format === FORMATS.int16 ? 2 : 4;
  if ((format !== FORMATS.int16 && format !== FORMATS.int24) || samples.length % width !== 0)
    throw new DocumentError('a block has an unknown sample format');
  const floats = Buffer.alloc((samples.length / width) * 4);
  for (let index = 0; index < samples.length / width; index += 1)
    floats.writeFloatLE(
      width === 2 ? samples.readInt16LE(index * 2) / 0x8000 : samples.readInt32LE(index * 4) / 0x80_0000,
      index * 4,
    );
  return floats;
}

function document(
  row: SqliteRow | null,
): { readonly dict: Uint8Array; readonly doc: Uint8Array } | undefined {
  if (row === null) return undefined;
  const { dict, doc } = row as { readonly dict: unknown; readonly doc: unknown };
  if (!(dict instanceof Uint8Array) || !(doc instanceof Uint8Array))
    throw new DocumentError('the project has no document');
  if (dict.length + doc.length > DOCUMENT_LIMITS.bytes) throw new DocumentError('the document is too large');
  return { dict, doc };
}

type SqliteRow = Readonly<Record<string, unknown>>;
/** Members of node-sqlite3-wasm that are used; the package has no types. */
interface SqliteDatabase {
  exec(sql: string): void;
  get(sql: string, values?: readonly unknown[]): SqliteRow | null;
  close(): void;
}

/** The error for a missing optional package. Its message names the package to install. */
export class MissingPackageError extends Error {}

/** @throws MissingPackageError */
async function loadSqlite(): Promise<{ readonly Database: new (file: string) => SqliteDatabase }> {
  // A name that the compiler does not follow: the package is optional.
  const name: string = 'node-sqlite3-wasm';
  try {
    const { default: sqlite } = (await import(name)) as {
      readonly default: { readonly Database: new (file: string) => SqliteDatabase };
    };
    return sqlite;
  } catch (error) {
    throw new MissingPackageError(
      'reading an Audacity project needs the optional package node-sqlite3-wasm: run npm install node-sqlite3-wasm',
      {
        cause: error,
      },
    );
  }
}
