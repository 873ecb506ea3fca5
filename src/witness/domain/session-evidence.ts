/**
 * Session evidence: the result of replaying a signed capture trace (rule 9.19). It depends only on the bytes
 * of the trace and the standing of its device. Every list has a bound.
 */
import type { Channel, ChannelSupport, DeviceStanding } from './trace.js';

/**
 * The status of an activity counter. `observed`: there was at least one action, and `value` is the count.
 * `not_observed`: the channel was watched throughout without any action, and `value` is 0. `unsupported`: the
 * adapter does not watch the channel. `unknown`: the adapter does not know, or watched with gaps and saw no
 * action. The last two have no `value`, because they do not mean zero.
 */
export const COUNTER_STATUSES = ['observed', 'not_observed', 'unsupported', 'unknown'] as const;
export type CounterStatus = (typeof COUNTER_STATUSES)[number];

/** The activity counters, each with the channel whose support limits it. */
export const COUNTERS = {
  saves: 'session',
  undoneSteps: 'session',
  playbacks: 'transport',
  tempoChanges: 'tempo',
  tracksAdded: 'tracks',
  tracksRemoved: 'tracks',
  clipsCreated: 'clips',
  clipsMoved: 'clips',
  clipsTrimmed: 'clips',
  clipsSplit: 'clips',
  clipsCopied: 'clips',
  clipsDeleted: 'clips',
  clipsChanged: 'clips',
  midiNotesEntered: 'midi',
  midiNotesRecorded: 'midi',
  midiNotesEdited: 'midi',
  /**
   * Finished takes. Takes from an input inside the workstation are excluded, because they are not recordings.
   */
  takesRecorded: 'recording',
  /** Takes that were observed to grow in real time from a hardware input. */
  takesRecordedInRealTime: 'recording',
  automationEdits: 'automation',
  pluginsAdded: 'plugins',
  pluginChanges: 'plugins',
  mixerChanges: 'mixer',
  importsAdded: 'imports',
  /** Actions that put an imported file into the arrangement: a clip of the file was created or copied. */
  importPlacements: 'imports',
  sourcesDerived: 'sourceMap',
  /** Sources whose origin was not observed. */
  sourcesAppeared: 'sourceMap',
  exportsFinished: 'export',
} as const satisfies Readonly<Record<string, Channel>>;
export type CounterName = keyof typeof COUNTERS;

/** The names of counters for a person. */
export const COUNTER_WORDS: Readonly<Record<CounterName, string>> = {
  saves: 'Saves',
  undoneSteps: 'Undone steps',
  playbacks: 'Playbacks',
  tempoChanges: 'Tempo changes',
  tracksAdded: 'Tracks added',
  tracksRemoved: 'Tracks removed',
  clipsCreated: 'Clips created',
  clipsMoved: 'Clips moved',
  clipsTrimmed: 'Clips trimmed',
  clipsSplit: 'Clips split',
  clipsCopied: 'Clips copied',
  clipsDeleted: 'Clips deleted',
  clipsChanged: 'Clips changed in other ways',
  midiNotesEntered: 'MIDI notes entered by hand',
  midiNotesRecorded: 'MIDI notes played in',
  midiNotesEdited: 'MIDI notes edited',
  takesRecorded: 'Takes recorded',
  takesRecordedInRealTime: 'Takes seen to grow in real time',
  automationEdits: 'Automation edits',
  pluginsAdded: 'Plug-ins added',
  pluginChanges: 'Plug-in changes',
  mixerChanges: 'Mixer changes',
  importsAdded: 'Files imported',
  importPlacements: 'Clips made from imports',
  sourcesDerived: 'Sources derived from other sources',
  sourcesAppeared: 'Sources of unobserved origin',
  exportsFinished: 'Exports',
};

export interface Counter {
  readonly status: CounterStatus;
  readonly value?: number;
}

/** A time span of the session in which a channel was not watched. */
export interface CoverageGap {
  readonly fromSeconds: number;
  readonly toSeconds: number;
  readonly reason: string;
}

/**
 * The coverage of a channel. A channel that was not watched has no numbers, because they would read as zeros.
 */
export interface ChannelCoverage {
  readonly support: ChannelSupport;
  /** Actions that were observed as they happened (`exact`), or inferred from two states (`interval`). */
  readonly exact?: number;
  readonly interval?: number;
  /** The first 16 gaps. `gapCount` counts all of them. */
  readonly gaps: readonly CoverageGap[];
  readonly gapCount?: number;
}

export const REAL_TIME_STATUSES = ['observed', 'unknown'] as const;
export const TAKE_INPUTS = ['hardware', 'internal', 'none', 'unknown', 'mixed'] as const;
export const EXPORT_MATCHES = ['matches', 'differs'] as const;
export const PLACEMENT_ORIGINS = ['recorded', 'imported', 'midi', 'derived', 'unknown'] as const;
export const PLACEMENT_STATES = ['present', 'removed'] as const;

/** A take, as far as its recording was observed. */
export interface RecordingEvidence {
  readonly durationSeconds: number;
  /** The value is `observed` if the take was seen to grow in real time from a hardware input, else `unknown`. */
  readonly realTime: (typeof REAL_TIME_STATUSES)[number];
  readonly input: (typeof TAKE_INPUTS)[number];
  /** The number of observed growth steps. */
  readonly growthSteps: number;
  /** The number of clips that use the take at the last observation. Absent if clips are not watched. */
  readonly placementCount?: number;
}

/**
 * The actions in a minute or more of the session, by class, for a view over time. A class has no number if no
 * action was seen and one of its channels is not watched.
 */
export interface ActivityBucket {
  readonly atSeconds: number;
  readonly edits?: number;
  readonly recordings?: number;
  readonly imports?: number;
}

/**
 * The bounds of lists in a report, in entries. A longer list is cut, and a count beside it has the full
 * length.
 */
export const REPORT_LIMITS = {
  gaps: 16,
  recordings: 256,
  importedSources: 256,
  spans: 32,
  activityBuckets: 240,
  detailTracks: 512,
  detailPlacements: 4096,
} as const;

export interface SessionEvidence {
  /** The SHA-256 of the whole trace in lower-case hex. It is `evidenceSha256` of the signed statement. */
  readonly traceSha256: string;
  readonly traceBytes: number;
  readonly traceVersion: number;
  /** True for a generated trace, which is not evidence of a real session. */
  readonly simulated: boolean;
  readonly adapter: { readonly name: string; readonly version: string; readonly dawVersion?: string };
  readonly device: { readonly deviceId: string; readonly standing: DeviceStanding };
  /** The start of the session in unix seconds, by the device's clock. */
  readonly startedAt: number;
  /** The length of the signed session in seconds, up to the last event that a valid signature covers. */
  readonly durationSeconds: number;
  /** True if the trace ends with the device's final signature. */
  readonly sealed: boolean;
  /**
   * The number of events that a valid signature covers. Later events are not evidence and are not counted.
   */
  readonly events: number;
  readonly counters: Readonly<Record<CounterName, Counter>>;
  readonly coverage: Readonly<Record<Channel, ChannelCoverage>>;
  /**
   * The takes, longest first, at most `REPORT_LIMITS.recordings`. They include takes from an input inside the
   * workstation, which `counters.takesRecorded` does not count.
   */
  readonly recordings: readonly RecordingEvidence[];
  /** The intervals with observed activity, in the order of time. */
  readonly activity: { readonly bucketSeconds: number; readonly buckets: readonly ActivityBucket[] };
  /** The export that is the issued audio, or else the last one. */
  readonly export?: {
    readonly fileSha256: string;
    readonly issuedAudio: (typeof EXPORT_MATCHES)[number];
    readonly durationSeconds?: number;
    readonly rerender: 'matched' | 'differed' | 'not_tried';
  };
}

/**
 * A detection result about an imported source, supplied by the issuing side. The report also has it as facts:
 * `imported_audio_ai_likelihood` and `AiLikelySource`.
 */
export interface SourceDetection {
  /** The slug of the detector, and its version. */
  readonly detector: string;
  readonly detectorVersion: string;
  /** The probability from 0 to 1 that the file was generated. It is never a share of the timeline. */
  readonly likelihood?: { readonly value: number; readonly unit: 'ratio' };
  /** The slug of the generator that the file is attributed to. */
  readonly generator?: string;
}

/** An imported source and where the arrangement uses it (rule 9.19). */
export interface ImportedSource {
  /** The id within the report: `s1`, `s2`, ... in the order of import. */
  readonly sourceId: string;
  readonly manner: 'copied' | 'referenced' | 'midi' | 'unknown';
  /** The SHA-256 of the samples as stored in the session, and of the whole original file if it was found. */
  readonly samplesSha256?: string;
  readonly originalSha256?: string;
  readonly durationSeconds?: number;
  /**
   * The placements at the last observation, of the file and of material derived from it. Overlapping spans
   * are merged. Absent if clips are not watched.
   */
  readonly placements?: {
    readonly count: number;
    readonly approximateSeconds: number;
    readonly spans: readonly { readonly startSeconds: number; readonly endSeconds: number }[];
  };
  readonly detections?: readonly SourceDetection[];
}

/**
 * The source detail, version 2: the structure of the arrangement, for approved partners and with the creator's
 * consent.
 */
export interface SourceDetail {
  readonly version: 2;
  /** The version of the consent that allows the delivery. */
  readonly consentVersion: string;
  /** The time of the last complete observation of the source map, in seconds from the start of the signed session. */
  readonly observedAtSeconds?: number;
  readonly tracks: readonly {
    readonly trackId: string;
    readonly type: 'audio' | 'midi' | 'bus' | 'other';
    readonly state: (typeof PLACEMENT_STATES)[number];
  }[];
  /**
   * The number of all tracks. Absent if no track was seen and tracks are not watched. Likewise
   * `placementCount`.
   */
  readonly trackCount?: number;
  readonly placements: readonly SourcePlacement[];
  readonly placementCount?: number;
}

export interface SourcePlacement {
  readonly placementId: string;
  readonly trackId: string;
  /** The id of an imported source within the report, if the placement uses one. */
  readonly sourceId?: string;
  readonly origin: (typeof PLACEMENT_ORIGINS)[number];
  /**
   * The workstation reports one of the two ranges. The other is estimated with the last observed tempo, and
   * is absent if no tempo was observed.
   */
  readonly beats?: { readonly start: number; readonly end: number };
  readonly approximateSeconds?: { readonly start: number; readonly end: number };
  /** The last observed state. */
  readonly state: (typeof PLACEMENT_STATES)[number];
  /** The number of edits of the placement. Counts above 1000 are 1000. */
  readonly edits: number;
}
