/** Databases of Audacity projects, written with the package that reads them. */
export interface WritableDatabase {
  exec(sql: string): void;
  run(sql: string, values: readonly Uint8Array[]): void;
  close(): void;
}

/** Loads the optional package. @returns undefined where it is missing */
export async function loadSqlite(): Promise<(new (file: string) => WritableDatabase) | undefined> {
  const name: string = 'node-sqlite3-wasm';
  const { default: sqlite } = (await import(name).catch(() => ({}))) as {
    readonly default?: { readonly Database: new (file: string) => WritableDatabase };
  };
  return sqlite?.Database;
}

/** The statements that make the tables of a project, as Audacity makes them. */
export const PROJECT_TABLES: Readonly<Record<string, string>> = {
  project: 'CREATE TABLE project (id INTEGER PRIMARY KEY, dict BLOB, doc BLOB)',
  autosave: 'CREATE TABLE autosave (id INTEGER PRIMARY KEY, dict BLOB, doc BLOB)',
  sampleblocks:
    'CREATE TABLE sampleblocks (blockid INTEGER PRIMARY KEY AUTOINCREMENT, sampleformat INTEGER, summin REAL, summax REAL, sumrms REAL, summary256 BLOB, summary64k BLOB, samples BLOB)',
};

/** Saves a document without tracks, of Audacity 3.2.4 at 48 kHz. */
export function emptyProject(database: WritableDatabase): void {
  const u16 = (value: number): Buffer => Buffer.from([value & 255, value >> 8]);
  const names = ['project', 'audacityversion', 'rate'].flatMap((text, number) => [
    Buffer.from([15]),
    u16(number),
    u16(text.length),
    Buffer.from(text),
  ]);
  const version = '3.2.4';
  const rate = Buffer.alloc(12);
  rate.writeDoubleLE(48_000);
  const document = Buffer.concat([
    Buffer.concat([Buffer.from([1]), u16(0)]),
    Buffer.concat([Buffer.from([3]), u16(1), u16(version.length), u16(0), Buffer.from(version)]),
    Buffer.concat([Buffer.from([10]), u16(2), rate]),
    Buffer.concat([Buffer.from([2]), u16(0)]),
  ]);
  database.run('INSERT INTO project (id, dict, doc) VALUES (1, ?, ?)', [
    Buffer.concat([Buffer.from([0, 1]), ...names]),
    document,
  ]);
}
