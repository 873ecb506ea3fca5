/** Replays in threads of their own: what is given up gives its place back. */
import t from 'tap';
import { Replays } from '../../src/adapters/replaying/replays.js';
import { seededDeviceKey, simulateTrace } from '../../src/capture/simulate/simulate-trace.js';
import { TRACE_LIMITS } from '../../src/domain/trace.js';
import { MemorySink, opened, writeClips } from '../capture/write-trace.js';

const GONE = new Error('nobody waits any more');

/** A trace of which nothing ever comes, and what resolves when it is asked for. */
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
    await t.rejects(replays.replay(opened(bytes, 65_536)), {
      code: 'unprocessable',
      reason: 'trace_too_large',
    });
    const small = await writeClips(1);
    t.ok(await replays.replay(opened(small.bytes)));
  },
);

t.test('a replay that is given up leaves its thread to whoever waits', async (t) => {
  const replays = new Replays({ threads: 1, waiting: 2 });
  t.teardown(() => replays.stop());
  const bytes = await simulated();
  const running = new AbortController();
  const waiting = new AbortController();
  const trace = silent();
  const first = replays.replay(trace.open, running.signal);
  await trace.asked;
  const second = replays.replay(silent().open, waiting.signal);
  const third = replays.replay(opened(bytes));
  await t.rejects(
    replays.replay(opened(bytes)),
    { code: 'unavailable', reason: 'replay_full' },
    'two wait already',
  );
  waiting.abort(GONE);
  await t.rejects(second, GONE, 'one that waited');
  const fourth = replays.replay(opened(bytes));
  running.abort(GONE);
  await t.rejects(first, GONE, 'the one that ran');
  t.equal((await third).header.simulated, true);
  t.equal((await fourth).sha256, (await third).sha256);
  await t.rejects(replays.replay(opened(bytes), AbortSignal.abort(GONE)), GONE, 'one that comes too late');
  t.ok(await replays.replay(opened(bytes)), 'and the thread is free');
});
