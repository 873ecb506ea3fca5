/** The page of a report: what it says, what it never says, and how it stands in a browser. */
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import type { EvidenceReport } from '../../src/domain/evidence-report.js';
import { COUNTERS, type CounterName } from '../../src/domain/session-evidence.js';
import { CHANNELS } from '../../src/domain/trace.js';
import { COLOURS, CONTRASTS } from '../../src/evidence/page/colours.js';
import { mergeSpans } from '../../src/evidence/page/lanes.js';
import { type ReportPageInput, renderReportPage } from '../../src/evidence/page/render-report-page.js';
import { CHANNEL_WORDS, COUNTER_WORDS, valueText } from '../../src/evidence/page/words.js';
import { parseReport, UnreadableReport } from '../../src/evidence/parse-report.js';
import { Chromium, findChromium } from './chromium.js';
import {
  adverseReport,
  cleanReport,
  emptyReport,
  hostileReport,
  hugeReport,
  sessionEvidence,
} from './reports.js';

const PROOF = {
  proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
  title: 'Late Train Home',
  issuedAt: 1_790_020_000,
  verdict: 'valid',
  verifiedAt: 1_790_030_000,
  decision: { status: 'needs_review', reasons: ['credential_valid'], recommendedAction: 'review' },
};
const ATTACKS = [
  '<script>alert(1)</script>',
  '"><img src=https://example.com/x onerror=alert(1)>',
  "'-alert(1)-' onload='alert(1)",
  '</style></title><svg onload=alert(1)>',
  '\u202e\u0000&lt;',
];
const NOTE = { policyVersion: '1', lines: ['Nine takes were seen to grow in real time.'] };

const PAGES: Readonly<Record<string, ReportPageInput>> = {
  clean: { proof: PROOF, report: cleanReport(), note: NOTE },
  adverse: { proof: PROOF, report: adverseReport() },
  'without source detail': { proof: PROOF, report: withoutDetail(adverseReport()) },
  'without a trace': { proof: PROOF, report: emptyReport() },
  legacy: { proof: { ...PROOF, legacy: { grade: 'B', classification: 'assisted' } } },
  'not valid': { proof: { verdict: 'audioChanged' } },
  huge: { proof: PROOF, report: hugeReport() },
  ...Object.fromEntries(
    ATTACKS.map((attack, at) => [
      `hostile ${at + 1}`,
      {
        proof: { ...PROOF, title: attack, proofId: attack, legacy: { [attack]: attack } },
        report: hostileReport(adverseReport(), attack),
        note: { policyVersion: attack, lines: [attack] },
      },
    ]),
  ),
};

function withoutDetail({ sourceDetail: _, ...report }: EvidenceReport): EvidenceReport {
  return report;
}

/** Text of a page as it is read, with a space in place of each element. */
function readText(page: string): string {
  return page
    .replace(/<style>[\s\S]*?<\/style>/, '')
    .replaceAll(/<title>[^<]*<\/title>/g, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ');
}

t.test('a page holds all it needs, and nothing of the report becomes markup', async (t) => {
  const allowed =
    /^(?:html|head|meta|title|style|body|main|header|section|article|footer|h[123]|p|ul|li|dl|dt|dd|div|span|b|strong|small|code|table|thead|tbody|tr|th|td|details|summary|svg|defs|pattern|rect|line|text)$/;
  const names =
    /^(?:lang|charset|http-equiv|content|name|class|id|aria-[a-z]+|role|tabindex|scope|focusable|width|height|x|y|x1|x2|y1|y2|dx|rx|patternUnits|patternTransform)$/;
  for (const [name, input] of Object.entries(PAGES)) {
    const page = renderReportPage(input);
    // Every `<` begins an element that is whole and in order, and every attribute is quoted.
    const tags = [...page.matchAll(/<([^>\s]*)([^>]*)>/g)];
    const attributes = tags.flatMap(([, , list]) => [...list!.matchAll(/([\w-]+)="([^"]*)"/g)]);
    const loose = tags.filter(
      ([, tag, list]) => tag !== '!doctype' && !/^(?:\s+[a-zA-Z][\w-]*="[^"<>]*")*\s*\/?$/.test(list!),
    );
    t.strictSame(
      loose.map(([tag]) => tag),
      [],
      `${name}: attributes are quoted`,
    );
    const foreign = tags.filter(([, tag]) => !/^(?:!doctype|\/.*)$/.test(tag!) && !allowed.test(tag!));
    t.strictSame(
      foreign.map(([tag]) => tag),
      [],
      `${name}: elements`,
    );
    t.strictSame(
      attributes.map(([, attribute]) => attribute).filter((attribute) => !names.test(attribute!)),
      [],
      `${name}: attributes`,
    );
    const style = page.match(/<style>([\s\S]*?)<\/style>/)![1]!;
    t.match(
      page,
      `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
      `${name}: policy`,
    );
    t.notMatch(style, /@import|url\((?!#)/);
    t.notMatch(page, /[\u0000\u202e]/, `${name}: characters that steer`);
  }
});

t.test('the largest report makes a page of bounded size', async (t) => {
  const page = renderReportPage({ proof: PROOF, report: hugeReport() });
  t.ok(page.length < 1_000_000, `${page.length} characters`);
  t.match(page, 'further', 'what is left out is counted');
});

t.test('a channel that is not watched has its word and never a number', async (t) => {
  for (const channel of CHANNELS)
    for (const support of ['unsupported', 'unknown'] as const) {
      const report: EvidenceReport = {
        ...emptyReport(),
        session: { evidence: sessionEvidence({ [channel]: support }) },
      };
      const text = readText(renderReportPage({ proof: PROOF, report }));
      t.match(text, `${CHANNEL_WORDS[channel]} ${support}`, `${channel}: its support`);
      const names = (Object.keys(COUNTERS) as CounterName[]).filter((name) => COUNTERS[name] === channel);
      t.ok(names.length > 0);
      for (const name of names) {
        const shown = [...text.matchAll(new RegExp(`${COUNTER_WORDS[name]} (\\S+)`, 'g'))].map(
          ([, word]) => word,
        );
        t.ok(shown.length > 0, `${name} is shown`);
        t.strictSame([...new Set(shown)], [support], `${name}: ${support}`);
      }
    }
});

t.test('a counter that is missing or holds a number beside another status is no zero', async (t) => {
  const report = JSON.parse(JSON.stringify({ ...emptyReport(), session: { evidence: sessionEvidence() } }));
  delete report.session.evidence.counters.mixerChanges;
  delete report.session.evidence.coverage.mixer;
  report.session.evidence.counters.playbacks = { status: 'unsupported', value: 0 };
  report.session.evidence.counters.saves = { status: 'a_status_of_tomorrow', value: 0 };
  const text = readText(renderReportPage({ proof: PROOF, report: parseReport(report) }));
  t.match(text, 'Mixer unknown');
  t.match(text, 'Mixer changes unknown');
  t.match(text, 'Playbacks unsupported');
  t.match(text, 'Saves a_status_of_tomorrow');
});

t.test('conflicts come first, and a code that is not known stands as it is', async (t) => {
  const text = readText(renderReportPage({ proof: PROOF, report: adverseReport() }));
  const places = [
    'Valid, for review',
    'Conflicts and open questions',
    'a_code_of_tomorrow',
    'Arrangement',
    'Activity over time',
    'Declared beside witnessed',
    'Imported files',
    'Technical details',
  ].map((part) => text.indexOf(part));
  t.notOk(places.includes(-1));
  t.strictSame(
    places,
    places.toSorted((one, other) => one - other),
  );
  const clean = readText(renderReportPage(PAGES['clean']!));
  t.match(clean, 'No conflict is recorded');
  t.ok(
    clean.indexOf('Nine takes were seen') > clean.indexOf('Arrangement'),
    'the note repeats what stands above it',
  );
});

t.test('values are read as what they are', async (t) => {
  t.equal(valueText('submissionId', 'sub_1'), 'sub_1');
  t.equal(valueText('answer', 'from_scratch'), 'from scratch');
  t.equal(valueText('channel', 'mixer'), 'Mixer');
  t.equal(valueText('counter', 'a_counter_of_tomorrow'), 'a counter of tomorrow');
  t.equal(valueText('importedSeconds', 119.4), '1:59');
  t.equal(valueText('ratio', 0.93), '0.93');
});

t.test('no page judges', async (t) => {
  for (const [name, input] of Object.entries(PAGES))
    t.notMatch(readText(renderReportPage(input)), /human|AI-free|[0-9]\s?%/i, name);
});

t.test('a simulated trace, an early end and a revoked device are said', async (t) => {
  const report = {
    ...emptyReport(),
    session: { evidence: sessionEvidence({}, {}, { simulated: true, sealed: false }) },
  };
  const text = readText(renderReportPage({ proof: PROOF, report }));
  t.match(text, 'It witnesses nothing');
  t.match(text, 'not sealed: it ends early');
  t.match(readText(renderReportPage({ proof: PROOF, report: adverseReport() })), 'revoked');
});

t.test('spans that nobody can tell apart are one', async (t) => {
  const spans = Array.from({ length: 100_000 }, (_, at) => ({ start: at, end: at + 1, kind: 'block' }));
  t.strictSame(mergeSpans(spans, 100_000), [{ start: 0, end: 100_000, kind: 'block' }]);
  const apart = [
    { start: 0, end: 1, kind: 'one' },
    { start: 0, end: 1, kind: 'two' },
    { start: 50, end: 60, kind: 'one' },
  ];
  t.strictSame(mergeSpans(apart, 100), apart);
});

t.test('a report of any shape is read or refused, and never shown wrongly', async (t) => {
  t.strictSame(parseReport(JSON.parse(JSON.stringify(adverseReport()))), adverseReport());
  t.strictSame(parseReport({ ...emptyReport(), tomorrow: 1 }), emptyReport());
  const wrong: readonly (readonly [unknown, string])[] = [
    [null, 'evidenceReport is not an object'],
    [{}, 'evidenceReport.version is not there'],
    [{ ...emptyReport(), facts: {} }, 'evidenceReport.facts is not a list'],
    [{ ...emptyReport(), facts: [{ code: 1 }] }, 'evidenceReport.facts[0].code is not text'],
    [
      { ...emptyReport(), session: { evidence: { ...sessionEvidence(), durationSeconds: -1 } } },
      'evidenceReport.session.evidence.durationSeconds is not a number from 0',
    ],
  ];
  for (const [value, message] of wrong) t.throws(() => parseReport(value), new UnreadableReport(message));
  t.equal(parseReport(hugeReport()).facts.length, 2000);
  t.equal(
    parseReport({ ...emptyReport(), facts: Array.from({ length: 9000 }, () => emptyReport().facts[0]) }).facts
      .length,
    4096,
  );
});

/** Contrast of two colours (WCAG 2.2). */
function contrast(one: string, other: string): number {
  const [light, dark] = [one, other].map(luminance).toSorted((a, b) => b - a) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

t.test('colours stand out from their grounds, light and dark', async (t) => {
  t.equal(Math.round(contrast('#000000', '#ffffff')), 21);
  for (const [theme, colours] of Object.entries(COLOURS))
    for (const [colour, ground, least] of CONTRASTS) {
      const found = contrast(colours[colour], colours[ground]);
      t.ok(found >= least, `${theme}: ${colour} on ${ground} is ${found.toFixed(2)}, at least ${least}`);
    }
});

const program = await findChromium();

t.test(
  'in a browser: no complaint, nothing loaded, no page wider than its screen',
  { skip: program === undefined && 'Chromium is not installed' },
  async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'takemark-page-'));
    const chromium = await Chromium.open(program!);
    t.teardown(async () => {
      await chromium.close();
      await rm(directory, { recursive: true, force: true });
    });
    for (const [name, input] of Object.entries(PAGES)) {
      const path = join(directory, `${name}.html`);
      await writeFile(path, renderReportPage(input));
      const url = pathToFileURL(path).href;
      for (const width of [390, 820, 1440])
        for (const scheme of ['light', 'dark'] as const) {
          await chromium.show(url, width, scheme);
          const [content, screen, ground] = (await chromium.evaluate(
            '[document.documentElement.scrollWidth, innerWidth, getComputedStyle(document.body).backgroundColor]',
          )) as [number, number, string];
          t.ok(content <= screen && screen === width, `${name} at ${width}: ${content} of ${screen}`);
          t.equal(ground, rgb(COLOURS[scheme].paper), `${name}: ${scheme}`);
          t.strictSame(chromium.complaints(url), [], `${name} at ${width}, ${scheme}`);
        }
      t.equal(
        await chromium.evaluate(
          '[...document.querySelectorAll("h1,h2,h3")].map((h) => +h.tagName[1]).every((level, at, all) => level <= (all[at - 1] ?? 0) + 1)',
        ),
        true,
        `${name}: headings leave no level out`,
      );
    }
  },
);

function rgb(colour: string): string {
  return `rgb(${[1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)).join(', ')})`;
}
