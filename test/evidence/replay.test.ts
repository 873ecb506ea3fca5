import { createHash } from 'node:crypto';
import t from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { SeededRandom } from '../../src/cli/specimens/random.js';
import { simulateTrace } from '../../src/cli/specimens/simulate-trace.js';
import { type AdverseScenario, SimulatedSession } from '../../src/cli/specimens/simulated-session.js';
import { DeviceKey } from '../../src/witness/capture/index.js';
import type { EvidenceReport } from '../../src/witness/domain/evidence-report.js';
import { observedProduction } from '../../src/witness/domain/observe-production.js';
import { COUNTERS, type CounterName, REPORT_LIMITS } from '../../src/witness/domain/session-evidence.js';
import { TempoMap } from '../../src/witness/domain/tempo-map.js';
import {
  CHANNELS,
  type Channel,
  type ChannelSupport,
  type TraceEvent,
} from '../../src/witness/domain/trace.js';
import { lengthOf, mergeSpans } from '../../src/witness/replay/arrangement.js';
import { type Replayed, replayTrace } from '../../src/witness/replay/replay-trace.js';
import { Replayer } from '../../src/witness/replay/replayer.js';
import { milli } from '../../src/witness/replay/session-counters.js';
import { composeReport } from '../../src/witness/report/compose-report.js';
import { evaluateOverlay } from '../../src/witness/report/overlay.js';
import { writeProcessNote } from '../../src/witness/report/process-note.js';
import { settleFacts } from '../../src/witness/report/settle-facts.js';
import { ALL_SUPPORTED, opened } from '../capture/write-trace.js';
import { heldBytes } from '../fixtures/memory.js';
import { sized } from '../fixtures/sampling.js';

const EXPORTED = 'ee'.repeat(32);

async function simulated(
  seed: number,
  options: {
    readonly minutes?: number;
    readonly adverse?: readonly AdverseScenario[];
    readonly channels?: Partial<Record<Channel, ChannelSupport>>;
  } = {},
) {
  const to = new MemorySink();
  const { minutes = 30, ...others } = options;
  const made = await simulateTrace({
    ...others,
    minutes,
    seed,
    to,
    key: DeviceKey.generate(),
    exportSha256: EXPORTED,
  });
  return { ...made, bytes: to.bytes() };
}

function reportOf(
  replayed: Replayed,
  context: Partial<Parameters<typeof settleFacts>[1]> = {},
): EvidenceReport {
  const { facts, detail } = settleFacts(replayed, {
    standing: 'enrolled',
    originalSha256: EXPORTED,
    ...context,
  });
  return composeReport({
    facts,
    detail,
    consent: { consentVersion: 'consent-1' },
    overlay: { revision: 1, engineVersion: 1, facts: evaluateOverlay(facts, []) },
    declarations: [],
    altered: 0,
  });
}

function codesOf({ facts, conflicts, unverifiable }: EvidenceReport): readonly string[] {
  return [...facts, ...conflicts, ...unverifiable].map(({ code }) => code);
}

/** Replays events without a file, as of a sealed trace. */
function replay(
  events: readonly TraceEvent[],
  channels: Partial<Record<Channel, ChannelSupport>> = {},
): Replayed {
  const header = { channels: { ...ALL_SUPPORTED, ...channels } };
  const replayer = new Replayer(header);
  for (const event of events) replayer.take(event);
  return {
    header: {
      version: 1,
      traceId: '00'.repeat(16),
      adapter: 'test',
      adapterVersion: '1',
      startedAt: 1_700_000_000,
      simulated: false,
      algorithm: 'Ed25519',
      ...header,
    },
    deviceId: 'dd'.repeat(32),
    sha256: 'aa'.repeat(32),
    bytes: 1000,
    sealed: true,
    findings: [],
    session: replayer.finish(true),
  };
}

const SECOND = 1_000_000;
const TRACK: TraceEvent = { kind: 'track.added', at: 0, track: 1, type: 'audio' };

function take(
  options: {
    readonly id?: number;
    readonly source?: number;
    readonly input?: 'hardware' | 'internal' | 'none' | 'unknown';
    /** The frames of each step, one second apart. */
    readonly steps?: readonly number[];
    readonly since?: number;
    readonly amid?: readonly TraceEvent[];
  } = {},
): readonly TraceEvent[] {
  const {
    id = 1,
    source = 10,
    input = 'hardware',
    steps = Array(6).fill(48_000),
    since,
    amid = [],
  } = options;
  let frames = 0;
  const start = 10 * SECOND;
  return [
    { kind: 'recording.started', at: start, take: id, track: 1, input },
    ...steps.map((step, index): TraceEvent => {
      frames += step;
      const at = start + (index + 1) * SECOND;
      return { kind: 'recording.grew', at, ...(since === undefined ? {} : { since }), take: id, frames };
    }),
    ...amid,
    {
      kind: 'recording.finished',
      at: start + (steps.length + 1) * SECOND,
      take: id,
      source,
      frames,
      rate: 48_000,
    },
  ];
}

t.test('for any simulated session the replayed counters are those of the generator', async (t) => {
  const scenarios: readonly (readonly AdverseScenario[])[] = [
    [],
    ['import_only'],
    ['placements_without_recording'],
    ['imports_cover_export'],
    ['activity_after_export'],
    ['edits_of_imports_only'],
    ['laundered'],
  ];
  for (const adverse of scenarios)
    for (let seed = 1; seed <= sized(6, 2); seed += 1) {
      const { bytes, counters, events } = await simulated(seed, { adverse });
      const { session } = await replayTrace(opened(bytes));
      t.equal(session.events, events);
      for (const name of Object.keys(COUNTERS) as CounterName[]) {
        const { status, value } = session.counters[name];
        if (counters[name] > 0)
          t.strictSame({ status, value }, { status: 'observed', value: counters[name] });
        else if (value !== 0) t.strictSame({ status, value }, { status: 'unknown', value: undefined }, name);
      }
    }
});

t.test('the same trace gives the same bytes of a report, however it is cut', async (t) => {
  const { bytes } = await simulated(3, { adverse: ['laundered'] });
  const whole = JSON.stringify(reportOf(await replayTrace(opened(bytes))));
  for (const lengths of [[1, 7, 4096], [333], [65_536, 1]])
    t.equal(JSON.stringify(reportOf(await replayTrace(opened(bytes, ...lengths)))), whole);
  t.notMatch(whole, /\d\.\d{4}/, 'numbers are whole thousandths');
});

t.test('a channel that is not watched is not zero, in the report and in the note', async (t) => {
  for (const channel of CHANNELS)
    for (const support of ['unsupported', 'unknown'] as const) {
      const { bytes } = await simulated(5, { channels: { [channel]: support } });
      const report = reportOf(await replayTrace(opened(bytes)));
      const evidence = report.session!.evidence;
      t.strictSame(evidence.coverage[channel], { support, gaps: [] });
      const names = (Object.keys(COUNTERS) as CounterName[]).filter((name) => COUNTERS[name] === channel);
      for (const name of names)
        t.strictSame(evidence.counters[name], { status: support }, `${channel} ${name}`);
      t.ok(
        report.unverifiable.some(
          ({ code, values }) => code === `channel_${support}` && values?.['channel'] === channel,
        ),
      );
      for (const { values = {} } of report.facts)
        for (const value of Object.values(values)) t.not(value, 0, `${channel}: no fact rests on a zero`);
      if (channel === 'clips') {
        for (const { placements } of report.importedSources!) t.equal(placements, undefined);
        for (const { placementCount } of evidence.recordings) t.equal(placementCount, undefined);
      }
      if (channel === 'imports') for (const bucket of evidence.activity.buckets) t.notOk('imports' in bucket);
      for (const { text } of writeProcessNote(report).lines) {
        t.notMatch(text, /(^|[ :])0([ ;.]|$)(?!s\b)(?! s)/, text);
        t.notMatch(text, /human|AI-free|%|percent/i);
      }
    }
});

t.test('a take is in real time where its growth was seen at its rate, from hardware', async (t) => {
  const realTime = (events: readonly TraceEvent[]) => replay([TRACK, ...events]).session.recordings[0];
  t.match(realTime(take()), { realTime: 'observed', input: 'hardware', growthSteps: 6, durationSeconds: 6 });
  t.match(
    realTime(take({ steps: Array(6).fill(45_000) })),
    { realTime: 'observed' },
    'as measured in Ardour',
  );
  const doubtful: Readonly<Record<string, readonly TraceEvent[]>> = {
    'under three steps': take({ steps: [48_000, 48_000] }),
    'ten times as fast': take({ steps: Array(6).fill(480_000) }),
    'too slow': take({ steps: Array(6).fill(40_000) }),
    'all but a little before the first step': take({ steps: [4_800_000, 48_000, 48_000, 48_000, 48_000] }),
    'a burst amid a take that is right on the whole': take({
      steps: [48_000, 10_000, 10_000, 100_000, 100_000, 48_000, 48_000, 48_000],
    }),
    'growth reported as a difference': take({ since: 1 }),
    'input internal': take({ input: 'internal' }),
    'input not seen': take({ input: 'unknown' }),
    'input changed': take({
      amid: [{ kind: 'recording.input', at: 16 * SECOND, track: 1, input: 'internal' }],
    }),
    'a gap while it ran': take({
      amid: [{ kind: 'capture.gap', at: 16 * SECOND, since: 12 * SECOND, reason: 'agent_stopped' }],
    }),
  };
  for (const [name, events] of Object.entries(doubtful)) {
    t.match(realTime(events), { realTime: 'unknown' }, name);
    // A take from inside the workstation is not a recording, so none of them can be in real time.
    const none = name === 'input internal' ? { status: 'not_observed', value: 0 } : { status: 'unknown' };
    t.strictSame(replay([TRACK, ...events]).session.counters.takesRecordedInRealTime, none, name);
  }
});

t.test('an import stays imported material through every derivation', async (t) => {
  const clip = (id: number, source: number, start: number): TraceEvent => ({
    kind: 'clip.created',
    at: 30 * SECOND,
    clip: id,
    track: 1,
    source,
    base: 'seconds',
    start,
    length: 10,
  });
  const replayed = replay([
    TRACK,
    {
      kind: 'import.added',
      at: 1,
      source: 1,
      manner: 'copied',
      samplesSha256: 'ab'.repeat(32),
      frames: 480_000,
      rate: 48_000,
    },
    { kind: 'source.derived', at: 2, source: 2, from: 1, manner: 'bounce' },
    { kind: 'source.derived', at: 3, source: 3, from: 2, manner: 'combine' },
    ...take({ input: 'internal', source: 4 }),
    { kind: 'source.derived', at: 20 * SECOND, source: 4, from: 3, manner: 'rendered' },
    { kind: 'source.appeared', at: 21 * SECOND, source: 5, claims: 'recording' },
    ...[1, 2, 3, 4, 5].map((source) => clip(source, source, source * 20)),
    { kind: 'clip.moved', at: 31 * SECOND, clip: 4, track: 1, start: 100 },
    { kind: 'clip.deleted', at: 32 * SECOND, clip: 3 },
  ]);
  const report = reportOf(replayed);
  t.match(report.importedSources, [
    {
      sourceId: 's1',
      placements: {
        count: 3,
        approximateSeconds: 30,
        spans: [
          { startSeconds: 20, endSeconds: 30 },
          { startSeconds: 40, endSeconds: 50 },
          { startSeconds: 100, endSeconds: 110 },
        ],
      },
    },
  ]);
  t.strictSame(
    report.sourceDetail?.placements.map(({ origin, sourceId, state }) => [origin, sourceId, state]),
    [
      ['imported', 's1', 'present'],
      ['imported', 's1', 'present'],
      ['imported', 's1', 'removed'],
      ['imported', 's1', 'present'],
      ['unknown', undefined, 'present'],
    ],
  );
  t.strictSame(report.session?.evidence.counters.takesRecorded, { status: 'not_observed', value: 0 });
  const codes = codesOf(report);
  for (const code of [
    'imports_observed',
    'imported_material_derived',
    'takes_from_internal_input',
    'recording_claim_not_witnessed',
    'placements_without_recording_or_midi_entry',
    'edits_only_of_imported_material',
  ])
    t.ok(codes.includes(code), code);
});

t.test('a placed import is listed, attributed and reported after any number of others', async (t) => {
  const { importedSources: most } = REPORT_LIMITS;
  const digest = (source: number) => source.toString(16).padStart(64, '0');
  const added = (source: number): TraceEvent => ({
    kind: 'import.added',
    at: 1,
    source,
    manner: 'copied',
    originalSha256: digest(source),
  });
  const replayed = replay([
    TRACK,
    ...Array.from({ length: most + 144 }, (_, index) => added(index + 1)),
    // The last source in the arrangement is derived twice from an import.
    { kind: 'source.derived', at: 2, source: 1001, from: most + 144, manner: 'bounce' },
    { kind: 'source.derived', at: 3, source: 1002, from: 1001, manner: 'combine' },
    ...Array.from({ length: 144 }, (_, index): TraceEvent => {
      const source = index === 143 ? 1002 : most + index + 1;
      return {
        kind: 'clip.created',
        at: 4,
        clip: source,
        track: 1,
        source,
        base: 'seconds',
        start: 0,
        length: 1,
      };
    }),
    { kind: 'export.finished', at: 5, fileSha256: EXPORTED, rerender: 'matched' },
  ]);
  const detection = { sha256: digest(most + 144), detector: 'ear', detectorVersion: '1', generator: 'gen-x' };
  const { facts } = settleFacts(replayed, {
    standing: 'enrolled',
    originalSha256: EXPORTED,
    detections: [detection, { ...detection, sha256: digest(1) }],
  });
  t.equal(facts.inputs.attributedImports, 1, 'the one in the arrangement');
  t.equal(facts.importedSourceCount, most + 144);
  t.strictSame(
    facts.importedSources?.map(({ sourceId }) => sourceId),
    [
      ...Array.from({ length: most - 144 }, (_, index) => `s${index + 1}`),
      ...Array.from({ length: 144 }, (_, index) => `s${most + index + 1}`),
    ],
    'the placed ones, and the first of the others, in the order of import',
  );
  t.match(facts.importedSources?.at(-1), { placements: { count: 1 }, detections: [{ generator: 'gen-x' }] });
  t.match(facts.importedSources?.[0], { placements: { count: 0 }, detections: [{ generator: 'gen-x' }] });
  t.match(observedProduction(facts), {
    complete: false,
    imports: Array.from({ length: 32 }, (_, index) => ({ sha256: digest(most + index + 1), of: 'file' })),
    importCount: 144,
  });
});
t.test('each detection result of a file is matched, by its samples and by the file', (t) => {
  const digest = (file: number) => file.toString(16).padStart(64, '0');
  const replayed = replay([
    TRACK,
    {
      kind: 'import.added',
      at: 1,
      source: 1,
      manner: 'copied',
      samplesSha256: digest(1),
      originalSha256: digest(2),
    },
    { kind: 'import.added', at: 1, source: 2, manner: 'copied', samplesSha256: digest(2) },
    { kind: 'import.added', at: 1, source: 3, manner: 'copied', originalSha256: digest(3) },
    { kind: 'import.added', at: 1, source: 4, manner: 'copied' },
  ]);
  const detection = (file: number, detector: string) => ({
    sha256: digest(file),
    detector,
    detectorVersion: '1',
    likelihood: 0.5,
  });
  const { facts } = settleFacts(replayed, {
    standing: 'enrolled',
    originalSha256: EXPORTED,
    detections: [detection(2, 'a'), detection(9, 'b'), detection(1, 'c'), detection(2, 'd')],
  });
  t.strictSame(
    facts.importedSources?.map(({ detections }) => detections?.map(({ detector }) => detector)),
    [['a', 'c', 'd'], ['a', 'd'], undefined, undefined],
  );
  t.strictSame(
    facts.facts.flatMap(({ code, values }) => (code === 'detection_without_import' ? [values] : [])),
    [{ detections: 1 }],
  );
  t.end();
});

t.test('a file that is imported repeatedly is reported a limited number of times', (t) => {
  const digest = (file: number) => file.toString(16).padStart(64, '0');
  const replayed = replay(
    Array.from({ length: 2000 }, (_, source): TraceEvent => {
      const originalSha256 = digest(source < 1999 ? 1 : 2);
      return { kind: 'import.added', at: 1, source, manner: 'copied', originalSha256 };
    }),
  );
  const detection = { detector: 'ear', detectorVersion: '1', generator: 'gen-x' };
  const { facts } = settleFacts(replayed, {
    standing: 'enrolled',
    originalSha256: EXPORTED,
    detections: [1, 2].map((file) => ({ ...detection, sha256: digest(file) })),
  });
  const ids = facts.facts.flatMap(({ code, values }) =>
    code === 'AiLikelySource' ? [values?.['sourceId']] : [],
  );
  t.equal(ids.length, REPORT_LIMITS.importedSources);
  t.strictSame([ids[0], ids.at(-1)], ['s1', 's2000'], 'no number of one file hides another');
  t.end();
});
t.test('derivations of material of unknown origin are reported, and those of a take are not', async (t) => {
  const valuesOf = (events: readonly TraceEvent[]) => {
    const { unverifiable } = reportOf(replay(events));
    return unverifiable.flatMap(({ code, values }) =>
      code === 'derived_material_of_unknown_origin' ? [values] : [],
    );
  };
  const recorded: readonly TraceEvent[] = [
    { kind: 'track.added', at: 1, track: 1, type: 'audio' },
    ...take({ input: 'hardware', source: 1 }),
    { kind: 'source.derived', at: 20 * SECOND, source: 2, from: 1, manner: 'bounce' },
  ];
  t.strictSame(valuesOf(recorded), []);
  const derived = (source: number, from?: number): TraceEvent => ({
    kind: 'source.derived',
    at: 40 * SECOND,
    source,
    manner: 'bounce',
    ...(from === undefined ? {} : { from }),
  });
  t.strictSame(valuesOf([...recorded, derived(3)]), [{ sources: 1 }], 'of an unknown source');
  const appeared: TraceEvent = {
    kind: 'source.appeared',
    at: 30 * SECOND,
    source: 3,
    claims: 'import',
  };
  t.strictSame(
    valuesOf([...recorded, appeared, derived(4, 1), derived(4, 3), derived(5, 4)]),
    [{ sources: 2 }],
    'of what appeared, and of that',
  );
  t.strictSame(
    valuesOf([...recorded, ...take({ input: 'internal', source: 3, id: 2 }), derived(4, 3)]),
    [{ sources: 1 }],
    'of a take from inside',
  );
});

t.test('each adverse scenario shows in the report, and a clean one has none of them', async (t) => {
  const expected: Partial<Record<AdverseScenario, string>> = {
    import_only: 'placements_without_recording_or_midi_entry',
    placements_without_recording: 'placements_without_recording_or_midi_entry',
    imports_cover_export: 'imports_cover_most_of_export',
    activity_after_export: 'activity_after_export',
    laundered: 'recording_claim_not_witnessed',
    unsigned_tail: 'trace_unsigned_tail',
    gap: 'trace_sequence_gap',
    truncated: 'trace_truncated',
    broken_chain: 'trace_chain_broken',
  };
  for (const [scenario, code] of Object.entries(expected)) {
    const { bytes } = await simulated(11, { adverse: [scenario as AdverseScenario] });
    t.ok(codesOf(reportOf(await replayTrace(opened(bytes)))).includes(code), scenario);
  }
  const { bytes } = await simulated(11, { minutes: 8 });
  const clean = codesOf(reportOf(await replayTrace(opened(bytes))));
  for (const code of [
    'placements_without_recording_or_midi_entry',
    'activity_after_export',
    'recording_claim_not_witnessed',
    'trace_export_differs',
    'trace_truncated',
  ])
    t.notOk(clean.includes(code), code);
  t.ok(clean.includes('trace_simulated'));
});

t.test('facts are held to the device, the issued audio, the summary and the detections', async (t) => {
  const { bytes } = await simulated(7);
  const replayed = await replayTrace(opened(bytes));
  const [first] = replayed.session.imports;
  const { saves, takesRecorded } = replayed.session.counters;
  const report = reportOf(replayed, {
    standing: 'unknown',
    originalSha256: '00'.repeat(32),
    summary: {
      durationSeconds: replayed.session.durationSeconds + 0.4,
      counters: { saves: saves.value!, takesRecorded: takesRecorded.value! + 5 },
    },
    detections: [
      {
        sha256: first!.originalSha256!,
        detector: 'ear',
        detectorVersion: '2',
        likelihood: 0.93,
        generator: 'gen-x',
      },
      { sha256: '12'.repeat(32), detector: 'ear', detectorVersion: '2', likelihood: 0.5 },
    ],
  });
  const factsOf = (code: string) =>
    [...report.facts, ...report.unverifiable].filter((fact) => fact.code === code);
  t.match(factsOf('session_summary_reconciled'), [
    {
      status: 'needs_review',
      values: { counter: 'takesRecorded', summary: takesRecorded.value! + 5, replay: takesRecorded.value },
    },
  ]);
  t.equal(factsOf('session_summary_reconciled').length, 1);
  t.match(factsOf('imported_audio_ai_likelihood'), [
    { contentClass: 'rule_inference', status: 'reported', values: { sourceId: 's1', ratio: 0.93 } },
  ]);
  t.match(factsOf('AiLikelySource'), [
    { contentClass: 'rule_inference', values: { sourceId: 's1', generator: 'gen-x' } },
  ]);
  t.match(factsOf('detection_without_import'), [{ values: { detections: 1 } }]);
  t.match(factsOf('trace_device_unknown'), [{ status: 'needs_review' }]);
  t.match(factsOf('trace_export_differs'), [{ status: 'needs_review' }]);
  t.match(report.importedSources?.[0]?.detections, [
    { likelihood: { value: 0.93, unit: 'ratio' }, generator: 'gen-x' },
  ]);
  t.equal(report.session?.evidence.traceSha256, createHash('sha256').update(bytes).digest('hex'));
});

t.test('what was found at the start is state and no act', async (t) => {
  const { session } = replay([
    { kind: 'track.added', at: 5, since: 5, track: 1, type: 'audio' },
    { kind: 'source.appeared', at: 5, since: 5, source: 1, claims: 'recording' },
    {
      kind: 'clip.created',
      at: 5,
      since: 5,
      clip: 1,
      track: 1,
      source: 1,
      base: 'seconds',
      start: 0,
      length: 4,
    },
  ]);
  for (const name of ['tracksAdded', 'clipsCreated', 'sourcesAppeared', 'takesRecorded'] as const)
    t.strictSame(session.counters[name], { status: 'unknown' }, `${name}: what was done before is unknown`);
  t.strictSame(session.found, { tracks: 1, clips: 1, sources: 1 });
  t.equal(session.inputs.placements, 1);
  t.match(session.sources, { foundAtStart: 1, claimRecording: 0 });
});

t.test('a session is not a capture of its takes when it had other sound from its start', (t) => {
  const clip = { kind: 'clip.created', at: 5, since: 5, track: 1, base: 'seconds', start: 0 } as const;
  const isCaptured = (found: readonly TraceEvent[]): boolean => {
    const replayed = replay([
      { kind: 'track.added', at: 5, since: 5, track: 1, type: 'audio' },
      ...found,
      ...take(),
      { kind: 'export.finished', at: 40 * SECOND, fileSha256: EXPORTED, rerender: 'matched' },
    ]);
    const { facts } = settleFacts(replayed, { standing: 'enrolled', originalSha256: EXPORTED });
    return observedProduction(facts).captured;
  };
  const found: Readonly<Record<string, readonly TraceEvent[]>> = {
    'a source': [
      { kind: 'source.appeared', at: 5, since: 5, source: 1, claims: 'nothing' },
      { ...clip, clip: 1, source: 1, length: 200 },
    ],
    'a source made of others': [
      { kind: 'source.derived', at: 5, since: 5, source: 1, manner: 'bounce' },
      { ...clip, clip: 1, source: 1, length: 200 },
    ],
    'a take': [
      { kind: 'recording.started', at: 5, since: 5, take: 2, input: 'hardware' },
      { kind: 'recording.finished', at: 5, since: 5, take: 2, source: 1, frames: 1, rate: 48_000 },
    ],
    'a clip of an unknown source': [{ ...clip, clip: 1, length: 200 }],
  };
  t.equal(isCaptured([]), true);
  for (const [name, events] of Object.entries(found)) t.equal(isCaptured(events), false, name);
  t.end();
});

t.test('the arrangement of an export is that of its time, also after later changes', (t) => {
  const clip = (id: number, source: number, start: number): TraceEvent => ({
    kind: 'clip.created',
    at: 1,
    clip: id,
    track: 1,
    source,
    base: 'beats',
    start,
    length: 10,
  });
  const exported: TraceEvent = {
    kind: 'export.finished',
    at: 2,
    fileSha256: EXPORTED,
    frames: 60 * 48_000,
    rate: 48_000,
    rerender: 'matched',
  };
  const tempo = (bpm: number): readonly TraceEvent[] => [
    { kind: 'tempo.map', at: 1 },
    { kind: 'tempo.point', at: 1, start: 0, bpm },
  ];
  const before: readonly TraceEvent[] = [
    ...tempo(60),
    TRACK,
    { kind: 'track.added', at: 0, track: 2, type: 'audio' },
    { kind: 'import.added', at: 1, source: 1, manner: 'copied' },
    { kind: 'source.appeared', at: 1, source: 2, claims: 'nothing' },
    ...[1, 2, 3, 4].map((id) => clip(id, 1, 10 * id)),
    clip(5, 2, 50),
  ];
  const after: readonly TraceEvent[] = [
    { kind: 'clip.moved', at: 3, clip: 1, track: 2, start: 900 },
    { kind: 'clip.trimmed', at: 3, clip: 2, start: 0, length: 1 },
    { kind: 'clip.replaced', at: 3, clip: 3, source: 2 },
    { kind: 'clip.deleted', at: 3, clip: 4 },
    clip(6, 1, 600),
    { kind: 'track.removed', at: 3, track: 1 },
    { kind: 'import.added', at: 3, source: 3, manner: 'copied' },
    { kind: 'source.derived', at: 3, source: 2, from: 3, manner: 'bounce' },
    ...tempo(240),
  ];
  const covered = (...events: readonly TraceEvent[]) => {
    const { importedSeconds, exportSeconds } = replay(events).session.inputs;
    return { importedSeconds, exportSeconds };
  };
  const atExport = covered(...before, exported);
  t.strictSame(atExport, { importedSeconds: 40, exportSeconds: 60 });
  t.strictSame(covered(...before, exported, ...after), atExport);
  t.strictSame(
    covered(...before, exported, ...after.slice(0, 3), exported),
    covered(...before, ...after.slice(0, 3), exported),
    'the last export counts',
  );
  t.end();
});

t.test('the placements of an import are those of everything made from it, in circles too', (t) => {
  const random = new SeededRandom(17);
  const imports = 70;
  const sources = 150;
  const events: TraceEvent[] = [TRACK];
  const madeOf = new Map<number, Set<number>>();
  const shown: { readonly source: number; readonly start: number; readonly end: number }[] = [];
  for (let source = 0; source < imports; source += 1)
    events.push({ kind: 'import.added', at: 1, source, manner: 'copied' });
  for (let step = 0; step < 260; step += 1) {
    const source = random.whole(imports, sources - 1);
    const from = random.whole(0, sources - 1);
    if (from === source || (from >= imports && !madeOf.has(from))) continue;
    madeOf.set(source, madeOf.get(source) ?? new Set());
    madeOf.set(from, (madeOf.get(from) ?? new Set()).add(source));
    events.push({ kind: 'source.derived', at: 2, source, from, manner: 'combine' });
  }
  for (let clip = 0; clip < 400; clip += 1) {
    const source = random.whole(0, sources - 1);
    if (source >= imports && !madeOf.has(source)) continue;
    const start = random.between(0, 4000);
    const length = random.chance(0.1) ? 0 : random.between(0.1, 20);
    shown.push({ source, start, end: start + length });
    events.push({ kind: 'clip.created', at: 3, clip, track: 1, source, base: 'seconds', start, length });
  }
  const reached = (source: number): ReadonlySet<number> => {
    const found = new Set([source]);
    for (const one of found) for (const made of madeOf.get(one) ?? []) found.add(made);
    return found;
  };
  const expected = Array.from({ length: imports }, (_, source) => {
    const made = reached(source);
    const placed = shown.filter(({ source }) => made.has(source));
    const spans = mergeSpans(placed);
    return {
      count: placed.length,
      approximateSeconds: milli(lengthOf(spans)),
      spans: spans
        .slice(0, REPORT_LIMITS.spans)
        .map(({ start, end }) => ({ startSeconds: milli(start), endSeconds: milli(end) })),
    };
  });
  t.ok(new Set(expected.map(({ count }) => count)).size > 20, 'imports that differ');
  t.ok(madeOf.size > 100);
  t.strictSame(
    replay(events).session.importedSources.map(({ placements }) => placements),
    expected,
  );
  t.end();
});

t.test('changes of input and gaps cost the same however many takes run', (t) => {
  const takes = Array.from({ length: 16_000 }, (_, take): TraceEvent => {
    return { kind: 'recording.started', at: 0, take, track: 1, input: 'hardware' };
  });
  const changes: Readonly<Record<string, TraceEvent>> = {
    input: { kind: 'recording.input', at: 1, track: 1, input: 'hardware' },
    gap: { kind: 'capture.gap', at: 1, since: 0, scope: 'recording', reason: 'overflow' },
  };
  for (const [name, event] of Object.entries(changes)) {
    const spent = (running: number): number => {
      const began = process.cpuUsage();
      replay([...takes.slice(0, running), ...Array.from({ length: 100_000 }, () => event)]);
      return process.cpuUsage(began).user / 1000;
    };
    const few = spent(16);
    const many = spent(16_000);
    t.ok(many < 20 * few, `${name}: ${Math.round(many)} ms, and ${Math.round(few)} ms`);
  }
  const finished = [0, 1].map((take): TraceEvent => {
    return { kind: 'recording.finished', at: 2, take, source: take, frames: 1, rate: 1 };
  });
  const { session } = replay([
    ...takes.slice(0, 1),
    { kind: 'recording.input', at: 1, track: 1, input: 'none' },
    { kind: 'recording.input', at: 1, track: 1, input: 'hardware' },
    ...takes.slice(1, 2),
    { kind: 'recording.input', at: 1, track: 1, input: 'hardware' },
    ...finished,
  ]);
  t.strictSame(
    session.recordings.map(({ input }) => input),
    ['mixed', 'hardware'],
  );
  t.end();
});

t.test('seconds of beats are estimated with the last tempo map, and the reverse', async (t) => {
  const map = new TempoMap();
  t.equal(map.secondsOf(4), undefined, 'without a tempo nothing is estimated');
  map.add(0, 120, undefined);
  map.add(8, 60, undefined);
  map.add(16, 60, 120);
  map.add(24, 120, undefined);
  t.equal(map.secondsOf(8), 4);
  t.equal(map.secondsOf(12), 8);
  // A linear ramp from 60 to 120 over 8 beats takes 8 * ln 2 seconds at 60.
  t.equal(map.secondsOf(24)?.toFixed(6), (12 + 8 * Math.LN2).toFixed(6));
  for (const beat of [0, 3.5, 8, 11, 17, 20, 23.9, 30])
    t.equal(map.beatsOf(map.secondsOf(beat)!)?.toFixed(6), beat.toFixed(6));
  for (const [bpm, endBpm] of [
    [5e-324, undefined],
    [5e-324, 10_000],
    [1e-9, 2e-9],
  ]) {
    const slow = new TempoMap();
    slow.add(0, bpm!, endBpm);
    slow.add(1, 120, undefined);
    for (const beat of [0.5, 1, 9]) t.ok((slow.secondsOf(beat) ?? 0) <= 10_000_000, 'no endless place');
  }
});

t.test('a session of many events replays in memory that what lives bounds', async (t) => {
  const enough = sized(2_000_000, 500_000);
  const session = new SimulatedSession({ minutes: 60 * 24 * 30, seed: 9, pace: 20 });
  const replayer = new Replayer({ channels: ALL_SUPPORTED });
  let events = 0;
  let early = 0;
  for (const batch of session.events()) {
    for (const event of batch) replayer.take(event);
    events += batch.length;
    if (early === 0 && events > 200_000) early = heldBytes();
    if (events >= enough) break;
  }
  t.ok(events >= enough);
  t.ok(
    heldBytes() - early < 96 * 1_048_576,
    'no more than the sources that may live, and slack of the collector',
  );
  const { recordings, importedSources, detail, activity } = replayer.finish(true);
  t.ok(recordings.length <= REPORT_LIMITS.recordings);
  t.ok(importedSources.length <= REPORT_LIMITS.importedSources);
  t.ok(detail.placements.length <= REPORT_LIMITS.detailPlacements);
  t.ok(activity.buckets.length <= REPORT_LIMITS.activityBuckets);
});
