import type { StoredSourceDetail } from '../domain/evidence.js';
import { REPORT_LIMITS, type SourcePlacement } from '../domain/session-evidence.js';
import type { TempoMap } from '../domain/tempo-map.js';
import type { TraceEvent } from '../domain/trace.js';
import { milli } from './session-counters.js';
import type { SourceMap } from './source-map.js';

type TrackType = StoredSourceDetail['tracks'][number]['type'];
type ClipEvent = TraceEvent & { readonly kind: `clip.${string}` };

/** What a clip shows, and where. */
type Shown = Pick<Clip, 'source' | 'base' | 'start' | 'length'>;

interface Clip {
  /** The number of the placement in the order of the session. */
  readonly serial: number;
  track: number;
  trackSerial: number;
  source: number | undefined;
  readonly base: 'seconds' | 'beats';
  start: number;
  length: number;
  edits: number;
}

interface Track {
  readonly serial: number;
  readonly type: TrackType;
  readonly clips: Set<number>;
}

export interface Span {
  readonly start: number;
  readonly end: number;
}

const MAX_EDITS = 1000;
/**
 * The number of removed placements and tracks that are remembered. Beyond it, the latest replace the oldest.
 */
const REMEMBERED = { placements: 1024, tracks: 256 } as const;

/**
 * The tracks and clips as last observed, and the clips at the last export. Memory is bounded by existing tracks and
 * clips, the latest removed ones, and the clips of the export.
 */
export class Arrangement {
  readonly #sources: SourceMap;
  readonly #tracks = new Map<number, Track>();
  readonly #clips = new Map<number, Clip>();
  readonly #goneClips: Clip[] = [];
  readonly #goneTracks: Track[] = [];
  #serial = 0;
  /** The serial of the latest clip at the last export. Zero before the first export. */
  #exportSerial = 0;
  /** The clips of the last export that were changed or removed since, as they were, by serial. */
  #changedSince = new Map<number, Shown>();
  #trackSerial = 0;
  /** The number of clip edits, and the number of edits of clips that show imported material. */
  edits = 0;
  editsOfImports = 0;
  /** True once a clip with an unknown source was added. */
  hasUnknownSource = false;

  constructor(sources: SourceMap) {
    this.#sources = sources;
  }

  get placements(): number {
    return this.#clips.size;
  }

  addTrack(id: number, type: TrackType): void {
    this.#trackSerial += 1;
    this.#tracks.set(id, { serial: this.#trackSerial, type, clips: new Set() });
  }

  removeTrack(id: number): void {
    const track = this.#tracks.get(id);
    if (track === undefined) return;
    for (const clip of track.clips) this.#remove(clip);
    this.#tracks.delete(id);
    remember(this.#goneTracks, { ...track, clips: new Set() }, REMEMBERED.tracks, track.serial);
  }

  /**
   * Applies a clip event.
   * @returns the source that the event added to the arrangement
   */
  take(event: ClipEvent): { readonly placed?: number | undefined } {
    switch (event.kind) {
      case 'clip.created': {
        const { clip, track, source, base, start, length } = event;
        this.#add(clip, { track, source, base, start, length });
        return { placed: source };
      }
      case 'clip.copied': {
        const from = this.#edit(event.from);
        if (from === undefined) return {};
        this.#add(event.clip, { ...from, track: event.track, start: event.start });
        return { placed: from.source };
      }
      case 'clip.split': {
        const clip = this.#edit(event.clip);
        if (clip === undefined) return {};
        const end = clip.start + clip.length;
        const length = Math.max(0, end - event.start);
        this.#add(event.right, { ...clip, start: event.start, length });
        clip.length = Math.max(0, event.start - clip.start);
        return {};
      }
      case 'clip.moved': {
        const clip = this.#edit(event.clip);
        const track = this.#tracks.get(event.track);
        if (clip === undefined || track === undefined) return {};
        this.#tracks.get(clip.track)?.clips.delete(event.clip);
        track.clips.add(event.clip);
        clip.track = event.track;
        clip.trackSerial = track.serial;
        clip.start = event.start;
        return {};
      }
      case 'clip.trimmed': {
        const clip = this.#edit(event.clip);
        if (clip === undefined) return {};
        clip.start = event.start;
        clip.length = event.length;
        return {};
      }
      case 'clip.replaced': {
        const clip = this.#edit(event.clip);
        if (clip !== undefined) clip.source = event.source;
        return {};
      }
      case 'clip.changed':
        this.#edit(event.clip);
        return {};
      case 'clip.deleted':
        this.#remove(event.clip);
        return {};
    }
  }

  /** Returns the time spans of existing clips by the source that they show. */
  bySource(): ReadonlyMap<number, readonly Span[]> {
    return spansBySource(this.#clips.values(), this.#tempo);
  }

  /**
   * Notes that the arrangement was exported. The clips of the export are not copied: from now on a clip is copied
   * before its first change. So an export costs nothing, however many clips exist.
   */
  markExport(): void {
    this.#exportSerial = this.#serial;
    this.#changedSince = new Map();
  }

  /** Returns the clips of the last export, as they were then. */
  exported(): readonly Shown[] {
    const unchanged = [...this.#clips.values()].filter(
      ({ serial }) => serial <= this.#exportSerial && !this.#changedSince.has(serial),
    );
    return [...unchanged, ...this.#changedSince.values()];
  }

  #tempo: TempoMap | undefined;

  /** The tempo that converts positions in beats to seconds. */
  set tempo(tempo: TempoMap) {
    this.#tempo = tempo;
  }

  /**
   * Returns the detail of the arrangement. Ids are local to the report.
   * @param looks the kinds that were observed. For other kinds, an absence does not mean zero
   */
  detail(
    observedAtSeconds: number | undefined,
    looks: { readonly tracks: boolean; readonly placements: boolean },
  ): StoredSourceDetail {
    const material = this.#sources.importedMaterial();
    const tracks = [
      ...[...this.#tracks.values()].map((track) => ({ track, state: 'present' as const })),
      ...this.#goneTracks.map((track) => ({ track, state: 'removed' as const })),
    ]
      .slice(0, REPORT_LIMITS.detailTracks)
      .sort((one, other) => one.track.serial - other.track.serial);
    const named = new Set(tracks.map(({ track }) => track.serial));
    const placements = [
      ...[...this.#clips.values()].map((clip) => ({ clip, state: 'present' as const })),
      ...this.#goneClips.map((clip) => ({ clip, state: 'removed' as const })),
    ]
      .filter(({ clip }) => named.has(clip.trackSerial))
      .slice(0, REPORT_LIMITS.detailPlacements)
      .sort((one, other) => one.clip.serial - other.clip.serial);
    return {
      version: 2,
      ...(observedAtSeconds === undefined ? {} : { observedAtSeconds }),
      tracks: tracks.map(({ track: { serial, type }, state }) => ({ trackId: `trk${serial}`, type, state })),
      ...(looks.tracks || this.#trackSerial > 0 ? { trackCount: this.#trackSerial } : {}),
      placements: placements.map(({ clip, state }) => this.#placement(clip, state, material)),
      ...(looks.placements || this.#serial > 0 ? { placementCount: this.#serial } : {}),
    };
  }

  #placement(
    { serial, trackSerial, source, base, start, length, edits }: Clip,
    state: SourcePlacement['state'],
    material: ReadonlyMap<number, number>,
  ): SourcePlacement {
    const imported = source === undefined ? undefined : material.get(source);
    const inBeats = base === 'beats';
    const other = (place: number): number | undefined =>
      inBeats ? this.#tempo?.secondsOf(place) : this.#tempo?.beatsOf(place);
    const given = { start: milli(start), end: milli(start + length) };
    const [from, to] = [other(start), other(start + length)];
    const estimated =
      from === undefined || to === undefined ? undefined : { start: milli(from), end: milli(to) };
    const beats = inBeats ? given : estimated;
    const approximateSeconds = inBeats ? estimated : given;
    return {
      placementId: `plc${serial}`,
      trackId: `trk${trackSerial}`,
      ...(imported === undefined ? {} : { sourceId: `s${imported + 1}` }),
      origin: imported === undefined ? this.#sources.originOf(source) : 'imported',
      ...(beats === undefined ? {} : { beats }),
      ...(approximateSeconds === undefined ? {} : { approximateSeconds }),
      state,
      edits,
    };
  }

  #add(id: number, clip: Pick<Clip, 'track' | 'source' | 'base' | 'start' | 'length'>): void {
    const { track: trackId, source, base, start, length } = clip;
    const track = this.#tracks.get(trackId);
    if (track === undefined) return;
    if (source === undefined) this.hasUnknownSource = true;
    this.#serial += 1;
    track.clips.add(id);
    this.#clips.set(id, {
      serial: this.#serial,
      track: trackId,
      trackSerial: track.serial,
      source,
      base,
      start,
      length,
      edits: 0,
    });
  }

  #edit(id: number): Clip | undefined {
    const clip = this.#clips.get(id);
    if (clip === undefined) return undefined;
    this.#keep(clip);
    clip.edits = Math.min(MAX_EDITS, clip.edits + 1);
    this.edits += 1;
    if (this.#sources.isMaterial(clip.source)) this.editsOfImports += 1;
    return clip;
  }

  /** Copies a clip of the last export before its first change. */
  #keep({ serial, source, base, start, length }: Clip): void {
    if (serial <= this.#exportSerial && !this.#changedSince.has(serial))
      this.#changedSince.set(serial, { source, base, start, length });
  }

  #remove(id: number): void {
    const clip = this.#clips.get(id);
    if (clip === undefined) return;
    this.#keep(clip);
    this.#clips.delete(id);
    this.#tracks.get(clip.track)?.clips.delete(id);
    remember(this.#goneClips, clip, REMEMBERED.placements, clip.serial);
  }
}

/** Returns the time spans of clips by the source that they show. */
export function spansBySource(
  clips: Iterable<Shown>,
  tempo: TempoMap | undefined,
): ReadonlyMap<number, readonly Span[]> {
  const found = new Map<number, Span[]>();
  for (const clip of clips) {
    if (clip.source === undefined) continue;
    const spans = found.get(clip.source) ?? [];
    spans.push(spanOf(clip, tempo));
    found.set(clip.source, spans);
  }
  return found;
}

/**
 * Returns the end of the last clip in seconds. Returns undefined when the position of a clip is unknown.
 */
export function endOf(clips: Iterable<Shown>, tempo: TempoMap | undefined): number | undefined {
  let latest = 0;
  for (const clip of clips) {
    const { end } = spanOf(clip, tempo);
    if (Number.isNaN(end)) return undefined;
    if (end > latest) latest = end;
  }
  return latest;
}

function spanOf({ base, start, length }: Shown, tempo: TempoMap | undefined): Span {
  if (base === 'seconds') return { start, end: start + length };
  const from = tempo?.secondsOf(start);
  const to = tempo?.secondsOf(start + length);
  // Without a tempo the position in seconds is unknown, so no time is claimed.
  return from === undefined || to === undefined
    ? { start: Number.NaN, end: Number.NaN }
    : { start: from, end: to };
}

/** Keeps the latest things in a ring buffer, at an index derived from their serial number. */
function remember<Thing extends { readonly serial: number }>(
  gone: Thing[],
  thing: Thing,
  most: number,
  serial: number,
): void {
  if (gone.length < most) gone.push(thing);
  else gone[serial % most] = thing;
}

/** Merges overlapping spans, in order. Spans at unknown positions are omitted. */
export function mergeSpans(spans: readonly Span[]): readonly Span[] {
  const merged: { start: number; end: number }[] = [];
  const known = spans.filter(({ start, end }) => end > start);
  for (const { start, end } of known.toSorted(
    (one, other) => one.start - other.start || one.end - other.end,
  )) {
    const last = merged.at(-1);
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end);
    else merged.push({ start, end });
  }
  return merged;
}

export function lengthOf(spans: readonly Span[]): number {
  return spans.reduce((sum, { start, end }) => sum + end - start, 0);
}
