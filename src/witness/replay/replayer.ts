import { defined } from '../../core/domain/defined.js';
import type { RuleInputs, StoredSourceDetail } from '../domain/evidence.js';
import {
  type Counter,
  type CounterName,
  type ImportedSource,
  REPORT_LIMITS,
  type RecordingEvidence,
  type SessionEvidence,
} from '../domain/session-evidence.js';
import { TempoMap } from '../domain/tempo-map.js';
import { CHANNELS, type Channel, EVENTS, type TraceEvent, type TraceHeader } from '../domain/trace.js';
import { WORK, WorkBudget } from '../trace/work-budget.js';
import { Arrangement, endOf, lengthOf, mergeSpans, type Span, spansBySource } from './arrangement.js';
import { ExportLog, type SeenExport } from './exports.js';
import { placementsOf } from './placed-imports.js';
import { milli, SessionCounters, seconds } from './session-counters.js';
import { SourceMap } from './source-map.js';
import { TakeWatch } from './take-watch.js';

type ClipEvent = TraceEvent & { readonly kind: `clip.${string}` };
type ObservationEvent = TraceEvent & { readonly kind: 'sourceMap.completed' };
type RecordingEvent = TraceEvent & { readonly kind: `recording.${string}` };

/** How often the end of the replay visits each clip and each derivation, at most. */
const FINAL_VISITS = { clips: 8, derivations: 8 } as const;

/** The visits in one replay that settle the arrangements of earlier exports, at most. */
const EARLIER_VISITS = 1_000_000;

/** The channels whose events change what an export contains. */
const CONTENT: readonly Channel[] = ['tempo', 'tracks', 'clips', 'midi', 'recording', 'imports', 'sourceMap'];

/** The channels that are needed to know the arrangement. */
const ARRANGED: readonly Channel[] = ['tracks', 'clips', 'sourceMap'];

interface FinishedTake {
  readonly source: number;
  readonly seconds: number;
  readonly isRealTime: boolean;
  readonly input: RecordingEvidence['input'];
  readonly growthSteps: number;
}

export interface ReplayedImport {
  /** The id in the report. */
  readonly sourceId: string;
  readonly samplesSha256?: string;
  readonly originalSha256?: string;
  /** True when a clip of the import, or of something made from it, was observed in the arrangement. */
  readonly isPlaced: boolean;
}

/** The arrangement at the time of a tied export. The arrangement keeps the clips of the latest one. */
interface ExportedArrangement {
  /** The number of changes of content before the export. */
  readonly changes: number;
  /** The tempo, and the number of clips, imports and derivations at the time of the export. */
  readonly tempo: TempoMap;
  readonly placements: number;
  readonly imports: number;
  readonly derivations: number;
  /** The content. Absent until a later export is tied or the session ends, or if it would need too much work. */
  content?: ExportedContent;
}

/** What the arrangement held at an export. */
interface ExportedContent {
  /** True when every clip shows only imports. */
  readonly isOfImports: boolean;
  /** The end of the last clip, and the length that shows imports, in seconds. Absent if a position is unknown. */
  readonly cover?: { readonly end: number; readonly imported: number };
}

/** The share of imports in an export: the lowest estimate, and the length of the export, both in seconds. */
interface ExportCover {
  readonly importedSeconds: number;
  readonly exportSeconds: number;
}

/** An exported file, with the inputs of the rules if the proof is about this file. */
export interface ReplayedExport {
  readonly fileSha256: string;
  readonly durationSeconds?: number;
  readonly rerender: 'matched' | 'differed' | 'not_tried';
  readonly windows?: { readonly compared: number; readonly equal: number };
  /** True when the export was shown to follow from the arrangement as it was witnessed. */
  readonly isTied: boolean;
  readonly inputs: RuleInputs;
}

/** The numbers of things that the agent found when it started. */
interface FoundAtStart {
  readonly tracks: number;
  readonly clips: number;
  readonly sources: number;
}

/** The result of a replay. It contains only plain values, because it is sent between threads. */
export interface ReplayedSession {
  readonly durationSeconds: number;
  readonly events: number;
  readonly counters: SessionEvidence['counters'];
  readonly coverage: SessionEvidence['coverage'];
  readonly recordings: SessionEvidence['recordings'];
  readonly activity: SessionEvidence['activity'];
  /** The exported files, in the order of time. */
  readonly exports: readonly ReplayedExport[];
  /** The imports in the order of import. If there are too many, placed imports are preferred. */
  readonly importedSources: readonly ImportedSource[];
  /** False when imports were not observed. An absence of imports means nothing then. */
  readonly looksAtImports: boolean;
  /** Every import, in the order of import. */
  readonly imports: readonly ReplayedImport[];
  readonly detail: StoredSourceDetail;
  /** The inputs of the rules for the last export. */
  readonly inputs: RuleInputs;
  readonly missedSeconds: Readonly<Record<Channel, number>>;
  /** The counts that facts are based on. */
  readonly takes: {
    readonly realTime: number;
    readonly realTimeSeconds: number;
    readonly internal: number;
    readonly internalSeconds: number;
    readonly unproven: number;
    /** Takes that neither ended nor were discarded. */
    readonly unfinished: number;
  };
  /** What the agent found when it started. Absent when the session was empty. */
  readonly found?: FoundAtStart;
  /** Plug-ins that were added or found, and those among them that may make sound of their own. */
  readonly plugins: { readonly all: number; readonly sounding: number };
  readonly sources: {
    readonly derivedOfImports: number;
    readonly derivedOfUnknown: number;
    readonly appeared: number;
    readonly foundAtStart: number;
    readonly claimRecording: number;
    /** Sources whose files were written again out of sight. */
    readonly rewritten: number;
  };
}

/** Replays the events of a session one by one. Memory is bounded by what exists at one time. */
export class Replayer {
  readonly #counters: SessionCounters;
  readonly #sources = new SourceMap();
  readonly #arrangement = new Arrangement(this.#sources);
  readonly #tempo = new TempoMap();
  /** The running takes. */
  readonly #running = new Map<number, { readonly watch: TakeWatch; readonly track: number | undefined }>();
  /** The running takes of each track by input. A take whose input changed is removed here. */
  readonly #runningOn = new Map<number, Map<TakeWatch['input'], Set<TakeWatch>>>();
  /** The running takes without a gap so far. */
  readonly #unbroken = new Set<TakeWatch>();
  readonly #takes: FinishedTake[] = [];
  #hasTempo = false;
  #events = 0;
  #latest = 0;
  #observedAt: number | undefined;
  /**
   * The number of events and gaps that change the known arrangement, and that number at the last complete
   * observation.
   */
  #changes = 0;
  #changesObserved: number | undefined;
  readonly #exports = new ExportLog<ExportedArrangement>();
  /** The arrangement of the latest tied export. */
  #exported: ExportedArrangement | undefined;
  /** The visits that are left for the arrangements of earlier exports. */
  #visitsLeft = EARLIER_VISITS;
  /** The number of events that change what an export contains. */
  #contentChanges = 0;
  /** The sources whose files were seen to hold other content than before. */
  readonly #rewritten = new Set<number>();
  #appeared = 0;
  #foundAtStart = 0;
  readonly #found = { tracks: 0, clips: 0, sources: 0 };
  readonly #plugins = { all: 0, sounding: 0 };
  #claimRecording = 0;

  readonly #budget: WorkBudget;

  constructor({ channels }: Pick<TraceHeader, 'channels'>, budget = new WorkBudget()) {
    this.#budget = budget;
    this.#counters = new SessionCounters(channels);
    this.#arrangement.tempo = this.#tempo;
  }

  take(event: TraceEvent): void {
    this.#events += 1;
    this.#latest = Math.max(this.#latest, event.at);
    if (event.kind === 'capture.gap') {
      this.#takeGap(event);
      return;
    }
    if (event.kind === 'export.rendered') {
      this.#exports.render(event, event.outcome === 'matched' && this.#isTied('matched'), () => this.#hold());
      return;
    }
    // A state that existed when the agent started is not an act.
    const isAct = event.since !== event.at;
    if (isAct) {
      this.#counters.witness(event);
      this.#count(event);
    }
    this.#follow(event, isAct);
  }

  #takeGap({ at, since = at, scope, reason }: TraceEvent & { readonly kind: 'capture.gap' }): void {
    for (const channel of scope === undefined ? CHANNELS : [scope])
      this.#counters.gap(channel, since, at, reason);
    if (scope === undefined || ARRANGED.includes(scope)) this.#changes += 1;
    if (scope !== undefined && scope !== 'recording') return;
    for (const watch of this.#unbroken) watch.miss();
    // A take is marked only once. Clearing the set keeps the work small, however many gaps follow.
    this.#unbroken.clear();
  }

  /** Counts acts that need no state. */
  #count(event: TraceEvent): void {
    const counters = this.#counters;
    switch (event.kind) {
      case 'session.saved':
        counters.count('saves');
        return;
      case 'session.undone':
        counters.count('undoneSteps', event.steps);
        return;
      case 'transport.started':
        counters.count('playbacks');
        return;
      case 'track.added':
        counters.count('tracksAdded');
        break;
      case 'track.removed':
        counters.count('tracksRemoved');
        break;
      case 'clip.created':
        counters.count('clipsCreated');
        break;
      case 'clip.moved':
        counters.count('clipsMoved');
        break;
      case 'clip.trimmed':
        counters.count('clipsTrimmed');
        break;
      case 'clip.split':
        counters.count('clipsSplit');
        break;
      case 'clip.copied':
        counters.count('clipsCopied');
        break;
      case 'clip.deleted':
        counters.count('clipsDeleted');
        break;
      case 'clip.changed':
      case 'clip.replaced':
        counters.count('clipsChanged');
        break;
      case 'midi.edited':
        counters.count('midiNotesEntered', event.added);
        counters.count('midiNotesEdited', event.removed + event.changed);
        break;
      case 'midi.recorded':
        counters.count('midiNotesRecorded', event.notes);
        counters.act(event.at, 'recordings');
        return;
      case 'recording.finished':
        counters.act(event.at, 'recordings');
        return;
      case 'automation.edited':
        counters.count('automationEdits', event.added + event.removed + event.changed);
        break;
      case 'plugin.added':
        counters.count('pluginsAdded');
        break;
      case 'plugin.removed':
      case 'plugin.changed':
        counters.count('pluginChanges');
        break;
      case 'mixer.changed':
        counters.count('mixerChanges');
        break;
      case 'import.added':
        counters.count('importsAdded');
        counters.act(event.at, 'imports');
        return;
      case 'export.finished':
        counters.count('exportsFinished');
        return;
      default:
        return;
    }
    counters.act(event.at, 'edits');
    // An edit whose interval began before an export may have happened before it.
    this.#exports.edit(event.since ?? event.at);
  }

  /** Updates the state of the session, and the counters that need it. */
  #follow(event: TraceEvent, isAct: boolean): void {
    const { channel } = EVENTS[event.kind];
    if (!isAct) this.#find(event);
    if (channel === 'clips' || channel === 'tracks') this.#changes += 1;
    if (CONTENT.includes(channel)) this.#contentChanges += 1;
    switch (event.kind) {
      case 'tempo.map':
        // The first snapshot is the initial state.
        if (isAct && this.#hasTempo) this.#countEdit('tempoChanges', event);
        this.#hasTempo = true;
        this.#tempo.clear();
        return;
      case 'tempo.point':
        this.#tempo.add(event.start, event.bpm, event.endBpm);
        return;
      case 'track.added':
        this.#arrangement.addTrack(event.track, event.type);
        return;
      case 'track.removed':
        this.#arrangement.removeTrack(event.track);
        return;
      case 'midi.edited':
      case 'midi.recorded':
        if (event.source !== undefined && !this.#sources.has(event.source))
          this.#sources.set(event.source, 'midi');
        if (event.kind === 'midi.recorded') this.#end(event.take);
        return;
      case 'recording.started':
      case 'recording.grew':
      case 'recording.finished':
      case 'recording.discarded':
      case 'recording.input':
        this.#followTake(event, isAct);
        return;
      case 'import.added':
        if (isAct) this.#sources.import(event);
        else this.#appear(event.source, isAct);
        return;
      case 'source.derived':
        if (isAct && !this.#sources.has(event.source)) this.#counters.count('sourcesDerived');
        if (event.from === undefined && event.manner === 'unknown' && this.#sources.has(event.source))
          this.#rewritten.add(event.source);
        this.#sources.derive(event.source, event.from);
        // The event does not show that the source was made only from that source.
        if (event.manner === 'other' || event.manner === 'unknown') this.#sources.doubt(event.source);
        return;
      case 'source.appeared':
        this.#appear(event.source, isAct);
        if (isAct && event.claims === 'recording') this.#claimRecording += 1;
        return;
      case 'plugin.added':
        this.#plugins.all += 1;
        if (event.type !== 'effect') this.#plugins.sounding += 1;
        return;
      case 'sourceMap.completed':
        this.#observedAt = event.at;
        this.#takeObservation(event);
        return;
      case 'export.finished':
        if (isAct) this.#exports.add(event, this.#isTied(event.rerender), () => this.#hold());
        return;
      default:
        if (isClipEvent(event)) {
          const { placed } = this.#arrangement.take(event);
          if (isAct && this.#sources.isImport(placed)) this.#counters.count('importPlacements');
        }
    }
  }

  /** Counts state that the agent found when it started. Buses come with every session. */
  #find(event: TraceEvent): void {
    const found = this.#found;
    if (event.kind === 'track.added' && event.type !== 'bus') found.tracks += 1;
    else if (event.kind === 'clip.created') found.clips += 1;
    else if ('source' in event && event.source !== undefined && !this.#sources.has(event.source))
      found.sources += 1;
  }

  /** Adds a source whose origin was not observed. */
  #appear(source: number, isAct: boolean): void {
    this.#sources.set(source, 'unknown');
    this.#appeared += 1;
    if (isAct) this.#counters.count('sourcesAppeared');
    else this.#foundAtStart += 1;
  }

  /** Reports whether the session had material before the agent started. What was done before is unknown. */
  #hadBegun(): boolean {
    return this.#found.clips > 0 || this.#found.sources > 0;
  }

  #countEdit(name: CounterName, event: TraceEvent): void {
    this.#counters.count(name);
    this.#counters.act(event.at, 'edits');
    this.#exports.edit(event.since ?? event.at);
  }

  #followTake(event: RecordingEvent, isAct: boolean): void {
    const isExact = event.since === undefined;
    switch (event.kind) {
      case 'recording.started': {
        const { at, take, track, input } = event;
        const watch = new TakeWatch(at, isExact, input);
        this.#running.set(take, { watch, track });
        this.#unbroken.add(watch);
        if (track === undefined) return;
        const takes = this.#runningOn.get(track) ?? new Map<TakeWatch['input'], Set<TakeWatch>>();
        this.#runningOn.set(track, takes.set(input, (takes.get(input) ?? new Set()).add(watch)));
        return;
      }
      case 'recording.grew':
        this.#running.get(event.take)?.watch.grow(event.at, event.frames, isExact);
        return;
      case 'recording.input':
        for (const [input, takes] of this.#runningOn.get(event.track) ?? []) {
          if (input === event.input) continue;
          for (const watch of takes) watch.connect(event.input);
          takes.clear();
        }
        return;
      case 'recording.discarded':
        this.#end(event.take);
        return;
      case 'recording.finished': {
        const { at, take, source, frames, rate } = event;
        const watch = this.#running.get(take)?.watch;
        this.#end(take);
        if (watch === undefined) return;
        const { input, growthSteps } = watch;
        const isRealTime = isAct && watch.isRealTime(at, frames, rate);
        this.#takes.push({ source, seconds: frames / rate, isRealTime, input, growthSteps });
        // Other sound may have been recorded too, even if the trace names what the source was made from.
        if (input !== 'internal') this.#sources.doubt(source);
        const isRecorded = input === 'hardware' && !watch.isTooFast(at, frames, rate);
        this.#sources.set(source, input === 'internal' ? 'derived' : isRecorded ? 'recorded' : 'unknown');
        // Playing material of the session internally does not count as recording it.
        if (isAct && input !== 'internal') this.#counters.count('takesRecorded');
        if (isRealTime) this.#counters.count('takesRecordedInRealTime');
      }
    }
  }

  #end(take: number): void {
    const running = this.#running.get(take);
    if (running === undefined) return;
    const { watch, track } = running;
    this.#running.delete(take);
    this.#unbroken.delete(watch);
    const takes = track === undefined ? undefined : this.#runningOn.get(track);
    if (takes === undefined) return;
    takes.get(watch.input)?.delete(watch);
    if ([...takes.values()].every(({ size }) => size === 0)) this.#runningOn.delete(track!);
  }

  /** Notes that the known arrangement is complete. */
  #takeObservation({ clips }: ObservationEvent): void {
    if (this.#seesPlacements() && clips === this.#arrangement.placements)
      this.#changesObserved = this.#changes;
  }

  /**
   * Reports whether an export follows from the arrangement as it was witnessed. Two equal states before and after an
   * export are not enough: in between, an edit can be made, exported and undone unseen.
   */
  #isTied(rerender: ReplayedExport['rerender']): boolean {
    if (rerender === 'differed' || this.#rewritten.size > 0) return false;
    const isObserved = this.#changesObserved === this.#changes;
    return (
      ARRANGED.every((channel) => this.#counters.isWatched(channel)) || (isObserved && rerender === 'matched')
    );
  }

  /** Returns the present arrangement, to be kept for a tied export. */
  #hold(): ExportedArrangement {
    const before = this.#exported;
    if (before?.changes === this.#contentChanges) return before;
    if (before !== undefined && this.#exports.holds(before)) this.#settleEarlier(before);
    this.#arrangement.markExport();
    this.#exported = {
      changes: this.#contentChanges,
      tempo: this.#tempo.copy(),
      placements: this.#arrangement.placements,
      imports: this.#sources.imports.length,
      derivations: this.#sources.derivations,
    };
    return this.#exported;
  }

  /** Settles the content of an earlier export before the next one is held. Beyond a bound it stays unknown. */
  #settleEarlier(exported: ExportedArrangement): void {
    const visits =
      FINAL_VISITS.clips * exported.placements +
      FINAL_VISITS.derivations * this.#sources.derivations +
      this.#sources.size;
    if (visits > this.#visitsLeft) return;
    this.#visitsLeft -= visits;
    this.#budget.spend(WORK.visit * visits);
    exported.content = this.#contentOf(exported);
  }

  /** Returns what the latest tied export contains. */
  #contentOf({ tempo, imports, derivations, placements }: ExportedArrangement): ExportedContent {
    const clips = this.#arrangement.exported();
    const isOfImports =
      placements > 0 && this.#sources.areImportsAlone(new Set(clips.map(({ source }) => source)));
    const end = endOf(clips, tempo);
    if (end === undefined) return { isOfImports };
    const audio = new Set<number>();
    for (const { source, manner } of this.#sources.imports.slice(0, imports))
      if (manner !== 'midi')
        for (const one of this.#sources.descendants(source, audio, derivations)) audio.add(one);
    const spans: Span[] = [];
    for (const [source, shown] of spansBySource(clips, tempo))
      if (audio.has(source)) for (const span of shown) spans.push(span);
    return { isOfImports, cover: { end, imported: lengthOf(mergeSpans(spans)) } };
  }

  /**
   * Returns the result of the replay.
   * @param isWhole true when the trace ends with the seal of the device
   * @throws DomainError `unprocessable` / `trace_too_large` when too little of the budget is left
   */
  finish(isWhole: boolean): ReplayedSession {
    this.#spendOnFinish();
    const counters = this.#counters.counters(isWhole && !this.#hadBegun(), this.#doubtful());
    const bySource = this.#arrangement.bySource();
    const imports = this.#imports(bySource);
    if (this.#exported !== undefined) this.#exported.content = this.#contentOf(this.#exported);
    const exports = this.#exports.all().map((one) => this.#replayedExport(one, counters));
    return defined({
      durationSeconds: seconds(this.#latest),
      events: this.#events,
      counters,
      coverage: this.#counters.coverage(),
      recordings: this.#recordings(bySource),
      activity: this.#counters.activity(),
      exports,
      importedSources: this.#importedSources(bySource, imports),
      imports,
      detail: this.#arrangement.detail(
        this.#observedAt === undefined ? undefined : seconds(this.#observedAt),
        { tracks: this.#counters.looksAt('tracks'), placements: this.#seesPlacements() },
      ),
      looksAtImports: this.#counters.looksAt('imports'),
      inputs: exports.at(-1)?.inputs ?? this.#inputs(counters),
      missedSeconds: Object.fromEntries(
        CHANNELS.map((channel) => [channel, this.#counters.missedSeconds(channel)]),
      ) as Record<Channel, number>,
      takes: this.#takeCounts(),
      found: this.#hadBegun() ? { ...this.#found } : undefined,
      plugins: { ...this.#plugins },
      sources: {
        derivedOfImports: this.#sources.derivedMaterial,
        derivedOfUnknown: this.#sources.derivedOfUnknown,
        appeared: this.#appeared,
        foundAtStart: this.#foundAtStart,
        claimRecording: this.#claimRecording,
        rewritten: this.#rewritten.size,
      },
    });
  }

  #spendOnFinish(): void {
    const placements = this.#arrangement.placements + (this.#exported?.placements ?? 0);
    this.#budget.spend(
      WORK.visit *
        (FINAL_VISITS.clips * placements +
          FINAL_VISITS.derivations * this.#sources.derivations +
          this.#sources.size +
          this.#tempo.points),
    );
    for (const sorted of [placements, this.#takes.length]) this.#budget.spendOnSorting(sorted);
  }

  /** Returns the counters whose zero is uncertain for another reason. */
  #doubtful(): ReadonlySet<CounterName> {
    const doubtful = new Set<CounterName>();
    if (this.#counters.of('takesRecorded') > 0) doubtful.add('takesRecordedInRealTime');
    if (this.#arrangement.hasUnknownSource) doubtful.add('importPlacements');
    // A take that was still running at the end was neither finished nor discarded.
    if (this.#running.size > 0) doubtful.add('takesRecorded').add('takesRecordedInRealTime');
    return doubtful;
  }

  #recordings(bySource: ReadonlyMap<number, readonly Span[]>): SessionEvidence['recordings'] {
    return this.#takes
      .map((take, order) => ({ take, order }))
      .sort((one, other) => other.take.seconds - one.take.seconds || one.order - other.order)
      .slice(0, REPORT_LIMITS.recordings)
      .map(({ take }) =>
        defined({
          durationSeconds: milli(take.seconds),
          realTime: take.isRealTime ? ('observed' as const) : ('unknown' as const),
          input: take.input,
          growthSteps: take.growthSteps,
          placementCount: bySource.get(take.source)?.length ?? (this.#seesPlacements() ? 0 : undefined),
        }),
      );
  }

  #imports(bySource: ReadonlyMap<number, readonly Span[]>): readonly ReplayedImport[] {
    const placed = this.#sources.ancestors(bySource.keys());
    return this.#sources.imports.map(({ source, samplesSha256, originalSha256 }, index) => {
      const isPlaced = placed.has(source);
      return defined({ sourceId: `s${index + 1}`, samplesSha256, originalSha256, isPlaced });
    });
  }

  #importedSources(
    bySource: ReadonlyMap<number, readonly Span[]>,
    imports: readonly ReplayedImport[],
  ): readonly ImportedSource[] {
    const witnessed = imports.map((one, index) => ({ ...one, ...this.#sources.imports[index]!, index }));
    const listed = [
      ...witnessed.filter(({ isPlaced }) => isPlaced),
      ...witnessed.filter(({ isPlaced }) => !isPlaced),
    ].slice(0, REPORT_LIMITS.importedSources);
    listed.sort((one, other) => one.index - other.index);
    const { graph, nodeOf } = this.#sources.graph();
    const shown: (readonly Span[] | undefined)[] = Array(graph.count);
    for (const [source, node] of nodeOf) shown[node] = bySource.get(source);
    const nodes = listed.map(({ source }) => nodeOf.get(source)!);
    const placed = placementsOf(graph, nodes, shown, REPORT_LIMITS.spans, this.#budget);
    return listed.map((one, index) => {
      const { count, seconds: covered, spans } = placed[index]!;
      const { durationSeconds } = one;
      return defined({
        sourceId: one.sourceId,
        manner: one.manner,
        samplesSha256: one.samplesSha256,
        originalSha256: one.originalSha256,
        durationSeconds: durationSeconds === undefined ? undefined : milli(durationSeconds),
        // If clips are not observed, it is unknown whether the import is placed.
        placements:
          count === 0 && !this.#seesPlacements()
            ? undefined
            : {
                count,
                approximateSeconds: milli(covered),
                spans: spans.map(({ start, end }) => ({
                  startSeconds: milli(start),
                  endSeconds: milli(end),
                })),
              },
      });
    });
  }

  #seesPlacements(): boolean {
    return this.#counters.looksAt('clips') && this.#counters.looksAt('tracks');
  }

  #takeCounts(): ReplayedSession['takes'] {
    const sum = (takes: readonly FinishedTake[]): number =>
      milli(takes.reduce((total, take) => total + take.seconds, 0));
    const realTime = this.#takes.filter(({ isRealTime }) => isRealTime);
    const internal = this.#takes.filter(({ input }) => input === 'internal');
    return {
      realTime: realTime.length,
      realTimeSeconds: sum(realTime),
      internal: internal.length,
      internalSeconds: sum(internal),
      unproven: this.#takes.length - realTime.length - internal.length,
      unfinished: this.#running.size,
    };
  }

  /** Reports whether every change of the arrangement was witnessed, from its beginning. */
  #isArrangementWatched(): boolean {
    return !this.#hadBegun() && this.#counters.isWatched('clips') && this.#counters.isWatched('tracks');
  }

  #replayedExport(
    { seen, editsAfter }: ReturnType<ExportLog<ExportedArrangement>['all']>[number],
    counters: SessionEvidence['counters'],
  ): ReplayedExport {
    const { fileSha256, durationSeconds, rerender, windows, isTied } = seen;
    return defined({
      fileSha256,
      durationSeconds: durationSeconds === undefined ? undefined : milli(durationSeconds),
      rerender,
      windows,
      isTied,
      inputs: { ...this.#inputs(counters, seen), editsAfterExport: editsAfter },
    });
  }

  /** Returns the inputs of the rules. @param exported the export that the rules are about, if there is one */
  #inputs(counters: SessionEvidence['counters'], exported?: SeenExport<ExportedArrangement>): RuleInputs {
    const isOfImports = exported?.content?.content?.isOfImports === true;
    const isClipsSeen = this.#isArrangementWatched() || isOfImports;
    const cover = exported && coverOf(exported);
    const { placements, edits, editsOfImports } = this.#arrangement;
    return defined({
      imports: known(counters.importsAdded),
      importPlacements: known(counters.importPlacements),
      importedSeconds: cover?.importedSeconds,
      exportSeconds: cover?.exportSeconds,
      entries: this.#entries(counters, isOfImports),
      takesInRealTime: known(counters.takesRecordedInRealTime),
      clipEdits: isClipsSeen ? edits : undefined,
      clipEditsOfImports: isClipsSeen ? editsOfImports : undefined,
      placements: isOfImports
        ? exported.content.placements
        : isClipsSeen || placements > 0
          ? placements
          : undefined,
    });
  }

  /**
   * Returns the number of entries: takes and notes.
   * @param isOfImports true when the export cannot contain entries, even if some channels were not observed
   */
  #entries(counters: SessionEvidence['counters'], isOfImports: boolean): number | undefined {
    const { takesRecorded, midiNotesEntered, midiNotesRecorded } = counters;
    const counted = [takesRecorded, midiNotesEntered, midiNotesRecorded].map(known);
    // Observed notes and takes count, even if other channels were not observed.
    const seen = counted.reduce<number>((sum, value = 0) => sum + value, 0);
    if (seen > 0 || !counted.includes(undefined)) return seen;
    return isOfImports && this.#running.size === 0 ? 0 : undefined;
  }
}

/** Returns the number of a counter, or undefined when it has none. */
function known({ value }: Counter): number | undefined {
  return value;
}

/** Returns the share of imports in an export. Undefined when it is unknown. */
function coverOf({ content, durationSeconds }: SeenExport<ExportedArrangement>): ExportCover | undefined {
  const cover = content?.content?.cover;
  if (cover === undefined || durationSeconds === undefined) return undefined;
  // The start of the export in the arrangement is often unknown. The export leaves out at most `outside`
  // seconds of the arrangement, so `importedSeconds` is a lower bound.
  const outside = Math.max(0, cover.end - durationSeconds);
  const importedSeconds = Math.max(0, Math.min(cover.imported, durationSeconds + outside) - outside);
  return { importedSeconds: milli(importedSeconds), exportSeconds: milli(durationSeconds) };
}

function isClipEvent(event: TraceEvent): event is ClipEvent {
  return EVENTS[event.kind].channel === 'clips';
}
