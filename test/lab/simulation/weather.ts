import type { Process, World } from './world.js';

/** Kinds of faults. */
export const FAULTS = [
  /** A request arrives minutes after its caller has given it up. */
  'late',
  /** A request, or its answer, never arrives. */
  'lost',
  /** A request arrives twice. */
  'double',
  /** Requests overtake each other by up to a second. */
  'reorder',
  /** A conditional write is answered at once with an error, whether it took effect or not. */
  'uncertain',
  /** Processes are killed, and started again. */
  'kill',
  /** Processes stand still for seconds to minutes. */
  'pause',
  /** Clocks of processes are off by seconds to an hour. */
  'clock',
  /** Some partitions of the bus take messages and acknowledge none. */
  'stuck',
  /** The bus cannot be reached for a while, and its groups lose members. */
  'bus',
  /** The bucket fails, or is slow. */
  'bucket',
] as const;
export type Fault = (typeof FAULTS)[number];

/** Fate of one request on its way. */
export interface Passage {
  /** Milliseconds after which each copy arrives; none: it is lost. */
  readonly arrivals: readonly number[];
  /** Milliseconds of the way back; undefined: the answer is lost. */
  readonly back: number | undefined;
}

/** Things that may go wrong on the wire while it is bad, and how often. Nothing does once it is healed. */
export class Weather {
  readonly #world: World;
  readonly #faults: ReadonlySet<Fault>;
  /** Time at which the last request arrives that is under way. */
  lastArrivalAt = 0;
  #isBad = false;
  /** Ways of processes on which decisions are held up for now, and by how much. */
  readonly #hangs = new Map<Process, { readonly untilMs: number; readonly delayMs: number }>();
  /** Each history is bad in its own measure. */
  readonly #measure: number;

  constructor(world: World, faults: ReadonlySet<Fault>) {
    this.#world = world;
    this.#faults = faults;
    this.#measure = world.random.between(0.3, 1.5);
  }

  begin(): void {
    this.#isBad = true;
  }

  heal(): void {
    this.#isBad = false;
  }

  has(fault: Fault): boolean {
    return this.#isBad && this.#faults.has(fault);
  }

  happens(fault: Fault, probability: number): boolean {
    return this.has(fault) && this.#world.random.chance(probability * this.#measure);
  }

  /** @param isDecision a conditional write, which late and double hit more often: all else can be repeated */
  passage(isDecision: boolean): Passage {
    const passage = this.#passage(isDecision);
    for (const delay of passage.arrivals) this.arrives(delay);
    return passage;
  }

  /** Takes note of a request that arrives after some milliseconds. */
  arrives(delayMs: number): void {
    this.lastArrivalAt = Math.max(this.lastArrivalAt, this.#world.now + delayMs);
  }

  #passage(isDecision: boolean): Passage {
    const { random } = this.#world;
    const hop = (): number =>
      this.happens('reorder', 0.05) ? random.between(5, 1000) : random.between(0.2, 2);
    if (!this.#isBad) return { arrivals: [random.between(0.2, 2)], back: 0.5 };
    const often = isDecision ? 1 : 0.1;
    if (this.happens('lost', 0.01)) return { arrivals: [], back: undefined };
    // A way that hangs holds up what is sent again, too, and lets all of it through in the end.
    const { current } = this.#world;
    const hang = current && this.#hangs.get(current);
    if (isDecision && hang !== undefined && this.#world.now < hang.untilMs && this.has('late'))
      return { arrivals: [hang.delayMs + hop()], back: hop() };
    if (isDecision && current !== undefined && this.happens('late', 0.02)) {
      const delayMs = random.between(5000, 400_000);
      this.#hangs.set(current, { untilMs: this.#world.now + random.between(5000, 20_000), delayMs });
      return { arrivals: [delayMs], back: hop() };
    }
    if (this.happens('late', 0.03 * often)) return { arrivals: [random.between(5000, 400_000)], back: hop() };
    const arrivals = [hop()];
    if (this.happens('double', 0.02 * often))
      arrivals.push(random.chance(0.5) ? hop() : random.between(1000, 400_000));
    return { arrivals, back: this.happens('lost', 0.01) ? undefined : hop() };
  }
}
