import { expm1, log1p } from './exact-logarithm.js';
import { TRACE_LIMITS } from './trace.js';

interface Segment {
  readonly beat: number;
  readonly bpm: number;
  /** The tempo at the next point of a ramp. Undefined if the tempo is constant. */
  readonly endBpm: number | undefined;
  /** The start of the segment, in seconds. */
  seconds: number;
}

/** The last observed tempo, for estimates of seconds and beats. */
export class TempoMap {
  /** The points of this map, and possibly later points of the map that it was copied from. */
  #points: { readonly beat: number; readonly bpm: number; readonly endBpm: number | undefined }[] = [];
  #count = 0;
  #segments: Segment[] | undefined;

  /** Removes all points, because a new snapshot starts. */
  clear(): void {
    this.#points = [];
    this.#count = 0;
    this.#segments = undefined;
  }

  /** Adds a point. @param beat must not be before the last point */
  add(beat: number, bpm: number, endBpm: number | undefined): void {
    // The points after the last one belong to a copy.
    if (this.#points.length > this.#count) this.#points = this.#points.slice(0, this.#count);
    this.#points.push({ beat, bpm, endBpm });
    this.#count += 1;
    this.#segments = undefined;
  }

  get points(): number {
    return this.#count;
  }

  /** Returns a copy, which later changes of this map do not change. Takes constant time and memory. */
  copy(): TempoMap {
    const copy = new TempoMap();
    copy.#points = this.#points;
    copy.#count = this.#count;
    return copy;
  }

  /**
   * Estimates the seconds of a place in beats. Returns undefined without an observed tempo, or beyond the
   * limit.
   */
  secondsOf(beat: number): number | undefined {
    const index = this.#find((segment) => segment.beat <= beat);
    if (index === undefined) return undefined;
    const segment = this.#built()[index]!;
    return placeOf(segment.seconds + secondsWithin(segment, this.#lengthOf(index), beat - segment.beat));
  }

  /**
   * Estimates the beats of a place in seconds. Returns undefined without an observed tempo, or beyond the
   * limit.
   */
  beatsOf(seconds: number): number | undefined {
    const index = this.#find((segment) => segment.seconds <= seconds);
    if (index === undefined) return undefined;
    const segment = this.#built()[index]!;
    return placeOf(segment.beat + beatsWithin(segment, this.#lengthOf(index), seconds - segment.seconds));
  }

  /** Returns the index of the last segment that fits, or of the first segment if none fits. */
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
    // The first tempo applies from the start of the arrangement.
    const points = this.#points
      .slice(0, this.#count)
      .map((point, index) => (index === 0 ? { ...point, beat: 0 } : point));
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

/**
 * Returns undefined for an estimate beyond the limit. With a tempo near 0, the estimates of all later places
 * can exceed the limits of a trace, or even the range of a number.
 */
function placeOf(estimate: number): number | undefined {
  return estimate <= TRACE_LIMITS.place ? estimate : undefined;
}

/** Returns the tempo change per beat: 0 if the tempo is constant or the ramp has no known end. */
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
