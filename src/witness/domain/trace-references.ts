/**
 * References between the events of a trace. Writer and reader track the same set of live items. So the
 * library refuses to write what the service would refuse to read, and a replay can trust each identifier.
 */
import { TRACE_LIMITS, type TraceEvent, TraceFault, TraceLimitFault } from './trace.js';

/** The set of live items. `TRACE_LIMITS.live` bounds its size for any number of events. */
export class TraceReferences {
  /** The live tracks, each with its live clips. */
  readonly #tracks = new Map<number, Set<number>>();
  /** The track of each live clip. */
  readonly #clips = new Map<number, number>();
  readonly #plugins = new Set<number>();
  /** Ids of sources and takes are never reused. The value is true while the source or take is live. */
  readonly #sources = new Map<number, boolean>();
  readonly #takes = new Map<number, boolean>();
  /** The number of points in the current snapshot of the tempo map, and the last place of each kind. */
  #points = 0;
  #lastTempo = 0;
  #lastMeter = 0;

  /**
   * Applies the next event.
   * @throws TraceFault if the event refers to an unknown item, creates an existing item, or exceeds a bound.
   * The set is then unchanged.
   */
  take(event: TraceEvent): void {
    switch (event.kind) {
      case 'tempo.map':
        this.#points = this.#lastTempo = this.#lastMeter = 0;
        return;
      case 'tempo.point':
        this.#lastTempo = this.#point(event.kind, event.start, this.#lastTempo);
        return;
      case 'meter.point':
        this.#lastMeter = this.#point(event.kind, event.start, this.#lastMeter);
        return;
      case 'track.added':
        fresh(this.#tracks, event.track, TRACE_LIMITS.live.tracks, event.kind, 'track');
        this.#tracks.set(event.track, new Set());
        return;
      case 'track.removed':
        for (const clip of this.#track(event)) this.#clips.delete(clip);
        this.#tracks.delete(event.track);
        return;
      case 'track.changed':
      case 'recording.input':
        this.#track(event);
        return;
      case 'automation.edited':
      case 'automation.mode':
      case 'mixer.changed':
        this.#trackIfAny(event);
        return;
      case 'clip.created':
        if (event.source !== undefined) this.#source(event.kind, event.source);
        this.#newClip(event.kind, event.clip, event.track);
        return;
      case 'clip.copied':
        this.#clip(event.kind, event.from);
        this.#newClip(event.kind, event.clip, event.track);
        return;
      case 'clip.split':
        this.#newClip(event.kind, event.right, this.#clip(event.kind, event.clip));
        return;
      case 'clip.moved': {
        const from = this.#clip(event.kind, event.clip);
        const to = this.#track(event);
        this.#tracks.get(from)!.delete(event.clip);
        to.add(event.clip);
        this.#clips.set(event.clip, event.track);
        return;
      }
      case 'clip.deleted':
        this.#tracks.get(this.#clip(event.kind, event.clip))!.delete(event.clip);
        this.#clips.delete(event.clip);
        return;
      case 'clip.trimmed':
      case 'clip.changed':
        this.#clip(event.kind, event.clip);
        return;
      case 'clip.replaced':
        this.#source(event.kind, event.source);
        this.#clip(event.kind, event.clip);
        return;
      case 'midi.edited':
        if (event.source !== undefined) this.#sourceOfNotes(event.kind, event.source);
        return;
      case 'midi.recorded':
        if (this.#takes.get(event.take) !== true) this.#freshTake(event.kind, event.take);
        if (event.source !== undefined) this.#sourceOfNotes(event.kind, event.source);
        this.#takes.set(event.take, false);
        return;
      case 'recording.started':
        this.#trackIfAny(event);
        this.#freshTake(event.kind, event.take);
        this.#takes.set(event.take, true);
        return;
      case 'recording.grew':
        this.#runningTake(event.kind, event.take);
        return;
      case 'recording.finished':
        this.#runningTake(event.kind, event.take);
        this.#newSource(event.kind, event.source);
        this.#takes.set(event.take, false);
        return;
      case 'recording.discarded':
        this.#runningTake(event.kind, event.take);
        this.#takes.set(event.take, false);
        return;
      case 'plugin.added':
        this.#trackIfAny(event);
        fresh(this.#plugins, event.plugin, TRACE_LIMITS.live.plugins, event.kind, 'plugin');
        this.#plugins.add(event.plugin);
        return;
      case 'plugin.removed':
        known(this.#plugins, event.plugin, event.kind, 'plugin');
        this.#plugins.delete(event.plugin);
        return;
      case 'plugin.changed':
        known(this.#plugins, event.plugin, event.kind, 'plugin');
        return;
      case 'import.added':
      case 'source.appeared':
        this.#newSource(event.kind, event.source);
        return;
      case 'source.derived':
        // There is one event for each source that it was made from, so a second event has the same source.
        if (event.from !== undefined) this.#source(event.kind, event.from);
        if (event.from === event.source)
          throw new TraceFault(`${event.kind}: a source is derived from itself`);
        if (!this.#sources.has(event.source)) this.#newSource(event.kind, event.source);
        return;
      case 'source.removed':
        this.#source(event.kind, event.source);
        if (!this.#sources.get(event.source))
          throw new TraceFault(`${event.kind}: the source was already removed`);
        this.#sources.set(event.source, false);
        return;
      case 'capture.gap':
        if (event.since === undefined) throw new TraceFault(`${event.kind}: since is missing`);
        return;
      default:
        return;
    }
  }

  #point(kind: string, start: number, last: number): number {
    if (start < last) throw new TraceFault(`${kind}: the point starts before the previous point`);
    if (this.#points >= TRACE_LIMITS.live.tempoPoints) throw tooMany(kind, 'points');
    this.#points += 1;
    return start;
  }

  #track(event: { readonly kind: string; readonly track: number }): Set<number> {
    const clips = this.#tracks.get(event.track);
    if (clips === undefined) throw unknown(event.kind, 'track');
    return clips;
  }

  #trackIfAny({ kind, track }: { readonly kind: string; readonly track?: number }): void {
    if (track !== undefined) this.#track({ kind, track });
  }

  /** Returns the track of a live clip. */
  #clip(kind: string, clip: number): number {
    const track = this.#clips.get(clip);
    if (track === undefined) throw unknown(kind, 'clip');
    return track;
  }

  #newClip(kind: string, clip: number, track: number): void {
    const clips = this.#track({ kind, track });
    fresh(this.#clips, clip, TRACE_LIMITS.live.clips, kind, 'clip');
    clips.add(clip);
    this.#clips.set(clip, track);
  }

  /**
   * Accepts removed sources, because clips may still use them: undoing a removal does not report the source
   * again.
   */
  #source(kind: string, source: number): void {
    known(this.#sources, source, kind, 'source');
  }

  #newSource(kind: string, source: number): void {
    fresh(this.#sources, source, TRACE_LIMITS.live.sources, kind, 'source');
    this.#sources.set(source, true);
  }

  /** Creates the source of entered notes if it does not exist yet. */
  #sourceOfNotes(kind: string, source: number): void {
    if (!this.#sources.has(source)) this.#newSource(kind, source);
  }

  #freshTake(kind: string, take: number): void {
    fresh(this.#takes, take, TRACE_LIMITS.live.takes, kind, 'take');
  }

  #runningTake(kind: string, take: number): void {
    known(this.#takes, take, kind, 'take');
    if (!this.#takes.get(take)) throw new TraceFault(`${kind}: the take has already ended`);
  }
}

interface Ids {
  readonly size: number;
  has(id: number): boolean;
}

function fresh(ids: Ids, id: number, most: number, kind: string, what: string): void {
  if (ids.has(id)) throw new TraceFault(`${kind}: the id of the ${what} is already in use`);
  if (ids.size >= most) throw tooMany(kind, `${what}s`);
}

function known(ids: Ids, id: number, kind: string, what: string): void {
  if (!ids.has(id)) throw unknown(kind, what);
}

function unknown(kind: string, what: string): TraceFault {
  return new TraceFault(`${kind}: the id of the ${what} is unknown`);
}

function tooMany(kind: string, what: string): TraceFault {
  return new TraceLimitFault(`${kind}: the trace has more ${what} than allowed`);
}
