/**
 * Session evidence: what a replay of a signed capture trace tells (rule 9.19). A pure result of the trace's bytes
 * and of the standing of its device, with a bound on every list.
 */
import type { Channel, ChannelSupport, DeviceStanding } from './trace.js';

/**
 * Status of an activity counter. `observed`: at least one, and `value` counts them. `not_observed`: the channel was
 * watched throughout, and there was none; `value` is 0. `unsupported`: the adapter does not look. `unknown`: the
 * adapter cannot tell, or looked with gaps and saw none. The last two have no `value`: they are no zero.
 */
export const COUNTER_STATUSES = ['observed', 'not_observed', 'unsupported', 'unknown'] as const;
export type CounterStatus = (typeof COUNTER_STATUSES)[number];

/** Activity counters, each with the channel whose support bounds it. */
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
  /** Takes that were finished, without those from an input inside the workstation: these are no recordings. */
  takesRecorded: 'recording',
  /** Takes whose growth was seen at their true rate, from an input that was witnessed to be hardware. */
  takesRecordedInRealTime: 'recording',
  automationEdits: 'automation',
  pluginsAdded: 'plugins',
  pluginChanges: 'plugins',
  mixerChanges: 'mixer',
  importsAdded: 'imports',
  /** Acts that put an imported file into the arrangement: a clip that was created of it, or copied. */
  importPlacements: 'imports',
  sourcesDerived: 'sourceMap',
  /** Sources that were there without anybody having witnessed how they came to be. */
  sourcesAppeared: 'sourceMap',
  exportsFinished: 'export',
} as const satisfies Readonly<Record<string, Channel>>;
export type CounterName = keyof typeof COUNTERS;

/** Names of counters for a person. */
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
  clipsChanged: 'Clips changed otherwise',
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
  importPlacements: 'Placements of imports',
  sourcesDerived: 'Sources made of others',
  sourcesAppeared: 'Sources of unwitnessed origin',
  exportsFinished: 'Exports',
};

export interface Counter {
  readonly status: CounterStatus;
  readonly value?: number;
}

/** Time span of the session in which a channel was not watched. */
export interface CoverageGap {
  readonly fromSeconds: number;
  readonly toSeconds: number;
  readonly reason: string;
}

/** Coverage of a channel. One that nobody looks at has no numbers: they would be zeros. */
export interface ChannelCoverage {
  readonly support: ChannelSupport;
  /** Acts of the channel that were witnessed when they happened, and those that lie between two states. */
  readonly exact?: number;
  readonly interval?: number;
  /** The first 16 gaps, and the count of all. */
  readonly gaps: readonly CoverageGap[];
  readonly gapCount?: number;
}

export const REAL_TIME_STATUSES = ['observed', 'unknown'] as const;
export const TAKE_INPUTS = ['hardware', 'internal', 'none', 'unknown', 'mixed'] as const;
export const EXPORT_MATCHES = ['matches', 'differs'] as const;
export const PLACEMENT_ORIGINS = ['recorded', 'imported', 'midi', 'derived', 'unknown'] as const;
export const PLACEMENT_STATES = ['present', 'removed'] as const;

/** A take, as far as its recording was witnessed. */
export interface RecordingEvidence {
  readonly durationSeconds: number;
  /** `observed` where the take was seen to grow at its true rate from a hardware input; else `unknown`. */
  readonly realTime: (typeof REAL_TIME_STATUSES)[number];
  readonly input: (typeof TAKE_INPUTS)[number];
  /** Steps of growth that were seen. */
  readonly growthSteps: number;
  /** Clips that show it at the last observation; absent where clips are not seen. */
  readonly placementCount?: number;
}

/**
 * Acts of a minute or more of the session, by class, for a view over time. A class has no
 * number where no act of it was seen and one of its channels is not looked at.
 */
export interface ActivityBucket {
  readonly atSeconds: number;
  readonly edits?: number;
  readonly recordings?: number;
  readonly imports?: number;
}

/** Bounds of lists in a report; each list has the count of all beside it. */
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
  /** SHA-256 of the whole trace, lower-case hex: `evidenceSha256` of the signed statement. */
  readonly traceSha256: string;
  readonly traceBytes: number;
  readonly traceVersion: number;
  /** True for a generated trace; such a trace witnesses nothing. */
  readonly simulated: boolean;
  readonly adapter: { readonly name: string; readonly version: string; readonly dawVersion?: string };
  readonly device: { readonly deviceId: string; readonly standing: DeviceStanding };
  /** Unix seconds by the device's clock. */
  readonly startedAt: number;
  /** Length of the signed session: up to the last event that a valid signature covers. */
  readonly durationSeconds: number;
  /** True where the trace ends with the device's final signature. */
  readonly sealed: boolean;
  /** Events that a valid signature covers; what follows it is no evidence and is not counted. */
  readonly events: number;
  readonly counters: Readonly<Record<CounterName, Counter>>;
  readonly coverage: Readonly<Record<Channel, ChannelCoverage>>;
  /**
   * Takes, longest first, at most `REPORT_LIMITS.recordings`, those from an input inside the workstation among them;
   * `counters.takesRecorded` counts the others.
   */
  readonly recordings: readonly RecordingEvidence[];
  /** Stretches in which something was seen, in the order of time. */
  readonly activity: { readonly bucketSeconds: number; readonly buckets: readonly ActivityBucket[] };
  /** Last export, and whether it is the audio that was issued. */
  readonly export?: {
    readonly fileSha256: string;
    readonly issuedAudio: (typeof EXPORT_MATCHES)[number];
    readonly durationSeconds?: number;
    readonly rerender: 'matched' | 'differed' | 'not_tried';
  };
}

/**
 * Detection result about an imported source, supplied by the issuing side. The report has it as facts, too:
 * `imported_audio_ai_likelihood` and `AiLikelySource`.
 */
export interface SourceDetection {
  /** Slug of the detector, and its version. */
  readonly detector: string;
  readonly detectorVersion: string;
  /** Probability from 0 to 1 that the file was generated; never a share of the timeline. */
  readonly likelihood?: { readonly value: number; readonly unit: 'ratio' };
  /** Slug of the generator that the file is attributed to. */
  readonly generator?: string;
}

/** An imported source and where it sits in the arrangement (rule 9.19). */
export interface ImportedSource {
  /** Local to the report: `s1`, `s2`, ... in the order of import. */
  readonly sourceId: string;
  readonly manner: 'copied' | 'referenced' | 'midi' | 'unknown';
  /** SHA-256 of the samples as the session held them; of the whole original file, where it was found. */
  readonly samplesSha256?: string;
  readonly originalSha256?: string;
  readonly durationSeconds?: number;
  /**
   * Placements at the last observation, of the file and of what was made of it; overlapping spans are merged. Absent
   * where clips are not seen.
   */
  readonly placements?: {
    readonly count: number;
    readonly approximateSeconds: number;
    readonly spans: readonly { readonly startSeconds: number; readonly endSeconds: number }[];
  };
  readonly detections?: readonly SourceDetection[];
}

/** Source detail, version 2: structure of the arrangement, for partners who are approved and creators who consent. */
export interface SourceDetail {
  readonly version: 2;
  /** Version of the consent under which the detail is delivered. */
  readonly consentVersion: string;
  /** Seconds of the signed session at the latest completed source-map observation. */
  readonly observedAtSeconds?: number;
  readonly tracks: readonly {
    readonly trackId: string;
    readonly type: 'audio' | 'midi' | 'bus' | 'other';
    readonly state: (typeof PLACEMENT_STATES)[number];
  }[];
  /** Count of all tracks, and of all placements; absent where none was seen and nobody looks at them. */
  readonly trackCount?: number;
  readonly placements: readonly SourcePlacement[];
  readonly placementCount?: number;
}

export interface SourcePlacement {
  readonly placementId: string;
  readonly trackId: string;
  /** Local id of an imported source, where the placement shows one. */
  readonly sourceId?: string;
  readonly origin: (typeof PLACEMENT_ORIGINS)[number];
  /**
   * One of the two is the workstation's, the other is estimated with the tempo as it was last observed, and absent where
   * none was.
   */
  readonly beats?: { readonly start: number; readonly end: number };
  readonly approximateSeconds?: { readonly start: number; readonly end: number };
  /** Last observed state. */
  readonly state: (typeof PLACEMENT_STATES)[number];
  /** Edits of the placement, at most 1000. */
  readonly edits: number;
}
