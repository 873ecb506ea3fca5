/**
 * The long-term release lines of Node and the last day with fixes, in UTC, by the Node.js project's schedule.
 */
const LAST_DAYS: ReadonlyMap<number, string> = new Map([
  [20, '2026-04-30'],
  [22, '2027-04-30'],
  [24, '2028-04-30'],
  [26, '2029-04-30'],
]);
const FIRST_KNOWN = Math.min(...LAST_DAYS.keys());
const DAY_MS = 86_400_000;

/** The reason to replace a release of Node. */
export interface RuntimeWarning {
  /** The version as Node reports it, such as `v20.11.0`. */
  readonly node: string;
  readonly reason: 'no_more_fixes' | 'not_long_term';
  /** The last day with fixes, as `YYYY-MM-DD`, if known. */
  readonly lastDay?: string;
}

/**
 * Returns a warning about a release of Node that gets no more fixes, or only for a short time. Returns
 * undefined if nothing is known against the release, for example for a long-term line newer than this table.
 * @param version the value of `process.version`
 * @param now milliseconds since the epoch
 */
export function runtimeWarning(version: string, now: number): RuntimeWarning | undefined {
  const major = Number(/^v(\d+)\./.exec(version)?.[1]);
  const lastDay = LAST_DAYS.get(major);
  if (lastDay !== undefined)
    return now < Date.parse(lastDay) + DAY_MS
      ? undefined
      : { node: version, reason: 'no_more_fixes', lastDay };
  if (major < FIRST_KNOWN) return { node: version, reason: 'no_more_fixes' };
  return major % 2 === 1 ? { node: version, reason: 'not_long_term' } : undefined;
}

/** Returns the warning as a sentence for the person who starts the service. */
export function runtimeWords({ node, reason, lastDay }: RuntimeWarning): string {
  if (reason === 'not_long_term')
    return `Node ${node} is not a long-term release: it gets fixes only for a few months. The README lists the supported releases.`;
  return `Node ${node} gets no more fixes${lastDay === undefined ? '' : ` since ${lastDay}`}, not even security fixes. The README lists the supported releases.`;
}
