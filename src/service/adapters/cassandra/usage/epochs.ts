/**
 * Epochs of a month's units after the first, as pairs: the epoch, and the count at which it began. Empty until the
 * keyspace was put back.
 */
export type Epochs = readonly number[];

/** Numbers of an epoch: those after `from`, up to and with `to`. */
export interface EpochSpan {
  readonly from: number;
  readonly to: number;
}

/** Returns the epoch that counts now. */
export function lastEpoch(epochs: Epochs | undefined): number {
  return epochs?.at(-2) ?? 0;
}

/** Returns the numbers that each epoch has of a month's count. */
export function spansOf(epochs: Epochs, used: number): ReadonlyMap<number, EpochSpan> {
  const starts = [0, 0, ...epochs];
  return new Map(
    Array.from({ length: starts.length / 2 }, (_, i) => [
      starts[2 * i]!,
      { from: starts[2 * i + 1]!, to: starts[2 * i + 3] ?? used },
    ]),
  );
}
