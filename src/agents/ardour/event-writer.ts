/** Reports acts on the arrangement, together with the tracks and sources that they need. */
import type { Ledger, When } from './ledger.js';
import type { ClipState, RegionState, SessionState, TempoMap } from './session-file.js';
import { type Claim, readClaims, type SourceWitness, writeSource } from './sources.js';

/** The content of a save that is to be reported. */
export interface EventWriterInput {
  readonly ledger: Ledger;
  readonly session: SessionState;
  /** What the agent saw of the files of new sources, by the ids of the sources. */
  readonly witnessed: ReadonlyMap<string, SourceWitness>;
  /** The ids of the sources that transactions have put into the arrangement since the last save. */
  readonly placed: ReadonlySet<string>;
  /** The sources of notes that transactions have put in the place of others, each with the one that it replaced. */
  readonly forks: ReadonlyMap<string, string>;
  /** The time of the last save in microseconds, or of this one if what differs may be older than the agent. */
  readonly since: number;
  /** The time of the last save (of this one if it is the first) in microseconds, for takes that were seen to grow. */
  readonly seenSince: number;
}

/** Returns true if two clips show the same part of the same source. */
export function showsTheSame(one: RegionState, other: RegionState): boolean {
  return one.source === other.source && one.offset === other.offset && one.length === other.length;
}

const MAX_DERIVATIONS = 256;

const NOTHING_SEEN: SourceWitness = { appeared: false };

/** Reports acts to the ledger, and updates its clips. The ledger has the clips by the ids of their regions. */
export class EventWriter {
  readonly ledger: Ledger;
  readonly session: SessionState;
  readonly #input: EventWriterInput;
  readonly #claims: ReadonlyMap<string, Claim>;
  /** The ids of the sources whose origins are being reported. */
  readonly #derived = new Set<string>();

  constructor(input: EventWriterInput) {
    this.#input = input;
    this.ledger = input.ledger;
    this.session = input.session;
    this.#claims = readClaims(input.session, input.forks);
  }

  /** Returns the id of a track, and reports a new one. Returns undefined if the session file has no such track. */
  track(id: string, when: When): number | undefined {
    const known = this.ledger.tracks.get(id);
    if (known !== undefined) return known.track;
    const state = this.session.tracks.get(id);
    if (state === undefined) return undefined;
    const track = this.ledger.next('track');
    this.ledger.tracks.set(id, { track, state });
    this.ledger.add({ kind: 'track.added', track, type: state.type }, this.#since(when));
    return track;
  }

  /** Returns the id of a source, and reports a new one. Returns undefined if the session file has no such source. */
  source(id: string, when: When): number | undefined {
    const known = this.ledger.sources.get(id);
    if (known !== undefined) return known.source;
    const state = this.session.sources.get(id);
    const claim = this.#claims.get(id);
    if (state === undefined || claim === undefined) return undefined;
    this.#writeOrigins(id, claim, when);
    const witness = this.#input.witnessed.get(id) ?? NOTHING_SEEN;
    const isSeen = witness.take !== undefined || (claim.kind === 'import' && witness.appeared);
    const placed = this.#input.placed.has(id);
    // The transaction that placed a take or an import also added it, so its time is that of the source.
    const since = witness.take === undefined ? this.#input.since : this.#input.seenSince;
    const time = isSeen && placed ? when : this.#since(when, since);
    return writeSource(this.ledger, state, claim, witness, placed, time).source;
  }

  /** Reports the sources that a source was made of, before it. A file may claim a circle, or an endless chain. */
  #writeOrigins(id: string, claim: Claim, when: When): void {
    if (claim.kind !== 'derived' || this.#derived.size >= MAX_DERIVATIONS) return;
    this.#derived.add(id);
    for (const from of claim.from) if (!this.#derived.has(from)) this.source(from, when);
    this.#derived.delete(id);
  }

  /** Reports a clip that was not there. The clip is a copy if another shows the same, unless the clip was found. */
  place(clip: ClipState, when: When): void {
    const track = this.track(clip.track, when);
    if (track === undefined || this.ledger.clips.has(clip.id)) return;
    const sources = clip.sources.map((id) => this.source(id, when));
    const source = sources[0];
    const isFound = when.since === when.at;
    const from = isFound
      ? undefined
      : [...this.ledger.clips.values()].find(({ state }) => showsTheSame(state, clip));
    const id = this.ledger.next('clip');
    this.ledger.clips.set(clip.id, { clip: id, state: clip });
    const { base, start, length } = clip;
    if (from !== undefined)
      this.ledger.add({ kind: 'clip.copied', from: from.clip, clip: id, track, start }, when);
    else
      this.ledger.add(
        {
          kind: 'clip.created',
          clip: id,
          track,
          base,
          start,
          length,
          ...(source === undefined ? {} : { source }),
        },
        when,
      );
  }

  remove(id: string, when: When): void {
    const known = this.ledger.clips.get(id);
    if (known === undefined) return;
    this.ledger.clips.delete(id);
    this.ledger.add({ kind: 'clip.deleted', clip: known.clip }, when);
  }

  /** Reports that a clip of the same id is at another place or has another length. */
  reshape(id: string, to: ClipState | undefined, when: When): void {
    const known = this.ledger.clips.get(id);
    const track = to === undefined ? undefined : this.track(to.track, when);
    if (known === undefined || to === undefined || track === undefined) return;
    const { clip, state } = known;
    this.ledger.clips.set(id, { clip, state: to });
    // The extent is written as before: the clip is elsewhere because the tempo changed, and was not moved.
    if (state.extent === to.extent && state.track === to.track) return;
    const isMoved = state.track !== to.track || state.start !== to.start;
    if (state.length !== to.length) {
      if (state.track !== to.track)
        this.ledger.add({ kind: 'clip.moved', clip, track, start: to.start }, when);
      this.ledger.add({ kind: 'clip.trimmed', clip, start: to.start, length: to.length }, when);
    } else if (isMoved) {
      this.ledger.add({ kind: 'clip.moved', clip, track, start: to.start }, when);
    }
  }

  split(id: string, [left, right]: readonly [ClipState, ClipState], when: When): void {
    const known = this.ledger.clips.get(id);
    if (known === undefined) return;
    const other = this.ledger.next('clip');
    this.ledger.clips.delete(id);
    this.ledger.clips.set(left.id, { clip: known.clip, state: left });
    this.ledger.clips.set(right.id, { clip: other, state: right });
    this.ledger.add({ kind: 'clip.split', clip: known.clip, right: other, start: right.start }, when);
  }

  /** Reports that a clip continues under another id: on another track, or with samples that were made of its own. */
  become(id: string, to: ClipState, when: When): void {
    const known = this.ledger.clips.get(id);
    if (known === undefined) return;
    const source = this.source(to.source, when);
    this.ledger.clips.delete(id);
    this.ledger.clips.set(to.id, { clip: known.clip, state: known.state });
    if (to.source !== known.state.source && source !== undefined)
      this.ledger.add({ kind: 'clip.replaced', clip: known.clip, source }, when);
    this.reshape(to.id, to, when);
  }

  /** Returns true if a clip shows a source that is a stretch or a copy of what another shows. */
  comesFrom(clip: ClipState, other: ClipState | undefined): boolean {
    const claim = this.#claims.get(clip.source);
    return (
      other !== undefined &&
      claim?.kind === 'derived' &&
      (claim.manner === 'stretch' || claim.manner === 'copy') &&
      claim.from.includes(other.source) &&
      clip.base === other.base
    );
  }

  /** Reports a tempo map if it has changed. */
  writeTempo(map: TempoMap, when: When): void {
    const text = JSON.stringify(map);
    if (this.ledger.tempo !== undefined && JSON.stringify(this.ledger.tempo) === text) return;
    this.ledger.tempo = map;
    this.ledger.add({ kind: 'tempo.map' }, when);
    for (const point of map.tempos) this.ledger.add({ kind: 'tempo.point', ...point }, when);
    for (const point of map.meters) this.ledger.add({ kind: 'meter.point', ...point }, when);
  }

  /** Returns the interval of what is reported with an act: from the last save to the act. */
  #since({ at, since }: When, earliest = this.#input.since): When {
    return { at, since: Math.min(earliest, since ?? at) };
  }
}
