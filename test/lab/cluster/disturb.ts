/** Plays the planned faults of a run, and reverts each of them. */
import { setTimeout as delay } from 'node:timers/promises';
import type { BucketProxy } from './bucket-way.js';
import { describePlanned, isCassandra, type Parties, type Planned } from './composition.js';
import type { Network } from './network.js';
import { areClocksReported } from './observe.js';
import type { Run } from './run.js';

/** The largest clock difference, in seconds, at which a process serves. */
const SERVES_SECONDS = 5;
/**
 * A process checks the clocks of the nodes every 30 seconds, and reports a difference of 5 seconds. The
 * network delay may hide part of the difference.
 */
const LOOKED_SECONDS = 45;
const REPORTED_SECONDS = 8;
/** The time in which a killed process is started again, in milliseconds. Then it can be killed again. */
const STARTED_MS = 10_000;

export interface Means {
  readonly bucket: BucketProxy;
  readonly parties: Parties;
  /** The network whose links can be cut. */
  readonly network?: Network | undefined;
  /** The root of the next version's build, if the run rolls versions. */
  readonly next?: URL | undefined;
}

/** Resolves when the last fault is reverted and every server is back. */
export async function disturb(run: Run, means: Means, plan: readonly Planned[]): Promise<void> {
  const { ledger, say } = run;
  const began = performance.now();
  // While servers are away, a process may fail to start any number of times.
  run.outage = true;
  /** The end of the last fault of each target. To revert a fault may take longer than planned. */
  const healed = new Map<string, Promise<void>>();
  await Promise.all(
    plan.map((planned) => {
      const before = planned.targets.map((target) => healed.get(target));
      const done = carryOut(planned, before);
      for (const target of planned.targets) healed.set(target, done);
      return done;
    }),
  );

  async function carryOut(planned: Planned, before: readonly (Promise<void> | undefined)[]): Promise<void> {
    await delay(Math.max(0, planned.at * 1000 - (performance.now() - began)));
    await Promise.all(before);
    const words = describePlanned(planned);
    say(`begins: ${words}`);
    const isOver = ledger.disturb(
      means.parties.members.includes(planned.targets[0]!) && planned.targets.length === 1
        ? 'members'
        : 'servers',
    );
    const heal = await inflict(run, means, planned);
    if (heal !== undefined) ledger.count(faultsOf(planned));
    await delay(planned.seconds * 1000);
    await heal?.();
    isOver();
    say(`${heal === undefined ? 'not carried out' : 'over'}: ${words}`);
  }
}

/** Returns the name of the ledger's count of the faults of this kind. */
export function faultsOf({ fault }: Pick<Planned, 'fault'>): string {
  return `faults: ${fault}`;
}

/** Reverts a fault. Undefined if the fault could not be played. */
type Heal = (() => Promise<void>) | undefined;

function inflict(run: Run, means: Means, planned: Planned): Promise<Heal> {
  const [target] = planned.targets as readonly [string];
  switch (planned.fault) {
    case 'bucket':
      return turnBucket(means.bucket, planned);
    case 'clock':
      return means.parties.members.includes(target)
        ? setClock(run, target, planned.ahead!)
        : setServerClock(run, planned);
    case 'links':
      return cutLink(means, planned);
    case 'delay':
      return delayLink(means, planned);
    case 'disk':
      return run.servers.fillDisk(target);
    case 'replace':
      return replaceNode(run, planned);
    case 'version':
      return rollVersion(run, target, means.next!);
    default:
      return means.parties.members.includes(target)
        ? disturbMember(run, target, planned.fault)
        : disturbServer(run, target, planned.fault);
  }
}

async function disturbMember(
  { cluster }: Run,
  name: string,
  fault: 'kill' | 'stop' | 'suspend',
): Promise<Heal> {
  if (fault === 'kill') return (await running(() => cluster.kill(name))) ? async () => undefined : undefined;
  if (fault === 'suspend')
    return (await running(() => cluster.suspend(name))) ? async () => cluster.resume(name) : undefined;
  await cluster.hold(name);
  return async () => cluster.release(name);
}

/** Repeats `act` until it succeeds. It fails while the process is not running. */
async function running(act: () => boolean): Promise<boolean> {
  for (const deadline = performance.now() + STARTED_MS; performance.now() < deadline; await delay(50))
    if (act()) return true;
  return false;
}

async function disturbServer(
  { servers }: Run,
  name: string,
  fault: 'kill' | 'stop' | 'suspend',
): Promise<() => Promise<void>> {
  if (fault === 'suspend') {
    await servers.freeze(name);
    return () => servers.thaw(name);
  }
  await (fault === 'kill' ? servers.kill(name) : servers.down(name));
  return () => servers.up(name);
}

async function turnBucket(bucket: BucketProxy, { way }: Planned): Promise<() => Promise<void>> {
  bucket.turn(way as 'away' | 'slow' | 'late');
  return async () => bucket.turn('open');
}

/**
 * Sets the clock of a process. A load balancer sends no calls to a process that is not ready. So a process
 * with a large difference gets no calls until it is ready again. Its background work continues.
 */
async function setClock({ cluster, calls }: Run, name: string, ahead: number): Promise<() => Promise<void>> {
  const isService = calls.services.some((service) => service.name === name);
  const leaves = isService && Math.abs(ahead) > SERVES_SECONDS;
  if (leaves) await calls.takeOut(name);
  await cluster.setClock(name, ahead);
  return async () => {
    await (ahead > SERVES_SECONDS ? cluster.setClockBack(name) : cluster.setClock(name, 0));
    if (leaves) void cluster.whenReady(name).then(() => calls.putBack(name));
  };
}

/**
 * Sets the clock of a server while calls continue. A node whose clock was ahead keeps its last timestamp
 * until the other nodes reach it.
 */
async function setServerClock(
  { servers, calls, ledger }: Run,
  { targets, ahead, seconds }: Planned,
): Promise<() => Promise<void>> {
  const [name] = targets as readonly [string];
  const isReported = isCassandra(name) && Math.abs(ahead!) >= REPORTED_SECONDS && seconds >= LOOKED_SECONDS;
  await servers.setClock(name, ahead!);
  return async () => {
    if (isReported) {
      if (await areClocksReported(calls.services)) ledger.count("nodes' clocks reported");
      else ledger.violation(`no process reports that the clock of ${name} is off by ${ahead} s`);
    }
    await servers.setClock(name, 0);
  };
}

async function cutLink({ network }: Means, planned: Planned): Promise<() => Promise<void>> {
  const cuts = waysOf(planned);
  for (const [from, to] of cuts) await network!.cut(from, to);
  return async () => {
    for (const [from, to] of cuts) await network!.mend(from, to);
  };
}

async function delayLink({ network }: Means, planned: Planned): Promise<() => Promise<void>> {
  const ends: (() => Promise<void>)[] = [];
  for (const [from, to] of waysOf(planned)) ends.push(await network!.delay(from, to, planned.milliseconds!));
  return async () => {
    await Promise.all(ends.map((end) => end()));
  };
}

/** Returns the disturbed directions of a link, as sender and receiver. */
function waysOf({ targets, way }: Planned): readonly (readonly [string, string])[] {
  const [one, other] = targets as readonly [string, string];
  return [
    ...(way === 'from' ? [] : [[one, other] as const]),
    ...(way === 'to' ? [] : [[other, one] as const]),
  ];
}

/** Replaces a node as docs/operating.md says: a repair of two nodes precedes the copy to the third. */
async function replaceNode(
  { cluster, servers, say }: Run,
  { targets }: Planned,
): Promise<() => Promise<void>> {
  const [lost, ...others] = targets as readonly [string, ...string[]];
  await servers.kill(lost);
  return async () => {
    await servers.repair(cluster.settings['TAKEMARK_CASSANDRA_KEYSPACE']!, others);
    say(`repaired: ${others.join(', ')}`);
    await servers.replace(lost);
  };
}

async function rollVersion({ cluster }: Run, name: string, next: URL): Promise<() => Promise<void>> {
  await cluster.roll(name, next);
  return () => cluster.roll(name);
}
