import type { Clock } from '../../../ports/system.js';
import { numberIn, type Session, storeUnavailable, within } from './session.js';

/** The difference in milliseconds beyond which a clock is reported, so that it is put right. */
const WARN_MS = 5000;
/**
 * The difference in milliseconds beyond which a process does not sweep. If its own clock differs so much, it does not
 * serve either. The sweeps bear a far larger difference.
 */
const STOP_MS = 20_000;
/** The age in milliseconds beyond which a look permits no sweep. Clocks drift by less than a second until then. */
const LOOK_LIFE_MS = 300_000;
/** The number of samples of a node's clock in a look. The one with the shortest round trip counts. */
const SAMPLES = 3;
/** The time limit of a node's answer in milliseconds. A node that hangs does not delay a start for longer. */
const ANSWER_MS = 2000;
/** The number of nodes that are asked at once. */
const AT_ONCE = 16;

const TIME = 'SELECT toUnixTimestamp(now()) AS at FROM system.local';

/** The clocks of the nodes of a cluster. */
export interface NodeClocks {
  /** Returns the addresses of the nodes that can be asked. */
  nodes(): readonly string[];
  /** Returns the time of the node's own clock, in milliseconds since the epoch. */
  timeOf(node: string): Promise<number>;
}

/** A clock that differs, for a log line. */
export interface ClockDifference {
  /** The node's address; absent for the clock of this process. */
  readonly node?: string;
  /** The difference in seconds, positive if the clock is ahead. */
  readonly seconds: number;
}

interface Sample {
  /** The lead of the node over this process, in milliseconds. */
  readonly ahead: number;
  /** The possible error of `ahead` in milliseconds: half of the round trip. */
  readonly slack: number;
}

interface Look {
  /** The smallest lead of this process over the nodes that the round trips allow, in milliseconds. */
  readonly process: number;
  /** The smallest lead of each node over the others that the round trips allow, in milliseconds. */
  readonly nodes: ReadonlyMap<string, number>;
  readonly wallAt: number;
  readonly steadyAt: number;
}

/**
 * Compares this process's clock with those of the nodes, and these with each other. A process with a wrong clock
 * would write into time buckets that no sweep visits, and move the watermark past those of others (rule 16.4).
 */
export class ClockWatch {
  readonly #clocks: NodeClocks;
  readonly #wall: Clock;
  #last: Look | undefined;

  constructor(clocks: NodeClocks, wall: Clock) {
    this.#clocks = clocks;
    this.#wall = wall;
  }

  /**
   * Asks every node that is up. One that does not answer is left out.
   * @returns the clocks that differ by more than 5 seconds
   * @throws DomainError `unavailable` if no node answers. The last look permits sweeps for five minutes
   */
  async look(): Promise<readonly ClockDifference[]> {
    const nodes = this.#clocks.nodes();
    const samples = new Map<string, Sample>();
    // The look counts the time by the monotonic clock, so that it does not hide a clock that is set meanwhile.
    const wallAt = this.#wall.now();
    const steadyAt = performance.now();
    const now = (): number => wallAt + performance.now() - steadyAt;
    for (let from = 0; from < nodes.length; from += AT_ONCE)
      await Promise.all(
        nodes.slice(from, from + AT_ONCE).map(async (node) => {
          const sample = await this.#sample(node, now).catch(() => undefined);
          if (sample !== undefined) samples.set(node, sample);
        }),
      );
    if (samples.size === 0) throw storeUnavailable();
    const middle = middleOf([...samples.values()]);
    this.#last = {
      process: -certain(middle.ahead, middle.slack),
      nodes: new Map(
        [...samples].map(([node, { ahead, slack }]) => [
          node,
          certain(ahead - middle.ahead, slack + middle.slack),
        ]),
      ),
      wallAt,
      steadyAt,
    };
    const differences: ClockDifference[] = [];
    if (Math.abs(this.#last.process) > WARN_MS) differences.push({ seconds: seconds(this.#last.process) });
    for (const [node, ahead] of this.#last.nodes)
      if (Math.abs(ahead) > WARN_MS) differences.push({ node, seconds: seconds(ahead) });
    return differences;
  }

  /**
   * Returns the time of this process in milliseconds since the epoch, for a step that acts by the age of rows.
   * @throws DomainError `unavailable` / `store_unavailable` while this process's clock is wrong
   */
  now(): number {
    const now = Date.now();
    // In this order: a clock that is set between the two steps is found wrong.
    if (!this.isRight) throw storeUnavailable();
    return now;
  }

  /**
   * True while this process's clock is within 20 seconds of the nodes', and the system clock was not set back. When it
   * is set back, a watched clock that never runs back stops, and differs from the nodes' clocks only 20 seconds later.
   */
  get isRight(): boolean {
    return Math.abs(this.#processAhead()) <= STOP_MS && this.#wall.now() - Date.now() <= STOP_MS;
  }

  /**
   * Returns whether this process may sweep. Its clock must be right, and every node's, because nodes set the timestamps
   * of plain writes. Rows that are not swept now are swept later.
   */
  maySweep(): boolean {
    return (
      this.#last !== undefined &&
      performance.now() - this.#last.steadyAt <= LOOK_LIFE_MS &&
      this.isRight &&
      Math.abs(this.nodesSeconds * 1000) <= STOP_MS
    );
  }

  /** The lead of this process over the nodes, in seconds. */
  get processSeconds(): number {
    return seconds(this.#processAhead());
  }

  /** The lead, in seconds, of the node that differs most from the others. */
  get nodesSeconds(): number {
    const all = [...(this.#last?.nodes.values() ?? [])];
    return seconds(all.reduce((most, ahead) => (Math.abs(ahead) > Math.abs(most) ? ahead : most), 0));
  }

  /** Includes a correction of the clock since the last look, which the monotonic clock shows. */
  #processAhead(): number {
    if (this.#last === undefined) return 0;
    const { process, wallAt, steadyAt } = this.#last;
    return process + (this.#wall.now() - wallAt) - (performance.now() - steadyAt);
  }

  async #sample(node: string, now: () => number): Promise<Sample> {
    let best: Sample | undefined;
    for (let count = 0; count < SAMPLES; count += 1) {
      const begun = performance.now();
      const wall = now();
      const time = await within(ANSWER_MS, this.#clocks.timeOf(node));
      const slack = (performance.now() - begun) / 2;
      if (best === undefined || slack < best.slack) best = { ahead: time - (wall + slack), slack };
    }
    return best!;
  }
}

/** Returns the clocks of the nodes of the local data centre, which serve this process. */
export function nodeClocks(session: Session, localDataCenter: string): NodeClocks {
  return {
    nodes: () =>
      session
        .nodes()
        .filter(({ isUp, dataCenter }) => isUp && dataCenter === localDataCenter)
        .map(({ address }) => address),
    async timeOf(node) {
      const [row] = await session.rowsOf(node, TIME);
      return numberIn(row!, 'at')!;
    },
  };
}

/** Returns the sample with the median lead or, of two in the middle, the one that differs less from this process. */
function middleOf(samples: readonly Sample[]): Sample {
  const sorted = samples.toSorted((a, b) => a.ahead - b.ahead);
  const [lower, upper] = [sorted[(sorted.length - 1) >> 1]!, sorted[sorted.length >> 1]!];
  return Math.abs(lower.ahead) <= Math.abs(upper.ahead) ? lower : upper;
}

/** Returns the difference that remains after the largest possible effect of the round trips, in milliseconds. */
function certain(difference: number, slack: number): number {
  return Math.sign(difference) * Math.max(0, Math.abs(difference) - slack);
}

function seconds(milliseconds: number): number {
  return Math.round(milliseconds) / 1000;
}
