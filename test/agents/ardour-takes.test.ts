/** Takes of the real Ardour at the speed of time, and ten times as fast: the one is recorded in real time. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { again } from '../fixtures/again.js';
import { needs } from '../fixtures/tools.js';
import { type Growth, growthOf, isTruePace } from './ardour/growth.js';
import { reportOf } from './ardour/report.js';
import { follow, makeHome, runLua } from './ardour/studio.js';

const skip = needs('ardour7-lua');

/** Records three files of noise at once, for a mono and a stereo track. The dummy device counts as hardware. */
async function record(scratch: string, driver: string, seconds: number) {
  const home = join(scratch, 'home');
  await makeHome(home);
  const directory = join(scratch, 'session');
  const trace = join(scratch, 'take.trace');
  const { events } = await follow(trace, { directory, countsDummy: true }, async () => {
    const { code, output } = await runLua(home, 'record.lua', [
      directory,
      'session',
      driver,
      String(seconds),
    ]);
    if (code !== 0) throw new Error(`Ardour ended with ${String(code)}: ${output.slice(-200)}`);
  });
  const finished = events.flatMap((event) => (event.kind === 'recording.finished' ? [event] : []));
  if (finished.length !== FILES) throw new Error(`${finished.length} takes ended`);
  return {
    finished,
    inputs: events.flatMap((event) => (event.kind === 'recording.started' ? [event.input] : [])),
    growths: finished.map(({ take, rate }) => growthOf(events, take, rate)),
    report: await reportOf(trace),
  };
}

const FILES = 3;
const ofEach = <Value>(value: Value): readonly Value[] => Array.from({ length: FILES }, () => value);

/** The machine was too busy for the dummy device to keep time. */
class Stalled extends Error {}

const described = ({ steps, whole, stretches }: Growth): string =>
  `${steps} steps at ${whole.toFixed(2)} of the rate, ${stretches.map((pace) => pace.toFixed(2)).join(' ')}`;

t.test('takes that grew at their true rate are reported as recorded in real time', { skip }, async (t) => {
  const scratch = t.testdir();
  let runs = 0;
  const { finished, inputs, growths, report } = await again(
    async () => {
      const run = join(scratch, String((runs += 1)));
      await mkdir(join(run, 'home'), { recursive: true });
      const recorded = await record(run, 'Normal Speed', 12);
      const stalled = recorded.growths.find((growth) => !isTruePace(growth));
      if (stalled !== undefined) throw new Stalled(described(stalled));
      return recorded;
    },
    (error) => error instanceof Stalled,
  );
  for (const growth of growths) t.comment(described(growth));
  t.strictSame(inputs, ofEach('hardware'));
  t.strictSame(report.session.counters.takesRecordedInRealTime, { status: 'observed', value: FILES });
  t.match(report.session.recordings, ofEach({ realTime: 'observed', input: 'hardware' }));
  t.strictSame(
    report.session.recordings.map(({ growthSteps }) => growthSteps).toSorted(),
    growths.map(({ steps }) => steps).toSorted(),
  );
  const seconds = finished.reduce((sum, { frames, rate }) => sum + frames / rate, 0);
  t.strictSame(report.values('takes_recorded_in_real_time'), [
    { takes: FILES, seconds: Math.round(seconds * 1000) / 1000 },
  ]);
  t.strictSame(report.values('takes_without_real_time_evidence'), []);
  t.strictSame(
    report.placements.map(({ origin }) => origin),
    ['recorded', 'recorded'],
  );
});

t.test('takes that grew ten times as fast are not, whatever their input', { skip }, async (t) => {
  const scratch = t.testdir({ home: {} });
  const { inputs, growths, report } = await record(scratch, '10x Speed', 3);
  for (const growth of growths) {
    t.comment(described(growth));
    t.ok(growth.steps >= 3, 'it has the steps that a take needs');
    t.ok(growth.whole > 2, 'at a rate that no clock has');
  }
  t.strictSame(inputs, ofEach('hardware'));
  t.strictSame(report.session.counters.takesRecordedInRealTime, { status: 'unknown' });
  t.match(report.session.recordings, ofEach({ realTime: 'unknown', input: 'hardware' }));
  t.strictSame(report.values('takes_recorded_in_real_time'), []);
  t.strictSame(report.values('takes_without_real_time_evidence'), [{ takes: FILES }]);
  t.strictSame(
    report.placements.map(({ origin }) => origin),
    ['unknown', 'unknown'],
    'nothing of it is said to be recorded',
  );
});
