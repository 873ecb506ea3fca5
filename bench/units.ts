/** Which way a figure is better. */
export type Better = 'more' | 'less';

interface Unit {
  /** What the unit means, as a heading. */
  readonly title: string;
  readonly better: Better;
  /** A count is the same on every machine; what is not one depends on the machine, too. */
  readonly count?: true;
}

/** The one list of units that are better in one direction; a figure of another unit is neither faster nor slower. */
const UNITS: Readonly<Record<string, Unit>> = {
  'MB/s': { title: 'MB/s (millions of bytes)', better: 'more' },
  'calls/s': { title: 'Calls per second', better: 'more' },
  'flows/s': { title: 'Flows per second', better: 'more' },
  'k/s': { title: 'Thousands per second', better: 'more' },
  'CPU s/GB': { title: 'CPU seconds per GB', better: 'less' },
  'CPU µs a call': { title: 'CPU microseconds per call', better: 'less' },
  'CPU µs a flow': { title: 'CPU microseconds per flow', better: 'less' },
  ms: { title: 'Milliseconds', better: 'less' },
  µs: { title: 'Microseconds', better: 'less' },
  MB: { title: 'Memory in MB', better: 'less' },
  lanes: { title: 'Lanes', better: 'more', count: true },
};

export function betterOf(unit: string): Better | undefined {
  return UNITS[unit]?.better;
}

/** Returns true if the unit is that of a ratio or a count. Both can be compared between different machines. */
export function isOfAnyMachine(unit: string): boolean {
  return unit === 'x' || UNITS[unit]?.count === true;
}

export function unitTitle(unit: string): string {
  const known = UNITS[unit];
  return known === undefined ? unit : `${known.title}, ${known.better} is better`;
}
