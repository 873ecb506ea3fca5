import type { Process, World } from './world.js';

/** The kinds of faults. */
export const FAULTS = [
  /** A request arrives minutes after its caller has given up. */
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
  /** Processes are paused for seconds to minutes. */
  'pause',
  /** Clocks of processes are off by seconds to an hour. */
  'clock',
  /** Some partitions of the bus append messages and acknowledge none. */
  'stuck',
  /** The bus is unreachable for a while, and its groups lose members. */
  'bus',
  /** The bucket fails, or is slow. */
  'bucket',
] as const;
export type Fault = (typeof FAULTS)[number];

/** The fate of one request on the network. */
export interface Passage {
  /** The times in milliseconds after which each copy arrives. Empty if the request is lost. */
  readonly arrivals: readonly number[];
  /** The time in milliseconds until the answer arrives. Undefined if the answer is lost. */
  readonly back: number | undefined;
}

/** The faults of the network and their frequencies. After the end of the faults nothing goes wrong. */
export class Weather {
  readonly #world: World;
  readonly #faults: ReadonlySet<Fault>;
  /** The arrival time of the last request in flight. */
  lastArrivalAt = 0;
  #isBad = false;
  /** The processes whose decisions are delayed, and by how much. */
  readonly #hangs = new Map<Process, { readonly untilMs: number; readonly delayMs: number }>();
  /** The severity of faults in this history. */
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

  /**
   * @param isDecision whether it is a conditional write. `late` and `double` hit these more often, because
   * everything else can be repeated.
   */
  passage(isDecision: boolean): Passage {
    const passage = this.#passage(isDecision);
    for (const delay of passage.arrivals) this.arrives(delay);
    return passage;
  }

  /** Records a request that arrives after this many milliseconds. */
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
    // A hanging link delays repeated requests too. In the end it delivers all of them.
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
