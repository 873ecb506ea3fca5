import type { RecordingEvidence } from '../../domain/session-evidence.js';

/**
 * Rule of what was recorded in real time (docs/evidence.md). Speeds are ratios of the frames that a take grew by to those
 * that its sample rate gives in the same time.
 */
export const REAL_TIME = {
  /** Steps of growth that have to be seen. */
  steps: 3,
  /** Speed over all steps. */
  whole: { from: 0.9, to: 1.1 },
  /** Speed within each window: polls and buffers shift a step by some tenths of a second. */
  window: { from: 0.8, to: 1.2, microseconds: 2_000_000 },
} as const;

const MICROSECONDS = 1_000_000;

/** Growth of one take, in memory that does not grow with it. */
export class TakeWatch {
  input: RecordingEvidence['input'];
  growthSteps = 0;
  /** False from the first sign on that the growth was not seen as it happened. */
  #isExact: boolean;
  readonly #startedAt: number;
  #first: { readonly at: number; readonly frames: number } | undefined;
  #last: { readonly at: number; readonly frames: number };
  #window: { readonly at: number; readonly frames: number } | undefined;
  /** Least and greatest speed of a window, in frames a second. */
  #slowest = Infinity;
  #fastest = 0;

  constructor(startedAt: number, isExact: boolean, input: RecordingEvidence['input']) {
    this.#startedAt = startedAt;
    this.#isExact = isExact;
    this.input = input;
    this.#last = { at: startedAt, frames: 0 };
  }

  connect(input: RecordingEvidence['input']): void {
    if (input !== this.input) this.input = 'mixed';
  }

  /** Something of the take may have gone unseen. */
  miss(): void {
    this.#isExact = false;
  }

  grow(at: number, frames: number, isExact: boolean): void {
    if (!isExact || at < this.#last.at || frames < this.#last.frames) this.#isExact = false;
    if (frames <= this.#last.frames) return;
    this.growthSteps += 1;
    this.#last = { at, frames };
    this.#first ??= this.#last;
    this.#window ??= this.#last;
    const elapsed = at - this.#window.at;
    if (elapsed < REAL_TIME.window.microseconds) return;
    const speed = ((frames - this.#window.frames) * MICROSECONDS) / elapsed;
    this.#slowest = Math.min(this.#slowest, speed);
    this.#fastest = Math.max(this.#fastest, speed);
    this.#window = this.#last;
  }

  /** True where the take had fewer seconds to grow than it is long: what is there was not recorded meanwhile. */
  isTooFast(finishedAt: number, frames: number, rate: number): boolean {
    return isFaster(frames, finishedAt - this.#startedAt, rate);
  }

  /**
   * Tells whether the take was seen to grow at its true rate from hardware.
   * @param frames of the finished take
   */
  isRealTime(finishedAt: number, frames: number, rate: number): boolean {
    const { steps, whole, window } = REAL_TIME;
    const first = this.#first;
    if (first === undefined || this.growthSteps < steps || !this.#isExact || this.input !== 'hardware')
      return false;
    const last = this.#last;
    // Frames before the first step, and those after the last one, had their time as well.
    if (isFaster(first.frames, first.at - this.#startedAt, rate)) return false;
    if (frames < last.frames || isFaster(frames - last.frames, finishedAt - last.at, rate)) return false;
    const speed = ((last.frames - first.frames) * MICROSECONDS) / ((last.at - first.at) * rate);
    if (!(speed >= whole.from && speed <= whole.to)) return false;
    return this.#slowest >= window.from * rate && this.#fastest <= window.to * rate;
  }
}

/** Buffers hold some samples back, and a poll sees a step late: half a second is no haste. */
function isFaster(frames: number, microseconds: number, rate: number): boolean {
  return frames / rate > (Math.max(0, microseconds) / MICROSECONDS) * REAL_TIME.whole.to + 0.5;
}
