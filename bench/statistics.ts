/** @throws RangeError for an empty list */
export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/**
 * Returns the mean of the two nearest ranks for the median, and the nearest rank for another percentile. A p99
 * of few values is their largest.
 */
export function percentile(values: readonly number[], percent: number): number {
  if (values.length === 0) throw new RangeError('no values');
  const sorted = [...values].sort((a, b) => a - b);
  if (percent === 50)
    return (sorted[Math.floor((sorted.length - 1) / 2)]! + sorted[Math.ceil((sorted.length - 1) / 2)]!) / 2;
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)]!;
}

/** Returns the range of the rounds as a share of their median. */
export function spread(values: readonly number[]): number {
  const middle = median(values);
  return middle === 0 ? 0 : (Math.max(...values) - Math.min(...values)) / middle;
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
