/**
 * Tests that a channel that is not watched never appears as zero: not in a report's JSON, page, note,
 * projections or summary in a list.
 */
import t from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { simulateTrace } from '../../src/cli/specimens/simulate-trace.js';
import { defined } from '../../src/core/domain/defined.js';
import { DeviceKey } from '../../src/witness/capture/index.js';
import type { DeclarationEnvelope } from '../../src/witness/domain/declaration.js';
import { type EvidenceReport, summariseEvidence } from '../../src/witness/domain/evidence-report.js';
import { COUNTER_WORDS, COUNTERS, type CounterName } from '../../src/witness/domain/session-evidence.js';
import {
  CHANNELS,
  type Channel,
  type ChannelSupport,
  EVENTS,
  type TraceEvent,
  TraceFault,
} from '../../src/witness/domain/trace.js';
import { TraceReferences } from '../../src/witness/domain/trace-references.js';
import { renderReportPage } from '../../src/witness/page/render-report-page.js';
import {
  PROJECTION_FORMATS,
  type ProjectionFormat,
  projectReport,
} from '../../src/witness/projections/project-report.js';
import { replayTrace } from '../../src/witness/replay/replay-trace.js';
import { composeReport } from '../../src/witness/report/compose-report.js';
import { evaluateOverlay } from '../../src/witness/report/overlay.js';
import { writeProcessNote } from '../../src/witness/report/process-note.js';
import { settleFacts } from '../../src/witness/report/settle-facts.js';
import { opened, writeTrace } from '../capture/write-trace.js';

const EXPORTED = 'ee'.repeat(32);
const KEY = DeviceKey.generate();

async function reportOf(channels: Partial<Record<Channel, ChannelSupport>>): Promise<EvidenceReport> {
  const to = new MemorySink();
  await simulateTrace({ minutes: 30, seed: 11, to, key: KEY, exportSha256: EXPORTED, channels });
  return reportOfTrace(to.bytes());
}

async function reportOfTrace(
  bytes: Uint8Array,
  declarations: readonly DeclarationEnvelope[] = [],
): Promise<EvidenceReport> {
  const replayed = await replayTrace(opened(bytes));
  const { facts, detail } = settleFacts(replayed, { standing: 'enrolled', originalSha256: EXPORTED });
  return composeReport({
    facts,
    detail,
    consent: { consentVersion: 'consent-1' },
    overlay: { revision: 1, engineVersion: 1, facts: evaluateOverlay(facts, declarations) },
    declarations,
    altered: 0,
  });
}

/** Returns the paths of the zeros in a value. Positions in a list do not count. */
function zeros(value: unknown, path = ''): readonly string[] {
  if (value === 0 || value === '0') return [path];
  if (Array.isArray(value)) return value.flatMap((each) => zeros(each, `${path}[]`));
  if (value === null || typeof value !== 'object') return [];
  // A fact is named by its code, because facts of different codes have the same position in different
  // reports.
  const { code } = value as { code?: string };
  return Object.entries(value).flatMap(([name, each]) =>
    zeros(each, `${path}${code === undefined ? '' : `(${code})`}.${name}`),
  );
}

/**
 * Returns the phrases that state a zero, with the words around it, and their counts. Cells of a table and
 * parts of a list are separate.
 */
function zeroPhrases(text: string): ReadonlyMap<string, number> {
  const said = new Map<string, number>();
  // A sentence that explains why nothing is listed does not state a zero.
  for (const cell of text.replaceAll(/none is (listed|ruled)/gi, '').split(/[|;]|, /))
    for (const [phrase] of cell.matchAll(
      /(?:[^\s<>]+\s+){0,3}(?<![\d.,:#-])\b(?:0|zero|none)\b(?![.,:]?\d|[%-])\s*\S*/gi,
    )) {
      const name = phrase.trim().replaceAll(/\d+(\.\d+)?/g, (digits) => (digits === '0' ? '0' : 'n'));
      said.set(name, (said.get(name) ?? 0) + 1);
    }
  return said;
}

/** Returns the phrases that occur more often than before. */
function added(now: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>): readonly string[] {
  return [...now].flatMap(([phrase, times]) => (times > (before.get(phrase) ?? 0) ? [phrase] : []));
}

/** Returns the texts of a report, by medium. */
function textsOf(report: EvidenceReport): Readonly<Record<string, string>> {
  const proof = { proofId: 'prf_1', title: 'A song', issuedAt: 1_790_020_000, verdict: 'valid' };
  const note = writeProcessNote(report);
  const html = renderReportPage({
    proof,
    report,
    note: { policyVersion: note.policyVersion, lines: note.lines.map(({ text }) => text) },
  });
  const page = html
    .replaceAll(/<(style|svg|head)[\s\S]*?<\/\1>/g, ' ')
    .replaceAll(/<(?!b>|\/b>|span>|\/span>)[^>]*>/g, ' | ')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ');
  return {
    page,
    drawings: [...html.matchAll(/aria-label="([^"]*)"|<title>([^<]*)/g)]
      .map((found) => found.slice(1))
      .join('\n'),
    note: note.lines.map(({ text }) => text).join('\n'),
    summary: JSON.stringify(summariseEvidence(report)),
    ...Object.fromEntries(
      Object.keys(PROJECTION_FORMATS).map((format) => [
        format,
        JSON.stringify(projectReport(report, format as ProjectionFormat)),
      ]),
    ),
  };
}

/**
 * Channels whose absence makes the generator omit events of other channels. The other channels are watched
 * and really empty.
 */
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
      // Such a text reports a truly empty channel. The trace of `ACTS` has none.
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

const MINUTE = 60_000_000;
const found = { source: 5, samplesSha256: 'ab'.repeat(32), frames: 960_000, rate: 48_000, channels: 2 };
const clip = { base: 'seconds', track: 1, length: 20 } as const;

/** Returns a take that grows in real time, and becomes a source. */
function take(id: number, source: number): readonly Act[] {
  return [
    { kind: 'recording.started', take: id, input: 'hardware' },
    ...[1, 2, 3, 4].map(
      (step): Act => ({ kind: 'recording.grew', take: id, frames: 48_000 * step, after: 1 }),
    ),
    { kind: 'recording.finished', take: id, source, frames: 192_000, rate: 48_000 },
  ];
}

/** Acts of the view over time, by class, each with the channels that its number needs. */
const CLASSES: readonly (readonly [readonly Act[], readonly Channel[]])[] = [
  [
    [{ kind: 'mixer.changed', control: 'gain' }],
    ['tempo', 'tracks', 'clips', 'midi', 'automation', 'plugins', 'mixer'],
  ],
  [take(8, 9), ['recording', 'midi']],
  [[{ kind: 'import.added', ...found, source: 8, manner: 'referenced' }], ['imports']],
];

/** Acts of every counter, with an edit of each clip. */
const ACTS: readonly Act[] = [
  { kind: 'session.opened', sampleRate: 48_000 },
  { kind: 'session.saved' },
  { kind: 'session.undone', steps: 2 },
  { kind: 'transport.started', start: 1 },
  ...([100, 120] as const).flatMap((bpm): readonly Act[] => [
    { kind: 'tempo.map' },
    { kind: 'tempo.point', start: 1, bpm },
  ]),
  ...[1, 2, 3].map((track): Act => ({ kind: 'track.added', track, type: 'audio' })),
  { kind: 'track.removed', track: 3 },
  ...take(1, 1),
  { kind: 'midi.edited', source: 2, added: 3, removed: 1, changed: 1 },
  { kind: 'midi.recorded', take: 2, source: 3, notes: 9 },
  { kind: 'import.added', ...found, manner: 'copied' },
  { kind: 'source.derived', source: 6, from: 5, manner: 'bounce' },
  { kind: 'source.derived', source: 6, manner: 'bounce' },
  { kind: 'source.appeared', source: 7, claims: 'nothing' },
  ...[1, 2, 3, 5, 6, 7, 8, 9].flatMap((source, at): readonly Act[] => [
    { kind: 'clip.created', ...clip, clip: source, source, start: 1 + at },
    { kind: 'clip.moved', clip: source, track: 2, start: 2 + at },
  ]),
  { kind: 'clip.trimmed', clip: 5, start: 3, length: 9 },
  { kind: 'clip.split', clip: 5, right: 11, start: 8 },
  { kind: 'clip.moved', clip: 11, track: 1, start: 40 },
  { kind: 'clip.copied', from: 5, clip: 12, track: 1, start: 60 },
  { kind: 'clip.changed', clip: 12, property: 'gain' },
  { kind: 'clip.deleted', clip: 7 },
  { kind: 'automation.edited', track: 1, added: 3, removed: 1, changed: 1 },
  { kind: 'plugin.added', plugin: 1, track: 1, type: 'effect' },
  { kind: 'plugin.changed', plugin: 1, property: 'parameter' },
  { kind: 'mixer.changed', track: 1, control: 'gain' },
  { kind: 'sourceMap.completed', sources: 8, clips: 9 },
  { kind: 'export.finished', fileSha256: EXPORTED, frames: 4_800_000, rate: 48_000, rerender: 'matched' },
];
type Act = DistributiveOmit<TraceEvent, 'at'> & { readonly after?: number };
type DistributiveOmit<Type, Name extends PropertyKey> = Type extends unknown ? Omit<Type, Name> : never;

/**
 * Returns the report of a trace with acts of every channel.
 * @param channels support of channels by the header
 * @param silent channel without events
 */
async function reportOfActs(
  channels: Partial<Record<Channel, ChannelSupport>>,
  silent?: Channel,
): Promise<EvidenceReport> {
  const references = new TraceReferences();
  const { bytes } = await writeTrace(
    async (writer) => {
      let at = MINUTE;
      for (const { after = 0, ...act } of actsWithout(Object.keys(channels)[0])) {
        at += after * 1_000_000;
        const event = withoutUnseen(silent, { ...act, at } as TraceEvent);
        if (EVENTS[event.kind].channel === silent) continue;
        try {
          references.take(event);
        } catch (error) {
          // Without the events of its track, the event is invalid.
          if (error instanceof TraceFault) continue;
          throw error;
        }
        writer.append(event);
      }
      await writer.seal();
    },
    { key: KEY, channels },
  );
  return reportOfTrace(bytes, [DECLARATION]);
}

/**
 * Returns all acts: a minute without those that have no number if the channel is not watched, and a minute
 * with the rest.
 */
function actsWithout(channel: string | undefined): readonly Act[] {
  const isOf = ([, channels]: (typeof CLASSES)[number]): boolean => channels.some((each) => each === channel);
  const acts = (wanted: boolean): readonly Act[] =>
    CLASSES.filter((each) => isOf(each) === wanted).flatMap(([each]) => each);
  const [first, ...rest] = [...acts(true), ...ACTS];
  return [...acts(false), { ...first!, after: 60 }, ...rest];
}

const SOURCES: Readonly<Partial<Record<Channel, readonly number[]>>> = {
  recording: [1, 9],
  midi: [2, 3],
  imports: [5, 8],
  sourceMap: [6, 7],
};

/** Returns the event without references to a channel, where the references are optional. */
function withoutUnseen(channel: Channel | undefined, event: TraceEvent): TraceEvent {
  const { track, source, from, ...rest } = event as TraceEvent & Record<'track' | 'source' | 'from', number>;
  const unseen = channel === undefined ? [] : (SOURCES[channel] ?? []);
  const { fields } = EVENTS[event.kind];
  return {
    ...rest,
    ...defined({
      track: channel === 'tracks' && 'track?' in fields ? undefined : track,
      source: 'source?' in fields && unseen.includes(source) ? undefined : source,
      from: 'from?' in fields && unseen.includes(from) ? undefined : from,
    }),
  } as TraceEvent;
}

const DECLARATION: DeclarationEnvelope = {
  surveyVersion: '2026-11',
  submissionId: 'sub_1',
  subject: 'creator_1',
  submittedAt: 1_790_010_000,
  answers: {
    declaredOrigin: 'third_party_material',
    aiShareBand: 'under_quarter',
    manualWork: 'substantial',
    contributionBand: 'shared',
    aiRoles: ['vocals'],
  },
  recordedAt: 1_790_010_060,
  bindingStatus: 'authenticated_post_issuance_record',
};

/**
 * Zeros that are true of these reports in any case. The last one is part of “Not watched” does not mean
 * “none”.
 */
const TRUE_ZEROS = ['0 gaps', 'Conflicts: none.', 'none”.'];

/** Returns the zeros of a report, without the coverage of the other channels, which has true ones. */
function wrongZeros(report: EvidenceReport, channel?: Channel): readonly string[] {
  const ofOthers = zeros(report).filter((path) => {
    const [, of] = path.match(/^\.session\.evidence\.coverage\.(\w+)\.(exact|interval|gapCount)$/) ?? [];
    return of === undefined || of === channel;
  });
  const said = Object.entries(textsOf(report)).flatMap(([what, text]) =>
    text
      .split('\n')
      .flatMap((line) => [...zeroPhrases(line).keys()])
      .filter((phrase) => !TRUE_ZEROS.includes(phrase))
      .map((phrase) => `${what}: ${phrase}`),
  );
  return [...ofOthers, ...said];
}

t.test('beside channels that are full, one that is not watched leaves no zero at all', async (t) => {
  t.strictSame(wrongZeros(await reportOfActs({})), [], 'with every channel');
  for (const channel of CHANNELS)
    for (const support of ['unsupported', 'unknown'] as const) {
      const silent = await reportOfActs({ [channel]: support }, channel);
      const { counters, coverage } = silent.session!.evidence;
      t.strictSame(
        (Object.keys(COUNTERS) as CounterName[]).filter((name) => counters[name].status !== 'observed'),
        (Object.keys(COUNTERS) as CounterName[]).filter((name) => needs(name).includes(channel)),
        `${channel} ${support}: everything else was observed`,
      );
      t.strictSame(coverage[channel], { support, gaps: [] });
      t.strictSame(wrongZeros(silent, channel), [], `${channel} ${support}`);
      // Agents report tracks that they do not watch, because clips are on these tracks.
      const report = await reportOfActs({ [channel]: support });
      t.strictSame(wrongZeros(report, channel), [], `${channel} ${support}, and reported all the same`);
    }
});

/** Returns the channels that a counter needs. */
function needs(name: CounterName): readonly Channel[] {
  const own = COUNTERS[name];
  return own === 'clips' ? [own, 'tracks'] : name === 'importPlacements' ? [own, 'clips', 'tracks'] : [own];
}

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
