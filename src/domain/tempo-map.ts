import { expm1, log1p } from './exact-logarithm.js';
import { TRACE_LIMITS } from './trace.js';

interface Segment {
  readonly beat: number;
  readonly bpm: number;
  /** Tempo at the next point, of a ramp; else the tempo of the segment. */
  readonly endBpm: number | undefined;
  /** Seconds at which the segment begins. */
  seconds: number;
}

/** Tempo as it was last observed, for estimates of seconds and beats. */
export class TempoMap {
  #points: { readonly beat: number; readonly bpm: number; readonly endBpm: number | undefined }[] = [];
  #segments: Segment[] | undefined;

  /** Forgets all points: a new snapshot begins. */
  clear(): void {
    this.#points = [];
    this.#segments = undefined;
  }

  /** @param beat not before that of the last point */
  add(beat: number, bpm: number, endBpm: number | undefined): void {
    this.#points.push({ beat, bpm, endBpm });
    this.#segments = undefined;
  }

  get points(): number {
    return this.#points.length;
  }

  /** Estimated seconds of a place in beats; undefined where no tempo was observed, or it lies beyond every place. */
  secondsOf(beat: number): number | undefined {
    const index = this.#find((segment) => segment.beat <= beat);
    if (index === undefined) return undefined;
    const segment = this.#built()[index]!;
    return placeOf(segment.seconds + secondsWithin(segment, this.#lengthOf(index), beat - segment.beat));
  }

  /** Estimated beats of a place in seconds; undefined where no tempo was observed, or it lies beyond every place. */
  beatsOf(seconds: number): number | undefined {
    const index = this.#find((segment) => segment.seconds <= seconds);
    if (index === undefined) return undefined;
    const segment = this.#built()[index]!;
    return placeOf(segment.beat + beatsWithin(segment, this.#lengthOf(index), seconds - segment.seconds));
  }

  /** Index of the last segment that fits; the first one where none does. */
  #find(fits: (segment: Segment) => boolean): number | undefined {
    const segments = this.#built();
    if (segments.length === 0) return undefined;
    let low = 0;
    let high = segments.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (fits(segments[middle]!)) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #lengthOf(index: number): number | undefined {
    const next = this.#built()[index + 1];
    return next && next.beat - this.#built()[index]!.beat;
  }

  #built(): Segment[] {
    if (this.#segments !== undefined) return this.#segments;
    // The first tempo holds from the arrangement's start on.
    const points = this.#points.map((point, index) => (index === 0 ? { ...point, beat: 0 } : point));
    const segments: Segment[] = points.map((point) => ({ ...point, seconds: 0 }));
    for (const [index, segment] of segments.entries()) {
      const next = segments[index + 1];
      if (next === undefined) break;
      const length = next.beat - segment.beat;
      next.seconds = segment.seconds + secondsWithin(segment, length, length);
    }
    this.#segments = segments;
    return segments;
  }
}

/** A tempo near 0 puts whatever follows beyond the bounds of a trace, or of numbers. */
function placeOf(estimate: number): number | undefined {
  return estimate <= TRACE_LIMITS.place ? estimate : undefined;
}

/** Change of tempo with each beat; 0 where the tempo holds, or where the ramp has no known end. */
function slope({ bpm, endBpm }: Segment, length: number | undefined): number {
  return endBpm === undefined || length === undefined || length === 0 ? 0 : (endBpm - bpm) / length;
}

function secondsWithin(segment: Segment, length: number | undefined, beats: number): number {
  const change = slope(segment, length);
  return change === 0 ? (beats * 60) / segment.bpm : (60 / change) * log1p((change * beats) / segment.bpm);
}

function beatsWithin(segment: Segment, length: number | undefined, seconds: number): number {
  const change = slope(segment, length);
  return change === 0
    ? (seconds * segment.bpm) / 60
    : (segment.bpm * expm1((seconds * change) / 60)) / change;
}
