import { createHash } from 'node:crypto';
import type { TraceEvent } from '../../witness/domain/trace.js';
import type { ClipState, ProjectState, TrackState } from './project-state.js';

/** Reads samples, and finds the files that have them, while a project is reported. */
export interface SampleReader {
  samplesOf(clip: ClipState): Promise<readonly Buffer[]>;
  /** Returns the SHA-256 of the file whose samples these are, or undefined if no original has them. */
  originalOf(channels: readonly Buffer[]): Promise<string | undefined>;
}

interface KnownSource {
  readonly source: number;
  /** The samples of the first channel, which show what a rewritten clip was made of. `MAX_KEPT_BYTES` bounds them. */
  readonly samples: Buffer | undefined;
}

interface KnownClip {
  readonly clip: number;
  readonly state: ClipState;
  readonly source: number;
}

interface KnownTrack {
  readonly track: number;
  readonly state: TrackState;
  readonly clips: readonly KnownClip[];
}

/** The most bytes of samples that are kept for comparison, of all sources together. */
const MAX_KEPT_BYTES = 268_435_456;
/** The greatest difference in seconds between two places that count as the same. */
const SAME_SECONDS = 1e-6;

/**
 * Turns the difference between two states of a project into events. Audacity's document has no ids, so tracks are
 * matched by name and order, and clips are matched by the sample blocks that they show.
 */
export class ProjectComparer {
  /** The events of the state that is being compared. */
  #events: TraceEvent[] = [];
  #sources = new Map<string, KnownSource>();
  #tracks: readonly KnownTrack[] = [];
  #labels: ProjectState['labels'] = [];
  #plugins: readonly (readonly number[])[] = [];
  #kept = 0;
  #ids = { track: 0, clip: 0, source: 0, plugin: 0 };
  /** The number of states whose events were returned. */
  #states = 0;

  /**
   * Returns what is new in a state. If its samples cannot be read, the next state is compared with the one before.
   * @param when the session clock in microseconds when this state (`at`) and the one before (`since`) were read. Both
   * are equal for a state that was found
   */
  async take(now: ProjectState, samples: SampleReader, when: When): Promise<readonly TraceEvent[]> {
    const [sources, kept] = [new Map(this.#sources), this.#kept];
    this.#events = [];
    try {
      await this.#compare(now, samples, when);
    } catch (error) {
      // The trace will not have the sources of this state.
      this.#sources = sources;
      this.#kept = kept;
      throw error;
    }
    this.#states += 1;
    return this.#events;
  }

  async #compare(now: ProjectState, samples: SampleReader, when: When): Promise<void> {
    if (this.#states === 0)
      this.#add({ kind: 'session.opened', at: when.at, sampleRate: Math.round(now.rate) });
    // Audacity writes names, mixer settings and effects with the next edit, so the second state may have older ones.
    const late = this.#states < 2 ? { at: when.at, since: when.at } : when;
    const { pairs, gone } = matchTracks(this.#tracks, now.tracks);
    for (const { track, clips } of gone) {
      for (const { clip } of clips) this.#add({ kind: 'clip.deleted', ...when, clip });
      this.#add({ kind: 'track.removed', ...when, track });
    }
    const before = this.#tracks;
    const plugins: number[][] = [];
    // A clip may have been copied or moved from any known clip of any track.
    const everywhere = before.flatMap(({ clips }) => clips);
    const tracks: KnownTrack[] = [];
    for (const [known, state] of pairs) {
      const track = known?.track ?? this.#addTrack(when);
      if (known !== undefined) this.#compareTrack(known, state, when, late);
      const effects = this.#plugins[known === undefined ? -1 : before.indexOf(known)] ?? [];
      plugins.push(this.#comparePlugins(track, effects, state, late));
      const clips = await this.#compareClips(track, known, state, everywhere, samples, when);
      tracks.push({ track, state, clips });
    }
    this.#tracks = tracks;
    this.#plugins = plugins;
    this.#compareLabels(now.labels, when);
    this.#add({
      kind: 'sourceMap.completed',
      at: when.at,
      sources: this.#sources.size,
      clips: this.#tracks.reduce((sum, { clips }) => sum + clips.length, 0),
    });
  }

  #addTrack(when: When): number {
    const track = this.#next('track');
    this.#add({ kind: 'track.added', ...when, track, type: 'audio' });
    return track;
  }

  #compareTrack({ track, state }: KnownTrack, now: TrackState, when: When, late: When): void {
    if (state.name !== now.name) this.#add({ kind: 'track.changed', ...late, track, property: 'name' });
    for (const control of ['gain', 'pan', 'mute', 'solo'] as const)
      if (state.controls[control] !== now.controls[control])
        this.#add({ kind: 'mixer.changed', ...late, track, control });
    const points = (one: TrackState): readonly string[] => one.clips.flatMap(({ envelope }) => envelope);
    const added = countMissing(points(now), points(state));
    const removed = countMissing(points(state), points(now));
    if (added + removed > 0)
      this.#add({ kind: 'automation.edited', ...when, track, added, removed, changed: 0 });
  }

  #comparePlugins(track: number, known: readonly number[], { effects }: TrackState, when: When): number[] {
    for (const plugin of known.slice(effects)) this.#add({ kind: 'plugin.removed', ...when, plugin });
    const added = Array.from({ length: Math.max(0, effects - known.length) }, () => this.#next('plugin'));
    // The project does not say whether an effect plays sound of its own.
    for (const plugin of added) this.#add({ kind: 'plugin.added', ...when, plugin, track, type: 'unknown' });
    return [...known.slice(0, effects), ...added];
  }

  async #compareClips(
    track: number,
    known: KnownTrack | undefined,
    now: TrackState,
    everywhere: readonly KnownClip[],
    samples: SampleReader,
    when: When,
  ): Promise<readonly KnownClip[]> {
    const left = [...(known?.clips ?? [])];
    const matched = new Map<ClipState, KnownClip>();
    // Unchanged clips are matched first, then clips that show the same samples elsewhere, or fewer of them.
    for (const state of now.clips) {
      const same = takeFrom(left, (clip) => sameBlocks(clip.state, state) && samePlace(clip.state, state));
      if (same !== undefined) matched.set(state, { ...same, state });
    }
    const rest = now.clips.filter((state) => !matched.has(state));
    for (const state of rest) {
      const moved = takeFrom(left, (clip) => sameBlocks(clip.state, state) && sameWindow(clip.state, state));
      if (moved === undefined) continue;
      this.#add({ kind: 'clip.moved', ...when, clip: moved.clip, track, start: state.start });
      matched.set(state, { ...moved, state });
    }
    for (const clip of [...left]) this.#matchParts(clip, rest, matched, left, when);
    for (const state of rest) {
      if (matched.has(state)) continue;
      matched.set(state, await this.#addClip(track, state, left, everywhere, samples, when));
    }
    for (const { clip } of left) this.#add({ kind: 'clip.deleted', ...when, clip });
    return now.clips.map((state) => matched.get(state) as KnownClip);
  }

  /** Reports a trim or a split: one clip with other ends, or several side by side, now show the samples of a clip. */
  #matchParts(
    known: KnownClip,
    rest: readonly ClipState[],
    matched: Map<ClipState, KnownClip>,
    left: KnownClip[],
    when: When,
  ): void {
    const parts = rest
      .filter((state) => !matched.has(state) && sameBlocks(known.state, state))
      .filter(
        ({ start, length }) =>
          start >= known.state.start - SAME_SECONDS &&
          start + length <= known.state.start + known.state.length + SAME_SECONDS,
      )
      .sort((one, other) => one.start - other.start);
    const [first, ...others] = parts;
    if (first === undefined) return;
    left.splice(left.indexOf(known), 1);
    let right = known.clip;
    const ids = [known.clip];
    for (const { start } of others) {
      const clip = this.#next('clip');
      this.#add({ kind: 'clip.split', ...when, clip: right, right: clip, start });
      ids.push(clip);
      right = clip;
    }
    for (const [index, state] of parts.entries()) {
      const clip = ids[index] as number;
      const next = parts[index + 1];
      const end = next === undefined ? known.state.start + known.state.length : next.start;
      const begin = index === 0 ? known.state.start : state.start;
      if (
        Math.abs(state.start - begin) > SAME_SECONDS ||
        Math.abs(state.start + state.length - end) > SAME_SECONDS
      )
        this.#add({ kind: 'clip.trimmed', ...when, clip, start: state.start, length: state.length });
      matched.set(state, { clip, state, source: known.source });
    }
  }

  async #addClip(
    track: number,
    state: ClipState,
    left: KnownClip[],
    everywhere: readonly KnownClip[],
    samples: SampleReader,
    when: When,
  ): Promise<KnownClip> {
    const key = sourceKey(state);
    const shown = this.#sources.get(key);
    const from = shown === undefined ? undefined : everywhere.find(({ source }) => source === shown.source);
    if (shown !== undefined) {
      const clip = this.#next('clip');
      if (from !== undefined && sameWindow(from.state, state))
        this.#add({ kind: 'clip.copied', ...when, from: from.clip, clip, track, start: state.start });
      else this.#addCreated(clip, track, shown.source, state, when);
      return { clip, state, source: shown.source };
    }
    const channels = await samples.samplesOf(state);
    const ancestor = this.#ancestorOf(channels[0], left);
    const source = this.#addSource(key, channels[0]);
    const samplesSha256 = digestOf(channels);
    if (ancestor !== undefined) {
      // The clip was rewritten because it was cut within, or because an effect was applied.
      this.#add({
        kind: 'source.derived',
        ...when,
        source,
        from: ancestor.known.source,
        manner: ancestor.cut ? 'copy' : 'other',
        samplesSha256,
      });
      left.splice(left.indexOf(ancestor.known), 1);
      this.#add({ kind: 'clip.replaced', ...when, clip: ancestor.known.clip, source });
      if (!samePlace(ancestor.known.state, state))
        this.#add({
          kind: 'clip.trimmed',
          ...when,
          clip: ancestor.known.clip,
          start: state.start,
          length: state.length,
        });
      return { clip: ancestor.known.clip, state, source };
    }
    const originalSha256 = await samples.originalOf(channels);
    if (originalSha256 === undefined || when.since === when.at)
      this.#add({
        kind: 'source.appeared',
        ...when,
        source,
        claims: originalSha256 === undefined ? 'nothing' : 'import',
        samplesSha256,
      });
    else
      this.#add({
        kind: 'import.added',
        ...when,
        source,
        manner: 'copied',
        samplesSha256,
        originalSha256,
        frames: state.frames,
        rate: Math.round(state.rate),
        channels: state.blocks.length,
      });
    const clip = this.#next('clip');
    this.#addCreated(clip, track, source, state, when);
    return { clip, state, source };
  }

  #addCreated(clip: number, track: number, source: number, state: ClipState, when: When): void {
    this.#add({
      kind: 'clip.created',
      ...when,
      clip,
      track,
      source,
      base: 'seconds',
      start: state.start,
      length: state.length,
    });
  }

  /** Returns the removed clip whose samples after a cut are the new ones, or else the track's first removed clip. */
  #ancestorOf(
    samples: Buffer | undefined,
    left: readonly KnownClip[],
  ): { readonly known: KnownClip; readonly cut: boolean } | undefined {
    if (samples === undefined) return undefined;
    for (const known of left) {
      const earlier = [...this.#sources.values()].find(({ source }) => source === known.source)?.samples;
      if (earlier !== undefined && isCutOf(samples, earlier)) return { known, cut: true };
    }
    const [known] = left;
    return known === undefined ? undefined : { known, cut: false };
  }

  #addSource(key: string, samples: Buffer | undefined): number {
    const source = this.#next('source');
    const keep = samples !== undefined && this.#kept + samples.length <= MAX_KEPT_BYTES;
    if (keep) this.#kept += samples.length;
    this.#sources.set(key, { source, samples: keep ? samples : undefined });
    return source;
  }

  #compareLabels(labels: ProjectState['labels'], when: When): void {
    const text = ({ start, text: rest }: ProjectState['labels'][number]): string => `${start} ${rest}`;
    const known = this.#labels.map(text);
    const now = labels.map(text);
    for (const label of labels)
      if (!known.includes(text(label)))
        this.#add({ kind: 'marker.changed', ...when, act: 'added', start: label.start });
    for (let count = countMissing(known, now); count > 0; count -= 1)
      this.#add({ kind: 'marker.changed', ...when, act: 'removed' });
    this.#labels = labels;
  }

  #add(event: TraceEvent): void {
    this.#events.push(event);
  }

  #next(kind: 'track' | 'clip' | 'source' | 'plugin'): number {
    this.#ids[kind] += 1;
    return this.#ids[kind];
  }
}

interface When {
  readonly at: number;
  readonly since: number;
}

/**
 * Pairs tracks by name and number of channels, in their order. If the number of tracks is unchanged, a track with a
 * new name was only renamed. It is paired with the next track left that has as many channels.
 */
function matchTracks(
  known: readonly KnownTrack[],
  now: readonly TrackState[],
): {
  readonly pairs: readonly (readonly [KnownTrack | undefined, TrackState])[];
  readonly gone: readonly KnownTrack[];
} {
  const left = [...known];
  const byName = now.map((track) =>
    takeFrom(left, ({ state }) => state.name === track.name && state.channels === track.channels),
  );
  const pairs = now.map(
    (track, index) =>
      [
        byName[index] ??
          (now.length === known.length
            ? takeFrom(left, ({ state }) => state.channels === track.channels)
            : undefined),
        track,
      ] as const,
  );
  return { pairs, gone: left };
}

/** Removes the first item that fits from a list. */
function takeFrom<Item>(list: Item[], fits: (item: Item) => boolean): Item | undefined {
  const index = list.findIndex(fits);
  return index < 0 ? undefined : list.splice(index, 1)[0];
}

function sourceKey({ blocks }: ClipState): string {
  return blocks.map((channel) => channel.join(',')).join('|');
}

function sameBlocks(one: ClipState, other: ClipState): boolean {
  return sourceKey(one) === sourceKey(other);
}

function sameWindow(one: ClipState, other: ClipState): boolean {
  return (
    Math.abs(one.trimLeft - other.trimLeft) <= SAME_SECONDS &&
    Math.abs(one.trimRight - other.trimRight) <= SAME_SECONDS
  );
}

function samePlace(one: ClipState, other: ClipState): boolean {
  return sameWindow(one, other) && Math.abs(one.start - other.start) <= SAME_SECONDS;
}

/** Returns the SHA-256 of all channels' samples, one channel after the other. */
function digestOf(channels: readonly Buffer[]): string {
  const hash = createHash('sha256');
  for (const channel of channels) hash.update(channel);
  return hash.digest('hex');
}

/** Returns true if samples are those of another clip without one stretch. */
function isCutOf(samples: Buffer, whole: Buffer): boolean {
  if (samples.length === 0 || samples.length > whole.length) return false;
  let head = 0;
  while (head < samples.length && samples[head] === whole[head]) head += 1;
  let tail = 0;
  while (tail < samples.length && samples[samples.length - 1 - tail] === whole[whole.length - 1 - tail])
    tail += 1;
  return head + tail >= samples.length;
}

function countMissing(of: readonly string[], within: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const text of within) counts.set(text, (counts.get(text) ?? 0) + 1);
  let missing = 0;
  for (const text of of) {
    const count = counts.get(text) ?? 0;
    if (count === 0) missing += 1;
    else counts.set(text, count - 1);
  }
  return missing;
}
