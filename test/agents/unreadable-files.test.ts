import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { HookFile } from '../../src/agents/ardour/hook-file.js';
import { Originals } from '../../src/agents/ardour/originals.js';
import { ProjectFollower } from '../../src/agents/audacity/follow-project.js';
import type { TraceEvent } from '../../src/witness/domain/trace.js';

/** Does work with the rights of the superuser again, if it had them. */
async function atLargest(work: () => Promise<void>): Promise<void> {
  const rights = process.geteuid?.();
  if (process.getuid?.() === 0) process.seteuid?.(0);
  await work();
  if (rights !== undefined) process.seteuid?.(rights);
}

/** Does work without the rights of the superuser, who may read every file. */
async function withFewRights(work: () => Promise<void>): Promise<void> {
  const isRoot = process.getuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    await work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

t.test('a file that cannot be read ends no capture', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-agents-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const at = (...names: readonly string[]): string => join(directory, ...names);
  await chmod(directory, 0o755);
  await mkdir(at('exports'));
  await writeFile(at('exports', 'earlier.wav'), 'earlier');
  await mkdir(at('originals', 'listed'), { recursive: true });
  await writeFile(at('originals', 'listed', 'one.wav'), 'one');
  await chmod(at('originals', 'listed'), 0o444);
  const hook = new HookFile(at('hook.log'));
  await writeFile(at('hook.log'), '1 1 beat 0 48000\n');
  await chmod(at('hook.log'), 0);

  await withFewRights(async () => {
    const written: string[] = [];
    const follower = new ProjectFollower({
      project: at('absent.aup3'),
      exports: at('exports'),
      clock: () => 1,
      write: ({ kind }) => written.push(kind),
    });
    await follower.look();
    await atLargest(async () => {
      await writeFile(at('exports', 'closed.wav'), 'closed');
      await chmod(at('exports', 'closed.wav'), 0);
      await writeFile(at('exports', 'open.wav'), 'open');
    });
    for (let look = 0; look < 6; look += 1) await follower.look();
    t.strictSame(written, ['export.finished'], 'the export that can be read and is new');
    t.equal(await new Originals(at('originals')).find('0'.repeat(64)), undefined);
    t.strictSame(hook.look().lines, []);
  });
  await chmod(at('originals', 'listed'), 0o755);
  await chmod(at('hook.log'), 0o600);
  t.match(hook.look().lines, [{ word: 'beat' }], 'what could not be read is read later');
});

t.test('a project that stays unreadable is a gap each time that it changes, and at the end', async (t) => {
  const project = join(t.testdir(), 'p.aup3');
  const written: TraceEvent[] = [];
  let now = 0;
  const write = (event: TraceEvent) => written.push(event);
  const follower = new ProjectFollower({ project, clock: () => (now += 1), write });
  const look = async (times: number): Promise<readonly TraceEvent[]> => {
    for (let time = 0; time < times; time += 1) await follower.look();
    return written.splice(0);
  };
  const gap = { kind: 'capture.gap', since: 0, reason: 'unreadable' };
  for (const log of ['a', 'bb', 'ccc']) {
    // A log without its project.
    await writeFile(`${project}-wal`, log);
    t.strictSame(await look(19), [], 'a read may fail');
    t.match(await look(1), [{ ...gap, at: now }]);
    t.strictSame(await look(1), []);
  }
  follower.end();
  t.strictSame(written, [], 'nothing was written since the last gap');
  await writeFile(`${project}-wal`, 'dddd');
  await look(1);
  follower.end();
  t.match(written, [{ ...gap, at: now }], 'the last state was not read');
});
