/**
 * The value that a figure has to reach. It is a ratio to something measured in the same run, or a count,
 * but never an absolute speed.
 */
export interface Bar {
  readonly kind: 'at least' | 'at most';
  readonly limit: number;
  /** The value that prototypes reached before the service was built. */
  readonly prototype?: string;
  /** The limit before its last change. */
  readonly was?: number;
}

/** A bar for the smaller files of a quick run and for the files of a full one. */
type Bars = Readonly<Record<'quick' | 'full', Bar>>;

const bars =
  (kind: Bar['kind']) =>
  (limits: number | Readonly<Record<keyof Bars, number>>, more: Omit<Bar, 'kind' | 'limit'> = {}): Bars => {
    const { quick, full } = typeof limits === 'number' ? { quick: limits, full: limits } : limits;
    return { quick: { kind, limit: quick, ...more }, full: { kind, limit: full, ...more } };
  };
const atLeast = bars('at least');
const atMost = bars('at most');

/** The one list of bars, by id of the comparison. */
const BARS: Readonly<Record<string, Bars>> = {
  'hash.single/hash-wasm': atLeast(1.15, { was: 1.45 }),
  'hash.single/masked': atLeast(0.8, { prototype: '0.87' }),
  'hash.lanes/hash-wasm': atLeast(2.6, { prototype: '2.4', was: 2.3 }),
  'hash.lanes/node': atLeast(0.475, { prototype: '0.46', was: 0.44 }),
  'hash.lanes/masked': atLeast(1.4, { prototype: '1.6' }),
  'hash.eight/hash-wasm': atLeast(3.2),
  'hash.eight/node': atLeast(0.85, { prototype: '0.93 to 0.97' }),
  'hash.eight/masked': atLeast(2.2),
  'parse.core/music-metadata': atLeast(100, { prototype: '350' }),
  'parse.core/hash': atMost(0.01),
  'samples.one.cpu': atMost(1.9),
  'samples.four.cpu': atMost(1.9),
  'samples.native.cpu': atMost(1.9),
  'ingest.slabs/busboy': atLeast({ quick: 0.92, full: 1.12 }, { was: 0.85 }),
  'upload.4/busboy': atLeast(0.35, { prototype: '0.38 to 0.45' }),
  'upload.16/busboy': atLeast(0.68, { prototype: '0.68', was: 0.58 }),
  'upload.native.16/busboy': atLeast({ quick: 0.6, full: 0.66 }),
  'upload.4.cpu': atMost(1.4, { prototype: '1.13 to 1.25' }),
  'upload.16.cpu': atMost(1.4, { prototype: '1.13 to 1.25' }),
  'upload.1/kernel': atLeast(0.7),
  'upload.4.lanes': atLeast(3.5, { prototype: '3.9' }),
  'upload.16.lanes': atLeast(3.5, { prototype: '3.9' }),
  'upload.4.tail': atMost(1.5, { prototype: '1.15' }),
  'memory.large': atMost(4.1, { was: 6 }),
  'verify.each/express': atLeast(0.58, { was: 0.5 }),
  'verify.pair/express': atLeast(0.38, { was: 0.3 }),
  'verify.each.tail': atMost(2),
  'one-call.cpu': atMost(0.75),
  'evidence.read/plain': atLeast(0.3),
  'evidence.replay/plain': atLeast(0.2),
  'evidence.memory': atMost(96),
};

/** Returns the bar of a comparison, if it has one. */
export function barOf(id: string, quick: boolean): Bar | undefined {
  return BARS[id]?.[quick ? 'quick' : 'full'];
}

export function meets(bar: Bar, value: number): boolean {
  return bar.kind === 'at least' ? value >= bar.limit : value <= bar.limit;
}

/** Returns how far a value that misses its bar is from it, as a share of the bar. */
export function shortfall(bar: Bar, value: number): number {
  return bar.kind === 'at least' ? (bar.limit - value) / bar.limit : (value - bar.limit) / bar.limit;
}
