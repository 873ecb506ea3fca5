/**
 * Vocabulary of a capture trace, version 1: what an agent beside a DAW may say that it witnessed. Numbers, closed
 * words and digests alone: no names, no audio, no free text. Identifiers are counted anew in each trace. The layout
 * of the file is in docs/capture-trace.md.
 */

/** Version of the vocabulary and of the file's layout. */
export const TRACE_VERSION = 1 as const;

/** Channels of a trace, in the order in which reports name them. The header states the support of each. */
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

/** Names of channels for a person. */
export const CHANNEL_WORDS: Readonly<Record<Channel, string>> = {
  session: 'Session',
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
  sourceMap: 'Source map',
  export: 'Export',
};

/**
 * Support of a channel by an adapter. `supported`: every act is seen. `partial`: some acts are, or their last value
 * alone. `unsupported`: the adapter does not look. `unknown`: the adapter cannot tell whether it sees them.
 */
export const CHANNEL_SUPPORT = ['supported', 'partial', 'unsupported', 'unknown'] as const;
export type ChannelSupport = (typeof CHANNEL_SUPPORT)[number];

/** Greatest values. Whatever lies beyond one of them is no trace, and is refused before anything is registered. */
export const TRACE_LIMITS = {
  /** Bytes of a trace. */
  traceBytes: 134_217_728,
  /** Bytes of the encoded header. */
  headerBytes: 16_384,
  /** Bytes of a segment's body. */
  segmentBytes: 65_536,
  /** Signatures of a trace: one each second for 18 hours. */
  signatures: 65_536,
  /** Segments of a trace. */
  segments: 131_072,
  /** Microseconds of the session clock: 366 days. */
  time: 31_622_400_000_000,
  /** Tracks, clips, sources, takes and plug-ins that may live at once, and takes and sources that may ever have. */
  live: { tracks: 4096, clips: 65_536, sources: 16_384, takes: 16_384, plugins: 16_384, tempoPoints: 16_384 },
  /** Seconds or beats of a place in the arrangement. */
  place: 10_000_000,
} as const;

/**
 * Types of a field. `id`, `count`: 0 to 2^32 - 1. `frames`: 0 to 2^53 - 1 sample frames. `rate`: 1 to 6,144,000 Hz.
 * `place`: seconds or beats from the arrangement's start, finite, 0 to `TRACE_LIMITS.place`, in the `base` of its
 * event. `seconds`, `beats`: the same with a base of their own. `tempo`: beats a minute, above 0 to 10,000. `small`:
 * 1 to 256. `sha256`: 32 bytes, lower-case hex outside the file. `flag`: true or false. An array lists closed words,
 * of which the file holds the index. A field whose name ends in `?` may be null in the file, and is then absent.
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
/** How a clip's source came to be, as far as the adapter witnessed it. */
const DERIVATIONS = ['bounce', 'combine', 'stretch', 'copy', 'rendered', 'other', 'unknown'] as const;
/** Connections of a recording's input while it ran. */
const INPUTS = ['hardware', 'internal', 'none', 'unknown'] as const;
const CLIP_PROPERTIES = ['gain', 'mute', 'fade', 'name', 'stretch', 'pitch', 'layer', 'other'] as const;
const CONTROLS = ['gain', 'pan', 'mute', 'solo', 'send', 'arm', 'other'] as const;

/**
 * Every kind of event: its number in the file, its channel and its fields in the order of the file. In the file an
 * event is the array `[number, at, since, ...fields]`: `at` are microseconds of the session clock; `since` is null
 * where the act was witnessed when it happened, and else the time of the earlier of the two states between which it
 * lies: then the event tells a last value, and order within the interval is not known. Where `since` equals `at`, the
 * event tells of something that was found there when the agent began to look: it is state, no act, and no counter
 * counts it.
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
  /** The clips of the track are gone with it: no `clip.deleted` is told of them. */
  'track.removed': { number: 31, channel: 'tracks', fields: { track: 'id' } },
  'track.changed': {
    number: 32,
    channel: 'tracks',
    fields: { track: 'id', property: ['name', 'input', 'order', 'other'] },
  },
  // clips: a clip shows a part of a source at a place of a track; its places are in the base it was created with
  'clip.created': {
    number: 40,
    channel: 'clips',
    fields: { clip: 'id', track: 'id', 'source?': 'id', base: BASE, start: 'place', length: 'place' },
  },
  'clip.moved': { number: 41, channel: 'clips', fields: { clip: 'id', track: 'id', start: 'place' } },
  'clip.trimmed': { number: 42, channel: 'clips', fields: { clip: 'id', start: 'place', length: 'place' } },
  /** The clip ends at `start`, where `right` begins, which takes the rest of it. */
  'clip.split': { number: 43, channel: 'clips', fields: { clip: 'id', right: 'id', start: 'place' } },
  'clip.copied': {
    number: 44,
    channel: 'clips',
    fields: { from: 'id', clip: 'id', track: 'id', start: 'place' },
  },
  'clip.deleted': { number: 45, channel: 'clips', fields: { clip: 'id' } },
  'clip.changed': { number: 46, channel: 'clips', fields: { clip: 'id', property: CLIP_PROPERTIES } },
  /** The clip shows another source from now on: a stretch, an effect that rewrites samples. */
  'clip.replaced': { number: 47, channel: 'clips', fields: { clip: 'id', source: 'id' } },
  // MIDI entry by hand (drawn, typed, step entry) and by playing in; what a file brought is an import
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
  /** The samples of the finished take: one channel's data as it lies in the DAW's file. */
  'recording.finished': {
    number: 62,
    channel: 'recording',
    fields: { take: 'id', source: 'id', frames: 'frames', rate: 'rate', 'samplesSha256?': 'sha256' },
  },
  'recording.discarded': { number: 63, channel: 'recording', fields: { take: 'id' } },
  /** Connection of the track's input, as far as it is seen; it may change while a take runs. */
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
  // imports: a file that came from outside. `samplesSha256` is over the samples as the session holds them,
  // `originalSha256` over the whole file that they were found to come from
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
  // source map: where the sources of clips come from that are neither recording nor import, and when the agent had
  // last seen the whole of it
  /** Made of other sources inside the DAW; one event for each `from`. */
  'source.derived': {
    number: 110,
    channel: 'sourceMap',
    fields: { source: 'id', 'from?': 'id', manner: DERIVATIONS, 'samplesSha256?': 'sha256' },
  },
  /** There, and how it came to be was not witnessed. */
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
  /** Every source and placement that exists now has been told of. */
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
      /** Outcome of rendering the session again: the same samples, other samples, or not tried. */
      rerender: ['matched', 'differed', 'not_tried'],
    },
  },
  // capture itself: what the agent could not see
  /** From `since`, never null here, to `at` the agent did not see the channel; without `scope` every channel. */
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

/** Event of a trace as programs see it. */
export type TraceEvent = {
  readonly [Kind in EventKind]: {
    readonly kind: Kind;
    /** Microseconds of the session clock, a safe integer. */
    readonly at: number;
    /** Start of the interval in which the act lies; absent where it was witnessed at `at`. */
    readonly since?: number;
  } & Fields<(typeof EVENTS)[Kind]['fields']>;
}[EventKind];

export const DEVICE_ALGORITHMS = ['Ed25519', 'ES256'] as const;
export type DeviceAlgorithm = (typeof DEVICE_ALGORITHMS)[number];

/** Header of a trace. */
export interface TraceHeader {
  readonly version: typeof TRACE_VERSION;
  /** Random id of the trace, 16 bytes as lower-case hex. */
  readonly traceId: string;
  /** Kind of the agent: a slug such as `ardour` or `audacity`, `[a-z][a-z0-9-]{0,31}`. */
  readonly adapter: string;
  /** Version of the agent, and of the DAW where it is known: digits and dots, 1 to 32 characters. */
  readonly adapterVersion: string;
  readonly dawVersion?: string;
  /** Unix seconds at which the session clock was 0, by the device's clock. */
  readonly startedAt: number;
  /** True for a trace that a generator made. */
  readonly simulated: boolean;
  readonly channels: Readonly<Record<Channel, ChannelSupport>>;
  readonly algorithm: DeviceAlgorithm;
  /** Public key of the device, SPKI in DER. */
  readonly publicKey: Uint8Array;
}

/** Id of a device: SHA-256 of its public key (SPKI in DER), lower-case hex. */
export type DeviceId = string;

/** Standing of the device that signed a trace, at the time of issuing. */
export const DEVICE_STANDINGS = ['enrolled', 'unknown', 'revoked'] as const;
export type DeviceStanding = (typeof DEVICE_STANDINGS)[number];

/** Findings about a trace's file: facts of the report, of which none is a refusal. */
export const TRACE_FINDINGS = [
  /** The segments are not those that the signature after them names. */
  'trace_chain_broken',
  /** A segment or signature does not carry on where the one before ended. */
  'trace_sequence_gap',
  /** A signature is not that of the device in the header. */
  'trace_signature_invalid',
  /** Bytes that are no frame. */
  'trace_damaged',
  /** The file ends without the device's final signature. */
  'trace_truncated',
  /** Bytes follow the last valid signature; they are no evidence. */
  'trace_unsigned_tail',
  /** An event has an earlier time than one before it. */
  'trace_time_backwards',
  /** A generator made the trace. */
  'trace_simulated',
] as const;
export type TraceFindingCode = (typeof TRACE_FINDINGS)[number];

export interface TraceFinding {
  readonly code: TraceFindingCode;
  /** Numbers that say where and how much, by name. */
  readonly values?: Readonly<Record<string, number>>;
}

/** Fault of a trace's content: what makes it no trace of this version. The message holds no value of the trace. */
export class TraceFault extends Error {
  override readonly name = 'TraceFault';
}
