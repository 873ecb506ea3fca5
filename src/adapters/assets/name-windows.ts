import { opendir } from 'node:fs/promises';
import { WorkQueue } from '../../async/work-queue.js';
import { defined } from '../../domain/defined.js';

/** Names that one read of a directory keeps: some 7 MB. A pass over a million files reads it ten times. */
const KEPT = 100_000;
/** Windows at once: the auditor's and an operator's. */
const WINDOWS = 2;
/** Time without a page after which a window goes: whoever asked gave up. */
const IDLE_MS = 60_000;
/** Entries that the file system hands over at once; other work has its turn between. */
const ENTRIES_AT_ONCE = 256;

export interface NameWindowsOptions {
  readonly kept?: number;
  readonly idleMs?: number;
  /** Begins a read of the directory. */
  readonly read?: (directory: string) => Promise<AsyncIterable<{ readonly name: string }>>;
}

/** Names behind a place as a read found them, and the page of them that was served last. */
interface Window {
  /** Place behind which the names begin; empty at the start of the directory. */
  readonly after: string;
  readonly names: readonly string[];
  /** Nothing was in the directory behind these names. */
  readonly isLast: boolean;
  readonly timer: NodeJS.Timeout;
  /** Index at which the last page began. */
  began: number;
  /** Index at which it ended. */
  ended: number;
}

/**
 * Pages of a directory's names in their order. A directory has none, so that each page would be a read of all: one
 * read keeps the names of many pages, for the caller that goes on where the last of them ended, or asks for it again.
 * The first page always reads. Names are as of the read of their window: some may be gone, and newer ones are
 * in the pages of a later pass.
 */
export class NameWindows {
  readonly #directory: string;
  readonly #isName: (name: string) => boolean;
  readonly #kept: number;
  readonly #idleMs: number;
  readonly #read: NonNullable<NameWindowsOptions['read']>;
  /** One read at a time: each holds the names of a window. */
  readonly #queue = new WorkQueue(1);
  /** The one that was used last is the first. */
  #windows: readonly Window[] = [];

  constructor(
    directory: string,
    isName: (name: string) => boolean,
    { kept = KEPT, idleMs = IDLE_MS, read = openEntries }: NameWindowsOptions = {},
  ) {
    this.#directory = directory;
    this.#isName = isName;
    this.#kept = kept;
    this.#idleMs = idleMs;
    this.#read = read;
  }

  /** Names behind a place, at most `limit`; a page may be shorter and not the last. */
  page(
    after: string | undefined,
    limit: number,
  ): Promise<{ readonly names: readonly string[]; readonly next?: string }> {
    return this.#queue.run(async () => {
      const window = this.#windowAt(after) ?? (await this.#readBehind(after ?? ''));
      window.began = placeAt(window, window.ended) === (after ?? '') ? window.ended : window.began;
      window.ended = Math.min(window.began + limit, window.names.length);
      const names = window.names.slice(window.began, window.ended);
      const isEnd = window.ended === window.names.length;
      if (isEnd) this.#drop(window);
      else this.#use(window);
      return { names, ...defined({ next: isEnd && window.isLast ? undefined : names.at(-1) }) };
    });
  }

  /** The window whose next page is behind the place, or whose last one was: a caller repeats what failed. */
  #windowAt(after: string | undefined): Window | undefined {
    return (
      this.#windows.find((window) => placeAt(window, window.ended) === after) ??
      this.#windows.find((window) => placeAt(window, window.began) === after)
    );
  }

  async #readBehind(after: string): Promise<Window> {
    let names: string[] = [];
    let found = 0;
    let sorted = 0;
    /** The last name that is kept, as soon as there are enough. */
    let last: string | undefined;
    const sort = (): void => {
      names = names.sort().slice(0, this.#kept);
      sorted = names.length;
      last = names[this.#kept - 1];
    };
    for await (const { name } of await this.#read(this.#directory)) {
      if (name <= after || !this.#isName(name)) continue;
      found += 1;
      if (last !== undefined && name > last) continue;
      names.push(name);
      // Few names are merged into those in order at a time: a sort of all would hold up everybody else.
      if (names.length - sorted >= this.#kept / 8) sort();
    }
    sort();
    const timer = setTimeout(() => this.#drop(window), this.#idleMs).unref();
    const window: Window = { after, names, isLast: found <= this.#kept, timer, began: 0, ended: 0 };
    return window;
  }

  #use(window: Window): void {
    window.timer.refresh();
    const others = this.#windows.filter((each) => each !== window);
    for (const each of others.slice(WINDOWS - 1)) this.#drop(each);
    this.#windows = [window, ...others.slice(0, WINDOWS - 1)];
  }

  #drop(window: Window): void {
    clearTimeout(window.timer);
    this.#windows = this.#windows.filter((each) => each !== window);
  }
}

/** Place of the page that begins at an index of the window. */
function placeAt({ after, names }: Window, index: number): string {
  return index === 0 ? after : names[index - 1]!;
}

function openEntries(directory: string): Promise<AsyncIterable<{ readonly name: string }>> {
  return opendir(directory, { bufferSize: ENTRIES_AT_ONCE });
}
