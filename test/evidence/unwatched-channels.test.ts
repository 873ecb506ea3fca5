/** A channel that nobody watches is nowhere a zero: not in a report's JSON, its page, its note, its projections or a list's summary. */
import t from 'tap';
import { DeviceKey } from '../../src/capture/index.js';
import { simulateTrace } from '../../src/capture/simulate/simulate-trace.js';
import type { EvidenceReport } from '../../src/domain/evidence-report.js';
import { COUNTERS, type CounterName } from '../../src/domain/session-evidence.js';
import { CHANNELS, type Channel, type ChannelSupport } from '../../src/domain/trace.js';
import { composeReport } from '../../src/evidence/compose-report.js';
import { evaluateOverlay } from '../../src/evidence/overlay.js';
import { renderReportPage } from '../../src/evidence/page/render-report-page.js';
import { COUNTER_WORDS } from '../../src/evidence/page/words.js';
import { writeProcessNote } from '../../src/evidence/process-note.js';
import {
  PROJECTION_FORMATS,
  type ProjectionFormat,
  projectReport,
} from '../../src/evidence/projections/project-report.js';
import { replayTrace } from '../../src/evidence/replay/replay-trace.js';
import { settleFacts } from '../../src/evidence/settle-facts.js';
import { MemorySink, opened } from '../capture/write-trace.js';

const EXPORTED = 'ee'.repeat(32);
const KEY = DeviceKey.generate();

/** Zeros that a page or a note might say of a channel beside its counters. */
const OWN_ZEROS: Partial<Record<Channel, readonly RegExp[]>> = {
  tracks: [/\b0 tracks/i],
  clips: [/\b0 placements/i, /: 0 edits/i],
  recording: [/, 0 recordings/i],
  imports: [/\b0 imports/i, /no imports/i],
};

async function reportOf(channels: Partial<Record<Channel, ChannelSupport>>): Promise<EvidenceReport> {
  const to = new MemorySink();
  await simulateTrace({ minutes: 30, seed: 11, to, key: KEY, exportSha256: EXPORTED, channels });
  const replayed = await replayTrace(opened(to.bytes()));
  const { facts, detail } = settleFacts(replayed, { standing: 'enrolled', originalSha256: EXPORTED });
  return composeReport({
    facts,
    detail,
    consent: { consentVersion: 'consent-1' },
    overlay: { revision: 1, engineVersion: 1, facts: evaluateOverlay(facts, []) },
    declarations: [],
    altered: 0,
  });
}

/** Paths of the zeros in a value; places of a list do not count. */
function zeros(value: unknown, path = ''): readonly string[] {
  if (value === 0 || value === '0') return [path];
  if (Array.isArray(value)) return value.flatMap((each) => zeros(each, `${path}[]`));
  if (value === null || typeof value !== 'object') return [];
  // A fact is named by its code: facts of different codes stand at the same place of different reports.
  const { code } = value as { code?: string };
  return Object.entries(value).flatMap(([name, each]) =>
    zeros(each, `${path}${code === undefined ? '' : `(${code})`}.${name}`),
  );
}

/** Phrases that say a zero, with the words around it, and how often each is said. Cells of a table stand apart. */
function zeroPhrases(text: string): ReadonlyMap<string, number> {
  const said = new Map<string, number>();
  // A sentence that says why nothing is listed is no zero.
  for (const cell of text.replaceAll(/none is (listed|ruled)/gi, '').split('|'))
    for (const [phrase] of cell.matchAll(
      /(?:[^\s<>]+\s+){0,3}(?<![\d.,:#-])\b(?:0|zero|none)\b(?![.,:]?\d|[%-])\s*\S*/gi,
    )) {
      const name = phrase.trim().replaceAll(/\d+(\.\d+)?/g, (digits) => (digits === '0' ? '0' : 'n'));
      said.set(name, (said.get(name) ?? 0) + 1);
    }
  return said;
}

/** Phrases that are said more often than before. */
function added(now: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>): readonly string[] {
  return [...now].flatMap(([phrase, times]) => (times > (before.get(phrase) ?? 0) ? [phrase] : []));
}

/** Texts of a report, by what a reader gets. */
function textsOf(report: EvidenceReport): Readonly<Record<string, string>> {
  const proof = { proofId: 'prf_1', title: 'A song', issuedAt: 1_790_020_000, verdict: 'valid' };
  const note = writeProcessNote(report);
  const page = renderReportPage({
    proof,
    report,
    note: { policyVersion: note.policyVersion, lines: note.lines.map(({ text }) => text) },
  })
    .replaceAll(/<(style|svg|head)[\s\S]*?<\/\1>/g, ' ')
    .replaceAll(/<(?!b>|\/b>|span>|\/span>)[^>]*>/g, ' | ')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ');
  return {
    page,
    note: note.lines.map(({ text }) => text).join('\n'),
    ...Object.fromEntries(
      Object.keys(PROJECTION_FORMATS).map((format) => [
        format,
        JSON.stringify(projectReport(report, format as ProjectionFormat)),
      ]),
    ),
  };
}

/** Channels without which the generator tells nothing of others, so that these are watched and truly empty. */
const CARRIERS: Partial<Record<Channel, readonly Channel[]>> = {
  tracks: ['clips', 'recording', 'midi', 'sourceMap', 'imports'],
  clips: ['imports'],
  recording: ['sourceMap', 'clips'],
};

t.test('a channel that is not watched is a zero nowhere', async (t) => {
  const whole = await reportOf({});
  const known = new Set(zeros(whole));
  const texts = textsOf(whole);
  for (const channel of CHANNELS) {
    const names = (Object.keys(COUNTERS) as CounterName[]).filter((name) => COUNTERS[name] === channel);
    const { counters } = whole.session!.evidence;
    t.ok(
      names.some((name) => counters[name].status === 'observed'),
      `${channel}: there is something that could be lost`,
    );
    const carried = CARRIERS[channel] ?? [];
    const isOfCarried = (path: string): boolean => {
      const [, kind, name] = path.match(/^\.session\.evidence\.(counters|coverage)\.(\w+)\./) ?? [];
      return carried.includes((kind === 'counters' ? COUNTERS[name as CounterName] : name) as Channel);
    };
    for (const support of ['unsupported', 'unknown'] as const) {
      const report = await reportOf({ [channel]: support });
      t.strictSame(
        [...new Set(zeros(report))].filter((path) => !known.has(path) && !isOfCarried(path)),
        [],
        `${channel} ${support}: JSON`,
      );
      for (const name of names)
        t.notOk('value' in report.session!.evidence.counters[name], `${channel} ${support}: ${name}`);
      const said = textsOf(report);
      for (const name of names)
        t.notMatch(said['page'], new RegExp(`${COUNTER_WORDS[name]}[ |]+(0|none)\\b`), `${channel}: ${name}`);
      for (const phrase of OWN_ZEROS[channel] ?? [])
        for (const [what, text] of Object.entries(said))
          t.notMatch(text, phrase, `${channel} ${support}: ${what}`);
      if (carried.length > 0) continue;
      for (const [what, text] of Object.entries(said))
        t.strictSame(
          added(zeroPhrases(text), zeroPhrases(texts[what]!)),
          [],
          `${channel} ${support}: ${what}`,
        );
    }
  }
});

t.test('the search for zeros finds them', async (t) => {
  t.strictSame(zeros({ a: [{ code: 'x', values: { n: 0 } }, 1], b: { c: '0' } }), [
    '.a[](x).values.n',
    '.b.c',
  ]);
  t.strictSame(
    [...zeroPhrases('Clips moved 0 and more | 0 | there were none')],
    [
      ['Clips moved 0 and', 1],
      ['0', 1],
      ['there were none', 1],
    ],
  );
  t.strictSame([...zeroPhrases('10 clips, 0.5 s, 2026-01-01 at 00:00')], []);
  t.strictSame(added(zeroPhrases('a 0 | a 0'), zeroPhrases('a 0')), ['a 0']);
});
