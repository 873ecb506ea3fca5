import t from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { seededDeviceKey, simulateTrace } from '../../src/cli/specimens/simulate-trace.js';
import {
  ADVERSE_SCENARIOS,
  type AdverseScenario,
  type SessionOptions,
} from '../../src/cli/specimens/simulated-session.js';
import { asksForReview, type EvidenceReport } from '../../src/witness/domain/evidence-report.js';
import { CHANNELS, EVENTS, type TraceEvent } from '../../src/witness/domain/trace.js';
import { replayTrace } from '../../src/witness/replay/replay-trace.js';
import { composeReport } from '../../src/witness/report/compose-report.js';
import { settleFacts } from '../../src/witness/report/settle-facts.js';
import { readTrace } from '../../src/witness/trace/read-trace.js';
import { opened } from './write-trace.js';

async function simulate(options: Partial<SessionOptions>) {
  const sink = new MemorySink();
  const made = await simulateTrace({ minutes: 20, seed: 7, ...options, to: sink, key: seededDeviceKey(7) });
  const bytes = sink.bytes();
  const trace = await readTrace(opened(bytes));
  const events: TraceEvent[] = [];
  for await (const batch of trace.events()) events.push(...batch);
  const kinds = new Map<string, number>();
  for (const { kind } of events) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  return { made, bytes, trace, events, kinds, codes: trace.findings.map(({ code }) => code) };
}

t.test('a session is read as it was written, is sealed, and says that it is simulated', async (t) => {
  const { made, trace, events, kinds, codes } = await simulate({ minutes: 90 });
  t.strictSame(codes, ['trace_simulated']);
  t.ok(trace.sealed);
  t.ok(trace.header.simulated);
  t.equal(events.length, made.events);
  const { counters } = made;
  t.equal(counters.saves, kinds.get('session.saved'));
  t.equal(counters.takesRecorded, kinds.get('recording.finished'));
  t.equal(counters.clipsMoved, kinds.get('clip.moved'));
  t.equal(counters.importsAdded, kinds.get('import.added'));
  t.strictSame(
    Object.entries(counters).filter(([name, count]) => count === 0 && name !== 'sourcesAppeared'),
    [],
    'every counter but one has counted',
  );
  t.ok(Math.max(...events.map(({ at }) => at)) <= 92 * 60_000_000, 'the session has its length');
});

t.test('a seed determines every byte', async (t) => {
  const [first, second, other] = await Promise.all([simulate({}), simulate({}), simulate({ seed: 8 })]);
  t.ok(first.bytes.equals(second.bytes));
  t.notOk(first.bytes.equals(other.bytes));
});

t.test('nothing is reported of a channel that is not watched', async (t) => {
  for (const channel of CHANNELS) {
    const { events, made } = await simulate({ minutes: 10, channels: { [channel]: 'unsupported' } });
    t.strictSame(
      events.filter(({ kind }) => EVENTS[kind].channel === channel),
      [],
      channel,
    );
    t.equal(events.length, made.events);
  }
});

const EXPECTED: Readonly<Record<AdverseScenario, readonly string[]>> = {
  import_only: [],
  placements_without_recording: [],
  imports_cover_export: [],
  activity_after_export: [],
  edits_of_imports_only: [],
  laundered: [],
  unwatched: [],
  unsigned_tail: ['trace_truncated', 'trace_unsigned_tail'],
  gap: ['trace_sequence_gap', 'trace_unsigned_tail'],
  truncated: ['trace_truncated'],
  broken_chain: ['trace_chain_broken', 'trace_unsigned_tail'],
};

t.test('adverse scenarios show in the file, or in what was done', async (t) => {
  for (const scenario of ADVERSE_SCENARIOS) {
    const { codes, events, made } = await simulate({ adverse: [scenario] });
    t.strictSame(codes, [...EXPECTED[scenario], 'trace_simulated'], scenario);
    t.ok(events.length > made.events / 4, `${scenario}: part of it is evidence`);
    if (EXPECTED[scenario].includes('trace_unsigned_tail'))
      t.ok(events.length < made.events, 'and part is not');
  }
  const kindsOf = async (scenario: AdverseScenario) => (await simulate({ adverse: [scenario] })).kinds;
  const importOnly = await kindsOf('import_only');
  t.ok(importOnly.has('import.added') && importOnly.has('clip.created'));
  t.notOk(
    importOnly.has('recording.finished') || importOnly.has('midi.edited') || importOnly.has('midi.recorded'),
  );
  const placed = await kindsOf('placements_without_recording');
  t.ok(placed.has('clip.created'));
  t.notOk(placed.has('import.added') || placed.has('recording.finished') || placed.has('midi.edited'));
  const { events } = await simulate({ adverse: ['activity_after_export'] });
  const exported = events.findIndex(({ kind }) => kind === 'export.finished');
  t.ok(events.slice(exported).some(({ kind }) => kind.startsWith('clip.')));
  const laundered = await simulate({ adverse: ['laundered'] });
  t.ok(laundered.events.some((event) => event.kind === 'recording.started' && event.input === 'internal'));
  t.ok(laundered.kinds.has('source.appeared'));
  t.ok((await kindsOf('unwatched')).has('capture.gap'));
});

const EXPORTED = 'ee'.repeat(32);
const SEEDS = Array.from({ length: 20 }, (_, at) => at + 1);

/** Returns the report of a proof whose audio is the file that a session of an enrolled device exported. */
async function reportOf(options: Omit<SessionOptions, 'exportSha256'>): Promise<EvidenceReport> {
  const to = new MemorySink();
  await simulateTrace({ ...options, exportSha256: EXPORTED, to, key: seededDeviceKey(options.seed) });
  const replayed = await replayTrace(opened(to.bytes()));
  const { facts } = settleFacts(replayed, { standing: 'enrolled', originalSha256: EXPORTED });
  return composeReport({ facts, declarations: [], altered: 0 });
}

const codesOf = ({ facts, conflicts, unverifiable }: EvidenceReport): readonly string[] =>
  [...facts, ...conflicts, ...unverifiable].map(({ code }) => code);

t.test(
  'the report of an ordinary session needs no review, and has recordings, notes and imports',
  async (t) => {
    for (const seed of SEEDS) {
      const report = await reportOf({ minutes: 90, seed });
      const ofRules = ({ contentClass }: { contentClass: string }): boolean =>
        contentClass === 'rule_inference';
      t.strictSame([report.facts.filter(ofRules), report.conflicts], [[], []], `seed ${seed}`);
      const gaps = report.unverifiable.map(({ code, status }) => `${code} ${status}`);
      t.strictSame(
        gaps.filter((gap) => gap !== 'plugins_may_add_sound unverifiable'),
        ['trace_simulated unverifiable'],
        `seed ${seed}: plug-ins may be in use, and there is no other gap`,
      );
      t.notOk(asksForReview(report));
      const { takesRecordedInRealTime, midiNotesRecorded, importPlacements } =
        report.session!.evidence.counters;
      for (const { status } of [takesRecordedInRealTime, midiNotesRecorded, importPlacements])
        t.equal(status, 'observed');
      const seconds = (report.importedSources ?? []).map(
        ({ placements }) => placements?.approximateSeconds ?? 0,
      );
      t.ok(
        seconds.some((each) => each > 0),
        `seed ${seed}: imports are part of the music`,
      );
    }
  },
);

/** Codes that make a scenario's report another one than an ordinary session's. */
const SAID: Readonly<Record<AdverseScenario, readonly string[]>> = {
  ...EXPECTED,
  import_only: ['placements_without_recording_or_midi_entry'],
  placements_without_recording: ['placements_without_recording_or_midi_entry', 'sources_of_unknown_origin'],
  imports_cover_export: ['imports_cover_most_of_export'],
  activity_after_export: ['activity_after_export'],
  edits_of_imports_only: ['edits_only_of_imported_material'],
  laundered: ['recording_claim_not_witnessed', 'takes_from_internal_input'],
  unwatched: ['channel_gaps'],
};

t.test('each adverse scenario is reported with its code', async (t) => {
  for (const scenario of ADVERSE_SCENARIOS)
    for (const seed of SEEDS) {
      const codes = codesOf(await reportOf({ minutes: 8, seed, adverse: [scenario] }));
      t.strictSame(
        SAID[scenario].filter((code) => !codes.includes(code)),
        [],
        `${scenario}, seed ${seed}`,
      );
    }
});
