import type { DeclarationEnvelope } from '../../src/witness/domain/declaration.js';
import type {
  ContentClass,
  EvidenceFact,
  EvidenceReport,
  FactStatus,
} from '../../src/witness/domain/evidence-report.js';
import {
  COUNTERS,
  type Counter,
  type CounterName,
  type ImportedSource,
  REPORT_LIMITS,
  type SessionEvidence,
  type SourceDetail,
  type SourcePlacement,
} from '../../src/witness/domain/session-evidence.js';
import { CHANNELS, type Channel, type ChannelSupport } from '../../src/witness/domain/trace.js';

const DIGEST = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
/** The value of every counter that observed something. No other number on a page equals it. */
export const OBSERVED = 7321;

/** Returns a session of 92 minutes. A channel is supported by default. */
export function sessionEvidence(
  support: Partial<Record<Channel, ChannelSupport>> = {},
  counts: Partial<Record<CounterName, number>> = {},
  over: Partial<SessionEvidence> = {},
): SessionEvidence {
  const counters = Object.fromEntries(
    Object.entries(COUNTERS).map(([name, channel]): [string, Counter] => {
      const word = support[channel] ?? 'supported';
      if (word === 'unsupported' || word === 'unknown') return [name, { status: word }];
      const value = counts[name as CounterName] ?? OBSERVED;
      return [name, value === 0 ? { status: 'not_observed', value } : { status: 'observed', value }];
    }),
  ) as Record<CounterName, Counter>;
  const coverage = Object.fromEntries(
    CHANNELS.map((channel) => {
      const word = support[channel] ?? 'supported';
      const watched = word === 'supported' || word === 'partial';
      const gaps =
        word === 'partial' ? [{ fromSeconds: 1500, toSeconds: 2100, reason: 'agent_stopped' }] : [];
      return [
        channel,
        {
          support: word,
          exact: watched ? 412 : 0,
          interval: word === 'partial' ? 31 : 0,
          gaps,
          gapCount: gaps.length,
        },
      ];
    }),
  ) as unknown as SessionEvidence['coverage'];
  return {
    traceSha256: DIGEST,
    traceBytes: 1_482_113,
    traceVersion: 1,
    simulated: false,
    adapter: { name: 'ardour', version: '1.0.0', dawVersion: '7.3' },
    device: { deviceId: DIGEST.toUpperCase().toLowerCase(), standing: 'enrolled' },
    startedAt: 1_790_000_000,
    durationSeconds: 5520,
    sealed: true,
    events: 48_211,
    counters,
    coverage,
    recordings: Array.from({ length: 9 }, (_, at) => ({
      durationSeconds: 214 - at * 17,
      realTime: at % 4 === 3 ? ('unknown' as const) : ('observed' as const),
      input: at % 4 === 3 ? ('unknown' as const) : ('hardware' as const),
      growthSteps: 240 - at * 20,
      placementCount: 1 + (at % 3),
    })),
    activity: {
      bucketSeconds: 60,
      buckets: Array.from({ length: 92 }, (_, at) => ({
        atSeconds: at * 60,
        edits: at > 25 && at < 35 ? 0 : Math.round(18 + 16 * Math.sin(at / 5) + (at % 7)),
        recordings: at > 8 && at < 24 && at % 2 === 0 ? 6 : 0,
        imports: at === 3 || at === 40 ? 4 : 0,
      })),
    },
    export: { fileSha256: DIGEST, issuedAudio: 'matches', durationSeconds: 228, rerender: 'matched' },
    ...over,
  };
}

export function factOf(
  code: string,
  contentClass: ContentClass,
  status: FactStatus,
  values?: EvidenceFact['values'],
): EvidenceFact {
  return { code, contentClass, status, ...(values === undefined ? {} : { values }) };
}

function declaration(submissionId: string, answers: Readonly<Record<string, unknown>>): DeclarationEnvelope {
  return {
    surveyVersion: '2026-11',
    submissionId,
    subject: 'creator_1',
    submittedAt: 1_790_010_000,
    answers,
    recordedAt: 1_790_010_060,
    bindingStatus: 'authenticated_post_issuance_record',
  };
}

/** Returns the facts of the report on declarations. */
function declared(declarations: readonly DeclarationEnvelope[]): readonly EvidenceFact[] {
  return declarations.flatMap(({ submissionId, answers }) =>
    Object.entries(answers).map(
      ([dimension, answer]) =>
        ({
          ...factOf('creator_declaration', 'creator_declaration', 'declared'),
          dimension,
          answer: [answer].flat().join(','),
          submissionId,
        }) as EvidenceFact,
    ),
  );
}

/** Returns the arrangement of a song: drums, bass, guitars, keys, voices. */
export function sourceDetail(imported: boolean): SourceDetail {
  const plan: readonly (readonly [
    string,
    SourcePlacement['origin'],
    readonly (readonly [number, number])[],
  ])[] = [
    [
      't1',
      'recorded',
      [
        [0, 96],
        [100, 196],
        [204, 224],
      ],
    ],
    [
      't2',
      'recorded',
      [
        [8, 92],
        [100, 198],
      ],
    ],
    [
      't3',
      imported ? 'imported' : 'recorded',
      [
        [0, 60],
        [62, 118],
        [120, 226],
      ],
    ],
    [
      't4',
      'midi',
      [
        [16, 46],
        [64, 92],
        [128, 160],
        [160, 204],
      ],
    ],
    [
      't5',
      'derived',
      [
        [48, 62],
        [110, 126],
      ],
    ],
    [
      't6',
      'recorded',
      [
        [18, 40],
        [52, 70],
        [84, 118],
        [136, 170],
        [180, 214],
      ],
    ],
    ['t7', 'unknown', [[150, 176]]],
  ];
  let id = 0;
  const placements = plan.flatMap(([trackId, origin, spans]) =>
    spans.map(([start, end]): SourcePlacement => {
      id += 1;
      return {
        placementId: `p${id}`,
        trackId,
        ...(origin === 'imported' ? { sourceId: 's1' } : {}),
        origin,
        beats: { start: start * 2, end: end * 2 },
        approximateSeconds: { start, end },
        state: id === 9 ? 'removed' : 'present',
        edits: id * 3,
      };
    }),
  );
  return {
    version: 2,
    consentVersion: 'consent-2026-10',
    observedAtSeconds: 5490,
    tracks: [
      ...plan.map(([trackId, origin]) => ({
        trackId,
        type: origin === 'midi' ? ('midi' as const) : ('audio' as const),
        state: 'present' as const,
      })),
      { trackId: 't8', type: 'bus', state: 'present' },
    ],
    trackCount: 8,
    placements,
    placementCount: placements.length,
  };
}

export function importedSource(at: number, spans: number, detected: boolean): ImportedSource {
  return {
    sourceId: `s${at}`,
    manner: at % 3 === 0 ? 'referenced' : 'copied',
    samplesSha256: DIGEST,
    originalSha256: DIGEST,
    durationSeconds: 116,
    placements: {
      count: spans,
      approximateSeconds: 58 * spans,
      spans: Array.from({ length: Math.min(spans, REPORT_LIMITS.spans) }, (_, span) => ({
        startSeconds: span * 64,
        endSeconds: span * 64 + 58,
      })),
    },
    ...(detected
      ? {
          detections: [
            {
              detector: 'ear-one',
              detectorVersion: '4.2',
              likelihood: { value: 0.93, unit: 'ratio' as const },
              generator: 'example-generator',
            },
          ],
        }
      : {}),
  };
}

export function cleanReport(): EvidenceReport {
  const declarations = [
    declaration('sub_4711', {
      declaredOrigin: 'from_scratch',
      aiShareBand: 'none',
      manualWork: 'entire',
      contributionBand: 'all_self_made',
      disputedAssessment: 'not_disputed',
      aiRoles: ['none'],
    }),
  ];
  return {
    version: 1,
    facts: [factOf('session_evidence_replayed', 'direct_observation', 'observed'), ...declared(declarations)],
    conflicts: [],
    unverifiable: [],
    declarations,
    engine: { facts: 1, overlay: 1, revision: 2 },
    session: { evidence: sessionEvidence({}, { importsAdded: 0, importPlacements: 0, sourcesAppeared: 0 }) },
    importedSources: [],
    importedSourceCount: 0,
    sourceDetail: sourceDetail(false),
  };
}

export function adverseReport(): EvidenceReport {
  const declarations = [
    declaration('sub_4711', {
      declaredOrigin: 'from_scratch',
      aiShareBand: 'none',
      manualWork: 'entire',
      contributionBand: 'all_self_made',
    }),
    declaration('sub_4712', {
      declaredOrigin: 'third_party_material',
      disputedAssessment: 'disputed',
      aiRoles: ['vocals', 'lyrics'],
    }),
  ];
  return {
    version: 1,
    facts: [
      factOf('session_summary_reconciled', 'direct_observation', 'needs_review', {
        counter: 'takesRecorded',
        summary: 12,
        replay: 3,
      }),
      factOf('imported_audio_ai_likelihood', 'rule_inference', 'reported', {
        sourceId: 's1',
        ratio: 0.93,
      }),
      factOf('AiLikelySource', 'rule_inference', 'reported', {
        sourceId: 's1',
        generator: 'example-generator',
      }),
      factOf('imports_cover_most_of_export', 'rule_inference', 'inferred', {
        importedSeconds: 222,
        exportSeconds: 228,
      }),
      ...declared(declarations),
    ],
    conflicts: [
      factOf('observed_import_vs_creator_origin_declaration', 'explicit_conflict', 'needs_review', {
        imports: 2,
        importPlacements: 5,
        answer: 'from_scratch',
      }),
      factOf('a_code_of_tomorrow', 'explicit_conflict', 'needs_review'),
    ],
    unverifiable: [
      factOf('trace_truncated', 'unverifiable_coverage_gap', 'needs_review'),
      factOf('channel_unsupported', 'unverifiable_coverage_gap', 'unverifiable', { channel: 'mixer' }),
    ],
    declarations,
    engine: { facts: 1, overlay: 1, revision: 5 },
    session: {
      evidence: sessionEvidence(
        {
          mixer: 'unsupported',
          automation: 'unknown',
          clips: 'partial',
          transport: 'unsupported',
          midi: 'partial',
        },
        {
          takesRecorded: 3,
          takesRecordedInRealTime: 0,
          midiNotesEntered: 0,
          midiNotesRecorded: 0,
          importsAdded: 2,
          importPlacements: 5,
        },
        { sealed: false, device: { deviceId: DIGEST, standing: 'revoked' } },
      ),
    },
    importedSources: [importedSource(1, 3, true), importedSource(2, 2, false)],
    importedSourceCount: 2,
    sourceDetail: sourceDetail(true),
  };
}

/** Returns the report of a proof with declarations alone. */
export function emptyReport(): EvidenceReport {
  return {
    version: 1,
    facts: [factOf('creator_declaration', 'creator_declaration', 'none_recorded')],
    conflicts: [],
    unverifiable: [factOf('session_evidence_unavailable', 'unverifiable_coverage_gap', 'unverifiable')],
    declarations: [],
  };
}

/** Returns a report with every list at its limit. */
export function hugeReport(): EvidenceReport {
  const word = 'x'.repeat(128);
  const many = <T>(count: number, make: (at: number) => T): readonly T[] =>
    Array.from({ length: count }, (_, at) => make(at));
  const session = sessionEvidence();
  const gaps = many(REPORT_LIMITS.gaps, (at) => ({
    fromSeconds: at * 300,
    toSeconds: at * 300 + 120,
    reason: 'unreadable',
  }));
  return {
    version: 1,
    facts: many(2000, (at) =>
      factOf(
        `code_${at}_${word}`,
        'direct_observation',
        'observed',
        Object.fromEntries(many(64, (member) => [`member${member}`, word])),
      ),
    ),
    conflicts: many(2000, (at) => factOf(`conflict_${at}_${word}`, 'explicit_conflict', 'needs_review')),
    unverifiable: many(2000, (at) =>
      factOf(`gap_${at}_${word}`, 'unverifiable_coverage_gap', 'unverifiable'),
    ),
    declarations: many(32, (at) =>
      declaration(`sub_${at}_${word}`, {
        declaredOrigin: word,
        aiShareBand: word,
        manualWork: word,
        contributionBand: word,
        disputedAssessment: word,
        aiRoles: many(64, () => word),
      }),
    ),
    session: {
      evidence: {
        ...session,
        coverage: Object.fromEntries(
          CHANNELS.map((channel) => [channel, { ...session.coverage[channel], gaps, gapCount: 100_000 }]),
        ) as SessionEvidence['coverage'],
        recordings: many(REPORT_LIMITS.recordings, () => session.recordings[0]!),
        activity: {
          bucketSeconds: 60,
          buckets: many(REPORT_LIMITS.activityBuckets, (at) => ({
            atSeconds: at * 23,
            edits: 9_999_999,
            recordings: at,
            imports: 1,
          })),
        },
      },
    },
    importedSources: many(REPORT_LIMITS.importedSources, (at) =>
      importedSource(at + 1, REPORT_LIMITS.spans, true),
    ),
    importedSourceCount: 1_000_000,
    sourceDetail: {
      version: 2,
      consentVersion: word,
      tracks: many(REPORT_LIMITS.detailTracks, (at) => ({
        trackId: `t${at}`,
        type: 'audio',
        state: 'present',
      })),
      trackCount: 4096,
      placements: many(REPORT_LIMITS.detailPlacements, (at) => ({
        placementId: `p${at}`,
        trackId: `t${at % REPORT_LIMITS.detailTracks}`,
        sourceId: `s${at % 256}`,
        origin: (['recorded', 'imported', 'midi', 'derived', 'unknown'] as const)[at % 5]!,
        beats: { start: at, end: at + 4 },
        approximateSeconds: { start: at / 2, end: at / 2 + 2 },
        state: at % 11 === 0 ? 'removed' : 'present',
        edits: 1000,
      })),
      placementCount: 65_536,
    },
  };
}

/** Returns the report with an attack on its viewer in each string. */
export function hostileReport(report: EvidenceReport, attack: string): EvidenceReport {
  const replace = (value: unknown): unknown => {
    if (typeof value === 'string') return `${attack}${value}`;
    if (Array.isArray(value)) return value.map(replace);
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, replace(member)]));
    return value;
  };
  return replace(report) as EvidenceReport;
}
