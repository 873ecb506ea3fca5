/** Fuzzes a reader. Inputs that reach something new are kept and mutated further. */
import type { Coverage } from './coverage.js';
import { mutate, type RandomNumbers } from './mutate.js';

export interface Target {
  readonly name: string;
  readonly seeds: readonly Uint8Array[];
  /** The byte strings that have a meaning for the reader. */
  readonly words?: readonly Uint8Array[];
  readonly maxBytes: number;
  /** Throws if the reader does something forbidden. To refuse an input is the normal result. */
  run(input: Buffer): void | Promise<void>;
}

export interface FuzzOptions {
  readonly coverage: Coverage;
  readonly random: RandomNumbers;
  /** Returns true if so many inputs are enough. It is called before each batch. */
  readonly enough: (inputs: number) => boolean;
  /** Whether to keep inputs by coverage. Default: true. False mutates only the seeds, for comparison. */
  readonly guided?: boolean;
  /** The callback for each input before it runs. It serves to identify an input that hangs. */
  readonly before?: (input: Uint8Array) => void;
}

export interface FuzzResult {
  readonly inputs: number;
  readonly features: number;
  /** The inputs worth keeping, seeds included. */
  readonly corpus: readonly Uint8Array[];
  readonly fault?: { readonly input: Uint8Array; readonly error: unknown };
}

/**
 * The number of inputs for each read of coverage. If a batch reaches something new, each of its inputs runs
 * again alone.
 */
const BATCH = 64;

export async function fuzz(
  target: Target,
  { coverage, random, enough, guided = true, before }: FuzzOptions,
): Promise<FuzzResult> {
  const seen = new Set<number>();
  /** A separate set, because a batch runs each block more often than one input does. */
  const seenInBatches = new Set<number>();
  const corpus: Uint8Array[] = [];
  const words = target.words ?? [];
  let inputs = 0;
  const run = async (input: Buffer): Promise<void> => {
    before?.(input);
    await target.run(input);
    inputs += 1;
  };
  const keepIfNew = async (input: Buffer): Promise<void> => {
    coverage.take();
    await run(input);
    if (addNew(coverage.take(), seen)) corpus.push(Buffer.from(input));
  };
  let current: Buffer = Buffer.alloc(0);
  try {
    for (const seed of target.seeds) await keepIfNew((current = Buffer.from(seed)));
    if (corpus.length === 0) throw new Error('the seeds reach nothing: coverage does not count this reader');
    while (!enough(inputs)) {
      const batch: Buffer[] = [];
      for (let i = 0; i < BATCH; i += 1) {
        current = mutate(choose(corpus, random), corpus, words, target.maxBytes, random);
        batch.push(Buffer.from(current));
        await run(current);
      }
      // Reading coverage costs more than most inputs, and the cost grows with the loaded code.
      if (!guided || !addNew(coverage.take(), seenInBatches)) continue;
      for (const input of batch) await keepIfNew((current = input));
    }
  } catch (error) {
    return { inputs, features: seen.size, corpus, fault: { input: current, error } };
  }
  return { inputs, features: seen.size, corpus };
}

/** @returns whether any feature was new */
function addNew(features: ReadonlySet<number>, seen: Set<number>): boolean {
  const before = seen.size;
  for (const feature of features) seen.add(feature);
  return seen.size > before;
}

/** Draws an input. The newer half is twice as likely, because it has been mutated least. */
function choose(corpus: readonly Uint8Array[], random: RandomNumbers): Uint8Array {
  const index =
    random(3) === 0 ? random(corpus.length) : corpus.length - 1 - random(Math.ceil(corpus.length / 2));
  return corpus[index]!;
}

/** Returns the smallest inputs that together reach everything, sorted by size. */
export async function minimise(
  target: Target,
  corpus: readonly Uint8Array[],
  coverage: Coverage,
): Promise<readonly Uint8Array[]> {
  const seen = new Set<number>();
  const kept: Uint8Array[] = [];
  for (const input of corpus.toSorted((a, b) => a.length - b.length)) {
    coverage.take();
    await target.run(Buffer.from(input));
    if (addNew(coverage.take(), seen)) kept.push(input);
  }
  return kept;
}
