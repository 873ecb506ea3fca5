/** Carries a plan of faults out on a run, and heals all of them. */
import { setTimeout as delay } from 'node:timers/promises';
import type { BucketProxy } from './bucket-way.js';
import { describePlanned, type Parties, type Planned } from './composition.js';
import type { Network } from './network.js';
import type { Run } from './run.js';

/** Clock differences up to this one leave a process serving. */
const SERVES_SECONDS = 5;

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
  await Promise.all(
    plan.map(async (planned) => {
      await delay(Math.max(0, planned.at * 1000 - (performance.now() - began)));
      const words = describePlanned(planned);
      say(`begins: ${words}`);
      ledger.count(`faults: ${planned.fault}`);
      const heal = await inflict(run, means, planned);
      await delay(planned.seconds * 1000);
      await heal();
      say(`over: ${words}`);
    }),
  );
}

/** @returns what ends the fault */
function inflict(run: Run, means: Means, planned: Planned): Promise<() => Promise<void>> {
  const [target] = planned.targets as readonly [string];
  switch (planned.fault) {
    case 'bucket':
      return turnBucket(means.bucket, planned);
    case 'clock':
      return setClock(run, target, planned.ahead!);
    case 'links':
      return cutLink(means, planned);
    case 'disk':
      return run.servers.fillDisk(target);
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
): Promise<() => Promise<void>> {
  if (fault === 'kill') {
    cluster.kill(name);
    return async () => undefined;
  }
  if (fault === 'suspend') {
    cluster.suspend(name);
    return async () => cluster.resume(name);
  }
  await cluster.hold(name);
  return async () => cluster.release(name);
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

async function cutLink({ network }: Means, { targets, way }: Planned): Promise<() => Promise<void>> {
  const [one, other] = targets as readonly [string, string];
  const cuts: (readonly [string, string])[] = [
    ...(way === 'from' ? [] : [[one, other] as const]),
    ...(way === 'to' ? [] : [[other, one] as const]),
  ];
  for (const [from, to] of cuts) await network!.cut(from, to);
  return async () => {
    for (const [from, to] of cuts) await network!.mend(from, to);
  };
}

async function rollVersion({ cluster }: Run, name: string, next: URL): Promise<() => Promise<void>> {
  await cluster.roll(name, next);
  return () => cluster.roll(name);
}
