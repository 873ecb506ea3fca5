import t from 'tap';
import {
  type Core,
  createCoreMemory,
  instantiateCore,
  type Lanes,
  loadCore,
  type Slice,
} from '../../src/core/engine/core.js';
import { WHOLE } from '../../src/core/engine/core-layout.js';
import { completeOptions } from '../../src/core/engine/create-engine.js';
import { SLAB_BYTES } from '../../src/core/engine/ingest.js';
import { LANE_TEST_BYTES, type LaneTest, testLanes, testModule } from '../../src/core/engine/lane-test.js';
import { WorkerEngine } from '../../src/core/engine/worker-engine.js';
import { noise } from '../fixtures/wav.js';

const module = await loadCore();

/** The numbers of calls of eight lanes before the first message and before the last measurements. */
const WARM = 9;
const COMPARED = WARM + 50;

interface Planted {
  /** The duration of a call of four lanes in milliseconds. */
  readonly four?: number;
  /** The duration of a call of eight lanes in milliseconds, by the number of calls so far. */
  readonly eight?: (calls: number) => number;
  /** The callback after each call of eight lanes. */
  readonly after?: (slices: readonly Slice[], bytes: Uint8Array, calls: number) => void;
}

/** Tests a core whose kernels take the given time on a clock of the test's own. */
function testPlanted({ four = 1, eight = () => 1, after = () => undefined }: Planted): LaneTest {
  const memory = createCoreMemory(LANE_TEST_BYTES);
  const bytes = new Uint8Array(memory.buffer);
  const core = instantiateCore(module, memory, 0);
  let now = 0;
  let calls = 0;
  const timed: Core = {
    ...core,
    update(slices: readonly Slice[], lanes: Lanes = 4) {
      core.update(slices, lanes);
      if (lanes === 4) {
        now += four;
        return;
      }
      calls += 1;
      now += eight(calls);
      after(slices, bytes, calls);
    },
  };
  return testLanes(timed, memory, () => now);
}

t.test('eight lanes pass when they are right and faster by a fifth', async (t) => {
  t.strictSame(testPlanted({ four: 0.625 }), { lanes: 8, outcome: 'passed', gain: 1.25 });
});

t.test('eight lanes are refused when they are not faster by a fifth', async (t) => {
  t.strictSame(testPlanted({ four: 9, eight: () => 16 }), { lanes: 4, outcome: 'too_slow', gain: 1.125 });
});

t.test('eight lanes are refused when they become slower after their digests were right', async (t) => {
  t.strictSame(testPlanted({ eight: (calls) => (calls > COMPARED ? 2 : 1) }), {
    lanes: 4,
    outcome: 'too_slow',
    gain: 1,
  });
});

for (const place of [0, 3, 4, 7])
  t.test(`eight lanes are refused when one digest in place ${place} is wrong`, async (t) => {
    const planted = testPlanted({
      after: (slices, bytes, calls) => {
        if (calls === COMPARED) bytes[slices[place]!.context + WHOLE]! ^= 1;
      },
    });
    t.strictSame(planted, { lanes: 4, outcome: 'wrong_digest', gain: 2 });
  });

t.test('eight lanes are refused when the time is over before all messages are compared', async (t) => {
  t.strictSame(testPlanted({ eight: (calls) => (calls === COMPARED - 1 ? 300 : 1) }), {
    lanes: 4,
    outcome: 'out_of_time',
    gain: 2,
  });
});

t.test('a module that cannot run means four lanes', async (t) => {
  t.strictSame(testModule({} as WebAssembly.Module), { lanes: 4, outcome: 'trap', gain: 0 });
});

t.test('an engine that may use eight lanes reports its choice and hashes right', async (t) => {
  const choices: LaneTest[] = [];
  const engine = new WorkerEngine(
    completeOptions({
      kind: 'wasm',
      workers: 1,
      slabs: 24,
      maxUploads: 16,
      eightLanes: true,
      lanesChosen: (choice) => choices.push(choice),
    }),
  );
  await engine.start();
  t.teardown(() => engine.stop());
  t.equal(choices.length, 1);
  t.equal(engine.stats().kernelLanes, choices[0]!.lanes);
  t.comment(`${choices[0]!.outcome}, gain ${choices[0]!.gain}`);
  const file = noise(3 * SLAB_BYTES + 77);
  const measured = await Promise.all(
    Array.from({ length: 16 }, async () => {
      const ingest = engine.open('a');
      for (let at = 0; at < file.length; at += 65_536) await ingest.write(file.subarray(at, at + 65_536));
      return ingest.end();
    }),
  );
  t.equal(new Set(measured.map(({ sha256 }) => sha256)).size, 1);
  t.equal(engine.stats().hashDifferences, 0);
});
