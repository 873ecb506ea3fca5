/** Verdicts of the bench on two builds, and the results that it takes them from. */
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { comparedPairs } from '../../bench/compare.js';
import { askedAgain, heldAgainst, readEarlierRun } from '../../bench/earlier-run.js';
import { curveLine, figure, held, proportion, ratio, type Section, speedup } from '../../bench/measure.js';
import { isAskedFor, readOptions } from '../../bench/options.js';
import { areBeyondNoise, isBeyondNoise, judged, type Verdict, valuesOf } from '../../bench/verdict.js';
import { type MadeUp, madeUpRun, madeUpSection, NAMES } from './made-up-run.js';

const ROOT = new URL('../../../', import.meta.url).pathname;

/** Returns the verdict on the first value of a section, as a function of the rounds of both runs. */
function verdict(section: (rounds: readonly number[]) => Partial<Section>, isSame = true) {
  const made = (rounds: readonly number[]) => valuesOf(madeUpSection('made-up', section(rounds)))[0]!;
  return (earlier: readonly number[], later: readonly number[]): Verdict => {
    const [before, now] = [made(earlier), made(later)];
    const ratio = now.value / before.value;
    return judged([{ ...now, before, now, ratio, isBeyondNoise: isBeyondNoise(before, now, isSame) }])[0]!
      .verdict;
  };
}

const figureOf =
  (unit: string, role: 'ours' | 'baseline' | 'other' = 'ours') =>
  (rounds: readonly number[]): Partial<Section> => ({
    figures: [figure('one', 'one', unit, role, rounds)],
  });
const ONES = [1, 1, 1];

t.test('a change beyond the noise of both runs has a verdict', async (t) => {
  const speed = verdict(figureOf('MB/s'));
  t.equal(speed([100, 101, 102], [120, 121, 122]), 'faster');
  t.equal(speed([120, 121, 122], [100, 101, 102]), 'slower');
  const time = verdict(figureOf('ms'));
  t.equal(time([100, 101, 102], [120, 121, 122]), 'slower');
  t.equal(time([120, 121, 122], [100, 101, 102]), 'faster');
});

t.test('noise has none', async (t) => {
  const speed = verdict(figureOf('MB/s'));
  for (const [why, before, now] of [
    ['a round in the range of the other side', [100, 101, 121], [120, 122, 123]],
    ['less than 5 %', [100, 100.1, 100.2], [104, 104.1, 104.2]],
    ['less than what the rounds of one side wander', [100, 110, 130], [131, 132, 133]],
    ['two rounds', [100, 101], [200, 201]],
    ['nothing to be a multiple of', [0, 0, 0], [10, 10, 10]],
    ['the same', [100, 101, 102], [100, 101, 102]],
  ] as const) {
    t.equal(speed(before, now), '-', why);
    t.equal(speed(now, before), '-', `${why}, the other way`);
  }
});

t.test('neither a baseline nor a figure whose better way is not known has a verdict', async (t) => {
  for (const section of [
    figureOf('MB/s', 'baseline'),
    figureOf('MB/s', 'other'),
    figureOf('furlongs'),
    (rounds: readonly number[]) => ({
      comparisons: [proportion('one', 'one', 'of ours', 'ms', rounds, ONES)],
    }),
  ])
    t.equal(verdict(section)([100, 101, 102], [200, 201, 202]), '-');
});

t.test('a ratio is better the way its unit is, and a speedup with more of it', async (t) => {
  const doubled = (section: Parameters<typeof verdict>[0]) => verdict(section)(ONES, [2, 2, 2]);
  t.equal(
    doubled((rounds) => ({ comparisons: [ratio('', '', '', 'MB/s', rounds, ONES)] })),
    'faster',
  );
  t.equal(
    doubled((rounds) => ({ comparisons: [ratio('', '', '', 'CPU s/GB', rounds, ONES)] })),
    'slower',
  );
  t.equal(
    doubled((rounds) => ({ comparisons: [speedup('', '', '', 'µs', ONES, rounds)] })),
    'faster',
  );
  t.equal(
    doubled((rounds) => ({ comparisons: [held('', '', '', 'lanes', rounds)] })),
    'faster',
  );
  const line = (rounds: readonly number[]) => curveLine('one', 'ours', [{ x: 1, rounds }]);
  const axes = { x: { label: 'x', unit: '' }, y: { label: 'y', unit: 'ms' } };
  t.equal(
    doubled((rounds) => ({ curves: [{ id: 'c', title: 'c', ...axes, lines: [line(rounds)] }] })),
    'slower',
  );
});

t.test('between machines ratios and counts alone have a verdict', async (t) => {
  const elsewhere = (section: Parameters<typeof verdict>[0]) => verdict(section, false)(ONES, [2, 2, 2]);
  t.equal(elsewhere(figureOf('MB/s')), '-');
  t.equal(
    elsewhere((rounds) => ({ comparisons: [held('', '', '', 'MB', rounds)] })),
    '-',
  );
  t.equal(
    elsewhere((rounds) => ({ comparisons: [ratio('', '', '', 'MB/s', rounds, ONES)] })),
    'faster',
  );
  t.equal(
    elsewhere((rounds) => ({ comparisons: [held('', '', '', 'lanes', rounds)] })),
    'faster',
  );
});

t.test('builds that ran in turn differ where every round says so', async (t) => {
  t.ok(areBeyondNoise([1.04, 1.01, 1.1]));
  t.ok(areBeyondNoise([0.9, 0.95, 0.99]));
  t.notOk(areBeyondNoise([1.04, 0.99, 1.1]), 'a round says otherwise');
  t.notOk(areBeyondNoise([1.02, 1.01, 1.1]), 'less than 3 %');
  t.notOk(areBeyondNoise([1.5, 1.5]), 'two rounds');

  const pair = { label: 'one', unit: 'MB/s', better: 'more', isBaseline: false } as const;
  const compared = comparedPairs([
    { ...pair, other: [100, 200, 300], ours: [110, 220, 330] },
    { ...pair, better: 'less', other: [100, 200, 300], ours: [110, 220, 330] },
    { ...pair, other: [100, 200, 300], ours: [110] },
  ]);
  t.match(compared, [
    { before: { value: 200 }, now: { value: 220 }, verdict: 'faster' },
    { verdict: 'slower' },
  ]);
  t.equal(compared.length, 2, 'a value that one build lacks is left out');
});

t.test('a change that befell a baseline beside it was the machine', async (t) => {
  const side = { value: 1, rounds: ONES };
  const change = {
    label: '',
    unit: 'MB/s',
    before: side,
    now: side,
    isBeyondNoise: true,
    isBaseline: false,
  } as const;
  const ours = { ...change, better: 'more', group: 'store', ratio: 1.2 } as const;
  const verdicts = (baseline: number, group = 'store') =>
    judged([ours, { ...change, isBaseline: true, group, ratio: baseline }]).map((each) => each.verdict);
  t.strictSame(verdicts(1.1), ['faster', '-']);
  t.strictSame(verdicts(1.3), ['-', '-']);
  t.strictSame(verdicts(1 / 1.3), ['-', '-'], 'either way');
  t.strictSame(verdicts(1.3, 'another'), ['faster', '-']);
});

t.test('a run is held against an earlier one', async (t) => {
  const sections = (speed: number): readonly Section[] => [
    madeUpSection('hash', {
      figures: [figure('hash.one', 'one stream', 'MB/s', 'ours', [speed, speed, speed])],
      comparisons: [ratio('hash.one/other', 'one stream', 'other', 'MB/s', ONES, ONES)],
    }),
  ];
  const run = (speed: number, more: MadeUp = {}) => madeUpRun({ sections: sections(speed), ...more });
  const same = heldAgainst(run(100), run(50), false);
  t.match(same, { slower: true, text: /one stream +MB\/s +100 +50\.0 +0\.500x +0\.0 % +0\.0 % +slower\n/ });
  t.match(same.text, '0 faster and 1 slower beyond the noise, of 2');
  t.notMatch(same.text, /another machine|Not compared/);
  const elsewhere = heldAgainst(run(100, { machine: { processor: 'Another' } }), run(50), false);
  t.match(elsewhere, { slower: false, text: /another machine \(Another, / });
  const more = [...sections(100), madeUpSection('upload', figureOf('MB/s')(ONES))];
  t.match(heldAgainst(run(100), run(100, { sections: more }), false).text, /Not compared.*: upload$/m);
  const less = [madeUpSection('hash', { comparisons: sections(1)[0]!.comparisons })];
  t.match(
    heldAgainst(run(100), run(100, { sections: less }), false).text,
    /Not compared.*: figure hash\.one \(MB\/s\)$/m,
  );
});

t.test('results of an earlier run are whole, right, and of the form that is read', async (t) => {
  const directory = t.testdir();
  const written = async (text: string): Promise<string> => {
    const file = join(directory, 'results.json');
    await writeFile(file, text);
    return file;
  };
  const refused = async (value: unknown, message: RegExp) =>
    t.rejects(readEarlierRun(await written(JSON.stringify(value))), { message });
  const run = madeUpRun({ sections: [madeUpSection('hash', figureOf('MB/s')(ONES))] });
  t.strictSame(await readEarlierRun(await written(JSON.stringify(run))), run);

  await t.rejects(readEarlierRun(directory), { message: /cannot be read/ });
  await t.rejects(readEarlierRun(await written('{')), { message: /is not JSON/ });
  await refused(null, /has no format/);
  await refused([], /has no format/);
  await refused({ ...run, format: undefined }, /has no format/);
  await refused({ ...run, format: 0 }, /is of format 0, where format 1 is read/);
  await refused({ format: run.format }, /is no whole results\.json: startedAt: /);
  await refused({ ...run, sections: [{ ...run.sections[0], figures: [{}] }] }, /: sections\.0\.figures\.0/);
  await refused({ ...run, wrong: ['one was'] }, /has wrong answers.*: one was/);
});

t.test('a comparison measures what the earlier run was asked for, or some of it', async (t) => {
  const sections = ['hash', 'upload'].map((id) => madeUpSection(id, {}));
  const compare = ['--compare', join(ROOT, 'package.json')];
  const asked = (earlier: MadeUp, ...args: readonly string[]) =>
    askedAgain(madeUpRun({ sections, ...earlier }), readOptions([...compare, ...args], NAMES), NAMES);
  t.equal(asked({}), undefined, 'a default run again');
  t.strictSame(asked({}, '--only', 'hash'), ['hash']);
  t.strictSame(asked({ args: ['--only', 'upload'] }), ['upload']);
  t.strictSame(asked({ args: ['--quick'] }, '--quick', '--only', 'hash'), ['hash']);
  t.throws(() => asked({ args: ['--quick'] }), { message: /is of a quick run: add --quick/ });
  t.throws(() => asked({}, '--quick'), { message: /is of a full run: leave --quick out/ });
  t.throws(() => asked({}, '--scale'), { message: /has no measurement scale-uploads; it has hash, upload/ });
  t.throws(() => asked({ sections: [madeUpSection('gone', {})] }), { message: /has none.*it has gone/ });
});

t.test('options', async (t) => {
  const directory = t.testdir({ 'results.json': '' });
  const read = (...args: readonly string[]) => readOptions(args, NAMES);
  const runs = (...args: readonly string[]) => NAMES.filter((name) => isAskedFor(name, read(...args).only));
  t.strictSame(runs(), ['hash', 'upload'], 'long measurements do not run by default');
  t.strictSame(runs('--quick'), ['hash', 'upload']);
  t.strictSame(runs('--scale'), ['scale-uploads']);
  t.strictSame(runs('--only', 'scale-uploads'), ['scale-uploads']);
  t.strictSame(runs('--only', 'hash', '--scale'), ['hash', 'scale-uploads']);
  t.ok(read('--quick').scale.uploadsAtOnce.length < read().scale.uploadsAtOnce.length);
  t.throws(() => read('--only', 'none'), { message: /no measurement none; there are hash, upload/ });
  t.throws(() => read('--pairs', '0'), { message: /--pairs/ });

  const file = join(directory, 'results.json');
  t.strictSame(read('--compare', file).compare, { kind: 'results', path: file });
  t.throws(() => read('--compare', directory), { message: /there is no bench in / });
  t.throws(() => read('--compare', join(directory, 'gone')), { message: /there is no .*gone/ });
  await mkdir(join(directory, 'dist/bench'), { recursive: true });
  await writeFile(join(directory, 'dist/bench/main.js'), '');
  t.strictSame(read('--compare', directory).compare, { kind: 'checkout', path: directory });

  t.equal(read().serviceMain, undefined);
  t.throws(() => read('--service', directory), { message: /has no built service/ });
  for (const folder of ['dist/src', 'dist/src/service']) {
    await mkdir(join(directory, folder), { recursive: true });
    await writeFile(join(directory, folder, 'main.js'), '');
    t.equal(
      read('--service', directory).serviceMain?.href,
      pathToFileURL(join(directory, folder, 'main.js')).href,
    );
  }
});

t.test('each released result is a full run of the release of Node that its name has', async (t) => {
  for (const release of ['20', '26']) {
    const {
      quick = false,
      only,
      machine,
    } = await readEarlierRun(join(ROOT, `bench/released/node-${release}.json`));
    t.strictSame({ quick, only }, { quick: false, only: undefined });
    t.equal(machine.node.split('.')[0], `v${release}`);
  }
});

t.test('a quick run measures the parser of the core, and its answers are right', async (t) => {
  const out = t.testdir();
  const { status, stderr } = spawnSync(
    process.execPath,
    [join(ROOT, 'dist/bench/main.js'), '--quick', '--only', 'parse', '--out', out],
    { encoding: 'utf8' },
  );
  t.equal(status, 0, stderr);
  const { sections, wrong } = JSON.parse(await readFile(join(out, 'results.json'), 'utf8')) as {
    readonly sections: readonly { readonly id: string }[];
    readonly wrong: readonly string[];
  };
  t.strictSame([sections.map(({ id }) => id), wrong], [['parse'], []]);
});
