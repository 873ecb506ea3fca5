import { type Profiler, Session } from 'node:inspector';

/**
 * The blocks that a run of code reached, as numbers. A block has one number for each order of magnitude of
 * its count.
 */
export interface Coverage {
  /** Returns the blocks reached since the last call. */
  take(): ReadonlySet<number>;
  close(): void;
}

/**
 * The coverage of blocks by V8's own counters (Chrome DevTools Protocol, Profiler.startPreciseCoverage),
 * which needs no special build. An inspector session of the own thread answers a call before it returns.
 */
export class BlockCoverage implements Coverage {
  readonly #session = new Session();
  readonly #folders: readonly string[];
  readonly #numbers = new Map<string, number>();

  /** @param folders parts of the addresses of the scripts that count */
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
        // V8 omits a range with the same count as its parent. Of two branches, the count of the other one
        // shows which ran.
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
 * Returns the order of magnitude of a count. A loop that runs much longer than before is new, one more round
 * is not.
 */
export function magnitude(count: number): number {
  return count < 4 ? count : 32 - Math.clz32(count) + 1;
}
