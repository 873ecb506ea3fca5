/** Plan of what a run will suffer: faults, targets, moments and durations, all of them from one seed. */
import { seeded } from '../fixtures/service.js';

/** Every fault that a run can be asked for, with what it does. */
export const FAULTS = {
  kill: 'a process or server ends without notice; a server comes back when the fault is over',
  stop: 'a process or server ends orderly and comes back when the fault is over',
  suspend: 'a process or server stands still, its connections open',
  bucket: 'the bucket is away, slow, or answers when the fault is over',
  clock: 'the clock of a process is off by seconds to an hour',
  links: 'nothing goes from one party to another, or back',
  disk: "the disk of one of Cassandra's nodes, a broker or the bucket is full; the server starts anew afterwards",
  version: 'a process is rolled to a version with one more migration, and back when the fault is over',
} as const;
export type Fault = keyof typeof FAULTS;

const NAMES = Object.keys(FAULTS) as readonly Fault[];

/** Seconds that a fault lasts. */
const SHORTEST = 1;
const LONGEST = 300;
/** Seconds between the beginnings of two faults, at most. */
const WIDEST_GAP = 8;
/** Faults at the same time. */
const AT_ONCE = 3;
const CLOCK_LONGEST = 3600;
const CLOCK_SHORTEST = 2;
const BUCKET_WAYS = ['away', 'slow', 'late'] as const;
const LINK_WAYS = ['to', 'from', 'both'] as const;

export interface Parties {
  /** Processes of the product. */
  readonly members: readonly string[];
  /** Cassandra's nodes, Kafka's brokers, the bucket. */
  readonly servers: readonly string[];
}

export interface Planned {
  readonly fault: Fault;
  /** Two of them for a link. */
  readonly targets: readonly string[];
  /** Seconds from the beginning. */
  readonly at: number;
  readonly seconds: number;
  /** How the bucket misbehaves, or which way the link is cut. */
  readonly way?: (typeof BUCKET_WAYS)[number] | (typeof LINK_WAYS)[number];
  /** Seconds by which the clock is ahead. */
  readonly ahead?: number;
}

/** @throws Error that lists what there is */
export function faultsNamed(text: string): readonly Fault[] {
  if (text === 'all') return NAMES;
  return text.split(',').map((name): Fault => {
    const fault = NAMES.find((one) => one === name);
    if (fault === undefined)
      throw new Error(
        `no fault is called ${JSON.stringify(name)}; there are all, or some of ${NAMES.join(', ')}`,
      );
    return fault;
  });
}

/**
 * @param seconds within which all faults begin and end
 * @returns in the order of their beginnings; no target has two faults at the same time
 */
export function compose({
  seed,
  seconds,
  faults,
  parties,
}: {
  readonly seed: number;
  readonly seconds: number;
  readonly faults: readonly Fault[];
  readonly parties: Parties;
}): readonly Planned[] {
  const random = seeded(seed);
  const oneOf = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!;
  /** Small values as often as large ones of the same ratio. */
  const spread = (least: number, most: number): number => least * (most / least) ** random();
  const planned: Planned[] = [];
  for (let at = 0; ; at += spread(0.5, WIDEST_GAP)) {
    const left = seconds - at;
    if (left < SHORTEST) return planned;
    const fault = oneOf(faults);
    const duration = spread(SHORTEST, Math.min(LONGEST, left));
    const begun = { fault, at: rounded(at), seconds: rounded(Math.min(duration, left)) };
    const one = ((): Planned => {
      switch (fault) {
        case 'bucket':
          return { ...begun, targets: ['bucket'], way: oneOf(BUCKET_WAYS) };
        case 'clock': {
          const off = Math.round(spread(CLOCK_SHORTEST, CLOCK_LONGEST));
          return { ...begun, targets: [oneOf(parties.members)], ahead: random() < 0.5 ? off : -off };
        }
        case 'disk':
          return { ...begun, targets: [oneOf(parties.servers)] };
        case 'version':
          return { ...begun, targets: [oneOf(parties.members)] };
        case 'links': {
          const nodes = parties.servers.filter(isCassandra);
          // A lone node has nobody to be cut off from; the way to the bucket is a fault of its own.
          const from = oneOf([...parties.members, ...(nodes.length > 1 ? nodes : [])]);
          const reached = parties.servers.filter(
            (server) => server !== from && (isCassandra(server) || (isBroker(server) && !isCassandra(from))),
          );
          return { ...begun, targets: [from, oneOf(reached)], way: oneOf(LINK_WAYS) };
        }
        default:
          return { ...begun, targets: [oneOf([...parties.members, ...parties.servers])] };
      }
    })();
    const beside = planned.filter((other) => other.at + other.seconds > one.at - 1);
    if (beside.length >= AT_ONCE) continue;
    if (beside.some(({ targets }) => targets.some((target) => one.targets.includes(target)))) continue;
    planned.push(one);
  }
}

export function describePlanned({ fault, targets, at, seconds, way, ahead }: Planned): string {
  return [
    `${fault} ${targets.join(' and ')}`,
    ...(way === undefined ? [] : [way]),
    ...(ahead === undefined ? [] : [`${ahead > 0 ? '+' : ''}${ahead} s`]),
    `at ${at} s for ${seconds} s`,
  ].join(', ');
}

const isBroker = (name: string): boolean => name.startsWith('kafka');
const isCassandra = (name: string): boolean => name.startsWith('cassandra');
const rounded = (seconds: number): number => Math.round(seconds * 10) / 10;
