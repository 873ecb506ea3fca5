/**
 * Long-term lines of Node and the last day, in UTC, on which each gets fixes: the release schedule of the
 * Node.js project.
 */
const LAST_DAYS: ReadonlyMap<number, string> = new Map([
  [20, '2026-04-30'],
  [22, '2027-04-30'],
  [24, '2028-04-30'],
  [26, '2029-04-30'],
]);
const FIRST_KNOWN = Math.min(...LAST_DAYS.keys());
const DAY_MS = 86_400_000;

/** Reason to replace a release of Node. */
export interface RuntimeWarning {
  /** Version as Node gives it, `v20.11.0`. */
  readonly node: string;
  readonly reason: 'no_more_fixes' | 'not_long_term';
  /** Last day with fixes, `YYYY-MM-DD`, where it is known. */
  readonly lastDay?: string;
}

/**
 * Warning about a release of Node that gets no fixes, or not for long; undefined where nothing is known
 * against the release, as for a long-term line newer than this table.
 * @param version as `process.version` has it
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

/** Warning as a sentence for whoever starts the service. */
export function runtimeWords({ node, reason, lastDay }: RuntimeWarning): string {
  if (reason === 'not_long_term')
    return `Node ${node} is no long-term release: it gets fixes for some months only. README says which to use.`;
  return `Node ${node} gets no more fixes${lastDay === undefined ? '' : ` since ${lastDay}`}, security included. README says which to use.`;
}
