import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, totalmem, type as systemName, release } from 'node:os';

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
  readonly v8: string;
  readonly openssl: string;
  /** Undefined where the system does not say. */
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

function hasShaInstructions(): boolean | undefined {
  try {
    const flags = /^(?:flags|Features)\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'latin1'))?.[1];
    return flags === undefined ? undefined : /\b(?:sha_ni|sha2)\b/.test(flags);
  } catch {
    return undefined;
  }
}
