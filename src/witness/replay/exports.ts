import type { TraceEvent } from '../domain/trace.js';

type ExportEvent = TraceEvent & { readonly kind: 'export.finished' };
type RenderedEvent = TraceEvent & { readonly kind: 'export.rendered' };

/** The number of exported files that are remembered. Beyond it, the earliest are forgotten. */
const MAX_EXPORTS = 1024;
/** The number of latest edits whose times are remembered for an export that is reported late. */
const REMEMBERED_EDITS = 256;

/** An exported file. `Content` is what the arrangement held. It is known only of a tied export. */
export interface SeenExport<Content> {
  readonly fileSha256: string;
  readonly durationSeconds: number | undefined;
  readonly rerender: ExportEvent['rerender'];
  /** The windows that were compared after rendering again, and how many of them were equal. */
  readonly windows: { readonly compared: number; readonly equal: number } | undefined;
  /** True when the export was shown to follow from the arrangement as it was witnessed. */
  readonly isTied: boolean;
  readonly content: Content | undefined;
}

interface Kept<Content> {
  seen: SeenExport<Content>;
  /** The earliest time at which the file may have been exported. */
  readonly start: number;
  /** The number of edits from `start` up to the next export. */
  edits: number;
}

/** The exported files of a session, each with the number of edits after it. Memory is bounded. */
export class ExportLog<Content> {
  /** The exports that are remembered, in the order of `start`. */
  readonly #kept: Kept<Content>[] = [];
  readonly #byFile = new Map<string, Kept<Content>>();
  /** The times of the latest edits, in a ring buffer. */
  readonly #edits: number[] = [];
  #editCount = 0;

  /**
   * Adds an exported file. If the same file was exported before, the export before is forgotten, but a tie stays.
   * @param hold called when the export is tied, after the export before was forgotten
   */
  add(event: ExportEvent, isTied: boolean, hold: () => Content): void {
    const { fileSha256, frames, rate, rerender, at, since: start = at } = event;
    const before = this.#byFile.get(fileSha256);
    if (before !== undefined) this.#forget(before);
    const isTiedBefore = !isTied && rerender !== 'differed' && before?.seen.isTied === true;
    const kept: Kept<Content> = {
      seen: {
        fileSha256,
        durationSeconds: frames === undefined || rate === undefined ? undefined : frames / rate,
        rerender,
        windows: undefined,
        isTied: isTied || isTiedBefore,
        content: isTied ? hold() : isTiedBefore ? before.seen.content : undefined,
      },
      start,
      edits: 0,
    };
    const index = this.#indexAfter(start);
    const until = this.#kept[index]?.start ?? Number.POSITIVE_INFINITY;
    kept.edits = this.#edits.filter((edit) => edit >= start && edit < until).length;
    const earlier = this.#kept[index - 1];
    if (earlier !== undefined) earlier.edits = Math.max(0, earlier.edits - kept.edits);
    this.#kept.splice(index, 0, kept);
    this.#byFile.set(fileSha256, kept);
    if (this.#kept.length > MAX_EXPORTS) this.#forget(this.#kept[0]!);
  }

  /**
   * Notes the outcome of rendering an export again.
   * @param hold called when the outcome ties the export
   */
  render(
    { fileSha256, outcome, windows, equalWindows }: RenderedEvent,
    isTied: boolean,
    hold: () => Content,
  ): void {
    const kept = this.#byFile.get(fileSha256);
    if (kept === undefined) return;
    const { seen } = kept;
    const isStillTied = outcome === 'matched' && seen.isTied;
    kept.seen = {
      ...seen,
      rerender: outcome,
      windows:
        windows === undefined || equalWindows === undefined
          ? undefined
          : { compared: windows, equal: Math.min(windows, equalWindows) },
      isTied: isTied || isStillTied,
      content: isTied ? hold() : isStillTied ? seen.content : undefined,
    };
  }

  /** Counts an edit. @param start the earliest time at which it may have been made */
  edit(start: number): void {
    this.#edits[this.#editCount % REMEMBERED_EDITS] = start;
    this.#editCount += 1;
    const kept = this.#kept[this.#indexAfter(start) - 1];
    if (kept !== undefined) kept.edits += 1;
  }

  /** Reports whether a content belongs to one of the exports. */
  holds(content: Content): boolean {
    return this.#kept.some(({ seen }) => seen.content === content);
  }

  /** Returns the exports in the order of time, each with the number of edits after it. */
  all(): readonly { readonly seen: SeenExport<Content>; readonly editsAfter: number }[] {
    let editsAfter = 0;
    return this.#kept
      .toReversed()
      .map(({ seen, edits }) => {
        editsAfter += edits;
        return { seen, editsAfter };
      })
      .reverse();
  }

  #forget(kept: Kept<Content>): void {
    const index = this.#kept.indexOf(kept);
    const earlier = this.#kept[index - 1];
    if (earlier !== undefined) earlier.edits += kept.edits;
    this.#kept.splice(index, 1);
    this.#byFile.delete(kept.seen.fileSha256);
  }

  /** Returns the index after the last export that starts at a time or before it. */
  #indexAfter(time: number): number {
    let low = 0;
    let high = this.#kept.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#kept[middle]!.start <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
