/**
 * Numbers that were added up, as ends of intervals (after, up to and with, after, ...), ascending, none
 * touching the next.
 */
export type Intervals = readonly number[];

/** Returns how many of the numbers after `from`, up to and including `to`, are in the intervals. */
export function sizeWithin(intervals: Intervals, from: number, to: number): number {
  const within = (end: number): number => Math.min(Math.max(end, from), to);
  return intervals.reduce((size, end, i) => size + (i % 2 === 0 ? -within(end) : within(end)), 0);
}

/** Returns whether any of the numbers after `from`, up to and including `to`, is in the intervals. */
export function overlaps(intervals: Intervals, from: number, to: number): boolean {
  const i = firstEndingAfter(intervals, from);
  return i < intervals.length && intervals[i]! < to;
}

/** Returns whether all of the numbers after `from`, up to and including `to`, are in the intervals. */
export function covers(intervals: Intervals, from: number, to: number): boolean {
  const i = firstEndingAfter(intervals, from);
  return i < intervals.length && intervals[i]! <= from && to <= intervals[i + 1]!;
}

/** Returns the intervals with another one, which overlaps none of them. */
export function withInterval(intervals: Intervals, from: number, to: number): Intervals {
  const i = firstEndingAfter(intervals, from);
  const joinsBefore = i >= 2 && intervals[i - 1] === from;
  const joinsAfter = i < intervals.length && intervals[i] === to;
  return [
    ...intervals.slice(0, joinsBefore ? i - 1 : i),
    ...(joinsBefore ? [] : [from]),
    ...(joinsAfter ? [] : [to]),
    ...intervals.slice(joinsAfter ? i + 1 : i),
  ];
}

/** Returns the index at which the first interval begins that ends after a number. */
function firstEndingAfter(intervals: Intervals, after: number): number {
  let low = 0;
  let high = intervals.length / 2;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (intervals[2 * middle + 1]! > after) high = middle;
    else low = middle + 1;
  }
  return 2 * low;
}
