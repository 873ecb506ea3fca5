/** A memory cgroup, version 1 or 2. The kernel limits a container in the same way. */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface MemoryCgroup {
  readonly version: 1 | 2;
  /** A process that writes its id into this file joins the group, with its later children. */
  readonly processes: string;
  /** Returns the peak memory of the group, page cache included. */
  peakBytes(): Promise<number>;
  /** Returns the number of processes that the kernel killed at the limit. */
  oomKills(): Promise<number>;
  /** Removes the group after its last process has ended. */
  remove(): Promise<void>;
}

/** @throws Error if the machine does not allow a cgroup, because the attacks mean nothing without one */
export async function createMemoryCgroup(limitBytes: number): Promise<MemoryCgroup> {
  const faults: string[] = [];
  for (const make of [createVersion1, createVersion2]) {
    try {
      return await make(limitBytes);
    } catch (error) {
      faults.push(error instanceof Error ? error.message : String(error));
    }
  }
  throw new Error(`no memory cgroup can be made here (as root on Linux one can): ${faults.join('; ')}`);
}

const newName = (): string => `takemark-attacks-${process.pid}-${randomBytes(4).toString('hex')}`;

async function createVersion1(limitBytes: number): Promise<MemoryCgroup> {
  const path = join(
    await mountPoint((type, options) => type === 'cgroup' && options.includes('memory'), 'version 1'),
    newName(),
  );
  await mkdir(path);
  await writeFile(join(path, 'memory.limit_in_bytes'), String(limitBytes));
  // Where the kernel counts swap, the limit includes swap.
  await writeFile(join(path, 'memory.memsw.limit_in_bytes'), String(limitBytes)).catch(() => undefined);
  return {
    version: 1,
    processes: join(path, 'cgroup.procs'),
    peakBytes: () => readNumber(join(path, 'memory.max_usage_in_bytes')),
    oomKills: () => readMember(join(path, 'memory.oom_control'), 'oom_kill'),
    remove: () => removeGroup(path),
  };
}

async function createVersion2(limitBytes: number): Promise<MemoryCgroup> {
  const root = await mountPoint((type) => type === 'cgroup2', 'version 2');
  if (!(await readFile(join(root, 'cgroup.controllers'), 'utf8')).split(/\s+/).includes('memory'))
    throw new Error('version 2 has no memory controller');
  await writeFile(join(root, 'cgroup.subtree_control'), '+memory').catch(async () => {
    // In a container this root is a group with processes. Only a group without processes can delegate a
    // controller.
    const rest = join(root, 'takemark-others');
    await mkdir(rest, { recursive: true });
    for (const id of (await readFile(join(root, 'cgroup.procs'), 'utf8')).split('\n').filter(Boolean))
      await writeFile(join(rest, 'cgroup.procs'), id).catch(() => undefined);
    await writeFile(join(root, 'cgroup.subtree_control'), '+memory');
  });
  const path = join(root, newName());
  await mkdir(path);
  await writeFile(join(path, 'memory.max'), String(limitBytes));
  await writeFile(join(path, 'memory.swap.max'), '0').catch(() => undefined);
  return {
    version: 2,
    processes: join(path, 'cgroup.procs'),
    // Kernels before 5.19 record no peak.
    peakBytes: () =>
      readNumber(join(path, 'memory.peak')).catch(() => readNumber(join(path, 'memory.current'))),
    oomKills: () => readMember(join(path, 'memory.events'), 'oom_kill'),
    remove: () => removeGroup(path),
  };
}

/**
 * Returns the mount point. In mountinfo (proc(5)) it is the fifth field, and type and super options follow
 * the separator.
 */
async function mountPoint(
  matches: (type: string, options: readonly string[]) => boolean,
  name: string,
): Promise<string> {
  for (const line of (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')) {
    const [mount, filesystem] = line.split(' - ');
    const [type, , options] = filesystem?.split(' ') ?? [];
    if (type !== undefined && matches(type, options?.split(',') ?? [])) return mount!.split(' ')[4]!;
  }
  throw new Error(`${name} is not mounted`);
}

async function readNumber(path: string): Promise<number> {
  return Number((await readFile(path, 'utf8')).trim());
}

async function readMember(path: string, name: string): Promise<number> {
  const line = (await readFile(path, 'utf8'))
    .split('\n')
    .find((candidate) => candidate.startsWith(`${name} `));
  if (line === undefined) throw new Error(`${path} has no ${name}`);
  return Number(line.slice(name.length + 1));
}

/** Removes a group by repeated attempts, because the kernel counts a process for a moment after its end. */
async function removeGroup(path: string): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    try {
      await rmdir(path);
      return;
    } catch (error) {
      if (tries === 100) throw error;
      await delay(50);
    }
  }
}
