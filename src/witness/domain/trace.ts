/**
 * The vocabulary of a capture trace, version 1: what an agent beside a DAW can report as observed. A trace
 * has only numbers, closed words and digests: no names, no audio, no free text. Identifiers start again in
 * each trace. The layout of the file is in docs/capture-trace.md.
 */

/** The version of the vocabulary and of the file's layout. */
export const TRACE_VERSION = 1 as const;

/** The channels of a trace, in the order of reports. The header states the support of each channel. */
export const CHANNELS = [
  'session',
  'transport',
  'tempo',
  'tracks',
  'clips',
  'midi',
  'recording',
  'automation',
  'plugins',
  'mixer',
  'imports',
  'sourceMap',
  'export',
] as const;
export type Channel = (typeof CHANNELS)[number];

/** The names of channels for a person. */
export const CHANNEL_WORDS: Readonly<Record<Channel, string>> = {
  session: 'Session file',
  transport: 'Transport',
  tempo: 'Tempo and meter',
  tracks: 'Tracks',
  clips: 'Clips',
  midi: 'MIDI entry',
  recording: 'Audio recording',
  automation: 'Automation',
  plugins: 'Plug-ins',
  mixer: 'Mixer',
  imports: 'Imports',
  sourceMap: 'Origin of sources',
  export: 'Export',
};

/**
 * The support of a channel by an adapter. `supported`: the adapter sees every action. `partial`: the adapter
 * sees some actions, or only their last value. `unsupported`: the adapter does not watch the channel.
 * `unknown`: the adapter does not know whether it sees the actions.
 */
export const CHANNEL_SUPPORT = ['supported', 'partial', 'unsupported', 'unknown'] as const;
export type ChannelSupport = (typeof CHANNEL_SUPPORT)[number];

/**
 * The maximum values. A file that exceeds one of them is not a trace and is refused before anything is
 * registered.
 */
export const TRACE_LIMITS = {
  /** The largest trace, in bytes. */
  traceBytes: 134_217_728,
  /** The largest encoded header, in bytes. */
  headerBytes: 16_384,
  /** The largest body of a segment, in bytes. */
  segmentBytes: 65_536,
  /** The most signatures of a trace: one per second for 18 hours. */
  signatures: 65_536,
  /** The most segments of a trace. */
  segments: 131_072,
  /** The latest time of the session clock, in microseconds: 366 days. */
  time: 31_622_400_000_000,
  /**
   * The most tracks, clips and plug-ins that may exist at the same time, the most takes and sources over the
   * whole trace, and the most points of one tempo map.
   */
  live: { tracks: 4096, clips: 65_536, sources: 16_384, takes: 16_384, plugins: 16_384, tempoPoints: 16_384 },
  /** The latest place in the arrangement, in seconds or beats. */
  place: 10_000_000,
} as const;

/**
 * The type of a field. `id`, `count`: 0 to 2^32 - 1. `frames`: 0 to 2^53 - 1 sample frames. `rate`: 1 to
 * 6,144,000 Hz. `place`: seconds or beats from the arrangement's start, finite, 0 to `TRACE_LIMITS.place`.
 * The `base` of the event states the unit. `seconds`, `beats`: a place with a fixed unit. `tempo`: beats per
 * minute, above 0 and at most 10,000. `small`: 1 to 256. `sha256`: 32 bytes in the file, lower-case hex
 * elsewhere. `flag`: true or false. An array lists closed words, and the file stores the index of the word. A
 * field whose name ends in `?` may be null in the file. It is then absent.
 */
export type FieldType =
  | 'id'
  | 'count'
  | 'frames'
  | 'rate'
  | 'place'
  | 'seconds'
  | 'beats'
  | 'tempo'
  | 'small'
  | 'sha256'
  | 'flag'
  | readonly string[];

const BASE = ['seconds', 'beats'] as const;
const TRACK_KINDS = ['audio', 'midi', 'bus', 'other'] as const;
/** How a clip's source was made, as far as the adapter observed it. */
const DERIVATIONS = ['bounce', 'combine', 'stretch', 'copy', 'rendered', 'other', 'unknown'] as const;
/** What the input of a recording was connected to during the recording. */
const INPUTS = ['hardware', 'internal', 'none', 'unknown'] as const;
const CLIP_PROPERTIES = ['gain', 'mute', 'fade', 'name', 'stretch', 'pitch', 'layer', 'other'] as const;
const CONTROLS = ['gain', 'pan', 'mute', 'solo', 'send', 'arm', 'other'] as const;

/**
 * Every kind of event: its number in the file, its channel and its fields in the order of the file. In the
 * file an event is the array `[number, at, since, ...fields]`. `at` is the time in microseconds of the
 * session clock. `since` is null if the action was observed as it happened. Otherwise the action happened
 * between the states at `since` and `at`: the event reports a last value, and the order within the interval
 * is unknown. If `since` equals `at`, the agent found something that already existed when it started to
 * watch. Such an event is state and not an action, and no counter counts it.
 */
export const EVENTS = {
  // session
  'session.opened': { number: 1, channel: 'session', fields: { 'sampleRate?': 'rate' } },
  'session.saved': { number: 2, channel: 'session', fields: {} },
  'session.closed': { number: 3, channel: 'session', fields: {} },
  'session.undone': { number: 4, channel: 'session', fields: { steps: 'count' } },
  'session.redone': { number: 5, channel: 'session', fields: { steps: 'count' } },
  'marker.changed': {
    number: 6,
    channel: 'session',
    fields: { act: ['added', 'changed', 'removed'], 'start?': 'seconds' },
  },
  // transport
  'transport.started': { number: 10, channel: 'transport', fields: { 'start?': 'seconds' } },
  'transport.stopped': { number: 11, channel: 'transport', fields: { 'start?': 'seconds' } },
  'transport.located': { number: 12, channel: 'transport', fields: { start: 'seconds' } },
  // tempo and meter: a snapshot begins with `tempo.map`, which forgets all earlier points
  'tempo.map': { number: 20, channel: 'tempo', fields: {} },
  'tempo.point': {
    number: 21,
    channel: 'tempo',
    fields: { start: 'beats', bpm: 'tempo', 'endBpm?': 'tempo' },
  },
  'meter.point': { number: 22, channel: 'tempo', fields: { start: 'beats', beats: 'small', unit: 'small' } },
  // tracks
  'track.added': { number: 30, channel: 'tracks', fields: { track: 'id', type: TRACK_KINDS } },
  /** The track is removed with its clips. No `clip.deleted` event reports these clips. */
  'track.removed': { number: 31, channel: 'tracks', fields: { track: 'id' } },
  'track.changed': {
    number: 32,
    channel: 'tracks',
    fields: { track: 'id', property: ['name', 'input', 'order', 'other'] },
  },
  // clips: a clip plays a part of a source at a place of a track. Its places use the base from its creation
  'clip.created': {
    number: 40,
    channel: 'clips',
    fields: { clip: 'id', track: 'id', 'source?': 'id', base: BASE, start: 'place', length: 'place' },
  },
  'clip.moved': { number: 41, channel: 'clips', fields: { clip: 'id', track: 'id', start: 'place' } },
  'clip.trimmed': { number: 42, channel: 'clips', fields: { clip: 'id', start: 'place', length: 'place' } },
  /** The clip ends at `start`. The new clip `right` starts there and has the rest. */
  'clip.split': { number: 43, channel: 'clips', fields: { clip: 'id', right: 'id', start: 'place' } },
  'clip.copied': {
    number: 44,
    channel: 'clips',
    fields: { from: 'id', clip: 'id', track: 'id', start: 'place' },
  },
  'clip.deleted': { number: 45, channel: 'clips', fields: { clip: 'id' } },
  'clip.changed': { number: 46, channel: 'clips', fields: { clip: 'id', property: CLIP_PROPERTIES } },
  /**
   * From now on the clip plays another source, for example after a stretch or an effect that rewrites
   * samples.
   */
  'clip.replaced': { number: 47, channel: 'clips', fields: { clip: 'id', source: 'id' } },
  // MIDI entry by hand (drawn, typed, step entry) and by playing in. Notes from a file are an import
  'midi.edited': {
    number: 50,
    channel: 'midi',
    fields: { 'source?': 'id', added: 'count', removed: 'count', changed: 'count' },
  },
  'midi.recorded': { number: 51, channel: 'midi', fields: { take: 'id', 'source?': 'id', notes: 'count' } },
  // audio recording: a take grows while it is recorded
  'recording.started': {
    number: 60,
    channel: 'recording',
    fields: { take: 'id', 'track?': 'id', input: INPUTS },
  },
  'recording.grew': { number: 61, channel: 'recording', fields: { take: 'id', frames: 'frames' } },
  /**
   * `samplesSha256` covers the samples of the finished take: one channel's data as stored in the DAW's file.
   */
  'recording.finished': {
    number: 62,
    channel: 'recording',
    fields: { take: 'id', source: 'id', frames: 'frames', rate: 'rate', 'samplesSha256?': 'sha256' },
  },
  'recording.discarded': { number: 63, channel: 'recording', fields: { take: 'id' } },
  /** What the track's input is connected to, as far as the agent sees it. It may change while a take runs. */
  'recording.input': { number: 64, channel: 'recording', fields: { track: 'id', input: INPUTS } },
  // automation
  'automation.edited': {
    number: 70,
    channel: 'automation',
    fields: { 'track?': 'id', added: 'count', removed: 'count', changed: 'count' },
  },
  'automation.mode': {
    number: 71,
    channel: 'automation',
    fields: { 'track?': 'id', mode: ['off', 'play', 'write', 'touch', 'latch', 'other'] },
  },
  // plug-ins
  'plugin.added': {
    number: 80,
    channel: 'plugins',
    fields: { plugin: 'id', 'track?': 'id', type: ['instrument', 'effect', 'unknown'] },
  },
  'plugin.removed': { number: 81, channel: 'plugins', fields: { plugin: 'id' } },
  'plugin.changed': {
    number: 82,
    channel: 'plugins',
    fields: { plugin: 'id', property: ['parameter', 'bypass', 'order', 'preset', 'other'] },
  },
  // mixer
  'mixer.changed': { number: 90, channel: 'mixer', fields: { 'track?': 'id', control: CONTROLS } },
  // imports: files from outside. `samplesSha256` covers the samples as stored in the session,
  // `originalSha256` the whole original file if it was found
  'import.added': {
    number: 100,
    channel: 'imports',
    fields: {
      source: 'id',
      manner: ['copied', 'referenced', 'midi', 'unknown'],
      'samplesSha256?': 'sha256',
      'originalSha256?': 'sha256',
      'frames?': 'frames',
      'rate?': 'rate',
      'channels?': 'small',
    },
  },
  // source map: the origin of sources that are neither recorded nor imported, and when the agent last saw the
  // whole map
  /** The source was made from other sources inside the DAW. There is one event for each `from`. */
  'source.derived': {
    number: 110,
    channel: 'sourceMap',
    fields: { source: 'id', 'from?': 'id', manner: DERIVATIONS, 'samplesSha256?': 'sha256' },
  },
  /** The source exists, and its origin was not observed. */
  'source.appeared': {
    number: 111,
    channel: 'sourceMap',
    fields: {
      source: 'id',
      claims: ['recording', 'import', 'derived', 'nothing'],
      'samplesSha256?': 'sha256',
    },
  },
  'source.removed': { number: 112, channel: 'sourceMap', fields: { source: 'id' } },
  /** Earlier events have reported every source and placement that exists now. */
  'sourceMap.completed': { number: 113, channel: 'sourceMap', fields: { sources: 'count', clips: 'count' } },
  // export
  'export.finished': {
    number: 120,
    channel: 'export',
    fields: {
      fileSha256: 'sha256',
      'samplesSha256?': 'sha256',
      'frames?': 'frames',
      'rate?': 'rate',
      'channels?': 'small',
      'start?': 'seconds',
      /** The result of rendering the session again: the same samples, different samples, or not tried. */
      rerender: ['matched', 'differed', 'not_tried'],
    },
  },
  /**
   * An exported file was compared with a render of the session as it is at `at`. The windows are equal stretches of
   * the file, and `equalWindows` counts those with the same samples, apart from dither.
   */
  'export.rendered': {
    number: 121,
    channel: 'export',
    fields: {
      fileSha256: 'sha256',
      outcome: ['matched', 'differed'],
      'windows?': 'count',
      'equalWindows?': 'count',
    },
  },
  // capture itself: what the agent could not see
  /**
   * The agent did not see the channel `scope` from `since` (never null here) to `at`. Without `scope`: any
   * channel.
   */
  'capture.gap': {
    number: 130,
    channel: 'session',
    fields: {
      'scope?': CHANNELS,
      reason: ['agent_stopped', 'overflow', 'unreadable', 'history_lost', 'other'],
    },
  },
} as const satisfies Readonly<
  Record<string, { number: number; channel: Channel; fields: Readonly<Record<string, FieldType>> }>
>;
export type EventKind = keyof typeof EVENTS;

type ValueOf<Type> = Type extends readonly (infer Word)[]
  ? Word
  : Type extends 'sha256'
    ? string
    : Type extends 'flag'
      ? boolean
      : number;
type Fields<Shape> = {
  readonly [Name in keyof Shape as Name extends `${string}?` ? never : Name]: ValueOf<Shape[Name]>;
} & {
  readonly [Name in keyof Shape as Name extends `${infer Bare}?` ? Bare : never]?: ValueOf<Shape[Name]>;
};

/** An event of a trace in decoded form. */
export type TraceEvent = {
  readonly [Kind in EventKind]: {
    readonly kind: Kind;
    /** The time in microseconds of the session clock, a safe integer. */
    readonly at: number;
    /** The start of the interval in which the action happened. Absent if it was observed at `at`. */
    readonly since?: number;
  } & Fields<(typeof EVENTS)[Kind]['fields']>;
}[EventKind];

export const DEVICE_ALGORITHMS = ['Ed25519', 'ES256'] as const;
export type DeviceAlgorithm = (typeof DEVICE_ALGORITHMS)[number];

/** The header of a trace. */
export interface TraceHeader {
  readonly version: typeof TRACE_VERSION;
  /** The random id of the trace: 16 bytes as lower-case hex. */
  readonly traceId: string;
  /** The type of the agent: a slug such as `ardour` or `audacity`, `[a-z][a-z0-9-]{0,31}`. */
  readonly adapter: string;
  /** The version of the agent, and of the DAW if known: 1 to 32 digits and dots. */
  readonly adapterVersion: string;
  readonly dawVersion?: string;
  /** When the session clock was 0, in unix seconds by the device's clock. */
  readonly startedAt: number;
  /** True for a generated trace. */
  readonly simulated: boolean;
  readonly channels: Readonly<Record<Channel, ChannelSupport>>;
  readonly algorithm: DeviceAlgorithm;
  /** The public key of the device, SPKI in DER. */
  readonly publicKey: Uint8Array;
}

/** The id of a device: the SHA-256 of its public key (SPKI in DER), in lower-case hex. */
export type DeviceId = string;

/** The standing of the device that signed a trace, at the time of issuing. */
export const DEVICE_STANDINGS = ['enrolled', 'unknown', 'revoked'] as const;
export type DeviceStanding = (typeof DEVICE_STANDINGS)[number];

/** The findings about a trace's file. They become facts of the report, and none of them refuses the trace. */
export const TRACE_FINDINGS = [
  /** The segments differ from the segments that the next signature covers. */
  'trace_chain_broken',
  /** A segment or signature does not continue where the previous segment or signature ended. */
  'trace_sequence_gap',
  /** A signature was not made by the device in the header. */
  'trace_signature_invalid',
  /** Some bytes are not a frame. */
  'trace_damaged',
  /** The file ends without the device's final signature. */
  'trace_truncated',
  /** Bytes follow the last valid signature. They are not evidence. */
  'trace_unsigned_tail',
  /** An event has an earlier time than a previous event. */
  'trace_time_backwards',
  /** The trace is generated. */
  'trace_simulated',
] as const;
export type TraceFindingCode = (typeof TRACE_FINDINGS)[number];

export interface TraceFinding {
  readonly code: TraceFindingCode;
  /** The named numbers that state where and how much. */
  readonly values?: Readonly<Record<string, number>>;
}

/** The error for content that is not a trace of this version. The message contains no value of the trace. */
export class TraceFault extends Error {
  override readonly name = 'TraceFault';
}

/** The fault of an event beyond a limit of its trace, which may be sealed as it is. */
export class TraceLimitFault extends TraceFault {}
