import type { Comparison, Curve, Figure, Section } from '../measure.js';
import { barred, disturbed, type Results } from '../results.js';
import { unitTitle } from '../units.js';
import { barChart, escapeText, gauge } from './chart.js';
import { curveChart, withUnitOf, xsOf } from './curve-chart.js';
import { barText, disturbance, number, outcome, plainNumber, withUnit } from './numbers.js';
import { STYLE } from './style.js';

/** Returns the report as a page that loads nothing else. */
export function htmlReport(results: Results): string {
  const { sections, bars, quick, machine, wrong } = results;
  const busy = disturbed(results);
  const missed = barred(sections).filter(({ met }) => !met);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Takemark measurements</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Takemark measurements</h1>
<p class="quiet">${escapeText(`${results.startedAt.slice(0, 16).replace('T', ' ')} UTC, ${quick ? 'quick run' : 'full run'} of ${results.seconds} s on ${machine.cores} cores of ${machine.processor}, Node ${machine.node}`)}</p>
<p class="score"><b>${bars.met} of ${bars.of}</b> bars met${missed.length === 0 ? '.' : `; not met: ${missed.map((comparison) => `${escapeText(comparison.label)} (${outcome(comparison)})`).join(', ')}.`}</p>
<p>Every ratio is taken inside one round, from measurements seconds apart, and the median of the rounds is shown. Absolute speeds drift with the machine; ratios hardly do. Speed is shown here and never asserted: a missed bar does not fail the run, a wrong answer does.</p>
${busy.length === 0 ? '' : `<p class="wrong">${escapeText(disturbance(busy))} Where others compute at the same time, ratios of unlike work shift too.</p>`}
${
  wrong.length === 0
    ? ''
    : `<div class="wrong"><b>Wrong answers, so that no speed on this page counts:</b><ul>${wrong
        .slice(0, 20)
        .map((what) => `<li>${escapeText(what)}</li>`)
        .join('')}</ul></div>`
}
${overview(sections)}
${sections.map(sectionHtml).join('\n')}
${facts(results)}
</main>
</body>
</html>
`;
}

function overview(sections: readonly Section[]): string {
  const groups = sections
    .map(({ title, comparisons }) => ({ title, rows: comparisons.filter(({ bar }) => bar !== undefined) }))
    .filter(({ rows }) => rows.length > 0);
  if (groups.length === 0) return '';
  const rows = groups.flatMap(({ title, rows: comparisons }) => [
    `<tr><td colspan="7" class="group">${escapeText(title)}</td></tr>`,
    ...comparisons.map((comparison) => row(comparison, true)),
  ]);
  return `<section><h2>Bars</h2>${table(rows, true)}<p class="quiet" style="margin-top:12px">The line in the middle of each gauge is the bar, right of it is better, and both ends are a factor of three away; dots are single rounds.</p></section>`;
}

function sectionHtml({ title, method, figures, comparisons, curves = [], notes }: Section): string {
  const units = [...new Set(figures.map(({ unit }) => unit))];
  const roles = new Set([...figures, ...curves.flatMap(({ lines }) => lines)].map(({ role }) => role));
  const free = comparisons.filter(({ bar }) => bar === undefined);
  return `<section>
<h2>${escapeText(title)}</h2>
<p class="quiet">${escapeText(method)}</p>
${units
  .map((unit) =>
    chartHtml(
      unit,
      figures.filter((figure) => figure.unit === unit),
    ),
  )
  .join('')}
${curves.map(curveHtml).join('')}
<p class="key">${roles.has('ours') ? '<span style="--swatch:var(--ours)">Takemark</span>' : ''}${roles.has('baseline') ? '<span style="--swatch:var(--baseline)">baseline</span>' : ''}${roles.has('other') ? '<span style="--swatch:var(--other)">for reference</span>' : ''}</p>
${
  free.length === 0
    ? ''
    : `<h3>Further ratios, without a bar</h3>${table(
        free.map((comparison) => row(comparison, false)),
        false,
      )}`
}
${notes.map((note) => `<p class="note">${escapeText(note)}</p>`).join('')}
</section>`;
}

function chartHtml(unit: string, figures: readonly Figure[]): string {
  // Microseconds here span five orders of magnitude; bars of equal scale would show one of them.
  const wide =
    Math.max(...figures.map(({ median }) => median)) / Math.min(...figures.map(({ median }) => median)) > 500;
  if (!wide) return `<h3>${escapeText(unitTitle(unit))}</h3>${barChart(unit, figures)}`;
  const rows = figures.map(
    ({ label, median }) =>
      `<tr><td>${escapeText(label)}</td><td class="n strong">${withUnit(median, unit)}</td></tr>`,
  );
  return `<h3>${escapeText(unitTitle(unit))}</h3><table>${rows.join('')}</table>`;
}

/** Returns a curve and, under it, a table of its medians with the range of their rounds. */
function curveHtml(curve: Curve): string {
  const { title, x, y, lines } = curve;
  const xs = xsOf(lines);
  const cell = ({ points }: Curve['lines'][number], at: number): string => {
    const point = points.find((each) => each.x === at);
    if (point === undefined) return '<td></td>';
    const range = `${number(Math.min(...point.rounds))} – ${number(Math.max(...point.rounds))}`;
    return `<td class="n">${number(point.median)}<small>${range}</small></td>`;
  };
  const rows = lines.map(
    (line) => `<tr><td>${escapeText(line.label)}</td>${xs.map((at) => cell(line, at)).join('')}</tr>`,
  );
  const heads = xs.map((at) => `<th class="n">${plainNumber(at)}</th>`);
  return (
    `<h3>${escapeText(`${title}. ${unitTitle(y.unit)}`)}</h3>${curveChart(curve)}` +
    '<div class="scroll"><table class="points"><thead><tr>' +
    `<th>${escapeText(`${y.unit}, ${withUnitOf(x)}`)}</th>${heads.join('')}</tr></thead>` +
    `<tbody>${rows.join('')}</tbody></table></div>`
  );
}

function table(rows: readonly string[], bars: boolean): string {
  return `<div class="scroll"><table><thead><tr><th>What</th><th class="n">Takemark</th><th class="n">Baseline</th><th class="n">Ratio</th>${bars ? '<th class="n">Bar</th><th>Against the bar</th><th></th>' : ''}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`;
}

function row(comparison: Comparison, bars: boolean): string {
  const { label, baseline, sides, value, unit, bar, met } = comparison;
  const side = (each: number | undefined): string =>
    sides === undefined || each === undefined ? '' : escapeText(withUnit(each, sides.unit));
  const small = (word: string, text: string | number | undefined): string =>
    text === undefined ? '' : `<small>${word} ${escapeText(String(text))}</small>`;
  return `<tr><td>${escapeText(label)}<small>${escapeText(baseline)}</small></td><td class="n">${side(sides?.ours)}</td><td class="n">${side(sides?.baseline)}</td><td class="n strong">${escapeText(withUnit(value, unit))}</td>${
    bars && bar !== undefined
      ? `<td class="n">${escapeText(barText(bar, unit))}${small('was', bar.was)}${small('prototype', bar.prototype)}</td><td>${gauge(comparison)}</td><td class="${met ? 'yes' : 'no'}">${outcome(comparison)}</td>`
      : ''
  }</tr>`;
}

function facts({ machine, versions, coreFingerprint, conditions }: Results): string {
  const entries: readonly (readonly [string, string])[] = [
    ['Processor', `${machine.processor}, ${machine.cores} cores, ${machine.memoryGiB} GiB`],
    [
      'SHA instructions',
      machine.shaInstructions === undefined ? 'not known' : machine.shaInstructions ? 'yes' : 'none',
    ],
    ['System', machine.system],
    ['Node', `${machine.node}, V8 ${machine.v8}, OpenSSL ${machine.openssl}`],
    [
      'Packages',
      Object.entries(versions)
        .map(([name, version]) => `${name} ${version}`)
        .join(', '),
    ],
    ['WASM core', coreFingerprint],
    ['Durations', conditions.map(({ name, seconds }) => `${name} ${seconds} s`).join(', ')],
  ];
  return `<section><h2>Machine</h2><dl>${entries.map(([name, value]) => `<dt>${name}</dt><dd>${escapeText(value)}</dd>`).join('')}</dl></section>`;
}
