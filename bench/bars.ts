/**
 * Value that a figure has to reach, always as a ratio to something measured in the same run or as a count,
 * never as an absolute speed.
 */
export interface Bar {
  readonly kind: 'at least' | 'at most';
  readonly limit: number;
  /** Value that prototypes reached before the service was built. */
  readonly prototype?: string;
}

const atLeast = (limit: number, prototype?: string): Bar => ({
  kind: 'at least',
  limit,
  ...(prototype === undefined ? {} : { prototype }),
});
const atMost = (limit: number, prototype?: string): Bar => ({
  kind: 'at most',
  limit,
  ...(prototype === undefined ? {} : { prototype }),
});

/** The one list of bars, by id of the comparison. */
export const BARS: Readonly<Record<string, Bar>> = {
  'hash.single/hash-wasm': atLeast(1.3, '1.32'),
  'hash.single/masked': atLeast(0.8, '0.87'),
  'hash.lanes/hash-wasm': atLeast(2.3, '2.4'),
  'hash.lanes/node': atLeast(0.44, '0.46'),
  'hash.lanes/masked': atLeast(1.4, '1.6'),
  'parse.core/music-metadata': atLeast(100, '350'),
  'parse.core/hash': atMost(0.01),
  'ingest.slabs/busboy': atLeast(0.85),
  'upload.4/busboy': atLeast(0.35, '0.38 to 0.45'),
  'upload.16/busboy': atLeast(0.35, '0.38 to 0.45'),
  'upload.4.cpu': atMost(1.4, '1.13 to 1.25'),
  'upload.16.cpu': atMost(1.4, '1.13 to 1.25'),
  'upload.1/kernel': atLeast(0.7),
  'upload.4.lanes': atLeast(3.5, '3.9'),
  'upload.16.lanes': atLeast(3.5, '3.9'),
  'upload.4.tail': atMost(1.5, '1.15'),
  'memory.large': atMost(6),
  'verify.embedded/express': atLeast(0.4),
  'evidence.read/plain': atLeast(0.3),
  'evidence.replay/plain': atLeast(0.2),
  'evidence.memory': atMost(96),
};

export function meets(bar: Bar, value: number): boolean {
  return bar.kind === 'at least' ? value >= bar.limit : value <= bar.limit;
}

/** How far a value that misses its bar is from it, as a share of the bar. */
export function shortfall(bar: Bar, value: number): number {
  return bar.kind === 'at least' ? (bar.limit - value) / bar.limit : (value - bar.limit) / bar.limit;
}
