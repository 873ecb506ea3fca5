/** The work that a replay may take: the same on every machine, ample for honest traces, and an end for costly ones. */
import t from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { seededDeviceKey, simulateTrace } from '../../src/cli/specimens/simulate-trace.js';
import { ADVERSE_SCENARIOS, type AdverseScenario } from '../../src/cli/specimens/simulated-session.js';
import { TRACE_LIMITS } from '../../src/witness/domain/trace.js';
import { replayTrace } from '../../src/witness/replay/replay-trace.js';
import { WORK, WORK_UNITS, WorkBudget } from '../../src/witness/trace/work-budget.js';
import { opened, SESSION, writeTrace } from '../capture/write-trace.js';
import { onlyInFull, sized } from '../fixtures/sampling.js';
import { manyDescendants, manyEvents, manyExports, manySignatures } from './costly-traces.js';

async function simulated(minutes: number, adverse: readonly AdverseScenario[] = []): Promise<Buffer> {
  const to = new MemorySink();
  await simulateTrace({ minutes, seed: 1, adverse, to, key: seededDeviceKey(1) });
  return to.bytes();
}

async function unitsOf(trace: Uint8Array, ...lengths: readonly number[]): Promise<number> {
  const budget = new WorkBudget(AMPLE);
  await replayTrace(opened(trace, ...lengths), budget);
  return AMPLE - budget.left;
}

/** A budget of more units than any trace of these tests takes. Sixteenths of a unit are exact at this size. */
const AMPLE = 2 ** 32;
const TOO_LARGE = { code: 'unprocessable', reason: 'trace_too_large' };

t.test('an honest trace takes less than a tenth of the budget', async (t) => {
  const { bytes: session } = await writeTrace((writer) => {
    for (const event of SESSION) writer.append(event);
    return writer.seal();
  });
  const traces: Readonly<Record<string, Buffer>> = {
    'a small session': session,
    'a session of 90 minutes': await simulated(90),
    'a session of hours': await simulated(sized(1440, 240)),
    ...Object.fromEntries(
      await Promise.all(
        ADVERSE_SCENARIOS.map(async (scenario) => [scenario, await simulated(20, [scenario])] as const),
      ),
    ),
  };
  for (const [name, trace] of Object.entries(traces)) {
    const units = await unitsOf(trace);
    t.ok(units < WORK_UNITS / 10, `${name}: ${Math.round(units)} of ${WORK_UNITS} units`);
  }
});

t.test('a signature a second for 18 hours leaves room for two million events', (t) => {
  const signing = TRACE_LIMITS.signatures * (WORK.signature + 2 * WORK.segment);
  t.ok(signing + 2_000_000 * WORK.event <= WORK_UNITS);
  t.end();
});

t.test('the work of a trace is the same however it is cut', async (t) => {
  const trace = await simulated(5);
  const units = await unitsOf(trace);
  for (const length of [1, 7, 4099])
    t.equal(await unitsOf(trace, length), units, `chunks of ${length} bytes`);
});

t.test('a trace is refused when it takes one unit more than the budget has', async (t) => {
  const trace = await manyDescendants({ imports: 40, sources: 60, clips: 300, derivations: 400 });
  const units = await unitsOf(trace);
  t.ok(await replayTrace(opened(trace), new WorkBudget(units)));
  await t.rejects(replayTrace(opened(trace), new WorkBudget(units - 1)), TOO_LARGE);
});

t.test('each kind of work is counted', async (t) => {
  const more = async (make: (count: number) => Buffer | Promise<Buffer>, count: number): Promise<number> =>
    ((await unitsOf(await make(2 * count))) - (await unitsOf(await make(count)))) / count;
  t.equal(await more(manySignatures, 50), WORK.signature + 2 * WORK.segment + WORK.event, 'signatures');
  t.ok((await more(manyEvents, 32_768)) >= WORK.event, 'events');
  t.ok((await more((clips) => manyExports(1, clips), 500)) >= WORK.event + 8 * WORK.visit, 'clips');
  const spans = (imports: number) => manyDescendants({ imports, sources: 10, clips: 3200, derivations: 80 });
  t.ok((await more(spans, 32)) >= 3200 * WORK.span, 'spans of each import');
});

t.test('events beyond the budget are refused, and not read to their end', async (t) => {
  const units = 100_000;
  await t.rejects(replayTrace(opened(manyEvents(units + 1)), new WorkBudget(units)), TOO_LARGE);
});

t.test(
  'the largest traces with descendants and exports stay within the budget',
  { skip: onlyInFull() },
  async (t) => {
    const traces = { descendants: await manyDescendants(), exports: await manyExports() };
    for (const [name, trace] of Object.entries(traces)) {
      const units = await unitsOf(trace);
      t.ok(units < WORK_UNITS, `${name}: ${Math.round(units)} units`);
    }
  },
);

t.test('an export costs the same however many clips exist', async (t) => {
  const spent = async (exports: number): Promise<number> => {
    const trace = await manyExports(exports, 10_000);
    const began = process.cpuUsage();
    await replayTrace(opened(trace));
    return process.cpuUsage(began).user / 1000;
  };
  await spent(1);
  const one = await spent(1);
  const many = await spent(2000);
  // With a visit of each clip, the exports would visit twenty million clips.
  t.ok(many < 20 * one, `${Math.round(many)} ms, and ${Math.round(one)} ms`);
});
