/** Tests replays in threads of their own. An abandoned replay frees its place. */
import t from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { seededDeviceKey, simulateTrace } from '../../src/cli/specimens/simulate-trace.js';
import { Replays } from '../../src/service/adapters/replaying/replays.js';
import { TRACE_LIMITS } from '../../src/witness/domain/trace.js';
import type { OpenTrace } from '../../src/witness/trace/read-trace.js';
import { opened, writeClips } from '../capture/write-trace.js';
import { manyEvents, manySignatures } from '../evidence/costly-traces.js';

const GONE = new Error('the caller is gone');
/** Partners. */
const [A, B, C] = ['ptr_a', 'ptr_b', 'ptr_c'] as const;

/** Returns a trace that never delivers a byte, and a promise that resolves when it is read. */
function silent(): { readonly open: () => AsyncIterable<Uint8Array>; readonly asked: Promise<void> } {
  let onAsked = (): void => undefined;
  const asked = new Promise<void>((resolve) => {
    onAsked = resolve;
  });
  return {
    asked,
    async *open() {
      onAsked();
      await new Promise(() => undefined);
      yield new Uint8Array();
    },
  };
}

async function simulated(): Promise<Buffer> {
  const to = new MemorySink();
  await simulateTrace({ minutes: 5, seed: 1, to, key: seededDeviceKey(1) });
  return to.bytes();
}

t.test(
  'a trace that needs more memory than a thread has is refused, and the next one replayed',
  async (t) => {
    const replays = new Replays({ threads: 1, heapMib: 12 });
    t.teardown(() => replays.stop());
    const { bytes } = await writeClips(TRACE_LIMITS.live.clips);
    await t.rejects(replays.replay(A, opened(bytes, 65_536)), {
      code: 'unprocessable',
      reason: 'trace_too_large',
    });
    const small = await writeClips(1);
    t.ok(await replays.replay(A, opened(small.bytes)));
  },
);

t.test('an abandoned replay frees its thread for the next one', async (t) => {
  const replays = new Replays({ threads: 1, waiting: 2 });
  t.teardown(() => replays.stop());
  const bytes = await simulated();
  const running = new AbortController();
  const waiting = new AbortController();
  const trace = silent();
  const first = replays.replay(A, trace.open, running.signal);
  await trace.asked;
  const second = replays.replay(A, silent().open, waiting.signal);
  const third = replays.replay(A, opened(bytes));
  await t.rejects(
    replays.replay(A, opened(bytes)),
    { code: 'unavailable', reason: 'replay_full' },
    'two wait already',
  );
  waiting.abort(GONE);
  await t.rejects(second, GONE, 'one that waited');
  const fourth = replays.replay(A, opened(bytes));
  running.abort(GONE);
  await t.rejects(first, GONE, 'the one that ran');
  t.equal((await third).header.simulated, true);
  t.equal((await fourth).sha256, (await third).sha256);
  await t.rejects(replays.replay(A, opened(bytes), AbortSignal.abort(GONE)), GONE, 'one that comes too late');
  t.ok(await replays.replay(A, opened(bytes)), 'and the thread is free');
});

t.test('partners take turns, however many replays one of them has waiting', async (t) => {
  const replays = new Replays({ waiting: 8 });
  t.teardown(() => replays.stop());
  const { bytes } = await writeClips(1);
  const started: string[] = [];
  const recording =
    (name: string): OpenTrace =>
    () => {
      if (!started.includes(name)) started.push(name);
      return opened(bytes)();
    };
  const running = silent();
  const first = new AbortController();
  const outcomes = [replays.replay(A, running.open, first.signal).catch(() => undefined)];
  await running.asked;
  const ask = (owner: string, name: string): void => {
    outcomes.push(replays.replay(owner, recording(name)).catch(() => undefined));
  };
  for (const name of ['a1', 'a2', 'a3']) ask(A, name);
  for (const name of ['b1', 'b2']) ask(B, name);
  ask(C, 'c1');
  first.abort(GONE);
  await Promise.all(outcomes);
  // The running replay was A's turn.
  t.strictSame(started, ['b1', 'a1', 'c1', 'b2', 'a2', 'a3']);
});

t.test('a partner that fills the places gives way to others', async (t) => {
  const replays = new Replays({ waiting: 4 });
  t.teardown(() => replays.stop());
  const { bytes } = await writeClips(1);
  const running = silent();
  const first = new AbortController();
  const ended = replays.replay(A, running.open, first.signal).catch(() => 'given up');
  await running.asked;
  const outcome = async (replay: Promise<unknown>): Promise<string> => {
    try {
      await replay;
      return 'replayed';
    } catch (error) {
      return (error as { reason: string }).reason;
    }
  };
  const ofA = Array.from({ length: 5 }, () => outcome(replays.replay(A, opened(bytes))));
  const ofB = Array.from({ length: 3 }, () => outcome(replays.replay(B, opened(bytes))));
  first.abort(GONE);
  t.strictSame(await Promise.all(ofA), ['replayed', 'replayed', 'replay_full', 'replay_full', 'replay_full']);
  t.strictSame(await Promise.all(ofB), ['replayed', 'replayed', 'replay_full']);
  t.equal(await ended, 'given up');
});

t.test('a thread that is busy with a trace is ended, and another one follows', async (t) => {
  const replays = new Replays();
  t.teardown(() => replays.stop());
  const bytes = manySignatures(8000);
  const caller = new AbortController();
  let given = 0;
  const busy = replays.replay(
    A,
    async function* () {
      for await (const chunk of opened(bytes, 65_536)()) {
        given += 1;
        // The thread is busy with thousands of signatures.
        if (given === 2) setImmediate(() => caller.abort(GONE));
        yield chunk;
      }
    },
    caller.signal,
  );
  await t.rejects(busy, GONE);
  t.ok(given < bytes.length / 65_536, `${given} chunks were read`);
  t.ok(await replays.replay(B, opened(await simulated())));
});

t.test('a trace that takes more work than allowed is refused, and the next one replayed', async (t) => {
  const replays = new Replays({ workUnits: 50_000 });
  t.teardown(() => replays.stop());
  const costly = replays.replay(A, opened(manyEvents(50_001)));
  await t.rejects(costly, { code: 'unprocessable', reason: 'trace_too_large' });
  t.ok(await replays.replay(A, opened(await simulated())));
});

t.test('replays that wait are refused when the service stops', async (t) => {
  const replays = new Replays();
  const trace = silent();
  const running = replays.replay(A, trace.open);
  await trace.asked;
  const waiting = replays.replay(A, silent().open);
  const refused = t.rejects(waiting, { code: 'unavailable', reason: 'replay_full' });
  const ended = t.rejects(running, /a replay ended without a result/);
  await replays.stop();
  await Promise.all([refused, ended]);
  await t.rejects(replays.replay(A, silent().open), { code: 'unavailable', reason: 'replay_full' });
});
