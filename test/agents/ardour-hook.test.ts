/** The hook in Ardour's window: playback as it happened, and what is written into its file by somebody else. */

import { createReadStream } from 'node:fs';
import { appendFile, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { HookFile } from '../../src/agents/ardour/hook-file.js';
import { HOOK_FILE } from '../../src/agents/ardour/hook-script.js';
import { installHook, removeHook } from '../../src/agents/ardour/install-hook.js';
import { openLedger } from '../../src/agents/ardour/ledger.js';
import { Transport } from '../../src/agents/ardour/transport.js';
import type { TraceEvent } from '../../src/witness/domain/trace.js';
import { replayTrace } from '../../src/witness/replay/replay-trace.js';
import { needs } from '../fixtures/tools.js';
import { follow, makeHome, runLua } from './ardour/studio.js';
import { Window } from './ardour/window.js';

const UI = 'ARDOUR.TransportRequestSource.TRS_UI';

t.test(
  'playback in the window of Ardour is written as it was driven',
  { skip: needs('ardour', 'ardour7-lua', 'Xvfb') },
  async (t) => {
    const scratch = t.testdir({ home: { spool: {} } });
    const home = join(scratch, 'home');
    const directory = join(scratch, 'session');
    await makeHome(home);
    const hook = await installHook(join(home, 'config'));
    t.match(await readFile(hook, 'utf8'), '"EditorHook"');
    const created = await runLua(home, 'create.lua', [directory, 'session']);
    t.strictSame(created.code, 0, created.output);

    const { header, events, findings } = await follow(
      join(scratch, 'a.trace'),
      { directory, hook: true },
      async () => {
        const window = await Window.open(home, join(directory, 'session.ardour'), hook);
        try {
          await pause(3000);
          for (const act of [
            'Session:request_locate(96000, false, ARDOUR.LocateTransportDisposition.MustStop, UI)',
            'Session:request_roll(UI)',
            'Session:request_stop(false, false, UI)',
            'Session:request_locate(480000, false, ARDOUR.LocateTransportDisposition.MustStop, UI)',
            'Session:request_roll(UI)',
            'Session:request_stop(false, false, UI)',
          ]) {
            await window.run(act.replaceAll('UI', UI));
            await pause(1500);
          }
        } finally {
          await window.close();
        }
      },
    );
    t.equal(header.channels.transport, 'supported');
    t.strictSame(findings, []);
    const acts = events.flatMap((event) => (event.kind.startsWith('transport.') ? [event] : []));
    t.strictSame(
      acts.map(({ kind }) => kind).filter((kind) => kind !== 'transport.located'),
      ['transport.started', 'transport.stopped', 'transport.started', 'transport.stopped'],
    );
    const places = acts.flatMap((event) =>
      event.kind === 'transport.located' || event.kind === 'transport.started'
        ? [[event.kind, event.start]]
        : [],
    );
    for (const [start, kind] of [
      [2, 'transport.located'],
      [10, 'transport.located'],
    ] as const)
      t.ok(
        places.some(([name, at]) => name === kind && Math.abs(Number(at) - start) < 0.1),
        `${kind} ${start}: ${JSON.stringify(places)}`,
      );
    t.ok(
      acts.every(({ since }) => since === undefined),
      'each at its own time',
    );
    const started = acts.filter(({ kind }) => kind === 'transport.started').map(({ at }) => at);
    const stopped = acts.filter(({ kind }) => kind === 'transport.stopped').map(({ at }) => at);
    for (const [i, at] of started.entries()) t.ok(stopped[i]! - at > 1_000_000, 'as long as it rolled');
    t.strictSame(
      events.filter(({ kind }) => kind.startsWith('recording.')),
      [],
      'and nothing was recorded',
    );
    const { session } = await replayTrace(() => createReadStream(join(scratch, 'a.trace')));
    t.strictSame(session.counters.playbacks, { status: 'observed', value: 2 });
    t.equal(await removeHook(join(home, 'config')), hook);
    await t.rejects(stat(hook));
    await t.resolves(removeHook(join(home, 'config')), 'again');
  },
);

/** Returns the time of the clock that the hook reads, some milliseconds ago, in microseconds. */
const microseconds = (ago = 0): string => String(process.hrtime.bigint() / 1000n - BigInt(ago * 1000));

t.test('what somebody else writes into the file is a gap, and never more than playback', async (t) => {
  const path = join(t.testdir({ [HOOK_FILE]: '1 5 roll 0 48000\n' }), HOOK_FILE);
  const events: TraceEvent[] = [];
  let now = 1_000_000;
  const transport = new Transport(
    path,
    openLedger((event) => events.push(event)),
    () => now,
  );
  const look = async (text: string): Promise<readonly TraceEvent[]> => {
    await appendFile(path, text);
    now += 500_000;
    transport.poll();
    return events.splice(0);
  };
  t.strictSame(await look(''), [], 'what was there before is not of this session');
  t.strictSame(await look(`2 ${microseconds()} beat 0 48000\n`), []);
  t.match(await look(`3 ${microseconds()} roll 48000 48000\n`), [{ kind: 'transport.started', start: 1 }]);
  t.match(
    await look(`4 99999999999999 stop 48000 48000\n`),
    [{ kind: 'transport.stopped', since: 2_500_000, at: 3_000_000 }],
    'a clock that is not this machine’s: an interval',
  );
  const gap = { kind: 'capture.gap', scope: 'transport', reason: 'unreadable' };
  for (const garbage of [
    'recording.finished\n',
    '5 1 roll 0\n',
    '\0\0\0\n',
    `6 ${microseconds()} record 0 48000\n`,
    `7 ${microseconds()} roll 99999999999999999999 48000\n`,
    `${'x'.repeat(500)}`,
  ])
    t.match(await look(garbage), [gap], garbage.slice(0, 30));
  t.match(await look('\n'), [gap], 'the rest of a line that was too long');
  t.match(await look(`8 ${microseconds()} locate 96000 48000\n`), [{ kind: 'transport.located', start: 2 }]);
  const half = `9 ${microseconds()} lo`;
  t.strictSame(await look(half), [], 'half a line waits');
  t.match(await look('cate 0 48000\n'), [{ kind: 'transport.located', start: 0 }]);

  await writeFile(`${path}.new`, `1 ${microseconds()} stop 0 48000\n`);
  await rename(`${path}.new`, path);
  t.match(await look(''), [gap, { kind: 'transport.stopped' }], 'another file in its place');
  await writeFile(path, '');
  t.strictSame(await look(`1 ${microseconds()} beat 0 48000\n`), [], 'begun anew by the hook itself');
  const many = Array.from({ length: 20_000 }, (_, i) => `${i + 2} ${microseconds()} beat 0 48000\n`).join('');
  await look(many);
  const hook = new HookFile(path);
  await appendFile(path, many);
  t.ok(hook.look().lines.length < 4000, 'a look reads no more than its bound');
  now += 60_000_000;
  transport.end(now);
  t.match(events, [{ kind: 'capture.gap', reason: 'agent_stopped' }], 'silence up to a save is a gap');
});
