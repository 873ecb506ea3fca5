/** Measures the pace of a take from its trace, by the wording of docs/evidence.md and without code of the replay. */
import type { TraceEvent } from '../../../src/witness/domain/trace.js';

export interface Growth {
  readonly steps: number;
  /** The ratio of the pace to the true rate, from the first step to the last. */
  readonly whole: number;
  /** The same ratio in each stretch of two seconds or more. */
  readonly stretches: readonly number[];
}

const MICROSECONDS = 1_000_000;

/** @param take id of the take in the trace */
export function growthOf(events: readonly TraceEvent[], take: number, rate: number): Growth {
  const grown = events.flatMap((event) =>
    event.kind === 'recording.grew' && event.take === take ? [event] : [],
  );
  const [first, last] = [grown[0], grown.at(-1)];
  if (first === undefined || last === undefined) return { steps: 0, whole: 0, stretches: [] };
  const pace = (from: typeof first, to: typeof first): number =>
    ((to.frames - from.frames) * MICROSECONDS) / ((to.at - from.at) * rate);
  const stretches: number[] = [];
  let from = first;
  for (const step of grown)
    if (step.at - from.at >= 2 * MICROSECONDS) {
      stretches.push(pace(from, step));
      from = step;
    }
  return { steps: grown.length, whole: pace(first, last), stretches };
}

/** Returns true if a take from hardware is to be reported as recorded in real time. */
export function isTruePace({ steps, whole, stretches }: Growth): boolean {
  return (
    steps >= 3 &&
    Math.abs(whole - 1) <= 0.1 &&
    stretches.length > 0 &&
    stretches.every((pace) => Math.abs(pace - 1) <= 0.2)
  );
}
