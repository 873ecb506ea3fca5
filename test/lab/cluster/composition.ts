/** Plan of what a run will suffer: faults, targets, moments and durations, all of them from one seed. */
import { seeded } from '../../fixtures/service.js';

/** Every fault that a run can be asked for, with what it does. */
export const FAULTS = {
  kill: 'a process or server ends without notice; a server comes back when the fault is over',
  stop: 'a process or server ends orderly and comes back when the fault is over',
  suspend: 'a process or server stands still, its connections open',
  bucket: 'the bucket is away, slow, or answers when the fault is over',
  clock:
    'the clock of a process is off by seconds to an hour, or that of a node or broker by up to 20 seconds',
  links: 'nothing goes from one party to another, or back',
  delay: 'what one party sends another arrives late, or what comes back',
  disk: "the disk of one of Cassandra's nodes, a broker or the bucket is full; the server starts anew afterwards",
  replace: "one of Cassandra's nodes is lost with its disk, and another one takes its place",
  version: 'a process is rolled to a version with one more migration, and back when the fault is over',
} as const;
export type Fault = keyof typeof FAULTS;

const NAMES = Object.keys(FAULTS) as readonly Fault[];

/** Seconds that a fault lasts. */
const SHORTEST = 1;
const LONGEST = 300;
/** Seconds between the beginnings of two faults, at most. */
const WIDEST_GAP = 8;
/** Seconds between two nodes that are replaced: the ring forgets a former one slowly. */
const REPLACED_APART = 300;
/** Faults at the same time. */
const AT_ONCE = 3;
/** Milliseconds by which a packet is late. */
const LEAST_DELAY = 5;
const MOST_DELAY = 2000;
const CLOCK_LONGEST = 3600;
const CLOCK_SHORTEST = 2;
/**
 * The most that a node's clock may differ while everything goes on, sweeps too (decision 0042). What a node writes that is
 * ahead by more cannot be removed within a run's time of recovery: the removal gets an earlier time.
 */
const SERVER_CLOCK_LONGEST = 20;
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
  /** Two of them for a link; for a node that is replaced, all others behind it: they give it its data. */
  readonly targets: readonly string[];
  /** Seconds from the beginning. */
  readonly at: number;
  readonly seconds: number;
  /** How the bucket misbehaves, or which way the link is cut. */
  readonly way?: (typeof BUCKET_WAYS)[number] | (typeof LINK_WAYS)[number];
  /** Seconds by which the clock is ahead. */
  readonly ahead?: number;
  /** By which packets are late. */
  readonly milliseconds?: number;
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
  const nodes = parties.servers.filter(isCassandra);
  const link = (): Pick<Planned, 'targets' | 'way'> => {
    // A lone server has nobody to be cut off from; the way to the bucket is a fault of its own.
    const rings = [nodes, parties.servers.filter(isBroker)].filter((ring) => ring.length > 1);
    const from = oneOf([...parties.members, ...rings.flat()]);
    const ring = rings.find((one) => one.includes(from));
    const reached = ring?.filter((server) => server !== from) ?? [
      ...nodes,
      ...parties.servers.filter(isBroker),
    ];
    return { targets: [from, oneOf(reached)], way: oneOf(LINK_WAYS) };
  };
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
          const target = oneOf([
            ...parties.members,
            ...parties.servers.filter((server) => isCassandra(server) || isBroker(server)),
          ]);
          const most = parties.members.includes(target) ? CLOCK_LONGEST : SERVER_CLOCK_LONGEST;
          const off = Math.round(spread(CLOCK_SHORTEST, most));
          return { ...begun, targets: [target], ahead: random() < 0.5 ? off : -off };
        }
        case 'disk':
          return { ...begun, targets: [oneOf(parties.servers)] };
        case 'version':
          return { ...begun, targets: [oneOf(parties.members)] };
        case 'links':
          return { ...begun, ...link() };
        case 'delay':
          return { ...begun, ...link(), milliseconds: Math.round(spread(LEAST_DELAY, MOST_DELAY)) };
        case 'replace': {
          const lost = oneOf(nodes);
          return { ...begun, targets: [lost, ...nodes.filter((node) => node !== lost)] };
        }
        default:
          return { ...begun, targets: [oneOf([...parties.members, ...parties.servers])] };
      }
    })();
    const beside = planned.filter((other) => other.at + other.seconds > one.at - 1);
    if (beside.length >= AT_ONCE) continue;
    if (
      fault === 'replace' &&
      planned.some((other) => other.fault === fault && other.at + REPLACED_APART > at)
    )
      continue;
    if (beside.some(({ targets }) => targets.some((target) => one.targets.includes(target)))) continue;
    planned.push(one);
  }
}

export function describePlanned({ fault, targets, at, seconds, way, ahead, milliseconds }: Planned): string {
  return [
    `${fault} ${(fault === 'replace' ? targets.slice(0, 1) : targets).join(' and ')}`,
    ...(way === undefined ? [] : [way]),
    ...(milliseconds === undefined ? [] : [`${milliseconds} ms`]),
    ...(ahead === undefined ? [] : [`${ahead > 0 ? '+' : ''}${ahead} s`]),
    `at ${at} s for ${seconds} s`,
  ].join(', ');
}

export const isBroker = (name: string): boolean => name.startsWith('kafka');
export const isCassandra = (name: string): boolean => name.startsWith('cassandra');
const rounded = (seconds: number): number => Math.round(seconds * 10) / 10;
