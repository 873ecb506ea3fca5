/**
 * Writes the events of a save: first the transactions of the history, then every difference that remains between the
 * trace and the session file. Afterwards the trace and the file agree.
 */

import { writeDifferences } from './differences.js';
import { EventWriter } from './event-writer.js';
import { DEFAULT_DEPTH, type Transaction } from './history-file.js';
import type { Ledger, When } from './ledger.js';
import type { SessionState, SourceState } from './session-file.js';
import type { SourceWitness } from './sources.js';
import { traceBack, writeTransaction } from './transactions.js';

/** A save as the agent read it. */
export interface Save {
  readonly session: SessionState;
  /** The transactions of the undo history, oldest first. Absent if no history was saved. */
  readonly history?: readonly Transaction[];
  /** The time of the save, or of the first look at an earlier one, in microseconds of the session clock. */
  readonly savedAt: number;
  /** True if the file was written before the agent started. */
  readonly isEarlier?: boolean;
  /** What the agent saw of the files of new sources, by the ids of the sources. */
  readonly witnessed: ReadonlyMap<string, SourceWitness>;
}

/**
 * The least number of ids that a program assigns when it loads a session. An edit takes a few ids. If the list of
 * transactions disappears after at least this number of ids, its program has ended and nothing was undone.
 */
const IDS_OF_A_LOAD = 200;

/** Writes the saves of a session, one after another. */
export class SaveWriter {
  readonly #ledger: Ledger;
  readonly #clockOf: (wall: number) => number;
  #previous:
    | { readonly savedAt: number; readonly session: SessionState; readonly isEarlier: boolean }
    | undefined;
  /** The keys of the last list. `#known` has the keys of all transactions that ever were in a list. */
  #order: readonly string[] = [];
  readonly #known = new Set<string>();
  #longest = 0;

  /** The session clock in microseconds when the agent started. */
  readonly #startedAt: number;

  /** @param clockOf returns the session clock in microseconds at a time of the wall clock in milliseconds */
  constructor(ledger: Ledger, clockOf: (wall: number) => number, startedAt = 0) {
    this.#ledger = ledger;
    this.#clockOf = clockOf;
    this.#startedAt = startedAt;
  }

  /** Returns the sources that the trace does not contain. */
  newSources({ sources }: SessionState): readonly SourceState[] {
    return [...sources.values()].filter(({ id }) => !this.#ledger.sources.has(id));
  }

  write({ session, history = [], savedAt, isEarlier = false, witnessed }: Save): void {
    const previous = this.#previous;
    const fresh = previous === undefined ? [] : history.filter(({ key }) => !this.#known.has(key));
    // State from before the first look counts as found. So does what differs from a file that was written before the
    // agent started: the program may have had it in memory, unsaved.
    const since = previous === undefined || previous.isEarlier ? savedAt : previous.savedAt;
    const interval: When = { at: savedAt, since };
    const placed = placedSources(fresh, session);
    const forks = forkedSources(fresh, session);
    const writer = new EventWriter({
      ledger: this.#ledger,
      session,
      witnessed,
      placed,
      forks,
      since,
      seenSince: previous?.savedAt ?? savedAt,
    });
    if (previous === undefined) {
      this.#ledger.add({ kind: 'session.opened', sampleRate: session.sampleRate }, { at: savedAt });
    } else {
      this.#writeList(history, previous.session, session, interval);
      const steps = traceBack(fresh, session);
      for (const [index, { wall }] of fresh.entries())
        writeTransaction(writer, steps[index] ?? [], this.#timeOf(wall));
      this.#ledger.add({ kind: 'session.saved' }, { at: savedAt });
    }
    writeDifferences(writer, interval);
    if (session.otherFolders && previous?.session.otherFolders !== true)
      this.#ledger.add({ kind: 'capture.gap', scope: 'recording', reason: 'unreadable' }, interval);
    this.#ledger.add(
      { kind: 'sourceMap.completed', sources: session.sources.size, clips: session.clips.size },
      { at: savedAt },
    );
    this.#order = history.map(({ key }) => key);
    for (const key of this.#order) this.#known.add(key);
    this.#longest = Math.max(this.#longest, this.#order.length);
    this.#previous = { savedAt, session, isEarlier };
  }

  /** Returns the time of a transaction. A transaction from before the agent started counts as found. */
  #timeOf(wall: number): When {
    const at = this.#clockOf(wall);
    return at > this.#startedAt ? { at } : { at, since: at };
  }

  /** Reports undo, redo and loss, which show in the transactions that the list no longer has or has again. */
  #writeList(
    history: readonly Transaction[],
    before: SessionState,
    session: SessionState,
    interval: When,
  ): void {
    const now = new Set(history.map(({ key }) => key));
    const former = new Set(this.#order);
    const redone = history.filter(({ key }) => this.#known.has(key) && !former.has(key)).length;
    // The list is cut at its head by its depth, and at its tail by undo.
    const kept = this.#order.findLastIndex((key) => now.has(key));
    const undone = this.#order.length - 1 - kept;
    const isCut = kept === -1 && history.length >= DEFAULT_DEPTH && history.length >= this.#longest;
    const isReloaded = kept === -1 && session.idCounter - before.idCounter >= IDS_OF_A_LOAD;
    if (isCut) this.#ledger.add({ kind: 'capture.gap', scope: 'clips', reason: 'history_lost' }, interval);
    else if (undone > 0 && !isReloaded) this.#ledger.add({ kind: 'session.undone', steps: undone }, interval);
    if (redone > 0) this.#ledger.add({ kind: 'session.redone', steps: redone }, interval);
  }
}

function placedSources(fresh: readonly Transaction[], session: SessionState): ReadonlySet<string> {
  const placed = new Set<string>();
  for (const { changes } of fresh)
    for (const change of changes) {
      if (change.kind !== 'playlist') continue;
      for (const id of change.added)
        for (const source of (session.clips.get(id) ?? session.regions.get(id))?.sources ?? [])
          placed.add(source);
    }
  return placed;
}

/**
 * Returns the former source of each source of notes that unlinking made. Unlinking a region of notes puts another
 * region in its place, of the same extent, with a source of its own.
 */
function forkedSources(
  fresh: readonly Transaction[],
  { clips, regions }: SessionState,
): ReadonlyMap<string, string> {
  const forks = new Map<string, string>();
  const find = (id: string) => clips.get(id) ?? regions.get(id) ?? [];
  for (const { changes } of fresh)
    for (const change of changes) {
      if (change.kind !== 'playlist') continue;
      const removed = change.removed.flatMap(find);
      for (const region of change.added.flatMap(find)) {
        const former = removed.find(
          ({ base, extent, source }) =>
            base === 'beats' && extent === region.extent && source !== region.source,
        );
        if (former !== undefined) forks.set(region.source, former.source);
      }
    }
  return forks;
}
