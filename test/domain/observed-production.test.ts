import t from 'tap';
import { MAX_OBSERVED_IMPORTS, NOTHING_OBSERVED } from '../../src/core/domain/observed-production.js';
import type { EvidenceFacts } from '../../src/witness/domain/evidence.js';
import { observedProduction } from '../../src/witness/domain/observe-production.js';
import {
  COUNTERS,
  type CounterName,
  type ImportedSource,
  type SessionEvidence,
} from '../../src/witness/domain/session-evidence.js';
import { CHANNELS } from '../../src/witness/domain/trace.js';

type Counters = Partial<Record<CounterName, number | 'unknown' | 'unsupported'>>;

function factsOf(
  counts: Counters,
  session: Partial<SessionEvidence> = {},
  importedSources: readonly ImportedSource[] = [],
): EvidenceFacts {
  const counters = Object.fromEntries(
    Object.keys(COUNTERS).map((name) => {
      const count = counts[name as CounterName] ?? 0;
      if (typeof count === 'string') return [name, { status: count }];
      return [name, { status: count > 0 ? 'observed' : 'not_observed', value: count }];
    }),
  ) as SessionEvidence['counters'];
  const watched = { support: 'supported', exact: 1, interval: 0, gaps: [], gapCount: 0 } as const;
  return {
    engineVersion: 1,
    session: {
      traceSha256: 'aa'.repeat(32),
      traceBytes: 1,
      traceVersion: 1,
      simulated: false,
      adapter: { name: 'ardour', version: '1' },
      device: { deviceId: 'bb'.repeat(32), standing: 'enrolled' },
      startedAt: 0,
      durationSeconds: 60,
      sealed: true,
      events: 1,
      counters,
      coverage: Object.fromEntries(
        CHANNELS.map((channel) => [channel, watched]),
      ) as unknown as SessionEvidence['coverage'],
      recordings: [],
      activity: { bucketSeconds: 60, buckets: [] },
      export: { fileSha256: 'cc'.repeat(32), issuedAudio: 'matches', rerender: 'matched' },
      ...session,
    },
    importedSources,
    importedSourceCount: importedSources.length,
    placedImportCount: importedSources.filter(({ placements }) => (placements?.count ?? 0) > 0).length,
    facts: [],
    inputs: { editsAfterExport: 0 },
  };
}

function source(at: number, over: Partial<ImportedSource> = {}): ImportedSource {
  return {
    sourceId: `s${at}`,
    manner: 'copied',
    samplesSha256: at.toString(16).padStart(64, '0'),
    placements: { count: 1, approximateSeconds: 1, spans: [] },
    ...over,
  };
}

const TAKES = { takesRecorded: 2, takesRecordedInRealTime: 2 };

t.test('takes that were recorded in real time, and nothing beside them, are a capture', async (t) => {
  t.strictSame(observedProduction(factsOf(TAKES)), {
    complete: true,
    captured: true,
    imports: [],
    takes: 2,
  });
  for (const [name, counts] of Object.entries({
    'a take not seen in real time': { takesRecorded: 3 },
    'notes entered': { midiNotesEntered: 1 },
    'notes played in': { midiNotesRecorded: 1 },
    'a source derived': { sourcesDerived: 1 },
    'a source that appeared': { sourcesAppeared: 1 },
    'an import that was not placed': { importsAdded: 1 },
    'imports that the adapter cannot see': { importsAdded: 'unsupported' },
    'derived sources that it may have missed': { sourcesDerived: 'unknown' },
  } satisfies Record<string, Counters>))
    t.equal(observedProduction(factsOf({ ...TAKES, ...counts })).captured, false, name);
  t.equal(observedProduction(factsOf({})).captured, false, 'no take');
});

t.test('a trace proves nothing of other audio, for strangers, or when it was generated', async (t) => {
  const { export: exported } = factsOf({}).session;
  for (const session of [
    { export: { ...exported!, issuedAudio: 'differs' as const } },
    { device: { deviceId: 'bb'.repeat(32), standing: 'unknown' as const } },
    { device: { deviceId: 'bb'.repeat(32), standing: 'revoked' as const } },
    { simulated: true },
  ])
    t.equal(observedProduction(factsOf(TAKES, session, [source(1)])), NOTHING_OBSERVED);
  const { export: _, ...unexported } = factsOf(TAKES).session;
  t.equal(observedProduction({ ...factsOf(TAKES), session: unexported }), NOTHING_OBSERVED, 'no export');
});

t.test('all actions are reported only when every channel was watched without a gap', async (t) => {
  const { coverage, export: exported } = factsOf({}).session;
  for (const [name, session] of Object.entries({
    'no seal': { sealed: false },
    'not rendered again': { export: { ...exported!, rerender: 'not_tried' as const } },
    'a partial channel': {
      coverage: { ...coverage, mixer: { ...coverage.mixer, support: 'partial' as const } },
    },
    'a gap': { coverage: { ...coverage, clips: { ...coverage.clips, gapCount: 1 } } },
  }))
    t.equal(observedProduction(factsOf(TAKES, session)).complete, false, name);
  const facts = factsOf(TAKES, {}, [source(1)]);
  t.equal(observedProduction(facts).complete, true);
  for (const editsAfterExport of [1, undefined])
    t.equal(
      observedProduction({ ...facts, inputs: editsAfterExport === undefined ? {} : { editsAfterExport } })
        .complete,
      false,
      'the arrangement was edited after the export, or possibly edited',
    );
});

t.test(
  'an export that is not tied to the session names its imports, and nothing that was made',
  async (t) => {
    const facts = factsOf({ ...TAKES, midiNotesEntered: 4, clipsMoved: 9 }, {}, [source(1)]);
    t.match(observedProduction(facts), { takes: 2, notes: 4, edits: 9 });
    t.strictSame(
      observedProduction({
        ...facts,
        facts: [
          {
            code: 'export_not_tied_to_session',
            contentClass: 'unverifiable_coverage_gap',
            status: 'unverifiable',
          },
        ],
      }),
      {
        complete: false,
        captured: false,
        imports: [{ sha256: '1'.padStart(64, '0'), of: 'samples' }],
        importCount: 1,
      },
    );
  },
);

t.test('the first placed imports are reported by digest, with the count of all', async (t) => {
  const many = Array.from({ length: 40 }, (_, at) => source(at));
  const unplaced = source(99, { placements: { count: 0, approximateSeconds: 0, spans: [] } });
  const observed = observedProduction(factsOf({ importsAdded: 41 }, {}, [unplaced, ...many]));
  t.equal(observed.imports.length, MAX_OBSERVED_IMPORTS);
  t.equal(observed.importCount, 40);
  t.equal(observed.complete, false, 'some are named by none of the ingredients');
  t.equal(observedProduction(factsOf({}, {}, many.slice(0, MAX_OBSERVED_IMPORTS))).complete, true);
  t.match(
    observedProduction({ ...factsOf({}, {}, [source(1)]), placedImportCount: 300 }),
    { complete: false, importCount: 300 },
    "placed beyond the report's list",
  );
  t.strictSame(observed.imports[0], { sha256: '0'.repeat(64), of: 'samples' });
  const { samplesSha256: _, ...undigested } = source(2);
  t.strictSame(
    observedProduction(factsOf({}, {}, [source(1, { originalSha256: 'dd'.repeat(32) }), undigested])).imports,
    [{ sha256: 'dd'.repeat(32), of: 'file' }, {}],
    'by the whole file where it was found',
  );
});

t.test('what is not known is absent, and no count is zero', async (t) => {
  const unknown = Object.fromEntries(Object.keys(COUNTERS).map((name) => [name, 'unknown' as const]));
  for (const counts of [{}, unknown])
    t.strictSame(Object.keys(observedProduction(factsOf(counts))).toSorted(), [
      'captured',
      'complete',
      'imports',
    ]);
  t.match(observedProduction(factsOf({ clipsMoved: 2, mixerChanges: 3, automationEdits: 'unsupported' })), {
    edits: 5,
  });
});
