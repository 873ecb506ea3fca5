import { readFileSync } from 'node:fs';
import { defined } from '../../src/core/domain/defined.js';

export interface ProcessUse {
  /** The CPU seconds of all threads since the process began, user and system. */
  readonly cpuSeconds: number;
  /** The CPU seconds of the main thread. Absent if the system does not report them. */
  readonly mainSeconds?: number;
  readonly rssBytes: number;
}

export interface MemoryUse {
  readonly rssBytes: number;
  /** The bytes of anonymous resident memory, without mapped files. Absent if the system does not report them. */
  readonly ownBytes?: number;
}

const WATCH_MS = 10;

let peak = 0;
let watching: NodeJS.Timeout | undefined;

function sample(): number {
  const rss = process.memoryUsage.rss();
  peak = Math.max(peak, rss);
  return rss;
}

/** Returns what the kernel has counted for the main thread, whose id is that of the process. */
function mainSeconds(): number | undefined {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ')[0]) / 1e9;
  } catch {
    return undefined;
  }
}

function ownBytes(): number | undefined {
  try {
    const kibibytes = /^RssAnon:\s*(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
  } catch {
    return undefined;
  }
}

/** The figures that a measured process reports of itself. */
export const probe = {
  use(): ProcessUse {
    const { user, system } = process.cpuUsage();
    return {
      cpuSeconds: (user + system) / 1e6,
      rssBytes: process.memoryUsage.rss(),
      ...defined({ mainSeconds: mainSeconds() }),
    };
  },
  memory(): MemoryUse {
    return { rssBytes: process.memoryUsage.rss(), ...defined({ ownBytes: ownBytes() }) };
  },
  watchMemory(): void {
    peak = 0;
    sample();
    watching = setInterval(sample, WATCH_MS);
  },
  /** Returns the largest RSS in bytes since `watchMemory`, and ends the watch. */
  memoryPeak(): number {
    clearInterval(watching);
    sample();
    return peak;
  },
};
export type Probe = typeof probe;
