/** Projects of Audacity that are made to hold up or fill the agent: read in a thread, and refused without being computed. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { followAudacity, ProjectFollower } from '../../src/agents/audacity/follow-project.js';
import { DocumentError } from '../../src/agents/audacity/project-document.js';
import { readProject } from '../../src/agents/audacity/project-file.js';
import type { ClipState } from '../../src/agents/audacity/project-state.js';
import { TraceFullError } from '../../src/witness/capture/index.js';
import { heldBytes } from '../fixtures/memory.js';
import { emptyProject, loadSqlite, PROJECT_TABLES } from './audacity/project-database.js';

const sqlite = await loadSqlite();
const skip = sqlite === undefined ? 'node-sqlite3-wasm is not installed' : false;
const MIB = 1_048_576;
const ENDLESS = 'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n';
const COLUMNS = 'id INTEGER PRIMARY KEY, dict BLOB, doc BLOB';

/** Writes a project with these tables in place of Audacity's own. */
function write(path: string, tables: Readonly<Record<string, string>>, fill: readonly string[] = []): string {
  rmSync(path, { force: true });
  const database = new sqlite!(path);
  for (const sql of [...Object.values({ ...PROJECT_TABLES, ...tables }), ...fill]) database.exec(sql);
  if (!('project' in tables)) emptyProject(database);
  database.close();
  return path;
}

const clipOf = (...blocks: readonly number[]): ClipState => ({
  blocks: [blocks],
  frames: 1,
  rate: 1,
  start: 0,
  trimLeft: 0,
  trimRight: 0,
  length: 1,
  envelope: [],
});

t.test('a project whose tables would compute their values is refused', { skip }, async (t) => {
  const path = join(t.testdir(), 'p.aup3');
  const hostile: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'an endless view': {
      project: `CREATE VIEW project AS SELECT 1 AS id, (${ENDLESS}) AS dict, x'00' AS doc`,
    },
    'an endless view of edits': {
      autosave: `CREATE VIEW autosave AS SELECT x'00' AS dict, (${ENDLESS}) AS doc`,
    },
    'a view of a huge blob': {
      project:
        'CREATE VIEW project AS SELECT 1 AS id, zeroblob(900000000) AS dict, zeroblob(900000000) AS doc',
    },
    'a generated column': {
      project: 'CREATE TABLE project (id INTEGER PRIMARY KEY, dict BLOB AS (zeroblob(900000000)), doc BLOB)',
    },
    'a stored generated column': {
      autosave: `CREATE TABLE autosave (${COLUMNS}, x TEXT AS (hex(doc)) STORED)`,
    },
    'a view of samples': {
      sampleblocks:
        'CREATE VIEW sampleblocks AS SELECT 1 AS blockid, 1 AS sampleformat, zeroblob(9) AS samples',
    },
    'a name in capitals': {
      project: `CREATE VIEW PROJECT AS SELECT 1 AS id, (${ENDLESS}) AS dict, x'00' AS doc`,
    },
  };
  for (const [name, tables] of Object.entries(hostile))
    await t.rejects(
      readProject(write(path, tables)),
      new DocumentError(`the table ${Object.keys(tables)[0]} of the project is not a plain table`),
      name,
    );
});

t.test('a value that is too long is refused before it is read', { skip }, async (t) => {
  const path = join(t.testdir(), 'p.aup3');
  const before = heldBytes();
  const documents = write(path, {}, [
    'INSERT INTO autosave (id, dict, doc) VALUES (1, zeroblob(1), zeroblob(80000000))',
  ]);
  await t.rejects(readProject(documents), new DocumentError('the document is too large'));
  const text = write(path, {}, ["INSERT INTO autosave (id, dict, doc) VALUES (1, 'text', zeroblob(1))"]);
  await t.rejects(readProject(text), new DocumentError('the project has no document'));
  const blocks = write(path, {}, [
    'INSERT INTO sampleblocks (blockid, sampleformat, samples) VALUES (1, 131073, zeroblob(17000000))',
    'INSERT INTO sampleblocks (blockid, sampleformat, samples) VALUES (2, 131073, zeroblob(2000000))',
    'INSERT INTO sampleblocks (blockid, sampleformat, samples) VALUES (3, 131073, zeroblob(2))',
  ]);
  const reading = await readProject(blocks);
  t.teardown(() => reading!.close());
  await t.rejects(reading!.samplesOf(clipOf(3, 1)), new DocumentError('a block is too large'));
  await t.rejects(reading!.samplesOf(clipOf(-5_000_000)), new DocumentError('a block is too large'));
  await t.rejects(reading!.samplesOf(clipOf(9)), new DocumentError('a block of samples is missing'));
  const repeated = Array.from({ length: 2000 }, () => 2);
  await t.rejects(reading!.samplesOf(clipOf(...repeated)), new DocumentError('a clip is too large'));
  t.strictSame(await reading!.samplesOf(clipOf(3, -2)), [Buffer.alloc(12)], 'a sample and two of silence');
  t.ok(heldBytes() - before < 64 * MIB);
});

t.test('a reading that takes too long is ended', { skip }, async (t) => {
  const path = write(join(t.testdir(), 'p.aup3'), {});
  // No thread starts within a millisecond.
  await t.rejects(readProject(path, 1), new DocumentError('reading the project takes too long'));
  const reading = await readProject(path);
  t.match(reading?.state, { version: '3.2.4', rate: 48_000, tracks: [] });
  await reading!.close();
});

t.test('a full trace is sealed without the rest of the session', { skip }, async (t) => {
  const project = write(join(t.testdir(), 'p.aup3'), {});
  const written: string[] = [];
  const captured = await followAudacity({
    project,
    signal: new AbortController().signal,
    open: async () => ({
      append: ({ kind }) => {
        if (written.length === 1) throw new TraceFullError('full');
        written.push(kind);
      },
      flush: async () => {},
      seal: async () => {
        written.push('seal');
      },
      bufferedBytes: 0,
    }),
  });
  t.equal(captured, 'full');
  t.strictSame(written, ['session.opened', 'seal']);
});

t.test('a project that could not be read to the end is a gap', { skip }, async (t) => {
  const written: string[] = [];
  const follower = new ProjectFollower({
    // Its document is missing.
    project: write(join(t.testdir(), 'p.aup3'), { project: PROJECT_TABLES['project']! }),
    clock: () => 1,
    write: ({ kind }) => written.push(kind),
  });
  await follower.look();
  follower.end();
  t.strictSame(written, ['capture.gap']);
});
