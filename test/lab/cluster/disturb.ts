/** Carries a plan of faults out on a run, and heals all of them. */
import { setTimeout as delay } from 'node:timers/promises';
import type { BucketProxy } from './bucket-way.js';
import { describePlanned, isCassandra, type Parties, type Planned } from './composition.js';
import type { Network } from './network.js';
import { areClocksTold } from './observe.js';
import type { Run } from './run.js';

/** Clock differences up to this one leave a process serving. */
const SERVES_SECONDS = 5;
/** A process looks at the nodes' clocks every 30 seconds, and tells of a difference of 5; some of it may be the way's. */
const LOOKED_SECONDS = 45;
const TOLD_SECONDS = 8;
/** A process that was killed just now is started at once, and can be killed again. */
const STARTED_MS = 10_000;

export interface Means {
  readonly bucket: BucketProxy;
  readonly parties: Parties;
  /** Where links can be cut. */
  readonly network?: Network | undefined;
  /** Root of the next version's build, where versions are rolled. */
  readonly next?: URL | undefined;
}

/** Resolves when the last fault is over: every server that was taken away is back. */
export async function disturb(run: Run, means: Means, plan: readonly Planned[]): Promise<void> {
  const { ledger, say } = run;
  const began = performance.now();
  // A process may give up starting as often as it likes while servers are away.
  run.outage = true;
  /** By target, the end of its last fault: a healing may take longer than was planned. */
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

/** Count of the ledger for faults of this kind that were carried out. */
export function faultsOf({ fault }: Pick<Planned, 'fault'>): string {
  return `faults: ${fault}`;
}

/** Ends a fault; undefined where it could not be carried out. */
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

/** Repeats what is false for a process that does not run, until it has been started. */
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
 * A load balancer sends nothing to a process that is not ready, so what is far off is given no calls from
 * before its clock is set until it is ready again. What it does by itself goes on.
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
 * Calls go on whatever a server's clock says. A node that was ahead goes on giving the time that it has come to, until the
 * others have reached it.
 */
async function setServerClock(
  { servers, calls, ledger }: Run,
  { targets, ahead, seconds }: Planned,
): Promise<() => Promise<void>> {
  const [name] = targets as readonly [string];
  const isTold = isCassandra(name) && Math.abs(ahead!) >= TOLD_SECONDS && seconds >= LOOKED_SECONDS;
  await servers.setClock(name, ahead!);
  return async () => {
    if (isTold) {
      if (await areClocksTold(calls.services)) ledger.count("nodes' clocks told of");
      else ledger.violation(`no process tells that the clock of ${name} is off by ${ahead} s`);
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

/** Senders and receivers of a link, as far as it is disturbed. */
function waysOf({ targets, way }: Planned): readonly (readonly [string, string])[] {
  const [one, other] = targets as readonly [string, string];
  return [
    ...(way === 'from' ? [] : [[one, other] as const]),
    ...(way === 'to' ? [] : [[other, one] as const]),
  ];
}

/** As docs/operating.md says: what two nodes have is made the same before a third one copies from either. */
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
