import t from 'tap';
import { ARDOUR_CHANNELS } from '../../src/agents/ardour/follow.js';
import type { EvidenceFact } from '../../src/witness/domain/evidence-report.js';
import { observedProduction } from '../../src/witness/domain/observe-production.js';
import type { Channel, ChannelSupport, TraceEvent } from '../../src/witness/domain/trace.js';
import { writeProcessNote } from '../../src/witness/report/process-note.js';
import { ALL_SUPPORTED } from '../capture/write-trace.js';
import { EXPORTED, factsOf, reportOf, STARTED_AT, sessionOf } from './sessions.js';

const SECOND = 1_000_000;
const NOT_TIED = 'export_not_tied_to_session';
const TRACK: TraceEvent = { kind: 'track.added', at: 0, track: 1, type: 'audio' };
const IMPORT: TraceEvent = { kind: 'import.added', at: 1, source: 1, manner: 'copied' };
const CLIP: TraceEvent = {
  kind: 'clip.created',
  at: 2,
  clip: 1,
  track: 1,
  source: 1,
  base: 'seconds',
  start: 0,
  length: 60,
};
const MOVED: TraceEvent = { kind: 'clip.moved', at: 4, clip: 1, track: 1, start: 1 };
const read = (clips: number): TraceEvent => ({ kind: 'sourceMap.completed', at: 3, sources: 1, clips });
const exported = (rerender: 'matched' | 'differed' | 'not_tried'): TraceEvent => ({
  kind: 'export.finished',
  at: 5,
  fileSha256: EXPORTED,
  frames: 60,
  rate: 1,
  rerender,
});
const gap = (scope: Channel): TraceEvent => ({
  kind: 'capture.gap',
  at: 4,
  since: 3,
  scope,
  reason: 'unreadable',
});

/** Sessions of one placed import, with whether their export is tied. */
const SESSIONS: Readonly<
  Record<string, readonly [Readonly<Record<Channel, ChannelSupport>>, readonly TraceEvent[], boolean]>
> = {
  'every change was watched': [ALL_SUPPORTED, [exported('not_tried')], true],
  'every change was watched, and rendering again gave other audio': [
    ALL_SUPPORTED,
    [exported('differed')],
    false,
  ],
  'clips were out of sight': [ALL_SUPPORTED, [gap('clips'), exported('not_tried')], false],
  'sources were out of sight': [ALL_SUPPORTED, [gap('sourceMap'), exported('not_tried')], false],
  'playback was out of sight': [ALL_SUPPORTED, [gap('transport'), exported('not_tried')], true],
  'the state that was read gave the same audio': [ARDOUR_CHANNELS, [read(1), exported('matched')], true],
  'the state was read, and not rendered again': [ARDOUR_CHANNELS, [read(1), exported('not_tried')], false],
  'equal states were read before and after the export': [
    ARDOUR_CHANNELS,
    [read(1), exported('not_tried'), read(1)],
    false,
  ],
  'the state gave other audio': [ARDOUR_CHANNELS, [read(1), exported('differed')], false],
  'a change followed the state that was read': [
    ARDOUR_CHANNELS,
    [read(1), MOVED, exported('matched')],
    false,
  ],
  'the state that was read has clips that were not reported': [
    ARDOUR_CHANNELS,
    [read(2), exported('matched')],
    false,
  ],
};

t.test('an export is tied only when it was shown to follow from the session', async (t) => {
  for (const [name, [channels, events, isTied]] of Object.entries(SESSIONS)) {
    const facts = factsOf(sessionOf([TRACK, IMPORT, CLIP, ...events], channels));
    const gaps = facts.facts.filter(({ code }) => code === NOT_TIED);
    t.strictSame(
      gaps,
      isTied ? [] : [{ code: NOT_TIED, contentClass: 'unverifiable_coverage_gap', status: 'unverifiable' }],
      name,
    );
    const { importedSeconds, exportSeconds } = facts.inputs;
    t.strictSame(
      { importedSeconds, exportSeconds },
      isTied
        ? { importedSeconds: 60, exportSeconds: 60 }
        : { importedSeconds: undefined, exportSeconds: undefined },
      `${name}: the cover of the export`,
    );
    const lines = writeProcessNote(reportOf(facts)).lines.map(({ code }) => code);
    t.equal(lines.includes('export_not_tied'), !isTied, `${name}: the note`);
  }
});

t.test('a take is not stated of an export that is not tied', async (t) => {
  const take: readonly TraceEvent[] = [
    { kind: 'recording.started', at: 0, take: 1, track: 1, input: 'hardware' },
    ...[1, 2, 3, 4].map(
      (second): TraceEvent => ({
        kind: 'recording.grew',
        at: second * SECOND,
        take: 1,
        frames: second * 48_000,
      }),
    ),
    {
      kind: 'recording.finished',
      at: 5 * SECOND,
      take: 1,
      source: 1,
      frames: 5 * 48_000,
      rate: 48_000,
    },
    { ...CLIP, at: 5 * SECOND },
    { ...read(1), at: 5 * SECOND },
  ];
  const observed = (rerender: 'matched' | 'not_tried') =>
    observedProduction(
      factsOf(sessionOf([TRACK, ...take, { ...exported(rerender), at: 6 * SECOND }], ARDOUR_CHANNELS)),
    );
  t.match(observed('matched'), { takes: 1, edits: 1 });
  t.strictSame(observed('not_tried'), { complete: false, captured: false, imports: [] });
});

const codesOf = (facts: ReturnType<typeof factsOf>): readonly string[] => facts.facts.map(({ code }) => code);
const valuesOf = (facts: ReturnType<typeof factsOf>, code: string) =>
  facts.facts.flatMap((fact) => (fact.code === code ? [[fact.status, fact.values]] : []));
const file = (digit: string): string => digit.repeat(64);
const out = (digit: string, at: number, over: Partial<TraceEvent> = {}): TraceEvent =>
  ({ kind: 'export.finished', at, fileSha256: file(digit), rerender: 'not_tried', ...over }) as TraceEvent;
const edit = (at: number, since?: number): TraceEvent => ({
  kind: 'mixer.changed',
  at,
  control: 'gain',
  ...(since === undefined ? {} : { since }),
});

t.test('the issued audio is looked up among all exports', async (t) => {
  const replayed = sessionOf([
    out('1', 10),
    edit(11),
    out('2', 12),
    edit(13),
    edit(14),
    out('3', 15),
    edit(16, 12),
  ]);
  const exportOf = (digit: string) => {
    const facts = factsOf(replayed, { originalSha256: file(digit) });
    return [
      facts.session.export?.issuedAudio,
      facts.session.export?.fileSha256,
      facts.inputs.editsAfterExport,
      codesOf(facts).includes('trace_export_differs'),
    ];
  };
  t.strictSame(exportOf('1'), ['matches', file('1'), 4, false]);
  t.strictSame(exportOf('2'), ['matches', file('2'), 3, false], 'an edit that began with it counts');
  t.strictSame(
    exportOf('3'),
    ['matches', file('3'), 0, false],
    'an edit that may have come before it does not',
  );
  t.strictSame(exportOf('4'), ['differs', file('3'), 0, true], 'the last one, for other audio');
});

t.test('edits after an export are the same when the export is reported late', async (t) => {
  const early = sessionOf([edit(5), out('1', 10), edit(11), edit(12, 9), edit(13)]);
  const late = sessionOf([edit(5), edit(11), edit(12, 9), edit(13), out('1', 14, { since: 10 })]);
  for (const replayed of [early, late])
    t.equal(factsOf(replayed, { originalSha256: file('1') }).inputs.editsAfterExport, 2);
});

t.test('rendering again at the end ties the export and moves nothing', async (t) => {
  const isGapOrImport = ({ code, contentClass }: EvidenceFact): boolean =>
    contentClass === 'unverifiable_coverage_gap' || code === 'imports_observed';
  const events: readonly TraceEvent[] = [
    TRACK,
    IMPORT,
    CLIP,
    exported('not_tried'),
    { ...MOVED, at: 6 },
    read(1),
  ];
  const rendered = (outcome: 'matched' | 'differed', equal = 20): TraceEvent => ({
    kind: 'export.rendered',
    at: 9,
    fileSha256: EXPORTED,
    outcome,
    windows: 40,
    equalWindows: equal,
  });
  const without = factsOf(sessionOf(events, ARDOUR_CHANNELS));
  const matched = factsOf(sessionOf([...events, rendered('matched')], ARDOUR_CHANNELS));
  t.strictSame(
    matched.facts.filter(isGapOrImport),
    without.facts.filter(isGapOrImport).filter(({ code }) => code !== NOT_TIED),
  );
  t.strictSame(matched.session.counters, without.session.counters);
  t.strictSame(matched.session.coverage, without.session.coverage);
  t.equal(matched.inputs.editsAfterExport, 1);
  const differed = (equal: number, ...more: readonly TraceEvent[]) =>
    factsOf(sessionOf([...more, ...events, rendered('differed', equal)], ARDOUR_CHANNELS));
  t.strictSame(valuesOf(differed(20), 'export_rerender_differs'), [
    ['needs_review', { compared: 40, equal: 20 }],
  ]);
  t.strictSame(
    valuesOf(differed(21), 'export_rerender_differs'),
    [['unverifiable', { compared: 40, equal: 21 }]],
    'most of it is equal',
  );
  t.strictSame(
    valuesOf(
      differed(20, { kind: 'plugin.added', at: 0, plugin: 1, type: 'effect' }),
      'export_rerender_differs',
    ),
    [['unverifiable', { compared: 40, equal: 20 }]],
    'a plug-in may render otherwise',
  );
  const gapped = sessionOf(
    [...events, { kind: 'capture.gap', at: 8, since: 7, reason: 'other' }, rendered('matched')],
    ARDOUR_CHANNELS,
  );
  t.ok(codesOf(factsOf(gapped)).includes(NOT_TIED), 'the rendered state was not read');
});

t.test('a source that was written again out of sight ties no later export', async (t) => {
  const rewritten: TraceEvent = { kind: 'source.derived', at: 4, since: 3, source: 1, manner: 'unknown' };
  for (const [events, isTied] of [
    [[exported('not_tried')], true],
    [[rewritten, exported('not_tried')], false],
    [[exported('not_tried'), { ...rewritten, at: 6 }], true],
    [[{ ...rewritten, manner: 'bounce' }, exported('not_tried')], true],
  ] as const)
    t.equal(!codesOf(factsOf(sessionOf([TRACK, IMPORT, CLIP, ...events]))).includes(NOT_TIED), isTied);
});

t.test('each export of a watched session is measured as the arrangement was then', async (t) => {
  const take: readonly TraceEvent[] = [
    { kind: 'recording.started', at: 3, take: 1, track: 1, input: 'hardware' },
    { kind: 'recording.finished', at: 4, take: 1, source: 2, frames: 90, rate: 1 },
  ];
  const spans = { frames: 100, rate: 1 };
  const replayed = sessionOf([
    TRACK,
    IMPORT,
    CLIP,
    ...take,
    out('1', 5, spans),
    { kind: 'clip.trimmed', at: 6, clip: 1, start: 0, length: 20 },
    out('2', 7, spans),
  ]);
  for (const [digit, importedSeconds] of [
    ['1', 60],
    ['2', 20],
  ] as const)
    t.match(factsOf(replayed, { originalSha256: file(digit) }).inputs, {
      importedSeconds,
      exportSeconds: 100,
    });
});

t.test('what was found at the start is one fact with its counts', async (t) => {
  const found = { at: 1, since: 1 };
  const facts = factsOf(
    sessionOf([
      { ...TRACK, ...found } as TraceEvent,
      { kind: 'track.added', ...found, track: 2, type: 'bus' },
      { ...IMPORT, ...found } as TraceEvent,
      { ...CLIP, ...found } as TraceEvent,
      { ...MOVED },
      exported('not_tried'),
    ]),
  );
  t.strictSame(valuesOf(facts, 'session_begun_before_agent'), [
    ['unverifiable', { tracks: 1, clips: 1, sources: 1 }],
  ]);
  t.strictSame(facts.importedSources, [], 'an import that was found was not witnessed');
  t.strictSame(valuesOf(facts, 'channel_gaps'), []);
  t.strictSame(facts.session.counters.importsAdded, { status: 'unknown' });
  t.equal(facts.inputs.clipEdits, undefined, 'earlier edits are not known');
  const { complete } = observedProduction(facts);
  t.equal(complete, false);
  const empty = factsOf(sessionOf([{ ...TRACK, ...found } as TraceEvent]));
  t.strictSame(valuesOf(empty, 'session_begun_before_agent'), [], 'a track without material');
});

t.test('takes that never ended and plug-ins that may sound are reported', async (t) => {
  const facts = factsOf(
    sessionOf([
      TRACK,
      { kind: 'plugin.added', at: 1, plugin: 1, type: 'effect' },
      { kind: 'plugin.added', at: 1, plugin: 2, type: 'instrument' },
      { kind: 'plugin.added', at: 1, plugin: 3, type: 'unknown' },
      { kind: 'recording.started', at: 2, take: 1, track: 1, input: 'hardware' },
    ]),
  );
  t.strictSame(valuesOf(facts, 'takes_not_finished'), [['unverifiable', { takes: 1 }]]);
  t.strictSame(valuesOf(facts, 'plugins_may_add_sound'), [['unverifiable', { plugins: 2 }]]);
  const lines = writeProcessNote(reportOf(facts)).lines.map(({ code }) => code);
  for (const code of ['takes_not_finished', 'plugins']) t.ok(lines.includes(code), code);
});

t.test('times that cannot be are findings', async (t) => {
  const replayed = sessionOf([TRACK, edit(180 * SECOND)]);
  const found = (context: Parameters<typeof factsOf>[1]) =>
    factsOf(replayed, context).facts.flatMap(({ code, status, values }) =>
      /^(trace_(?!export)|session_(before|evidence_used))/.test(code) ? [[code, status, values]] : [],
    );
  t.strictSame(found({ now: STARTED_AT + 180 }), []);
  t.strictSame(found({ now: STARTED_AT + 120 }), [], 'clocks differ by a minute');
  t.strictSame(found({ now: STARTED_AT + 10 }), [
    ['trace_longer_than_elapsed', 'needs_review', { seconds: 170 }],
  ]);
  t.strictSame(found({ now: STARTED_AT - 3600 }), [
    ['trace_starts_in_future', 'needs_review', { seconds: 3600 }],
  ]);
  t.strictSame(found({ now: STARTED_AT + 500, enrolledAt: STARTED_AT + 300 }), [
    ['session_before_enrolment', 'unverifiable', { seconds: 300 }],
  ]);
  t.strictSame(found({ isUsedBefore: true }), [['session_evidence_used_before', 'unverifiable', undefined]]);
});
