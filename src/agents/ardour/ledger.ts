/**
 * The ledger of what the trace contains: the ids of Ardour's objects in the trace, and what its reader knows of each.
 * Times in a trace never run backwards, so an act that becomes known late is written at the time of the last event.
 */
import type { EventKind, TraceEvent } from '../../witness/domain/trace.js';
import type {
  AutomationState,
  ClipState,
  MarkerState,
  PluginState,
  TempoMap,
  TrackState,
} from './session-file.js';

/** Receives events in the order of the trace. */
export type EventSink = (event: TraceEvent) => void;

type UntimedEvent<Kind extends EventKind = EventKind> = Kind extends EventKind
  ? Omit<Extract<TraceEvent, { kind: Kind }>, 'at' | 'since'>
  : never;

/**
 * The time of an act in microseconds of the session clock: exactly `at`, or between `since` and `at`. If both are
 * equal, the event is not an act, but describes state that the agent found.
 */
export interface When {
  readonly at: number;
  readonly since?: number;
}

export interface KnownClip {
  readonly clip: number;
  readonly state: ClipState;
}

/** A source that the trace contains, with the kind of event that reported it. */
export interface KnownSource {
  readonly source: number;
  readonly origin: 'recording' | 'import' | 'derived' | 'appeared';
}

export interface Ledger {
  readonly tracks: Map<string, { readonly track: number; readonly state: TrackState }>;
  readonly clips: Map<string, KnownClip>;
  readonly sources: Map<string, KnownSource>;
  readonly plugins: Map<string, { readonly plugin: number; readonly state: PluginState }>;
  readonly automation: Map<string, AutomationState>;
  readonly markers: Map<string, MarkerState>;
  /** The ids of the takes whose end was reported. Two sources may name one file, and so have one take. */
  readonly ended: Set<number>;
  tempo?: TempoMap;
  /** Returns the time of the last event in microseconds of the session clock. */
  last(): number;
  /** Returns the next id of a kind. No id of a kind is given twice in a trace. */
  next(kind: 'track' | 'clip' | 'source' | 'plugin' | 'take'): number;
  add(event: UntimedEvent, when: When): void;
}

const ENDS: readonly EventKind[] = ['recording.finished', 'recording.discarded', 'midi.recorded'];

export function openLedger(sink: EventSink): Ledger {
  const counts = { track: 0, clip: 0, source: 0, plugin: 0, take: 0 };
  const ended = new Set<number>();
  let last = 0;
  return {
    tracks: new Map(),
    clips: new Map(),
    sources: new Map(),
    plugins: new Map(),
    automation: new Map(),
    markers: new Map(),
    ended,
    last: () => last,
    next(kind) {
      counts[kind] += 1;
      return counts[kind];
    },
    add(event, { at, since }) {
      if ('take' in event && ENDS.includes(event.kind)) ended.add(event.take);
      const wanted = Math.max(0, Math.round(at));
      const earliest = since === undefined ? undefined : Math.max(0, Math.round(since));
      const written = Math.max(wanted, last);
      last = written;
      // State that was found keeps `since` equal to `at` when it is reported later.
      const found = earliest === wanted;
      const from = found ? written : (earliest ?? (written === wanted ? undefined : wanted));
      sink({ ...event, at: written, ...(from === undefined ? {} : { since: from }) } as TraceEvent);
    },
  };
}
