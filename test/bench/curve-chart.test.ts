/** Curves as the reports of the bench show them. */
import t from 'tap';
import { type Curve, curveLine } from '../../bench/measure.js';
import { curveChart } from '../../bench/report/curve-chart.js';
import { htmlReport } from '../../bench/report/html.js';
import { terminalReport } from '../../bench/report/terminal.js';
import { madeUpRun, madeUpSection } from './made-up-run.js';

const CURVE: Curve = {
  id: 'curve',
  title: 'Time & <place>',
  x: { label: 'rows', unit: 'k' },
  y: { label: 'p99', unit: 'ms' },
  lines: [
    curveLine('one "way"', 'ours', [
      { x: 1, rounds: [11, 12, 13] },
      { x: 10, rounds: [21, 22, 23] },
      { x: 1000, rounds: [31, 32, 33] },
    ]),
    curveLine('another', 'ours', [{ x: 1000, rounds: [32, 32, 34] }]),
    curveLine('a third', 'baseline', [{ x: 10.5, rounds: [0] }]),
  ],
};

/** Returns the names of the elements in order. @throws Error if the text is not well-formed */
function elementsOf(xml: string): readonly string[] {
  const open: string[] = [];
  const found: string[] = [];
  const token =
    /<(\/?)([a-z]+)((?: [a-zA-Z0-9-]+="(?:[^<&"]|&(?:amp|lt|gt|quot);)*")*)(\/?)>|(?:[^<&>]|&(?:amp|lt|gt|quot);)+/y;
  while (token.lastIndex < xml.length) {
    const at = token.lastIndex;
    const match = token.exec(xml);
    if (match === null) throw new Error(`not well-formed: ${xml.slice(at, at + 80)}`);
    const [, closes, name, attributes = '', empty] = match;
    if (name === undefined) continue;
    const names = [...attributes.matchAll(/ ([a-zA-Z0-9-]+)=/g)].map(([, attribute]) => attribute);
    if (new Set(names).size < names.length) throw new Error(`an attribute twice: ${match[0]}`);
    if (closes === '/') {
      if (open.pop() !== name) throw new Error(`${name} ends and was not open`);
      continue;
    }
    found.push(name);
    if (empty === '') open.push(name);
  }
  if (open.length > 0) throw new Error(`${open.join()} does not end`);
  return found;
}

t.test('the picture of a curve is XML', async (t) => {
  const elements = elementsOf(curveChart(CURVE));
  const count = (name: string) => elements.filter((element) => element === name).length;
  const points = CURVE.lines.flatMap((line) => line.points);
  t.equal(count('svg'), 1);
  t.equal(count('polyline'), CURVE.lines.length);
  t.equal(count('circle'), points.length + points.flatMap(({ rounds }) => rounds).length);
  for (const broken of ['<svg>', '<svg></g>', '<svg a="1" a="2"/>', '<svg>&</svg>', '<svg a="<"/>'])
    t.throws(() => elementsOf(broken), broken);
});

t.test('every number of a curve is in words, in a table, and on the terminal', async (t) => {
  const words = /aria-label="([^"]*)"/.exec(curveChart(CURVE))![1]!;
  t.match(
    words,
    'Time &amp; &lt;place&gt;, in ms: one &quot;way&quot;: at 1 median 12.0 ms, rounds 11.0 12.0 13.0;',
  );
  t.match(words, 'at 1,000 median 32.0 ms, rounds 31.0 32.0 33.0. another: at 1,000 median 32.0 ms');
  const run = madeUpRun({ sections: [madeUpSection('scale-uploads', { curves: [CURVE] })] });
  const page = htmlReport(run);
  const cells = [...page.slice(page.indexOf('class="points"')).matchAll(/<t[hd](?: [^>]*)?>(.*?)<\/t[hd]>/g)];
  t.strictSame(
    cells.map(([, cell]) => cell!.replace(/<small>.*/, '')),
    [
      ...['ms, rows, k', '1', '10', '10.5', '1,000'],
      ...['one &quot;way&quot;', '12.0', '22.0', '', '32.0'],
      ...['another', '', '', '', '32.0'],
      ...['a third', '', '', '0', ''],
    ],
  );
  t.match(page, '<small>11.0 – 13.0</small>');
  t.match(
    terminalReport(run, false),
    [
      'Time & <place>, ms',
      '  rows, k       1    10  10.5  1,000',
      '  one "way"  12.0  22.0         32.0',
      '  another                       32.0',
      '  a third                   0',
    ].join('\n'),
  );
});

t.test('labels and ticks that would run into each other are moved and left out', async (t) => {
  const near = (x: number) => [{ x, rounds: [5] }];
  const lines = ['one', 'two', 'three'].map((label, i) => curveLine(label, 'ours', near(1 + i / 100)));
  const picture = curveChart({ ...CURVE, lines: [...lines, curveLine('far', 'ours', near(1e6))] });
  const heights = [...picture.matchAll(/y="([\d.]+)" text-anchor="start" class="label"/g)]
    .map(([, y]) => Number(y))
    .sort((a, b) => a - b);
  t.equal(heights.length, 4);
  t.ok(
    heights.every((height, i) => i === 0 || height - heights[i - 1]! >= 15.9),
    heights.join(),
  );
  t.strictSame(
    [...picture.matchAll(/text-anchor="middle" class="tick">([^<]*)</g)].map(([, tick]) => tick),
    ['1.02', '1,000,000'],
  );
  t.strictSame(
    [...picture.matchAll(/stroke-dasharray="([^"]*)"/g)].map(([, dashes]) => dashes),
    ['', '7 4', '2 3', ''],
  );
});

t.test('a curve of zeros has a scale', async (t) => {
  const picture = curveChart({
    ...CURVE,
    lines: [curveLine('none', 'ours', [{ x: 1, rounds: [0] }])],
  });
  t.notMatch(picture, /NaN|Infinity/);
});
