/** The plan of a run's faults: kinds, targets, times and durations. One seed determines all of them. */
import { seeded } from '../../fixtures/service.js';

/** Every fault that a run can play, with its effect. */
export const FAULTS = {
  kill: 'a process or server ends without notice; a server comes back when the fault is over',
  stop: 'a process or server ends orderly and comes back when the fault is over',
  suspend: 'a process or server is paused, its connections open',
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

/** The limits of a fault's duration, in seconds. */
const SHORTEST = 1;
const LONGEST = 300;
/** The longest time between the starts of two faults, in seconds. */
const WIDEST_GAP = 8;
/**
 * The shortest time between two replacements of a node, in seconds. The ring needs long to forget a removed
 * node.
 */
const REPLACED_APART = 300;
/** The highest number of concurrent faults. */
const AT_ONCE = 3;
/** The limits of a packet's delay, in milliseconds. */
const LEAST_DELAY = 5;
const MOST_DELAY = 2000;
const CLOCK_LONGEST = 3600;
const CLOCK_SHORTEST = 2;
/**
 * The largest clock difference of a node, in seconds, at which everything continues, sweeps included
 * (decision 0042). If a node's clock is further ahead, its writes cannot be removed within the run's recovery
 * time. The removal would get an earlier timestamp.
 */
const SERVER_CLOCK_LONGEST = 20;
const BUCKET_WAYS = ['away', 'slow', 'late'] as const;
const LINK_WAYS = ['to', 'from', 'both'] as const;

export interface Parties {
  /** The processes of the product. */
  readonly members: readonly string[];
  /** The nodes of Cassandra, the brokers of Kafka, and the bucket. */
  readonly servers: readonly string[];
}

export interface Planned {
  readonly fault: Fault;
  /**
   * A link has two targets. For a replaced node, all other nodes follow it, because they copy their data to
   * it.
   */
  readonly targets: readonly string[];
  /** Seconds since the start of the run. */
  readonly at: number;
  readonly seconds: number;
  /** How the bucket misbehaves, or in which direction the link is cut. */
  readonly way?: (typeof BUCKET_WAYS)[number] | (typeof LINK_WAYS)[number];
  /** How far the clock is ahead, in seconds. */
  readonly ahead?: number;
  /** The delay of packets, in milliseconds. */
  readonly milliseconds?: number;
}

/** @throws Error that lists the known faults */
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
 * @param seconds the duration within which all faults begin and end
 * @returns the faults by start time; a target never has two faults at the same time
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
  /** Draws a value with a log-uniform distribution. */
  const spread = (least: number, most: number): number => least * (most / least) ** random();
  const nodes = parties.servers.filter(isCassandra);
  const link = (): Pick<Planned, 'targets' | 'way'> => {
    // A lone server has no link to another server. The link to the bucket is a separate fault.
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
