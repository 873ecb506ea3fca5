/**
 * Numbers that were added: ends of intervals (after, up to and with, after, ...), ascending, none touching
 * the next.
 */
export type Spans = readonly number[];

export function sizeOf(spans: Spans): number {
  return spans.reduce((size, end, i) => size + (i % 2 === 0 ? -end : end), 0);
}

/** Whether any of the numbers after `from`, up to and with `to`, is there. */
export function overlaps(spans: Spans, from: number, to: number): boolean {
  const i = firstEnding(spans, from);
  return i < spans.length && spans[i]! < to;
}

/** Whether all of them are. */
export function covers(spans: Spans, from: number, to: number): boolean {
  const i = firstEnding(spans, from);
  return i < spans.length && spans[i]! <= from && to <= spans[i + 1]!;
}

/** With an interval that overlaps none of them. */
export function withSpan(spans: Spans, from: number, to: number): Spans {
  const i = firstEnding(spans, from);
  const joinsBefore = i >= 2 && spans[i - 1] === from;
  const joinsAfter = i < spans.length && spans[i] === to;
  return [
    ...spans.slice(0, joinsBefore ? i - 1 : i),
    ...(joinsBefore ? [] : [from]),
    ...(joinsAfter ? [] : [to]),
    ...spans.slice(joinsAfter ? i + 1 : i),
  ];
}

/** Where the first interval begins that ends after a number. */
function firstEnding(spans: Spans, after: number): number {
  let low = 0;
  let high = spans.length / 2;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[2 * middle + 1]! > after) high = middle;
    else low = middle + 1;
  }
  return 2 * low;
}
