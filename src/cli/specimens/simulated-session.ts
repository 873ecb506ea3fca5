import { COUNTERS, type CounterName } from '../../witness/domain/session-evidence.js';
import {
  CHANNELS,
  type Channel,
  type ChannelSupport,
  EVENTS,
  type TraceEvent,
  TraceFault,
} from '../../witness/domain/trace.js';
import { TraceReferences } from '../../witness/domain/trace-references.js';
import { SeededRandom } from './random.js';

/** Scenarios in which what was done speaks against the music, or the file against the trace. */
export const ADVERSE_SCENARIOS = [
  // of the session
  'import_only',
  'placements_without_recording',
  'imports_cover_export',
  'activity_after_export',
  'edits_of_imports_only',
  'laundered',
  'unwatched',
  // of the file
  'unsigned_tail',
  'gap',
  'truncated',
  'broken_chain',
] as const;
export type AdverseScenario = (typeof ADVERSE_SCENARIOS)[number];

export interface SessionOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly adverse?: readonly AdverseScenario[];
  /** The SHA-256 of the exported file in lower-case hex. It is random if it is absent. */
  readonly exportSha256?: string;
  /** The support of channels that is not `supported`. A channel that is unsupported or unknown gets no events. */
  readonly channels?: Partial<Readonly<Record<Channel, ChannelSupport>>>;
  /** The frequency of acts in relation to a person's pace. Default: 1. */
  readonly pace?: number;
}

type Counts = Partial<Record<CounterName, number>>;
type Origin = 'recorded' | 'imported' | 'midi' | 'derived' | 'unknown';

interface Clip {
  readonly id: number;
  track: number;
  readonly origin: Origin;
  readonly source: number | undefined;
  /** True if the clip shows an imported file, or something made of one. */
  readonly imported: boolean;
  readonly base: 'seconds' | 'beats';
  start: number;
  length: number;
}

interface Source {
  readonly id: number;
  readonly origin: Origin;
  readonly imported: boolean;
  readonly seconds: number;
}

const RATE = 48_000;
const MICROSECONDS = 1_000_000;
/** The length of an arrangement in seconds, however long the session is. */
const ARRANGEMENT_SECONDS = 210;
/** The most seconds of imports unless a scenario is about them: less than half, so no rule asks for a person. */
const MOST_IMPORTED_SECONDS = 0.4 * ARRANGEMENT_SECONDS;
/** The most seconds of an imported file: a loop or a single sound, or a whole part if imports are the scenario. */
const IMPORT_SECONDS = { few: 12, many: 60 } as const;
/** A take has grown by at least three steps. */
const GROWTH_STEPS = [4, 40] as const;
/** The most clips that exist at a time. A person tidies up, too. */
const MAX_CLIPS = 400;
const MAX_SOURCES = 4000;
const MAX_TRACKS = 48;
const MAX_PLUGINS = 200;

/**
 * The work on a piece of music as an agent would report it, generated from a seed. It counts its own acts. A replay
 * of its events must reach the same numbers.
 */
export class SimulatedSession {
  readonly #random: SeededRandom;
  readonly #adverse: ReadonlySet<AdverseScenario>;
  readonly #options: SessionOptions;
  readonly #channels: Readonly<Record<Channel, ChannelSupport>>;
  readonly #counters: Record<CounterName, number>;
  readonly #references = new TraceReferences();
  #events: TraceEvent[] = [];
  #now = 0;
  #lastSave = 0;
  #ids = 0;
  readonly #tracks: { readonly id: number; readonly type: 'audio' | 'midi' | 'bus' }[] = [];
  #clips: Clip[] = [];
  readonly #sources: Source[] = [];
  readonly #plugins: number[] = [];

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    this.#adverse = new Set(options.adverse ?? []);
    this.#channels = {
      ...(Object.fromEntries(CHANNELS.map((channel) => [channel, 'supported'])) as Record<
        Channel,
        'supported'
      >),
      ...options.channels,
    };
    this.#counters = Object.fromEntries(Object.keys(COUNTERS).map((name) => [name, 0])) as Record<
      CounterName,
      number
    >;
  }

  get channels(): Readonly<Record<Channel, ChannelSupport>> {
    return this.#channels;
  }

  /** The acts so far, as the session counts them. A counter whose channel reports nothing is 0. */
  get counters(): Readonly<Record<CounterName, number>> {
    return this.#counters;
  }

  /** Yields the events in the order of time: a batch for the start, one for each act, and one for the end. */
  *events(): Generator<readonly TraceEvent[], void, undefined> {
    const end = this.#options.minutes * 60 * MICROSECONDS;
    const acts = this.#acts();
    this.#begin();
    yield this.#takeEvents();
    // The last minute is for the export.
    while (this.#now < end - 60 * MICROSECONDS) {
      this.#pick(acts)();
      if (this.#now - this.#lastSave > 300 * MICROSECONDS) this.#save();
      yield this.#takeEvents();
    }
    if (this.#adverse.has('imports_cover_export')) this.#coverWithImports();
    this.#save();
    this.#export();
    if (this.#adverse.has('activity_after_export')) for (let i = 0; i < 8; i += 1) this.#editClip();
    this.#say({ kind: 'session.closed', at: this.#pass(5) });
    yield this.#takeEvents();
  }

  #takeEvents(): readonly TraceEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** Returns the acts of the session with their weights. */
  #acts(): readonly (readonly [weight: number, act: () => void])[] {
    const importOnly = this.#adverse.has('import_only');
    const onlyPlaced = this.#adverse.has('placements_without_recording');
    const plays = importOnly || onlyPlaced ? 0 : 1;
    return [
      [6 * plays, () => this.#record('hardware')],
      [6 * plays, () => this.#editNotes()],
      [3 * plays, () => this.#recordNotes()],
      [onlyPlaced ? 0 : importOnly ? 10 : 3, () => this.#import()],
      [onlyPlaced ? 10 : 0, () => this.#appear()],
      [this.#adverse.has('laundered') ? 8 : 0, () => this.#launder()],
      [40, () => this.#editClip()],
      [12, () => this.#automate()],
      [5, () => this.#plug()],
      [16, () => this.#mix()],
      [14, () => this.#play()],
      [2, () => this.#addTrack()],
      [1, () => this.#removeTrack()],
      [1, () => this.#changeTempo()],
      [2, () => this.#undo()],
      [1, () => this.#mark()],
      [1, () => this.#derive()],
      [this.#adverse.has('unwatched') ? 2 : 0, () => this.#lookAway()],
    ];
  }

  #pick(acts: readonly (readonly [number, () => void])[]): () => void {
    let rest = this.#random.next() * acts.reduce((sum, [weight]) => sum + weight, 0);
    const picked = acts.find(([weight]) => {
      rest -= weight;
      return rest < 0;
    });
    return (picked ?? acts[0]!)[1];
  }

  /** Moves the session clock on, by less where the pace is higher. */
  #pass(seconds: number): number {
    this.#now += Math.max(1, Math.round((seconds * MICROSECONDS) / (this.#options.pace ?? 1)));
    return this.#now;
  }

  /** Moves the session clock on by time that no pace can shorten. */
  #passRealTime(seconds: number): number {
    this.#now += Math.round(seconds * MICROSECONDS);
    return this.#now;
  }

  #newId(): number {
    this.#ids += 1;
    return this.#ids;
  }

  /** Returns the last save as `since` for some edits, which are known from the difference between two saves alone. */
  #interval(): { readonly since?: number } {
    return this.#random.chance(0.08) ? { since: this.#lastSave } : {};
  }

  /** Reports an event if its channel is watched and its references are known, and counts it. */
  #say(event: TraceEvent, counts: Counts = {}): boolean {
    if (!this.#watches(EVENTS[event.kind].channel)) return false;
    const seen = this.#withoutUnseen(event);
    try {
      this.#references.take(seen);
    } catch (error) {
      if (error instanceof TraceFault) return false;
      throw error;
    }
    this.#events.push(seen);
    for (const [name, count] of Object.entries(counts) as [CounterName, number][])
      if (this.#watches(COUNTERS[name])) this.#counters[name] += count;
    return true;
  }

  #watches(channel: Channel): boolean {
    return this.#channels[channel] === 'supported' || this.#channels[channel] === 'partial';
  }

  /** Returns the event without the members that only an unwatched channel could have reported. */
  #withoutUnseen(event: TraceEvent): TraceEvent {
    const { ...members } = event as TraceEvent & { track?: number; source?: number };
    if ('track?' in EVENTS[event.kind].fields && !this.#watches('tracks')) delete members.track;
    if (event.kind === 'clip.created' && !this.#seesSource(event.source)) delete members.source;
    return members;
  }

  #seesSource(id: number | undefined): boolean {
    const origin = this.#sources.find((source) => source.id === id)?.origin;
    const channel = {
      recorded: 'recording',
      imported: 'imports',
      midi: 'midi',
      derived: 'sourceMap',
      unknown: 'sourceMap',
    };
    return origin !== undefined && this.#watches(channel[origin] as Channel);
  }

  #begin(): void {
    this.#say({ kind: 'session.opened', at: 0, sampleRate: RATE });
    this.#writeTempo(this.#random.whole(60, 180));
    // The template's tracks are there when the agent begins to look; the others are added.
    for (const type of ['audio', 'midi'] as const) this.#newTrack(type, true);
    for (const type of ['audio', 'audio', 'midi', 'bus'] as const) this.#newTrack(type);
    if (this.#adverse.has('edits_of_imports_only')) this.#import();
    else if (this.#adverse.has('placements_without_recording')) this.#appear();
    // A scenario happens in every session, even in a short one.
    if (this.#adverse.has('laundered')) {
      this.#record('internal');
      this.#claimRecording();
    }
    if (this.#adverse.has('unwatched')) this.#lookAway();
  }

  #writeTempo(bpm: number, counts: Counts = {}): void {
    const at = this.#pass(1);
    this.#say({ kind: 'tempo.map', at }, counts);
    this.#say({ kind: 'tempo.point', at, start: 0, bpm });
    if (this.#random.chance(0.3)) this.#say({ kind: 'tempo.point', at, start: 64, bpm: bpm + 2.5 });
    this.#say({ kind: 'meter.point', at, start: 0, beats: this.#random.pick([3, 4, 4, 4, 6]), unit: 4 });
  }

  #changeTempo(): void {
    this.#writeTempo(this.#random.between(60, 180), { tempoChanges: 1 });
  }

  #newTrack(type: 'audio' | 'midi' | 'bus', found = false): void {
    const id = this.#newId();
    const at = this.#pass(2);
    this.#tracks.push({ id, type });
    this.#say(
      { kind: 'track.added', at, ...(found ? { since: at } : {}), track: id, type },
      { tracksAdded: found ? 0 : 1 },
    );
  }

  #addTrack(): void {
    if (this.#tracks.length < MAX_TRACKS)
      this.#newTrack(this.#random.pick(['audio', 'audio', 'midi', 'bus']));
  }

  /** Removes a track, but none of the first six: a track of each kind stays, so that work can go on. */
  #removeTrack(): void {
    const spare = this.#tracks.slice(6);
    if (spare.length === 0) return;
    const { id } = this.#random.pick(spare);
    this.#tracks.splice(
      this.#tracks.findIndex((track) => track.id === id),
      1,
    );
    this.#clips = this.#clips.filter(({ track }) => track !== id);
    this.#say({ kind: 'track.removed', at: this.#pass(2), track: id }, { tracksRemoved: 1 });
  }

  #trackOf(type: 'audio' | 'midi'): number {
    return this.#random.pick(this.#tracks.filter((track) => track.type === type)).id;
  }

  #newSource(origin: Origin, seconds: number, imported = origin === 'imported'): Source {
    const source = { id: this.#newId(), origin, imported, seconds };
    this.#sources.push(source);
    return source;
  }

  #place(source: Source, track: number, start?: number): void {
    if (this.#clips.length >= MAX_CLIPS) this.#deleteClip();
    const base = source.origin === 'midi' ? 'beats' : 'seconds';
    const length = Math.max(0.25, Math.min(source.seconds, ARRANGEMENT_SECONDS));
    while (source.imported && !this.#hasRoomForImported(length))
      this.#deleteClip(this.#clips.find(({ imported }) => imported));
    const clip: Clip = {
      id: this.#newId(),
      track,
      origin: source.origin,
      source: source.id,
      imported: source.imported,
      base,
      start: start ?? this.#random.between(0, ARRANGEMENT_SECONDS - length),
      length,
    };
    const { id, start: at, ...rest } = clip;
    this.#clips.push(clip);
    this.#say(
      {
        kind: 'clip.created',
        at: this.#pass(1),
        clip: id,
        track,
        source: source.id,
        base,
        start: at,
        length: rest.length,
      },
      { clipsCreated: 1, importPlacements: source.origin === 'imported' ? 1 : 0 },
    );
  }

  /** Returns whether an ordinary session would hold more imported material. */
  #hasRoomForImported(length: number): boolean {
    if (this.#isAboutImports()) return true;
    const placed = this.#clips.reduce((sum, clip) => sum + (clip.imported ? clip.length : 0), 0);
    return placed + length <= MOST_IMPORTED_SECONDS;
  }

  #isAboutImports(): boolean {
    return this.#adverse.has('import_only') || this.#adverse.has('imports_cover_export');
  }

  /** Reports a take that grows while it is recorded, and places it unless it is discarded. */
  #record(input: 'hardware' | 'internal'): Source | undefined {
    if (this.#sources.length >= MAX_SOURCES) return undefined;
    const take = this.#newId();
    const track = this.#trackOf('audio');
    const steps = this.#random.whole(...GROWTH_STEPS);
    this.#say({ kind: 'recording.started', at: this.#pass(3), take, track, input });
    let frames = 0;
    for (let step = 0; step < steps; step += 1) {
      frames += RATE / 2;
      this.#say({ kind: 'recording.grew', at: this.#passRealTime(0.5), take, frames });
      if (this.#random.chance(0.05))
        this.#say({ kind: 'mixer.changed', at: this.#now, track, control: 'gain' }, { mixerChanges: 1 });
    }
    if (input === 'hardware' && this.#random.chance(0.1)) {
      this.#say({ kind: 'recording.discarded', at: this.#pass(1), take });
      return undefined;
    }
    const source = this.#newSource('recorded', frames / RATE);
    this.#say(
      {
        kind: 'recording.finished',
        at: this.#pass(0.1),
        take,
        source: source.id,
        frames,
        rate: RATE,
        samplesSha256: this.#random.hex(32),
      },
      // Sound that plays inside the DAW and is recorded again does not count as a recording.
      input === 'hardware' ? { takesRecorded: 1, takesRecordedInRealTime: 1 } : {},
    );
    this.#place(source, track);
    return source;
  }

  #editNotes(): void {
    if (this.#sources.length >= MAX_SOURCES) return;
    const existing = this.#sources.filter(({ origin }) => origin === 'midi');
    const fresh = existing.length === 0 || this.#random.chance(0.2);
    const source = fresh ? this.#newSource('midi', 16) : this.#random.pick(existing);
    const [added, removed, changed] = [
      this.#random.whole(1, 24),
      this.#random.whole(0, 3),
      this.#random.whole(0, 8),
    ];
    this.#say(
      {
        kind: 'midi.edited',
        at: this.#pass(20),
        ...this.#interval(),
        source: source.id,
        added,
        removed,
        changed,
      },
      { midiNotesEntered: added, midiNotesEdited: removed + changed },
    );
    if (fresh) this.#place(source, this.#trackOf('midi'));
  }

  #recordNotes(): void {
    if (this.#sources.length >= MAX_SOURCES) return;
    const source = this.#newSource('midi', 32);
    const notes = this.#random.whole(10, 200);
    this.#say(
      { kind: 'midi.recorded', at: this.#pass(20), take: this.#newId(), source: source.id, notes },
      { midiNotesRecorded: notes },
    );
    this.#place(source, this.#trackOf('midi'));
  }

  #import(): Source | undefined {
    if (this.#sources.length >= MAX_SOURCES) return undefined;
    const most = this.#isAboutImports() ? IMPORT_SECONDS.many : IMPORT_SECONDS.few;
    const frames = this.#random.whole(RATE, most * RATE);
    const source = this.#newSource('imported', frames / RATE);
    this.#say(
      {
        kind: 'import.added',
        at: this.#pass(10),
        source: source.id,
        manner: this.#random.pick(['copied', 'copied', 'referenced']),
        samplesSha256: this.#random.hex(32),
        originalSha256: this.#random.hex(32),
        frames,
        rate: RATE,
        channels: 2,
      },
      { importsAdded: 1 },
    );
    for (let i = this.#random.whole(1, 3); i > 0; i -= 1) this.#place(source, this.#trackOf('audio'));
    return source;
  }

  /** Covers the arrangement with imports, one after the other, from its start to its end. */
  #coverWithImports(): void {
    const track = this.#trackOf('audio');
    for (let start = 0; start < ARRANGEMENT_SECONDS; ) {
      const source = this.#import();
      if (source === undefined) return;
      this.#place(source, track, start);
      start += source.seconds;
    }
  }

  /** Adds a source whose origin was not observed. */
  #appear(): void {
    if (this.#sources.length >= MAX_SOURCES) return;
    const source = this.#newSource('unknown', this.#random.whole(2, 40));
    this.#say(
      { kind: 'source.appeared', at: this.#pass(5), source: source.id, claims: 'nothing' },
      { sourcesAppeared: 1 },
    );
    this.#place(source, this.#trackOf('audio'));
  }

  /** Reports an import that looks like a take: recorded again inside the DAW, or written into the session file. */
  #launder(): void {
    if (this.#random.chance(0.5)) this.#record('internal');
    else this.#claimRecording();
  }

  #claimRecording(): void {
    if (this.#sources.length >= MAX_SOURCES) return;
    const source = this.#newSource('unknown', 12);
    this.#say(
      {
        kind: 'source.appeared',
        at: this.#pass(5),
        source: source.id,
        claims: 'recording',
        samplesSha256: this.#random.hex(32),
      },
      { sourcesAppeared: 1 },
    );
    this.#place(source, this.#trackOf('audio'));
  }

  #derive(): void {
    const from = this.#sources.filter(({ origin }) => origin === 'recorded' || origin === 'imported');
    if (from.length === 0 || this.#sources.length >= MAX_SOURCES) return;
    const { id, seconds, imported } = this.#random.pick(from);
    const source = this.#newSource('derived', seconds, imported);
    this.#say(
      {
        kind: 'source.derived',
        at: this.#pass(8),
        source: source.id,
        from: id,
        manner: this.#random.pick(['bounce', 'stretch', 'combine']),
      },
      { sourcesDerived: 1 },
    );
    this.#place(source, this.#trackOf('audio'));
  }

  #editClip(): void {
    const within = this.#adverse.has('edits_of_imports_only')
      ? this.#clips.filter(({ origin }) => origin === 'imported')
      : this.#clips;
    if (within.length === 0) return;
    const clip = this.#random.pick(within);
    const at = this.#pass(4);
    const event = { at, ...this.#interval(), clip: clip.id };
    switch (
      this.#random.pick(['move', 'move', 'move', 'trim', 'trim', 'split', 'copy', 'change', 'delete'])
    ) {
      case 'move':
        clip.start = this.#random.between(0, ARRANGEMENT_SECONDS - Math.min(clip.length, 200));
        this.#say({ kind: 'clip.moved', ...event, track: clip.track, start: clip.start }, { clipsMoved: 1 });
        return;
      case 'trim':
        clip.length = Math.max(0.25, this.#random.between(clip.length / 2, clip.length));
        this.#say(
          { kind: 'clip.trimmed', ...event, start: clip.start, length: clip.length },
          { clipsTrimmed: 1 },
        );
        return;
      case 'split': {
        if (clip.length < 1 || this.#clips.length >= MAX_CLIPS) return;
        const half = clip.length / 2;
        const right: Clip = { ...clip, id: this.#newId(), start: clip.start + half, length: half };
        clip.length = half;
        this.#clips.push(right);
        this.#say({ kind: 'clip.split', ...event, right: right.id, start: right.start }, { clipsSplit: 1 });
        return;
      }
      case 'copy': {
        if (this.#clips.length >= MAX_CLIPS) return;
        if (clip.imported && !this.#hasRoomForImported(clip.length)) return;
        const copy: Clip = { ...clip, id: this.#newId(), start: this.#random.between(0, 180) };
        this.#clips.push(copy);
        const { clip: from, ...when } = event;
        this.#say(
          { kind: 'clip.copied', ...when, from, clip: copy.id, track: copy.track, start: copy.start },
          { clipsCopied: 1, importPlacements: copy.origin === 'imported' ? 1 : 0 },
        );
        return;
      }
      case 'change':
        this.#say(
          { kind: 'clip.changed', ...event, property: this.#random.pick(['gain', 'mute', 'fade'] as const) },
          { clipsChanged: 1 },
        );
        return;
      default:
        // The last clip of its origin stays: a session that deletes all it imported is another story.
        if (within.filter(({ origin }) => origin === clip.origin).length > 1) this.#deleteClip(clip);
    }
  }

  #deleteClip(clip: Clip = this.#clips[0]!): void {
    this.#clips = this.#clips.filter((other) => other !== clip);
    this.#say({ kind: 'clip.deleted', at: this.#now, clip: clip.id }, { clipsDeleted: 1 });
  }

  #automate(): void {
    const [added, removed, changed] = [
      this.#random.whole(1, 40),
      this.#random.whole(0, 4),
      this.#random.whole(0, 9),
    ];
    this.#say(
      {
        kind: 'automation.edited',
        at: this.#pass(6),
        ...this.#interval(),
        track: this.#random.pick(this.#tracks).id,
        added,
        removed,
        changed,
      },
      { automationEdits: added + removed + changed },
    );
  }

  #plug(): void {
    const at = this.#pass(5);
    if (this.#plugins.length === 0 || (this.#random.chance(0.3) && this.#plugins.length < MAX_PLUGINS)) {
      const plugin = this.#newId();
      this.#plugins.push(plugin);
      this.#say(
        {
          kind: 'plugin.added',
          at,
          plugin,
          track: this.#random.pick(this.#tracks).id,
          type: this.#random.pick(['instrument', 'effect']),
        },
        { pluginsAdded: 1 },
      );
      return;
    }
    this.#say(
      { kind: 'plugin.changed', at, plugin: this.#random.pick(this.#plugins), property: 'parameter' },
      { pluginChanges: 1 },
    );
  }

  #mix(): void {
    const { id } = this.#random.pick(this.#tracks);
    const control = this.#random.pick(['gain', 'pan', 'mute', 'send'] as const);
    this.#say(
      { kind: 'mixer.changed', at: this.#pass(3), ...this.#interval(), track: id, control },
      { mixerChanges: 1 },
    );
  }

  #play(): void {
    const start = this.#random.between(0, ARRANGEMENT_SECONDS - 30);
    const seconds = this.#random.between(1, 30);
    this.#say({ kind: 'transport.located', at: this.#pass(1), start });
    this.#say({ kind: 'transport.started', at: this.#pass(0.5), start }, { playbacks: 1 });
    this.#say({ kind: 'transport.stopped', at: this.#pass(seconds), start: start + seconds });
  }

  #undo(): void {
    const steps = this.#random.whole(1, 3);
    this.#say({ kind: 'session.undone', at: this.#pass(1), steps }, { undoneSteps: steps });
    if (this.#random.chance(0.3)) this.#say({ kind: 'session.redone', at: this.#pass(1), steps: 1 });
  }

  #mark(): void {
    this.#say({
      kind: 'marker.changed',
      at: this.#pass(2),
      act: 'added',
      start: this.#random.between(0, ARRANGEMENT_SECONDS),
    });
  }

  /** Reports a stretch in which the agent did not see one of the channels, or did not see any. */
  #lookAway(): void {
    const since = this.#now;
    const at = this.#pass(90);
    const scope = this.#random.pick(['midi', 'mixer', 'recording', 'imports', undefined] as const);
    this.#say({
      kind: 'capture.gap',
      at,
      since,
      ...(scope === undefined ? {} : { scope }),
      reason: 'agent_stopped',
    });
  }

  #save(): void {
    const at = this.#pass(2);
    this.#lastSave = at;
    this.#say({ kind: 'session.saved', at }, { saves: 1 });
    this.#say({ kind: 'sourceMap.completed', at, sources: this.#sources.length, clips: this.#clips.length });
  }

  #export(): void {
    this.#say(
      {
        kind: 'export.finished',
        at: this.#pass(20),
        fileSha256: this.#options.exportSha256 ?? this.#random.hex(32),
        frames: ARRANGEMENT_SECONDS * RATE,
        rate: RATE,
        channels: 2,
        start: 0,
        rerender: 'matched',
      },
      { exportsFinished: 1 },
    );
  }
}
