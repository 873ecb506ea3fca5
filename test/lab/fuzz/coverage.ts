import { type Profiler, Session } from 'node:inspector';

/** Blocks that a run of code touched, as numbers: one for each block and order of magnitude of its count. */
export interface Coverage {
  /** Everything touched since the last call, and begins anew. */
  take(): ReadonlySet<number>;
  close(): void;
}

/**
 * Coverage of blocks as V8 counts them by itself (Chrome DevTools Protocol, Profiler.startPreciseCoverage),
 * so that nothing has to be built anew for it. Calls to an inspector session of the own thread are answered
 * before they return.
 */
export class BlockCoverage implements Coverage {
  readonly #session = new Session();
  readonly #folders: readonly string[];
  readonly #numbers = new Map<string, number>();

  /** @param folders scripts whose address contains one of these count */
  constructor(folders: readonly string[]) {
    this.#folders = folders;
    this.#session.connect();
    this.#post('Profiler.enable');
    this.#post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    this.take();
  }

  take(): ReadonlySet<number> {
    const touched = new Set<number>();
    const { result } = this.#post('Profiler.takePreciseCoverage') as Profiler.TakePreciseCoverageReturnType;
    for (const { url, scriptId, functions } of result) {
      if (!this.#folders.some((folder) => url.includes(folder))) continue;
      for (const { ranges } of functions) {
        // A range that ran as often as the one around it is not listed: of two branches, the other one's zero
        // tells which was taken.
        if (ranges[0]!.count > 0)
          for (const { startOffset, endOffset, count } of ranges)
            touched.add(this.#number(`${scriptId} ${startOffset} ${endOffset} ${magnitude(count)}`));
      }
    }
    return touched;
  }

  close(): void {
    this.#session.disconnect();
  }

  #number(block: string): number {
    const known = this.#numbers.get(block);
    if (known !== undefined) return known;
    this.#numbers.set(block, this.#numbers.size);
    return this.#numbers.size - 1;
  }

  #post(method: string, params: object = {}): unknown {
    let answer: unknown;
    let fault: Error | null | undefined;
    this.#session.post(method, params, (error, result) => {
      fault = error;
      answer = result;
    });
    if (fault) throw fault;
    if (answer === undefined) throw new Error(`${method} was not answered at once`);
    return answer;
  }
}

/**
 * Once, twice, some times, often: a loop that runs longer than ever is something new, one more round is not.
 */
export function magnitude(count: number): number {
  return count < 4 ? count : 32 - Math.clz32(count) + 1;
}
