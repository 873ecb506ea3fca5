/** Tests the page of a report: its text, what it must never say, and its layout in a browser. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import type { EvidenceReport } from '../../src/witness/domain/evidence-report.js';
import {
  COUNTER_WORDS,
  COUNTERS,
  type CounterName,
  type ImportedSource,
} from '../../src/witness/domain/session-evidence.js';
import { CHANNEL_WORDS, CHANNELS } from '../../src/witness/domain/trace.js';
import { COLOURS, CONTRASTS } from '../../src/witness/page/colours.js';
import { drawLane, mergeSpans, type Span } from '../../src/witness/page/lanes.js';
import type { ReportPageInput } from '../../src/witness/page/page-input.js';
import { renderReportPage } from '../../src/witness/page/render-report-page.js';
import { groupDigits, sentenceOf, valueText } from '../../src/witness/page/words.js';
import { parseReport, UnreadableReport } from '../../src/witness/report/parse-report.js';
import { Chromium, findChromium } from '../fixtures/chromium.js';
import { needs } from '../fixtures/tools.js';
import {
  adverseReport,
  cleanReport,
  emptyReport,
  factOf,
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

/** Returns the text of a page as a reader sees it, with a space in place of each element. */
function readText(page: string): string {
  return page
    .replace(/<style>[\s\S]*?<\/style>/, '')
    .replaceAll(/<title>[^<]*<\/title>/g, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ');
}

t.test('a page holds all it needs, and nothing of the report becomes markup', async (t) => {
  const allowed =
    /^(?:html|head|meta|title|style|body|main|header|section|article|footer|h[123]|p|ul|li|dl|dt|dd|div|span|b|strong|small|code|table|thead|tbody|tr|th|td|details|summary|svg|defs|pattern|rect|line|text|a)$/;
  const names =
    /^(?:lang|charset|http-equiv|content|name|class|id|aria-[a-z]+|role|tabindex|scope|focusable|width|height|x|y|x1|x2|y1|y2|dx|rx|patternUnits|patternTransform|href)$/;
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
    t.strictSame(
      attributes.filter(([, attribute, value]) => attribute === 'href' && !/^#[a-zA-Z-]+$/.test(value!)),
      [],
      `${name}: links stay on the page`,
    );
    const style = page.match(/<style>([\s\S]*?)<\/style>/)![1]!;
    t.match(
      page,
      `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
      `${name}: policy`,
    );
    t.notMatch(style, /@import|url\((?!#)/);
    t.ok(style.length < 16_384, `${name}: ${style.length} characters of style`);
    t.notMatch(page, /[\u0000\u202e]/, `${name}: characters that steer`);
  }
});

t.test('the largest report makes a page of bounded size', async (t) => {
  const page = renderReportPage({ proof: PROOF, report: hugeReport() });
  t.ok(page.length < 1_000_000, `${page.length} characters`);
  t.match(page, /Further [a-z ]+: [\d\u00a0]+\./, 'what is left out is counted');
});

t.test('a count of one has its noun in the singular', async (t) => {
  const report = adverseReport();
  const { session, sourceDetail } = report;
  const page = renderReportPage({
    proof: PROOF,
    report: {
      ...report,
      session: {
        ...session!,
        evidence: {
          ...session!.evidence,
          activity: { bucketSeconds: 60, buckets: [{ atSeconds: 0, edits: 1, recordings: 0, imports: 2 }] },
        },
      },
      sourceDetail: {
        ...sourceDetail!,
        trackCount: 1,
        tracks: [{ trackId: 'trk3', type: 'audio', state: 'present' }],
        placementCount: 1,
        placements: sourceDetail!.placements
          .slice(0, 1)
          .map((placement) => ({ ...placement, placementId: 'plc9', trackId: 'trk3', edits: 1 })),
      },
    },
  });
  t.match(page, '0:00: 1 edit, 0 recordings, 2 imports');
  t.match(page, 'Observed: 1 edit, 0 recordings, 2 imports; ');
  t.match(page, /<title>Clip 9: [^<]*, 1 edit</);
  t.match(page, /<p class="lead">1 track, 1 clip[,.]/);
  t.match(page, /aria-label="Track 3: 1 clip /);
  t.notMatch(page, /\b1 (?:clip|edit|track)s/);
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

t.test('a counter is not zero when it is missing or has a number beside another status', async (t) => {
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

t.test('conflicts come first, and an unknown code is shown unchanged', async (t) => {
  const text = readText(renderReportPage({ proof: PROOF, report: adverseReport() }));
  const places = [
    'Credential: valid',
    'Production record: needs review',
    'Conflicts and open questions',
    'a_code_of_tomorrow',
    'Arrangement',
    'Activity over time',
    'What the creator declared',
    'Imported files',
    'Whose record this is',
    'Technical details',
  ].map((part) => text.indexOf(part));
  t.notOk(places.includes(-1));
  t.strictSame(
    places,
    places.toSorted((one, other) => one - other),
  );
  const clean = readText(renderReportPage(PAGES['clean']!));
  t.match(clean, 'No conflicts.');
  t.ok(
    clean.indexOf('Nine takes were seen') > clean.indexOf('Arrangement'),
    'the note repeats what is above it',
  );
});

t.test(
  'of many imports those with results of a detector come first, then the longest, and the rest is a table',
  async (t) => {
    const [source] = adverseReport().importedSources!;
    const { detections, ...plain } = source!;
    const importedSources = Array.from(
      { length: 12 },
      (_, at): ImportedSource => ({
        ...plain,
        sourceId: `s${at + 1}`,
        placements: { count: 1, approximateSeconds: at, spans: [] },
        ...(at === 2 ? { detections: detections! } : {}),
      }),
    );
    const page = renderReportPage({
      proof: PROOF,
      report: { ...adverseReport(), importedSources, importedSourceCount: 300 },
    });
    const listed = page.slice(page.indexOf('<ul class="sources">'));
    t.strictSame(
      [...listed.matchAll(/<h3>(s\d+) /g)].map(([, id]) => id),
      ['s3', 's12', 's11', 's10', 's9', 's8', 's7', 's6'],
    );
    t.strictSame(
      [...listed.slice(0, listed.indexOf('</table>')).matchAll(/<th scope="row">(s\d+)</g)].map(
        ([, id]) => id,
      ),
      ['s5', 's4', 's2', 's1'],
    );
    t.match(readText(page), 'Further imports that are not listed here: 288.');
  },
);

t.test('a label is in its span when nothing overlaps it', async (t) => {
  const label = (spans: readonly Span[]) =>
    [...drawLane(spans, { total: 100, label: '' }).text.matchAll(/<text[^>]*>([^<]*)/g)].map(
      ([, text]) => text,
    );
  const span = (start: number, end: number, name: string): Span => ({ start, end, kind: name, label: name });
  t.strictSame(label([span(0, 20, 'a'), span(20, 40, 'b')]), ['a', 'b']);
  t.strictSame(label([span(0, 20, 'a'), span(4, 8, 'b')]), [], 'cut by another');
  t.strictSame(label([span(0, 20, 'a'), span(15, 40, 'b')]), ['a'], 'after the label');
  t.strictSame(label([span(0, 5, 'a')]), [], 'too short');
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
  const reportOf = (name: string) => ({
    ...emptyReport(),
    session: {
      evidence: {
        ...sessionEvidence({}, {}, { simulated: true, sealed: false }),
        adapter: { name, version: '1.0' },
      },
    },
  });
  const text = readText(renderReportPage({ proof: PROOF, report: reportOf('simulator') }));
  t.match(text, 'Demo data: simulated, not recorded.');
  t.match(
    readText(renderReportPage({ proof: PROOF, report: reportOf('ardour') })),
    'Trial record: made to try the agent, and proves nothing.',
  );
  t.match(text, 'not sealed: the trace ends early');
  t.match(readText(renderReportPage({ proof: PROOF, report: adverseReport() })), 'revoked');
});

/** Returns the text that is visible without opening a fold. */
function openText(input: ReportPageInput): string {
  return readText(renderReportPage(input).replaceAll(/<details>[\s\S]*?<\/details>/g, ' '));
}

t.test('credential and production record are two statements', async (t) => {
  const said = (proof: ReportPageInput['proof'], report?: EvidenceReport): readonly string[] =>
    openText({ proof, ...(report === undefined ? {} : { report }) }).match(
      /(?:Credential|Production record): [a-z]+(?: [a-z]+)*(?: \([a-z ]+\))?/g,
    )!;
  const { verdict: _, decision: __, ...unverified } = PROOF;
  const calm = { ...PROOF, decision: { ...PROOF.decision, status: 'verified_binding' } };
  t.strictSame(said(PROOF, adverseReport()), ['Credential: valid', 'Production record: needs review']);
  t.strictSame(said(calm, cleanReport()), ['Credential: valid', 'Production record: no review needed']);
  t.strictSame(said(calm, emptyReport()), ['Credential: valid', 'Production record: empty']);
  t.strictSame(said(unverified, cleanReport()), [
    'Credential: registered',
    'Production record: no review needed',
  ]);
  t.strictSame(said({}, cleanReport()), ['Credential: not known', 'Production record: no review needed']);
  t.strictSame(said({ verdict: 'tampered' }), [
    'Credential: not valid (altered)',
    'Production record: not available',
  ]);
  t.strictSame(said({ verdict: 'valid' }), ['Credential: valid', 'Production record: not available']);
  t.match(openText({ proof: { verdict: 'a_verdict_of_tomorrow' } }), 'not valid (a_verdict_of_tomorrow)');
});

t.test('each quantity appears once in the open part of the page', async (t) => {
  const counts = Object.fromEntries(
    (Object.keys(COUNTERS) as CounterName[]).map((name, at) => [name, 5001 + at * 37]),
  );
  const adverse = adverseReport();
  const report: EvidenceReport = {
    ...adverse,
    facts: [
      ...adverse.facts.filter(({ status }) => status !== 'needs_review'),
      factOf('session_evidence_replayed', 'direct_observation', 'observed', {
        events: 48_211,
        durationSeconds: 5520,
      }),
      factOf('imports_observed', 'direct_observation', 'observed', {
        imports: counts['importsAdded']!,
        placements: counts['importPlacements']!,
      }),
      factOf('takes_recorded_in_real_time', 'direct_observation', 'observed', {
        takes: counts['takesRecordedInRealTime']!,
        seconds: 17,
      }),
    ],
    unverifiable: [
      ...adverse.unverifiable,
      factOf('export_rerender_differs', 'unverifiable_coverage_gap', 'unverifiable', {
        compared: 102,
        equal: 101,
      }),
    ],
    conflicts: [
      factOf('observed_import_vs_creator_origin_declaration', 'explicit_conflict', 'needs_review', {
        imports: counts['importsAdded']!,
        dimension: 'declaredOrigin',
        answer: 'from_scratch',
        submissionId: 'sub_4711',
      }),
    ],
    session: { evidence: sessionEvidence({}, counts) },
  };
  const text = openText({ proof: PROOF, report });
  // `readText` replaces the no-break spaces between groups of digits by spaces.
  const times = (part: string): number => text.split(part.replaceAll('\u00a0', ' ')).length - 1;
  for (const value of Object.values(counts)) t.equal(times(groupDigits(value)), 1, String(value));
  t.equal(times('1:32:00'), 1, 'the length of the session');
  t.match(text, 'from a hardware input. length 0:17');
  t.match(text, 'parts compared 102 parts that are equal 101');
  t.equal(times(groupDigits(48_211)), 1, 'the number of events');
  t.equal(times(`${adverse.sourceDetail!.placementCount} clips`), 1, 'the number of clips');
  t.notMatch(text, 'placement');
});

t.test('slugs are in a fold, and plain words are outside it', async (t) => {
  const report = adverseReport();
  const input = { proof: PROOF, report, note: NOTE };
  const [open, whole] = [openText(input), readText(renderReportPage(input))];
  const slugs = [
    ...[...report.facts, ...report.conflicts, ...report.unverifiable].flatMap((fact) =>
      sentenceOf(fact) === undefined ? [] : [fact.code, fact.contentClass],
    ),
    ...report.declarations.map(({ submissionId }) => submissionId),
    PROOF.decision.recommendedAction,
    ...PROOF.decision.reasons,
  ];
  for (const slug of new Set(slugs)) {
    t.match(whole, slug);
    if (slug.includes('_')) t.notMatch(open, slug);
  }
  t.notMatch(open, NOTE.lines[0]);
  t.match(whole, NOTE.lines[0]);
  const words = open.slice(open.indexOf('Six words'));
  for (const word of ['Credential', 'Production record', 'Session agent', 'Trace', 'Clip', 'Gap'])
    t.match(words, `${word} `, 'the glossary');
});

t.test('the page names its issuer, the service, the file and what was declared of the song', async (t) => {
  const text = openText({
    proof: {
      ...PROOF,
      issuer: 'Example Registry',
      service: 'https://registry.example.com',
      fileSha256: 'cd'.repeat(32),
      boundAudioSha256: 'ab'.repeat(32),
      declared: { artist: 'Ada', release: 'Early Trains', isrc: 'DEA122600001' },
    },
    report: cleanReport(),
  });
  for (const part of [
    'Artist Ada Release Early Trains ISRC DEA122600001 (declared by the issuer, not checked)',
    'Issuer Example Registry',
    'Service https://registry.example.com',
    `Verified file, SHA-256 ${'cd'.repeat(32)}`,
    `Bound audio, SHA-256 ${'ab'.repeat(32)}`,
    'https://registry.example.com/v1/verifications',
  ])
    t.match(text, part);
  t.notMatch(openText({ proof: PROOF, report: cleanReport() }), /Artist|declared by the issuer/);
});

t.test('a gap of every channel is shown once', async (t) => {
  const { coverage, ...evidence } = sessionEvidence();
  const gap = { fromSeconds: 60, toSeconds: 120, reason: 'unreadable' };
  const own = { fromSeconds: 300, toSeconds: 360, reason: 'history_lost' };
  const everywhere = Object.fromEntries(
    CHANNELS.map((channel) => [
      channel,
      { ...coverage[channel], gaps: channel === 'clips' ? [gap, own] : [gap], gapCount: 1 },
    ]),
  ) as unknown as typeof coverage;
  const report = { ...emptyReport(), session: { evidence: { ...evidence, coverage: everywhere } } };
  const text = openText({ proof: PROOF, report });
  t.equal(text.split('1:00 to 2:00 (unreadable)').length, 2);
  t.match(text, 'Nothing was watched: 1:00 to 2:00 (unreadable).');
  t.match(text, 'Not watched: 5:00 to 6:00 (history lost)');
});

t.test('spans are drawn as one when no reader can distinguish them', async (t) => {
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

/** Returns the contrast of two colours (WCAG 2.2). */
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

t.test('colours contrast with their grounds, light and dark', async (t) => {
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
  { skip: needs('chromium') },
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

const run = promisify(execFile);

/** The words of a printed page with their positions and heights, in points. */
interface PrintedPage {
  readonly width: number;
  readonly words: readonly {
    readonly text: string;
    readonly from: number;
    readonly to: number;
    readonly height: number;
  }[];
}

async function readPdf(path: string): Promise<readonly PrintedPage[]> {
  const { stdout } = await run('pdftotext', ['-bbox', path, '-'], { maxBuffer: 2 ** 26 });
  const word = /<word xMin="([\d.-]+)" yMin="([\d.-]+)" xMax="([\d.-]+)" yMax="([\d.-]+)">(.*?)<\/word>/g;
  return stdout
    .split('<page ')
    .slice(1)
    .map((page) => ({
      width: Number(page.match(/width="([\d.]+)"/)![1]),
      words: [...page.matchAll(word)].map(([, from, top, to, bottom, text]) => ({
        from: Number(from),
        to: Number(to),
        height: Number(bottom) - Number(top),
        text: text!,
      })),
    }));
}

t.test(
  'on paper: few pages, conflicts on the first, and no word beyond the margins',
  { skip: needs('chromium', 'pdftotext') },
  async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'takemark-page-'));
    const chromium = await Chromium.open(program!);
    t.teardown(async () => {
      await chromium.close();
      await rm(directory, { recursive: true, force: true });
    });
    // 16 mm, and half a point for glyphs that exceed their box.
    const margin = (16 / 25.4) * 72 - 0.5;
    const heights: number[] = [];
    for (const [name, most] of [
      ['clean', 6],
      ['adverse', 7],
      ['without a trace', 2],
    ] as const) {
      const [page, pdf] = [join(directory, 'page.html'), join(directory, 'page.pdf')];
      await writeFile(page, renderReportPage(PAGES[name]!));
      await chromium.show(pathToFileURL(page).href, 1000, 'dark');
      await writeFile(pdf, await chromium.pdf());
      const pages = await readPdf(pdf);
      t.ok(pages.length > 0 && pages.length <= most, `${name}: ${pages.length} pages`);
      const beyond = pages.flatMap(({ width, words }) =>
        words.filter(({ from, to }) => from < margin || to > width - margin),
      );
      t.strictSame(beyond, [], `${name}: within the margins`);
      // A page that is too wide is printed smaller as a whole.
      heights.push(pages[0]!.words.find(({ text }) => text === 'Conflicts')!.height);
      const textOf = ({ words }: PrintedPage): string => words.map(({ text }) => text).join(' ');
      const whole = pages.map(textOf).join(' ');
      t.notMatch(whole, '…', `${name}: nothing is cut short`);
      for (const heading of ['Conflicts and open questions', 'Arrangement', 'Six words'])
        t.match(whole, heading, name);
      for (const [at, page] of pages.entries()) {
        t.match(textOf(page), `Proof ${PROOF.proofId}`, `${name}: sheet ${at + 1} names the proof`);
        t.match(textOf(page), `Page ${at + 1} of ${pages.length}`, name);
      }
      if (name !== 'adverse') continue;
      const [first] = pages.map(textOf);
      const report = adverseReport();
      for (const part of [
        'Credential: valid',
        'Production record: needs review',
        ...report.conflicts.map((fact) => sentenceOf(fact) ?? fact.code),
        'The record of the session ends before the session was closed.',
      ])
        t.match(first, part, 'the first page has the decision and what asks for a person');
      t.match(whole, 'Not watched: 25:00 to 35:00', 'a gap is printed as one');
    }
    t.strictSame(
      heights.map((height) => height.toFixed(2)),
      heights.map(() => heights[0]!.toFixed(2)),
      'in one size',
    );
  },
);

function rgb(colour: string): string {
  return `rgb(${[1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)).join(', ')})`;
}
