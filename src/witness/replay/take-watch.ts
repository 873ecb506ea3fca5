import type { RecordingEvidence } from '../domain/session-evidence.js';

/**
 * The rule for recording in real time (docs/evidence.md). A speed is a ratio: the frames that a take grew,
 * divided by the frames expected from its sample rate in the same time.
 */
export const REAL_TIME = {
  /** The number of growth steps that must be observed. */
  steps: 3,
  /** The range of the speed over all steps. */
  whole: { from: 0.9, to: 1.1 },
  /** The range of the speed within each window. Polls and buffers shift a step by some tenths of a second. */
  window: { from: 0.8, to: 1.2, microseconds: 2_000_000 },
} as const;

const MICROSECONDS = 1_000_000;

/** Observes the growth of one take in constant memory. */
export class TakeWatch {
  input: RecordingEvidence['input'];
  growthSteps = 0;
  /** False once there is any sign that the growth was not observed as it happened. */
  #isExact: boolean;
  readonly #startedAt: number;
  #first: { readonly at: number; readonly frames: number } | undefined;
  #last: { readonly at: number; readonly frames: number };
  #window: { readonly at: number; readonly frames: number } | undefined;
  /** The lowest and highest speed of a window, in frames per second. */
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

  /** Notes that part of the take may be unobserved. */
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

  /**
   * Reports whether the take is longer than the time it had to grow. Such material was not recorded in that
   * time.
   */
  isTooFast(finishedAt: number, frames: number, rate: number): boolean {
    return isFaster(frames, finishedAt - this.#startedAt, rate);
  }

  /**
   * Reports whether the take was observed to grow at its true rate from a hardware input.
   * @param frames of the finished take
   */
  isRealTime(finishedAt: number, frames: number, rate: number): boolean {
    const { steps, whole, window } = REAL_TIME;
    const first = this.#first;
    if (first === undefined || this.growthSteps < steps || !this.#isExact || this.input !== 'hardware')
      return false;
    const last = this.#last;
    // The frames before the first step and after the last step must have had enough time as well.
    if (isFaster(first.frames, first.at - this.#startedAt, rate)) return false;
    if (frames < last.frames || isFaster(frames - last.frames, finishedAt - last.at, rate)) return false;
    const speed = ((last.frames - first.frames) * MICROSECONDS) / ((last.at - first.at) * rate);
    if (!(speed >= whole.from && speed <= whole.to)) return false;
    return this.#slowest >= window.from * rate && this.#fastest <= window.to * rate;
  }
}

/**
 * Reports whether frames arrived faster than real time. Buffers delay samples and a poll observes a step
 * late, so half a second is tolerated.
 */
function isFaster(frames: number, microseconds: number, rate: number): boolean {
  return frames / rate > (Math.max(0, microseconds) / MICROSECONDS) * REAL_TIME.whole.to + 0.5;
}
