export interface ProcessUse {
  /** Seconds of CPU since the process began, user and system, of all its threads. */
  readonly cpuSeconds: number;
  readonly rssBytes: number;
}

const WATCH_MS = 10;

let peak = 0;
let watching: NodeJS.Timeout | undefined;

function sample(): number {
  const rss = process.memoryUsage.rss();
  peak = Math.max(peak, rss);
  return rss;
}

/** Figures that a measured process reports of itself. */
export const probe = {
  use(): ProcessUse {
    const { user, system } = process.cpuUsage();
    return { cpuSeconds: (user + system) / 1e6, rssBytes: process.memoryUsage.rss() };
  },
  watchMemory(): void {
    peak = 0;
    sample();
    watching = setInterval(sample, WATCH_MS);
  },
  /** Largest RSS since `watchMemory`. */
  memoryPeak(): number {
    clearInterval(watching);
    sample();
    return peak;
  },
};
export type Probe = typeof probe;
