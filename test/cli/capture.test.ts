/** Commands that follow a DAW, run as processes beside folders that a DAW would write. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { TraceEvent, TraceHeader } from '../../src/witness/domain/trace.js';
import { readTrace } from '../../src/witness/trace/read-trace.js';
import { sessionXml } from '../agents/ardour/session-xml.js';
import { emptyProject, loadSqlite, PROJECT_TABLES } from '../agents/audacity/project-database.js';
import { MAIN, setUp } from './bench.js';

interface Captured {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

interface Capture {
  /** Resolves once the command has said `words` on its standard error. */
  said(words: string): Promise<void>;
  interrupt(): Promise<Captured>;
  ended(): Promise<Captured>;
}

function capture(t: Test, ...words: readonly string[]): Capture {
  const child = spawn(process.execPath, [MAIN, 'capture', ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  const closed = once(child, 'close');
  const ended = async (): Promise<Captured> => {
    await closed;
    return { code: child.exitCode, out, err };
  };
  return {
    async said(awaited) {
      const over = closed.then(() => 'over' as const);
      while (!err.includes(awaited))
        if ((await Promise.race([once(child.stderr, 'data'), over])) === 'over')
          throw new Error(`it ended without ${awaited}: ${err}`);
    },
    interrupt: () => {
      child.kill('SIGINT');
      return ended();
    },
    ended,
  };
}

async function read(
  path: string,
): Promise<{ header: TraceHeader; sealed: boolean; codes: readonly string[]; events: TraceEvent[] }> {
  const trace = await readTrace(() => createReadStream(path));
  const events: TraceEvent[] = [];
  for await (const batch of trace.events()) events.push(...batch);
  const { header, sealed, findings } = trace;
  return { header, sealed, codes: findings.map(({ code }) => code), events };
}

t.test('an interrupted capture of Ardour seals a trace, and trial input marks it as simulated', async (t) => {
  const directory = t.testdir({ session: {} });
  const at = (name: string): string => join(directory, name);
  // The name of the session is another one than that of its folder.
  const files = join(directory, 'session', 'song.ardour');
  await writeFile(files, sessionXml({ backend: 'None (Dummy)' }));
  for (const trial of [false, true]) {
    const out = at(`${trial}.trace`);
    const agent = capture(
      t,
      'ardour',
      ...['--session', at('session'), '--out', out, '--key', at('device.pem')],
      ...(trial ? ['--trial-input'] : []),
    );
    await agent.said('following the session');
    const { code, out: printed, err } = await agent.interrupt();
    t.strictSame([code, printed], [0, `sealed ${out}\n`], err);
    const { header, sealed, codes, events } = await read(out);
    t.match(header, { adapter: 'ardour', dawVersion: '7.3.0', simulated: trial });
    t.strictSame([sealed, codes], [true, trial ? ['trace_simulated'] : []]);
    t.ok(
      events.some((event) => event.kind === 'track.added' && event.type === 'audio'),
      'the last save is in it',
    );
    t.notOk(
      events.some(({ kind }) => kind === 'session.closed'),
      'the end of the session was not seen',
    );
  }
  t.match(
    await (await setUp(t)).takemark(
      'capture',
      'ardour',
      '--session',
      at('session'),
      '--out',
      at('true.trace'),
    ),
    {
      code: 2,
      err: /exists and is never replaced; name another file/,
    },
  );
});

t.test('a capture of Ardour ends when the named process ends', async (t) => {
  const directory = t.testdir({ session: { 'song.ardour': sessionXml() } });
  const at = (name: string): string => join(directory, name);
  const daw = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  t.teardown(() => daw.kill('SIGKILL'));
  const agent = capture(
    t,
    'ardour',
    ...['--session', at('session'), '--out', at('a.trace'), '--key', at('device.pem'), '--pid', `${daw.pid}`],
  );
  await agent.said('following the session');
  daw.kill('SIGKILL');
  t.match(await agent.ended(), { code: 0, out: /^sealed / });
  const { sealed, events } = await read(at('a.trace'));
  t.strictSame([sealed, events.at(-1)?.kind], [true, 'session.closed']);
});

t.test('a capture of Ardour writes no trace when it finds no session', async (t) => {
  const directory = t.testdir();
  const out = join(directory, 'a.trace');
  const agent = capture(
    t,
    'ardour',
    ...['--session', join(directory, 'nowhere'), '--out', out, '--key', join(directory, 'device.pem')],
  );
  await agent.said('device ');
  t.match(await agent.interrupt(), { code: 3, out: '', err: /no session was found/ });
  await t.rejects(access(out), { code: 'ENOENT' });
});

t.test("Ardour's hook is written into its folder of scripts, and taken away", async (t) => {
  const { takemark } = await setUp(t);
  const configuration = t.testdir();
  const script = join(configuration, 'ardour7', 'scripts', 'takemark_witness.lua');
  const hook = (...words: string[]) =>
    takemark('capture', 'ardour-hook', '--configuration', configuration, ...words);
  for (let time = 0; time < 2; time += 1)
    t.strictSame(await hook(), { code: 0, out: `wrote ${script}\n`, err: '' });
  t.match(await readFile(script, 'utf8'), /EditorHook/);
  for (let time = 0; time < 2; time += 1)
    t.strictSame(await hook('--remove'), { code: 0, out: `removed ${script}\n`, err: '' });
  await t.rejects(access(script), { code: 'ENOENT' });
});

t.test('an interrupted capture of Audacity seals a trace', async (t) => {
  const directory = t.testdir();
  const at = (name: string): string => join(directory, name);
  await mkdir(at('exports'));
  if (!(await writeProject(at('p.aup3')))) return t.comment('skipped: node-sqlite3-wasm is not installed');
  const words = ['--out', at('a.trace'), '--key', at('device.pem'), '--exports', at('exports')];
  const agent = capture(t, 'audacity', '--project', at('p.aup3'), ...words);
  await agent.said('following the project');
  t.match(await agent.interrupt(), { code: 0, out: `sealed ${at('a.trace')}\n` });
  const { header, sealed, codes, events } = await read(at('a.trace'));
  t.match(header, { adapter: 'audacity', dawVersion: '3.2.4', simulated: false });
  t.strictSame([sealed, codes], [true, []]);
  t.match(events[0], { kind: 'session.opened', sampleRate: 48_000 });

  const absent = capture(
    t,
    'audacity',
    '--project',
    at('q.aup3'),
    '--out',
    at('b.trace'),
    '--key',
    at('device.pem'),
  );
  await absent.said('device ');
  t.match(await absent.interrupt(), { code: 3, out: '', err: /no project could be read/ });
  await t.rejects(access(at('b.trace')), { code: 'ENOENT' });
});

/** Writes a project without tracks, of Audacity's layout. @returns false where the optional package is missing */
async function writeProject(path: string): Promise<boolean> {
  const Database = await loadSqlite();
  if (Database === undefined) return false;
  const database = new Database(path);
  for (const table of Object.values(PROJECT_TABLES)) database.exec(table);
  emptyProject(database);
  database.close();
  return true;
}
