import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, type as systemName, totalmem } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
  readonly v8: string;
  readonly openssl: string;
  /** False also if they are masked for everything that is measured. Undefined if the system does not report them. */
  readonly shaInstructions: boolean | undefined;
}

export function describeMachine(): Machine {
  return {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${systemName()} ${release()}`,
    node: process.version,
    v8: process.versions.v8,
    openssl: process.versions.openssl,
    shaInstructions: hasShaInstructions(),
  };
}

/** The value of OPENSSL_ia32cap without the SHA instructions, which are bit 29 of CPUID leaf 7, EBX. */
export const SHA_MASK = ':~0x20000000';

function hasShaInstructions(): boolean | undefined {
  if (process.env['OPENSSL_ia32cap'] === SHA_MASK) return false;
  try {
    const flags = /^(?:flags|Features)\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'latin1'))?.[1];
    return flags === undefined ? undefined : /\b(?:sha_ni|sha2)\b/.test(flags);
  } catch {
    return undefined;
  }
}

const LOOK_MS = 400;

/** Returns the share of the processors' time that others take, sampled while nothing is measured. */
export async function foreignLoad(): Promise<number> {
  const before = processorTimes();
  await sleep(LOOK_MS);
  const after = processorTimes();
  return (after.busy - before.busy) / Math.max(1, after.all - before.all);
}

function processorTimes(): { readonly busy: number; readonly all: number } {
  let idle = 0;
  let all = 0;
  for (const { times } of cpus()) {
    idle += times.idle;
    all += times.idle + times.user + times.nice + times.sys + times.irq;
  }
  return { busy: all - idle, all };
}
