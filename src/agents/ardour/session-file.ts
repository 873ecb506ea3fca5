/**
 * The state of an Ardour session according to its file at a save. Ids are Ardour's own, which stay over saves and
 * reloads. Names are kept only for comparison, and reach no trace.
 */
import { TempoMap as Tempo } from '../../witness/domain/tempo-map.js';
import { TRACE_LIMITS } from '../../witness/domain/trace.js';
import { child, children, descendants, type XmlElement } from './xml.js';

/** The versions of the layout that are read: those of Ardour 7. */
const LAYOUT = { from: 7000, below: 8000 };

/** Superclocks are Ardour's unit of audio time, ticks that of musical time. */
const SUPERCLOCKS = 282_240_000;
const TICKS = 1920;

/** The time base of a region in the trace: audio in seconds, notes in beats. Ardour's own time base does not matter. */
export type Base = 'seconds' | 'beats';

export interface RegionState {
  readonly id: string;
  readonly base: Base;
  /** The place in the arrangement, the length, and the offset into the source, in seconds or beats as `base` says. */
  readonly start: number;
  readonly length: number;
  readonly offset: number;
  /** The length and the place as Ardour wrote them. */
  readonly extent: string;
  readonly source: string;
  /** The ids of the sources of all channels, and of the sources that they were made from. */
  readonly sources: readonly string[];
  readonly masters: readonly string[];
  readonly name: string;
  readonly muted: string;
  readonly gain: string;
  readonly stretched: boolean;
  readonly external: boolean;
  readonly automatic: boolean;
  readonly wholeFile: boolean;
}

export interface ClipState extends RegionState {
  /** The id of the route whose playlist holds the region. */
  readonly track: string;
}

export interface SourceState {
  readonly id: string;
  readonly type: 'audio' | 'midi';
  readonly name: string;
  readonly channel: number;
  readonly takeId: string;
  readonly timestamp: string;
  readonly capturedFor: string;
  readonly origin: string;
  /** The ids of the sources of the parts. Present only for a compound. */
  readonly parts?: readonly string[];
}

export interface TrackState {
  readonly id: string;
  readonly type: 'audio' | 'midi' | 'bus' | 'other';
  readonly name: string;
  readonly playlist?: string;
  /** The ports that feed the track. */
  readonly inputs: readonly string[];
  /** The values of the mixer's controls by their names. */
  readonly controls: ReadonlyMap<string, string>;
  /** The ids of the plug-ins in their order. */
  readonly plugins: readonly string[];
  readonly order: string;
}

export interface PluginState {
  readonly id: string;
  readonly track: string;
  readonly active: string;
  readonly parameters: ReadonlyMap<string, string>;
}

export interface AutomationState {
  readonly id: string;
  readonly track: string;
  readonly mode: string;
  /** The values by their times. */
  readonly points: ReadonlyMap<string, string>;
}

export interface MarkerState {
  readonly id: string;
  readonly seconds?: number;
  /** The name, the start, the end and the flags as one text, for comparison. */
  readonly all: string;
}

export interface TempoMap {
  readonly tempos: readonly { readonly start: number; readonly bpm: number; readonly endBpm?: number }[];
  readonly meters: readonly { readonly start: number; readonly beats: number; readonly unit: number }[];
}

export interface SessionState {
  readonly programVersion?: string;
  readonly sampleRate: number;
  readonly idCounter: number;
  /** The backend and the input device that Ardour was running with. */
  readonly device: { readonly backend: string; readonly input: string };
  /** True if takes may be written to other folders than the session's. */
  readonly otherFolders: boolean;
  readonly sources: ReadonlyMap<string, SourceState>;
  /** Every region of the file, including those outside of playlists. */
  readonly regions: ReadonlyMap<string, RegionState>;
  readonly clips: ReadonlyMap<string, ClipState>;
  readonly tracks: ReadonlyMap<string, TrackState>;
  readonly plugins: ReadonlyMap<string, PluginState>;
  readonly automation: ReadonlyMap<string, AutomationState>;
  readonly markers: ReadonlyMap<string, MarkerState>;
  readonly tempo: TempoMap;
}

/** The error of a file that is not a session of Ardour 7, or is beyond the limits of a trace. */
export class SessionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SessionError';
  }
}

/** Returns the state of the session. @throws SessionError */
export function readSession(root: XmlElement): SessionState {
  const layout = Number(root.attributes.get('version'));
  if (root.name !== 'Session' || !(layout >= LAYOUT.from && layout < LAYOUT.below))
    throw new SessionError('the file is not an Ardour 7 session');
  const sampleRate = Number(root.attributes.get('sample-rate'));
  if (!Number.isInteger(sampleRate) || sampleRate < 1 || sampleRate > 6_144_000)
    throw new SessionError('the session has no sample rate');

  const tracks = new Map<string, TrackState>();
  const plugins = new Map<string, PluginState>();
  const automation = new Map<string, AutomationState>();
  for (const route of children(child(root, 'Routes'), 'Route')) {
    const track = readTrack(route);
    for (const plugin of readPlugins(route)) plugins.set(plugin.id, plugin);
    for (const list of readAutomation(route)) automation.set(list.id, list);
    tracks.set(track.id, track);
  }
  const tempo = readTempoMap(child(root, 'TempoMap'));
  const { regions, clips, compounds } = readRegions(root, tracks, tempoOf(tempo));
  const sources = readSources(root, compounds, clips.values());
  const markers = readMarkers(child(root, 'Locations'));
  const { live } = TRACE_LIMITS;
  for (const [count, most] of [
    [tracks.size, live.tracks],
    [clips.size, live.clips],
    [sources.size, live.sources],
    [plugins.size, live.plugins],
  ] as const)
    if (count > most) throw new SessionError('the session exceeds the limits of a trace');

  const hints = child(root, 'EngineHints')?.attributes;
  const options = children(child(root, 'Config'), 'Option');
  const raid = options
    .find(({ attributes }) => attributes.get('name') === 'raid-path')
    ?.attributes.get('value');
  const programVersion = /[0-9]+(?:\.[0-9]+)*/
    .exec(child(root, 'ProgramVersion')?.attributes.get('modified-with') ?? '')?.[0]
    .slice(0, 32);
  return {
    ...(programVersion === undefined ? {} : { programVersion }),
    sampleRate,
    idCounter: Number(root.attributes.get('id-counter') ?? 0),
    device: { backend: hints?.get('backend') ?? '', input: hints?.get('input-device') ?? '' },
    otherFolders: (raid ?? '') !== '',
    sources,
    regions,
    clips,
    tracks,
    plugins,
    automation,
    markers,
    tempo,
  };
}

const identified = (element: XmlElement): string => {
  const id = element.attributes.get('id');
  if (id === undefined || !/^[0-9]{1,20}$/.test(id)) throw new SessionError(`a ${element.name} has no id`);
  return id;
};

function readTrack(route: XmlElement): TrackState {
  const { attributes } = route;
  const type = attributes.get('default-type');
  const playlist = attributes.get('audio-playlist') ?? attributes.get('midi-playlist');
  const controls = new Map<string, string>();
  const own = [...children(route, 'Controllable'), ...children(child(route, 'Pannable'), 'Controllable')];
  for (const processor of children(route, 'Processor')) {
    const name = processor.attributes.get('type');
    const value = child(processor, 'Controllable')?.attributes.get('value');
    if ((name === 'amp' || name === 'trim' || name === 'send') && value !== undefined)
      controls.set(name === 'send' ? `send ${processor.attributes.get('id')}` : name, value);
  }
  for (const control of own) {
    const value = control.attributes.get('value');
    if (value !== undefined) controls.set(control.attributes.get('name') ?? '', value);
  }
  // A value that automation plays does not count as an act at the control.
  for (const list of descendants(route, 'AutomationList'))
    if ((list.attributes.get('state') ?? 'Off') !== 'Off') {
      const automated = list.attributes.get('automation-id') ?? '';
      controls.delete(automated === 'gain' ? 'amp' : automated);
    }
  const input = children(route, 'IO').find((io) => io.attributes.get('direction') === 'Input');
  return {
    id: identified(route),
    type: playlist === undefined ? 'bus' : type === 'audio' || type === 'midi' ? type : 'other',
    name: attributes.get('name') ?? '',
    ...(playlist === undefined ? {} : { playlist }),
    inputs: children(input, 'Port').flatMap((port) =>
      children(port, 'Connection').map((connection) => connection.attributes.get('other') ?? ''),
    ),
    controls,
    plugins: pluginsOf(route).map(identified),
    order: child(route, 'PresentationInfo')?.attributes.get('order') ?? '',
  };
}

const PLUGINS: ReadonlySet<string> = new Set([
  'lv2',
  'luaproc',
  'ladspa',
  'vst3',
  'lxvst',
  'mac-vst',
  'windows-vst',
  'audiounit',
]);

const pluginsOf = (route: XmlElement): readonly XmlElement[] =>
  children(route, 'Processor').filter(({ attributes }) => PLUGINS.has(attributes.get('type') ?? ''));

function readPlugins(route: XmlElement): readonly PluginState[] {
  const track = identified(route);
  return pluginsOf(route).map((processor) => ({
    id: identified(processor),
    track,
    active: processor.attributes.get('active') ?? '',
    parameters: new Map(
      children(processor, 'Controllable').map(({ attributes }) => [
        attributes.get('symbol') ?? attributes.get('name') ?? '',
        attributes.get('value') ?? '',
      ]),
    ),
  }));
}

function readAutomation(route: XmlElement): readonly AutomationState[] {
  const track = identified(route);
  return [...descendants(route, 'AutomationList')].map((list) => ({
    id: identified(list),
    track,
    mode: list.attributes.get('state') ?? 'Off',
    points: readPoints(list),
  }));
}

/** Returns the values of an automation list by their times. The list has a time and a value on each line. */
export function readPoints(list: XmlElement | undefined): ReadonlyMap<string, string> {
  const points = new Map<string, string>();
  for (const line of (child(list, 'events')?.text ?? '').split('\n')) {
    const [time, value] = line.trim().split(/\s+/);
    if (time !== undefined && value !== undefined) points.set(time, value);
  }
  return points;
}

function readRegions(
  root: XmlElement,
  tracks: ReadonlyMap<string, TrackState>,
  tempo: Tempo,
): {
  regions: Map<string, RegionState>;
  clips: Map<string, ClipState>;
  compounds: Map<string, { region: XmlElement; source: XmlElement }>;
} {
  const regions = new Map<string, RegionState>();
  const clips = new Map<string, ClipState>();
  const compounds = new Map<string, { region: XmlElement; source: XmlElement }>();
  const trackOf = new Map([...tracks.values()].map(({ id, playlist }) => [playlist, id]));
  const note = (element: XmlElement): RegionState | undefined => {
    // A compound brings its source along.
    for (const nested of children(element, 'NestedSource'))
      for (const source of children(nested, 'Source'))
        compounds.set(identified(source), { region: element, source });
    const region = readRegion(element, tempo);
    if (region !== undefined) regions.set(region.id, region);
    return region;
  };
  for (const element of descendants(child(root, 'Regions') ?? root, 'Region')) note(element);
  for (const playlist of children(child(root, 'Playlists'), 'Playlist')) {
    const track = trackOf.get(identified(playlist));
    for (const element of children(playlist, 'Region')) {
      const region = note(element);
      if (region !== undefined && track !== undefined) clips.set(region.id, { ...region, track });
    }
  }
  return { regions, clips, compounds };
}

function readRegion(element: XmlElement, tempo: Tempo): RegionState | undefined {
  const { attributes } = element;
  const base = attributes.get('type') === 'midi' ? 'beats' : 'seconds';
  const extent = readExtent(attributes.get('length'), base, tempo);
  const offset = readTime(attributes.get('start'));
  const source = attributes.get('source-0');
  if (extent === undefined || offset === undefined || source === undefined) return undefined;
  const flag = (name: string) => attributes.get(name) === '1';
  const scaled = (name: string) => Number(attributes.get(name) ?? '1') !== 1;
  return {
    id: identified(element),
    ...extent,
    offset: offset.value,
    source,
    sources: channelsOf(attributes, 'source-'),
    masters: channelsOf(attributes, 'master-source-'),
    name: attributes.get('name') ?? '',
    muted: attributes.get('muted') ?? '0',
    gain: attributes.get('scale-amplitude') ?? '1',
    stretched: scaled('stretch') || scaled('shift'),
    external: flag('external'),
    automatic: flag('automatic'),
    wholeFile: flag('whole-file'),
  };
}

const channelsOf = (attributes: ReadonlyMap<string, string>, prefix: string): readonly string[] =>
  Array.from({ length: 32 }, (_, channel) => attributes.get(`${prefix}${channel}`)).filter(
    (id) => id !== undefined,
  );

export interface Extent {
  readonly base: Base;
  readonly start: number;
  readonly length: number;
  /** The length and the place as Ardour wrote them. */
  readonly extent: string;
}

/**
 * Returns the length and place of a region from `length@position`, each in superclocks (`a`) or ticks (`b`). Notes
 * may be placed at a time, and audio that is glued to bars at a beat. The tempo converts these.
 */
export function readExtent(text: string | undefined, base: Base, tempo: Tempo): Extent | undefined {
  const [length, start] = (text ?? '').split('@').map(readTime);
  if (text === undefined || length === undefined || start === undefined) return undefined;
  const from = placeIn(base, start, tempo);
  const own = placeIn(length.base, start, tempo);
  if (from === undefined || own === undefined) return undefined;
  if (length.base === base) return { base, start: from, length: length.value, extent: text };
  const end = placeIn(base, { base: length.base, value: own + length.value }, tempo);
  return end === undefined ? undefined : { base, start: from, length: end - from, extent: text };
}

function placeIn(base: Base, { base: own, value }: Time, tempo: Tempo): number | undefined {
  if (own === base) return value;
  const place = base === 'seconds' ? tempo.secondsOf(value) : tempo.beatsOf(value);
  return place === undefined || place > TRACE_LIMITS.place ? undefined : place;
}

/** Returns the tempo of a map, which converts between beats and seconds. */
export function tempoOf({ tempos }: TempoMap): Tempo {
  const tempo = new Tempo();
  for (const { start, bpm, endBpm } of tempos) tempo.add(start, bpm, endBpm);
  return tempo;
}

interface Time {
  readonly base: Base;
  readonly value: number;
}

/** Returns a time in seconds (of superclocks) or beats (of ticks), or undefined if no trace can contain it. */
export function readTime(text: string | undefined): Time | undefined {
  const parts = /^([ab])([0-9]{1,19})$/.exec(text ?? '');
  if (parts === null) return undefined;
  const value = Number(parts[2]) / (parts[1] === 'a' ? SUPERCLOCKS : TICKS);
  return value > TRACE_LIMITS.place ? undefined : { base: parts[1] === 'a' ? 'seconds' : 'beats', value };
}

function readSources(
  root: XmlElement,
  compounds: ReadonlyMap<string, { readonly region: XmlElement; readonly source: XmlElement }>,
  clips: Iterable<ClipState>,
): ReadonlyMap<string, SourceState> {
  const sources = new Map<string, SourceState>();
  for (const source of children(child(root, 'Sources'), 'Source')) {
    const state = readSource(source);
    sources.set(state.id, state);
  }
  for (const [id, { region, source }] of compounds) {
    const parts = new Set<string>();
    for (const part of descendants(region, 'Region')) {
      const of = part.attributes.get('source-0');
      if (of !== undefined && of !== id) parts.add(of);
    }
    sources.set(id, { ...readSource(source), parts: [...parts] });
  }
  // A clip never lacks a source; one that the file does not describe has no known origin.
  for (const { base, sources: shown } of clips)
    for (const id of shown) if (!sources.has(id)) sources.set(id, undescribed(id, base));
  return sources;
}

function undescribed(id: string, base: Base): SourceState {
  const type = base === 'seconds' ? 'audio' : 'midi';
  return { id, type, name: '', channel: 0, takeId: '', timestamp: '', capturedFor: '', origin: '' };
}

function readSource(source: XmlElement): SourceState {
  const text = (name: string) => source.attributes.get(name) ?? '';
  const channel = Number(text('channel'));
  return {
    id: identified(source),
    type: text('type') === 'midi' ? 'midi' : 'audio',
    name: text('name'),
    channel: Number.isInteger(channel) && channel >= 0 ? channel : 0,
    takeId: text('take-id'),
    timestamp: text('timestamp'),
    capturedFor: text('captured-for'),
    origin: text('origin'),
  };
}

/** Returns the markers without the session's own range, which follows the content of the session. */
export function readMarkers(locations: XmlElement | undefined): ReadonlyMap<string, MarkerState> {
  const markers = new Map<string, MarkerState>();
  for (const location of children(locations, 'Location')) {
    const { attributes } = location;
    if ((attributes.get('flags') ?? '').includes('IsSessionRange')) continue;
    const start = readTime(attributes.get('start'));
    const all = ['name', 'start', 'end', 'flags'].map((name) => attributes.get(name) ?? '').join('\n');
    const id = identified(location);
    markers.set(id, { id, all, ...(start?.base === 'seconds' ? { seconds: start.value } : {}) });
  }
  return markers;
}

/** Returns tempo and meter, with places in quarters. Points that a trace cannot contain are left out. */
export function readTempoMap(map: XmlElement | undefined): TempoMap {
  const tempos = children(child(map, 'Tempos'), 'Tempo').flatMap(({ attributes }) => {
    const start = readQuarters(attributes.get('quarters'));
    const quarter = 4 / Number(attributes.get('note-type') ?? 4);
    const bpm = Number(attributes.get('npm')) * quarter;
    const endBpm = Number(attributes.get('enpm')) * quarter;
    if (start === undefined || !isTempo(bpm)) return [];
    return [{ start, bpm, ...(isTempo(endBpm) && endBpm !== bpm ? { endBpm } : {}) }];
  });
  const meters = children(child(map, 'Meters'), 'Meter').flatMap(({ attributes }) => {
    const start = readQuarters(attributes.get('quarters'));
    const beats = Number(attributes.get('divisions-per-bar'));
    const unit = Number(attributes.get('note-value'));
    return start === undefined || !isSmall(beats) || !isSmall(unit) ? [] : [{ start, beats, unit }];
  });
  const most = TRACE_LIMITS.live.tempoPoints / 2;
  if (tempos.length > most || meters.length > most)
    throw new SessionError('the tempo map exceeds the limits of a trace');
  const inOrder = (one: { readonly start: number }, other: { readonly start: number }) =>
    one.start - other.start;
  return { tempos: tempos.toSorted(inOrder), meters: meters.toSorted(inOrder) };
}

const isTempo = (value: number): boolean => value > 0 && value <= 10_000;
const isSmall = (value: number): boolean => Number.isInteger(value) && value >= 1 && value <= 256;

/** Converts `beats:ticks` to quarters. */
function readQuarters(text: string | undefined): number | undefined {
  const parts = /^([0-9]{1,9}):([0-9]{1,4})$/.exec(text ?? '');
  if (parts === null) return undefined;
  const value = Number(parts[1]) + Number(parts[2]) / TICKS;
  return value > TRACE_LIMITS.place ? undefined : value;
}
