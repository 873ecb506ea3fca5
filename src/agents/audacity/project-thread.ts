/**
 * The thread that reads the database of a project. The database is a stranger's file: a query on it may never end,
 * and only ending the thread ends the query. It reads plain tables only, and looks at the length of a value before it
 * reads the value.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { DOCUMENT_LIMITS, DocumentError } from './project-document.js';
import type { FromProject, ProjectDocument, ToProject } from './project-messages.js';

/** The most bytes of one sample block. */
const MAX_BLOCK_BYTES = 16_777_216;
/** The most bytes of samples in one answer. */
const MAX_ANSWER_BYTES = 1_073_741_824;
/** The memory of SQLite in bytes: a document, and what SQLite needs for its own work. */
const HEAP_BYTES = 268_435_456;

type SqliteRow = Readonly<Record<string, unknown>>;
/** The members of node-sqlite3-wasm that are used. The package has no types. */
interface SqliteDatabase {
  exec(sql: string): void;
  all(sql: string, values?: readonly unknown[]): readonly SqliteRow[];
  get(sql: string, values?: readonly unknown[]): SqliteRow | null;
}
type Sqlite = new (file: string) => SqliteDatabase;

class ProjectDatabase {
  readonly #database: SqliteDatabase;

  constructor(Database: Sqlite, file: string) {
    this.#database = new Database(file);
    this.#database.exec(`PRAGMA hard_heap_limit=${HEAP_BYTES}`);
    this.#database.exec('PRAGMA trusted_schema=OFF');
    // A log can be read without shared memory only by one who has the database alone.
    this.#database.exec('PRAGMA locking_mode=EXCLUSIVE');
    for (const table of ['project', 'autosave', 'sampleblocks']) this.#checkTable(table);
  }

  answer(question: ToProject): FromProject {
    if (question.kind === 'samples') return { kind: 'samples', samples: this.#samples(question.blocks) };
    // Unsaved edits: the row exists while there are any.
    return { kind: 'documents', saved: this.#document('project'), unsaved: this.#document('autosave') };
  }

  /**
   * Refuses a view or a generated column, which computes its values with the time and memory that its author wants.
   * @throws DocumentError for anything but a plain table
   */
  #checkTable(name: string): void {
    const found = this.#database.all('SELECT type, sql FROM sqlite_schema WHERE lower(name) = ?', [name]);
    const [table, ...more] = found;
    // A query on it fails, as it may while Audacity writes.
    if (table === undefined) return;
    const isPlain = table['type'] === 'table' && /^CREATE TABLE /.test(String(table['sql']));
    const columns = this.#database.all('SELECT hidden FROM pragma_table_xinfo(?)', [name]);
    if (!isPlain || more.length > 0 || columns.some(({ hidden }) => hidden !== 0))
      throw new DocumentError(`the table ${name} of the project is not a plain table`);
  }

  #document(table: 'project' | 'autosave'): ProjectDocument | null {
    const lengths = this.#database.get(
      `SELECT rowid AS place, ${lengthOf('dict')} AS dict, ${lengthOf('doc')} AS doc FROM ${table} LIMIT 1`,
    );
    if (lengths === null) return null;
    const { dict, doc, place } = lengths;
    if (typeof dict !== 'number' || typeof doc !== 'number')
      throw new DocumentError('the project has no document');
    if (dict + doc > DOCUMENT_LIMITS.bytes) throw new DocumentError('the document is too large');
    const read = this.#database.get(`SELECT dict, doc FROM ${table} WHERE rowid = ?`, [place]);
    if (!(read?.['dict'] instanceof Uint8Array) || !(read['doc'] instanceof Uint8Array))
      throw new DocumentError('the project has no document');
    return { dict: read['dict'], doc: read['doc'] };
  }

  #samples(blocks: readonly number[]): Uint8Array {
    const sizes = blocks.map((block) => (block <= 0 ? -block * 4 : this.#sizeOf(block)));
    if (sizes.some((size) => size > MAX_BLOCK_BYTES)) throw new DocumentError('a block is too large');
    // Samples of 16 bits take twice as many bytes as float32.
    if (sizes.reduce((sum, size) => sum + size, 0) * 2 > MAX_ANSWER_BYTES)
      throw new DocumentError('a clip is too large');
    return Buffer.concat(blocks.map((block) => (block <= 0 ? Buffer.alloc(-block * 4) : this.#block(block))));
  }

  #sizeOf(block: number): number {
    const found = this.#database.get(
      `SELECT ${lengthOf('samples')} AS bytes FROM sampleblocks WHERE blockid = ?`,
      [block],
    );
    if (typeof found?.['bytes'] !== 'number') throw new DocumentError('a block of samples is missing');
    return found['bytes'];
  }

  /** Returns the samples of a block as float32. */
  #block(block: number): Buffer {
    const row = this.#database.get('SELECT sampleformat, samples FROM sampleblocks WHERE blockid = ?', [
      block,
    ]);
    if (!(row?.['samples'] instanceof Uint8Array)) throw new DocumentError('a block of samples is missing');
    return toFloats(Buffer.from(row['samples']), Number(row['sampleformat']));
  }
}

/** Returns the expression for the length of a blob in bytes. It is null for any other value, which is not read. */
function lengthOf(column: string): string {
  return `CASE WHEN typeof(${column}) = 'blob' THEN length(${column}) END`;
}

/** The numbers of the sample formats in the database. Audacity keeps 24 bits in four bytes. */
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

async function loadSqlite(): Promise<Sqlite | undefined> {
  // A name that the compiler does not follow: the package is optional.
  const name: string = 'node-sqlite3-wasm';
  try {
    const { default: sqlite } = (await import(name)) as { readonly default: { readonly Database: Sqlite } };
    return sqlite.Database;
  } catch {
    return undefined;
  }
}

async function answerQuestions(port: MessagePort): Promise<void> {
  const Database = await loadSqlite();
  let database: ProjectDatabase | undefined;
  const answer = (question: ToProject): FromProject => {
    if (Database === undefined) return { kind: 'missing_package' };
    try {
      database ??= new ProjectDatabase(Database, workerData as string);
      return database.answer(question);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return { kind: error instanceof DocumentError ? 'refused' : 'failed', message };
    }
  };
  port.on('message', (question: ToProject) => port.postMessage(answer(question)));
}

if (parentPort === null) throw new Error('a project must be read in a worker thread');
await answerQuestions(parentPort);
