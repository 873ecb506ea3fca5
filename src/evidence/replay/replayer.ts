import { defined } from '../../domain/defined.js';
import type { RuleInputs, StoredSourceDetail } from '../../domain/evidence.js';
import {
  type Counter,
  type CounterName,
  type ImportedSource,
  REPORT_LIMITS,
  type RecordingEvidence,
  type SessionEvidence,
} from '../../domain/session-evidence.js';
import { TempoMap } from '../../domain/tempo-map.js';
import { CHANNELS, type Channel, EVENTS, type TraceEvent, type TraceHeader } from '../../domain/trace.js';
import { WORK, WorkBudget } from '../work-budget.js';
import { Arrangement, endOf, lengthOf, mergeSpans, type Span, spansBySource } from './arrangement.js';
import { placementsOf } from './placed-imports.js';
import { milli, SessionCounters, seconds } from './session-counters.js';
import { SourceMap } from './source-map.js';
import { TakeWatch } from './take-watch.js';

type ClipEvent = TraceEvent & { readonly kind: `clip.${string}` };
type ExportEvent = TraceEvent & { readonly kind: 'export.finished' };
type ObservationEvent = TraceEvent & { readonly kind: 'sourceMap.completed' };
type RecordingEvent = TraceEvent & { readonly kind: `recording.${string}` };

/** How often the end of the replay visits each clip and each derivation, at most. */
const FINAL_VISITS = { clips: 8, derivations: 8 } as const;

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

/** The last export. The arrangement keeps the clips of that time. */
interface TakenExport {
  readonly event: ExportEvent;
  /** The tempo, and the number of clips, imports and derivations at the time of the export. */
  readonly tempo: TempoMap;
  readonly placements: number;
  readonly imports: number;
  readonly derivations: number;
  /** True when the export was shown to follow from the arrangement as it was witnessed. */
  readonly isTied: boolean;
}

/** The share of imports in an export: the lowest estimate, and the length of the export, both in seconds. */
interface ExportCover {
  readonly importedSeconds: number;
  readonly exportSeconds: number;
}

/** The result of a replay. It contains only plain values, because it is sent between threads. */
export interface ReplayedSession {
  readonly durationSeconds: number;
  readonly events: number;
  readonly counters: SessionEvidence['counters'];
  readonly coverage: SessionEvidence['coverage'];
  readonly recordings: SessionEvidence['recordings'];
  readonly activity: SessionEvidence['activity'];
  readonly export?: {
    readonly fileSha256: string;
    readonly durationSeconds?: number;
    readonly rerender: 'matched' | 'differed' | 'not_tried';
    /** True when the export was shown to follow from the arrangement as it was witnessed. */
    readonly isTied: boolean;
  };
  /** The imports in the order of import. If there are too many, placed imports are preferred. */
  readonly importedSources: readonly ImportedSource[];
  /** False when imports were not observed. An absence of imports means nothing then. */
  readonly looksAtImports: boolean;
  /** Every import, in the order of import. */
  readonly imports: readonly ReplayedImport[];
  readonly detail: StoredSourceDetail;
  readonly inputs: RuleInputs;
  readonly missedSeconds: Readonly<Record<Channel, number>>;
  /** The counts that facts are based on. */
  readonly takes: {
    readonly realTime: number;
    readonly realTimeSeconds: number;
    readonly internal: number;
    readonly internalSeconds: number;
    readonly unproven: number;
  };
  readonly sources: {
    readonly derivedOfImports: number;
    readonly derivedOfUnknown: number;
    readonly appeared: number;
    readonly foundAtStart: number;
    readonly claimRecording: number;
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
  #export: TakenExport | undefined;
  #editsAfterExport = 0;
  #appeared = 0;
  #foundAtStart = 0;
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
    this.#countAfterExport(event);
  }

  /**
   * Counts an edit after the export. An edit whose interval began before the export may have happened before
   * it and does not count.
   */
  #countAfterExport({ at, since = at }: TraceEvent): void {
    if (this.#export !== undefined && since >= this.#export.event.at) this.#editsAfterExport += 1;
  }

  /** Updates the state of the session, and the counters that need it. */
  #follow(event: TraceEvent, isAct: boolean): void {
    const { channel } = EVENTS[event.kind];
    if (channel === 'clips' || channel === 'tracks') this.#changes += 1;
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
        this.#sources.import(event);
        return;
      case 'source.derived':
        if (isAct && !this.#sources.has(event.source)) this.#counters.count('sourcesDerived');
        this.#sources.derive(event.source, event.from);
        // The event does not show that the source was made only from that source.
        if (event.manner === 'other' || event.manner === 'unknown') this.#sources.doubt(event.source);
        return;
      case 'source.appeared':
        this.#sources.set(event.source, 'unknown');
        this.#appeared += 1;
        if (!isAct) this.#foundAtStart += 1;
        else {
          this.#counters.count('sourcesAppeared');
          if (event.claims === 'recording') this.#claimRecording += 1;
        }
        return;
      case 'sourceMap.completed':
        this.#observedAt = event.at;
        this.#takeObservation(event);
        return;
      case 'export.finished':
        if (isAct) this.#takeExport(event);
        return;
      default:
        if (isClipEvent(event)) {
          const { placed } = this.#arrangement.take(event);
          if (isAct && this.#sources.isImport(placed)) this.#counters.count('importPlacements');
        }
    }
  }

  #countEdit(name: CounterName, event: TraceEvent): void {
    this.#counters.count(name);
    this.#counters.act(event.at, 'edits');
    this.#countAfterExport(event);
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

  #takeExport(event: ExportEvent): void {
    this.#editsAfterExport = 0;
    const isTied = this.#isTied(event.rerender);
    this.#arrangement.markExport();
    this.#export = {
      event,
      tempo: this.#tempo.copy(),
      placements: this.#arrangement.placements,
      imports: this.#sources.imports.length,
      derivations: this.#sources.derivations,
      isTied,
    };
  }

  /**
   * Reports whether an export follows from the arrangement as it was witnessed. Two equal states before and after an
   * export are not enough: in between, an edit can be made, exported and undone unseen.
   */
  #isTied(rerender: ExportEvent['rerender']): boolean {
    if (rerender === 'differed') return false;
    const isObserved = this.#changesObserved === this.#changes;
    return (
      ARRANGED.every((channel) => this.#counters.isWatched(channel)) || (isObserved && rerender === 'matched')
    );
  }

  /** Returns the share of imports in the last export. Undefined when it is unknown. */
  #exportCover(): ExportCover | undefined {
    if (this.#export?.isTied !== true) return undefined;
    const { event, tempo, imports, derivations } = this.#export;
    const { frames, rate } = event;
    if (frames === undefined || rate === undefined) return undefined;
    const exportSeconds = frames / rate;
    const clips = this.#arrangement.exported();
    const end = endOf(clips, tempo);
    if (end === undefined) return undefined;
    const audio = new Set<number>();
    for (const { source, manner } of this.#sources.imports.slice(0, imports))
      if (manner !== 'midi')
        for (const one of this.#sources.descendants(source, audio, derivations)) audio.add(one);
    const spans: Span[] = [];
    for (const [source, shown] of spansBySource(clips, tempo))
      if (audio.has(source)) for (const span of shown) spans.push(span);
    // The start of the export in the arrangement is often unknown. The export leaves out at most `outside`
    // seconds of the arrangement, so `importedSeconds` is a lower bound.
    const outside = Math.max(0, end - exportSeconds);
    const importedSeconds = Math.max(
      0,
      Math.min(lengthOf(mergeSpans(spans)), exportSeconds + outside) - outside,
    );
    return { importedSeconds: milli(importedSeconds), exportSeconds: milli(exportSeconds) };
  }

  /**
   * Returns the result of the replay.
   * @param isWhole true when the trace ends with the seal of the device
   * @throws DomainError `unprocessable` / `trace_too_large` when too little of the budget is left
   */
  finish(isWhole: boolean): ReplayedSession {
    this.#spendOnFinish();
    const counters = this.#counters.counters(isWhole, this.#doubtful());
    const bySource = this.#arrangement.bySource();
    const exported = this.#export?.event;
    const imports = this.#imports(bySource);
    return defined({
      durationSeconds: seconds(this.#latest),
      events: this.#events,
      counters,
      coverage: this.#counters.coverage(),
      recordings: this.#recordings(bySource),
      activity: this.#counters.activity(),
      export:
        exported &&
        defined({
          fileSha256: exported.fileSha256,
          durationSeconds:
            exported.frames === undefined || exported.rate === undefined
              ? undefined
              : milli(exported.frames / exported.rate),
          rerender: exported.rerender,
          isTied: this.#export!.isTied,
        }),
      importedSources: this.#importedSources(bySource, imports),
      imports,
      detail: this.#arrangement.detail(
        this.#observedAt === undefined ? undefined : seconds(this.#observedAt),
        { tracks: this.#counters.looksAt('tracks'), placements: this.#seesPlacements() },
      ),
      looksAtImports: this.#counters.looksAt('imports'),
      inputs: this.#inputs(counters),
      missedSeconds: Object.fromEntries(
        CHANNELS.map((channel) => [channel, this.#counters.missedSeconds(channel)]),
      ) as Record<Channel, number>,
      takes: this.#takeCounts(),
      sources: {
        derivedOfImports: this.#sources.derivedMaterial,
        derivedOfUnknown: this.#sources.derivedOfUnknown,
        appeared: this.#appeared,
        foundAtStart: this.#foundAtStart,
        claimRecording: this.#claimRecording,
      },
    });
  }

  #spendOnFinish(): void {
    const placements = this.#arrangement.placements + (this.#export?.placements ?? 0);
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
    };
  }

  #isArrangementWatched(): boolean {
    return this.#counters.isWatched('clips') && this.#counters.isWatched('tracks');
  }

  /** Reports whether everything that was exported is known and consists only of imports. */
  #isExportOfImports(exported: TakenExport | undefined): exported is TakenExport {
    if (exported?.isTied !== true || exported.placements === 0) return false;
    return this.#sources.areImportsAlone(new Set(this.#arrangement.exported().map(({ source }) => source)));
  }

  #inputs(counters: SessionEvidence['counters']): RuleInputs {
    const exported = this.#export;
    const isOfImports = this.#isExportOfImports(exported);
    const isClipsSeen = this.#isArrangementWatched() || isOfImports;
    const cover = this.#exportCover();
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
      placements: isOfImports ? exported.placements : isClipsSeen || placements > 0 ? placements : undefined,
      editsAfterExport: this.#export === undefined ? undefined : this.#editsAfterExport,
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

function isClipEvent(event: TraceEvent): event is ClipEvent {
  return EVENTS[event.kind].channel === 'clips';
}
