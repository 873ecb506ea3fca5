import { defined } from '../../core/domain/defined.js';
import { ENGINE_VERSION, type EvidenceFacts, type StoredSourceDetail } from '../domain/evidence.js';
import type { ContentClass, EvidenceFact, FactStatus } from '../domain/evidence-report.js';
import {
  COUNTERS,
  type CounterName,
  type ImportedSource,
  REPORT_LIMITS,
  type SessionEvidence,
  type SourceDetection,
} from '../domain/session-evidence.js';
import type { SessionSummary, SuppliedDetection } from '../domain/session-summary.js';
import { CHANNELS, type DeviceStanding, type TraceFindingCode } from '../domain/trace.js';
import type { Replayed } from '../replay/replay-trace.js';
import type { ReplayedExport } from '../replay/replayer.js';
import { concludeFromTrace } from './rules.js';

/** The context that a replay is compared with when a proof is issued. */
export interface SettlingContext {
  /** The standing of the trace's device at the time of issuing. */
  readonly standing: DeviceStanding;
  /** When the device was enrolled, in unix seconds. Absent for a device that is not enrolled. */
  readonly enrolledAt?: number;
  /** The time of issuing, in unix seconds. */
  readonly now?: number;
  /** True when another proof was issued with the same trace. */
  readonly isUsedBefore?: boolean;
  /** The SHA-256 of the audio as it was submitted for issuing. */
  readonly originalSha256: string;
  readonly summary?: SessionSummary;
  readonly detections?: readonly SuppliedDetection[];
}

type Values = NonNullable<EvidenceFact['values']>;

/** The difference in seconds that the clock of a device may have from the clock of the service. */
const CLOCK_TOLERANCE = 60;

/** The difference in seconds that a summary may have, because agents and clients round. */
const DURATION_TOLERANCE = 1;

/**
 * The findings that are reported without asking for a review. An honest session may also end early, after a
 * crash. A simulated trace is refused in production, so it cannot pass for a real one.
 */
const ORDINARY_FINDINGS: readonly TraceFindingCode[] = [
  'trace_truncated',
  'trace_unsigned_tail',
  'trace_simulated',
];

/**
 * Settles the facts of a trace permanently, when a proof is issued. The same trace and the same context give
 * identical facts, in the same order of members.
 */
export function settleFacts(
  replayed: Replayed,
  context: SettlingContext,
): { readonly facts: EvidenceFacts; readonly detail: StoredSourceDetail } {
  const { session } = replayed;
  const { standing, originalSha256, summary, detections = [] } = context;
  const exported =
    session.exports.find(({ fileSha256 }) => fileSha256 === originalSha256) ?? session.exports.at(-1);
  const evidence = sessionEvidence(replayed, standing, originalSha256, exported);
  const detected = matchDetections(session, detections);
  const inputs = defined({
    ...(exported?.inputs ?? session.inputs),
    attributedImports: detections.length === 0 ? undefined : detected.attributedImports,
  });
  const placed = session.imports.filter(({ isPlaced }) => isPlaced).length;
  const facts = [
    fact('session_evidence_replayed', 'direct_observation', 'observed', {
      events: session.events,
      durationSeconds: session.durationSeconds,
    }),
    ...observations(replayed),
    ...reconcile(evidence, summary),
    ...detected.facts,
    ...concludeFromTrace(inputs),
    ...findings(replayed, standing),
    ...timeFindings(replayed, context),
    ...exportGaps(evidence, exported, session.plugins.all > 0),
    ...sourceGaps(session),
    ...coverageGaps(replayed),
  ];
  return {
    facts: {
      engineVersion: ENGINE_VERSION,
      session: evidence,
      ...(session.looksAtImports || session.imports.length > 0
        ? {
            importedSources: detected.importedSources,
            importedSourceCount: session.imports.length,
          }
        : {}),
      ...(placed > 0 ? { placedImportCount: placed } : {}),
      facts,
      inputs,
    },
    detail: session.detail,
  };
}

function sessionEvidence(
  { header, deviceId, sha256, bytes, sealed, session }: Replayed,
  standing: DeviceStanding,
  originalSha256: string,
  exported: ReplayedExport | undefined,
): SessionEvidence {
  return defined({
    traceSha256: sha256,
    traceBytes: bytes,
    traceVersion: header.version,
    simulated: header.simulated,
    adapter: defined({ name: header.adapter, version: header.adapterVersion, dawVersion: header.dawVersion }),
    device: { deviceId, standing },
    startedAt: header.startedAt,
    durationSeconds: session.durationSeconds,
    sealed,
    events: session.events,
    counters: session.counters,
    coverage: session.coverage,
    recordings: session.recordings,
    activity: session.activity,
    export:
      exported &&
      defined({
        fileSha256: exported.fileSha256,
        issuedAudio: exported.fileSha256 === originalSha256 ? ('matches' as const) : ('differs' as const),
        durationSeconds: exported.durationSeconds,
        rerender: exported.rerender,
      }),
  });
}

function observations({ session }: Replayed): readonly EvidenceFact[] {
  const { takes, sources, counters } = session;
  const observed = (code: string, values: Values): EvidenceFact =>
    fact(code, 'direct_observation', 'observed', values);
  const imports = counters.importsAdded.value ?? 0;
  const placements = counters.importPlacements.value;
  return [
    ...(imports > 0 ? [observed('imports_observed', defined({ imports, placements }) as Values)] : []),
    ...(sources.derivedOfImports > 0
      ? [observed('imported_material_derived', { sources: sources.derivedOfImports })]
      : []),
    ...(takes.realTime > 0
      ? [observed('takes_recorded_in_real_time', { takes: takes.realTime, seconds: takes.realTimeSeconds })]
      : []),
    ...(takes.internal > 0
      ? [observed('takes_from_internal_input', { takes: takes.internal, seconds: takes.internalSeconds })]
      : []),
  ];
}

/** Returns one fact for each number of the summary that differs from the replay (rule 9.25). */
function reconcile(evidence: SessionEvidence, summary: SessionSummary | undefined): readonly EvidenceFact[] {
  const differs = (counter: string, claimed: number, replay: number | string): EvidenceFact =>
    fact('session_summary_reconciled', 'direct_observation', 'needs_review', {
      counter,
      summary: claimed,
      replay,
    });
  const { durationSeconds, counters = {} } = summary ?? {};
  return [
    ...(durationSeconds !== undefined &&
    Math.abs(durationSeconds - evidence.durationSeconds) > DURATION_TOLERANCE
      ? [differs('durationSeconds', durationSeconds, evidence.durationSeconds)]
      : []),
    ...(Object.keys(COUNTERS) as CounterName[]).flatMap((name) => {
      const claimed = counters[name];
      const { status, value } = evidence.counters[name];
      return claimed === undefined || claimed === value ? [] : [differs(name, claimed, value ?? status)];
    }),
  ];
}

interface DetectedImport {
  readonly sourceId: string;
  readonly isPlaced: boolean;
  /** The results for the file of the import. Imports of the same file share one list. */
  readonly results: readonly SuppliedDetection[];
}

/**
 * Selects the detected imports that get facts, up to the limit of a report. The first import of each
 * detection result is always selected. Placed imports follow, then the others.
 */
function selectForFacts(detected: readonly DetectedImport[]): ReadonlySet<DetectedImport> {
  const ranked = [
    ...detected.filter(({ isPlaced }) => isPlaced),
    ...detected.filter(({ isPlaced }) => !isPlaced),
  ];
  const seen = new Set<SuppliedDetection>();
  const seenLists = new Set<readonly SuppliedDetection[]>();
  const first = ranked.filter(({ results }) => {
    // A file may have been imported thousands of times, and have hundreds of results.
    if (seenLists.has(results)) return false;
    seenLists.add(results);
    const before = seen.size;
    for (const result of results) seen.add(result);
    return seen.size > before;
  });
  return new Set([...new Set([...first, ...ranked])].slice(0, REPORT_LIMITS.importedSources));
}

interface Detected {
  readonly importedSources: readonly ImportedSource[];
  readonly facts: readonly EvidenceFact[];
  /** The number of imports that are placed in the arrangement and attributed to a generator. */
  readonly attributedImports: number;
}

function matchDetections(session: Replayed['session'], detections: readonly SuppliedDetection[]): Detected {
  const resultsOf = resultsByFile(detections);
  // The same file may have been imported more than once.
  const detected: readonly DetectedImport[] = session.imports.flatMap(
    ({ sourceId, isPlaced, samplesSha256, originalSha256 }) => {
      const results = resultsOf(samplesSha256, originalSha256);
      return results.length === 0 ? [] : [{ sourceId, isPlaced, results }];
    },
  );
  const bySource = new Map(detected.map(({ sourceId, results }) => [sourceId, results]));
  const selected = selectForFacts(detected);
  const lists = new Set(detected.map(({ results }) => results));
  const matched = new Set([...lists].flat());
  const attributed = new Set(
    [...lists].filter((results) => results.some(({ generator }) => generator !== undefined)),
  );
  const unmatched = new Set(
    detections.filter((detection) => !matched.has(detection)).map(({ sha256 }) => sha256),
  );
  return {
    importedSources: session.importedSources.map((source) => {
      const results = bySource.get(source.sourceId);
      return results === undefined ? source : { ...source, detections: results.map(detectionOf) };
    }),
    facts: [
      ...detected
        .filter((one) => selected.has(one))
        .flatMap(({ sourceId, results }) => results.flatMap((result) => detectionFacts(sourceId, result))),
      ...(unmatched.size === 0
        ? []
        : [gap('detection_without_import', 'unverifiable', { detections: unmatched.size })]),
    ],
    attributedImports: detected.filter(({ isPlaced, results }) => isPlaced && attributed.has(results)).length,
  };
}

/**
 * Returns a function that finds the results for a file by the digests of its samples and of the file, in the order of
 * `detections`. For the same two digests it returns the same list. There may be 16,384 imports and 256 results, so they
 * are not compared one by one.
 */
function resultsByFile(
  detections: readonly SuppliedDetection[],
): (samples: string | undefined, original: string | undefined) => readonly SuppliedDetection[] {
  const detectedFiles = new Set(detections.map(({ sha256 }) => sha256));
  const lists = new Map<string, readonly SuppliedDetection[]>();
  return (samples, original) => {
    const files = [samples, original].filter((file) => file !== undefined && detectedFiles.has(file));
    if (files.length === 0) return [];
    const key = files.join();
    const list = lists.get(key) ?? detections.filter(({ sha256 }) => files.includes(sha256));
    lists.set(key, list);
    return list;
  };
}

function detectionOf({
  detector,
  detectorVersion,
  likelihood,
  generator,
}: SuppliedDetection): SourceDetection {
  return defined({
    detector,
    detectorVersion,
    likelihood: likelihood === undefined ? undefined : { value: likelihood, unit: 'ratio' as const },
    generator,
  });
}

/**
 * Returns the facts of a detector's result. They are inferences: a program outside this service concluded them
 * from the audio by its own rules, and nothing in the session was observed.
 */
function detectionFacts(
  sourceId: string,
  { detector, detectorVersion, likelihood, generator }: SuppliedDetection,
): readonly EvidenceFact[] {
  const by = { detector, detectorVersion };
  const reported = (code: string, values: Values): EvidenceFact =>
    fact(code, 'rule_inference', 'reported', { sourceId, ...values, ...by });
  return [
    ...(likelihood === undefined ? [] : [reported('imported_audio_ai_likelihood', { ratio: likelihood })]),
    ...(generator === undefined ? [] : [reported('AiLikelySource', { generator })]),
  ];
}

function findings({ findings: found }: Replayed, standing: DeviceStanding): readonly EvidenceFact[] {
  return [
    ...found.map(({ code, values }) =>
      gap(code, ORDINARY_FINDINGS.includes(code) ? 'unverifiable' : 'needs_review', values),
    ),
    ...(standing === 'enrolled' ? [] : [gap(`trace_device_${standing}`, 'needs_review')]),
  ];
}

/**
 * Returns the findings about the times of a trace and about its earlier use. The device's own clock wrote its start, so it is compared
 * with the clock of the service. A device may well record before the operator enrols it.
 */
function timeFindings(
  { header: { startedAt }, session }: Replayed,
  { now, enrolledAt, isUsedBefore }: SettlingContext,
): readonly EvidenceFact[] {
  const ahead = now === undefined ? 0 : Math.ceil(startedAt - now);
  const missing = now === undefined ? 0 : Math.ceil(startedAt + session.durationSeconds - now);
  return [
    ...(ahead > CLOCK_TOLERANCE
      ? [gap('trace_starts_in_future', 'needs_review', { seconds: ahead })]
      : missing > CLOCK_TOLERANCE
        ? [gap('trace_longer_than_elapsed', 'needs_review', { seconds: missing })]
        : []),
    ...(enrolledAt !== undefined && startedAt < enrolledAt
      ? [gap('session_before_enrolment', 'unverifiable', { seconds: enrolledAt - startedAt })]
      : []),
    ...(isUsedBefore === true ? [gap('session_evidence_used_before', 'unverifiable')] : []),
  ];
}

function exportGaps(
  { export: reported, coverage, counters }: SessionEvidence,
  exported: ReplayedExport | undefined,
  hasPlugins: boolean,
): readonly EvidenceFact[] {
  if (reported === undefined || exported === undefined) {
    // An agent that cannot see exports has none to report. An agent that can see exports would have reported
    // one.
    const isSeen =
      coverage.export.support === 'supported' && counters.exportsFinished.status === 'not_observed';
    return [gap('trace_export_missing', isSeen ? 'needs_review' : 'unverifiable')];
  }
  return [
    ...(reported.issuedAudio === 'differs' ? [gap('trace_export_differs', 'needs_review')] : []),
    ...(exported.rerender === 'differed'
      ? [
          gap(
            'export_rerender_differs',
            hasPlugins || isMostlyEqual(exported) ? 'unverifiable' : 'needs_review',
            exported.windows,
          ),
        ]
      : []),
    ...(exported.isTied ? [] : [gap('export_not_tied_to_session', 'unverifiable')]),
  ];
}

/**
 * Reports whether most of a render is equal to the export. Honest renders differ in part: a workstation may fade in, and
 * plug-ins carry state into a render and make sound by chance.
 */
function isMostlyEqual({ windows }: ReplayedExport): boolean {
  return windows !== undefined && windows.equal * 2 > windows.compared;
}

function sourceGaps({ sources, takes, found, plugins }: Replayed['session']): readonly EvidenceFact[] {
  const { claimRecording, appeared, foundAtStart, derivedOfUnknown, rewritten } = sources;
  return [
    ...(found === undefined ? [] : [gap('session_begun_before_agent', 'unverifiable', { ...found })]),
    ...(claimRecording > 0
      ? [gap('recording_claim_not_witnessed', 'needs_review', { sources: claimRecording })]
      : []),
    ...(appeared > 0
      ? [
          gap('sources_of_unknown_origin', 'unverifiable', {
            sources: appeared,
            ...(foundAtStart > 0 ? { foundAtStart } : {}),
          }),
        ]
      : []),
    ...(derivedOfUnknown > 0
      ? [gap('derived_material_of_unknown_origin', 'unverifiable', { sources: derivedOfUnknown })]
      : []),
    ...(rewritten > 0 ? [gap('sources_rewritten_out_of_sight', 'unverifiable', { sources: rewritten })] : []),
    ...(takes.unproven > 0
      ? [gap('takes_without_real_time_evidence', 'unverifiable', { takes: takes.unproven })]
      : []),
    ...(takes.unfinished > 0 ? [gap('takes_not_finished', 'unverifiable', { takes: takes.unfinished })] : []),
    ...(plugins.sounding > 0
      ? [gap('plugins_may_add_sound', 'unverifiable', { plugins: plugins.sounding })]
      : []),
  ];
}

function coverageGaps({ header, session }: Replayed): readonly EvidenceFact[] {
  return CHANNELS.flatMap((channel) => {
    const support = header.channels[channel];
    const gaps = session.coverage[channel].gapCount ?? 0;
    const missed = { channel, gaps, seconds: session.missedSeconds[channel] };
    return [
      ...(support === 'supported' ? [] : [gap(`channel_${support}`, 'unverifiable', { channel })]),
      ...(gaps > 0 ? [gap('channel_gaps', 'unverifiable', missed)] : []),
    ];
  });
}

function gap(code: string, status: FactStatus, values?: Values): EvidenceFact {
  return fact(code, 'unverifiable_coverage_gap', status, values);
}

function fact(
  code: string,
  contentClass: ContentClass,
  status: FactStatus,
  values: Values | undefined,
): EvidenceFact {
  return values === undefined ? { code, contentClass, status } : { code, contentClass, status, values };
}
