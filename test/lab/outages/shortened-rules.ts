/** Derives rules with shorter times from the alerts, so that every alert can be tried within minutes. */

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

/**
 * Divides every duration of the rules by `factor`: those of `for`, those of ranges, and limits in seconds of the
 * age of an event. Other limits stay. A duration has at least two seconds, so that a range has two samples.
 */
export function shortenedRules(rules: string, factor: number): string {
  const shorter = (seconds: number): number => Math.max(2, Math.round(seconds / factor));
  const duration = (count: string, unit: string): string =>
    `${shorter(Number(count) * UNIT_SECONDS[unit]!)}s`;
  return rules
    .replaceAll(/\bfor: (\d+)([smh])\b/g, (_, count, unit) => `for: ${duration(count, unit)}`)
    .replaceAll(/\[(\d+)([smh])\]/g, (_, count, unit) => `[${duration(count, unit)}]`)
    .replaceAll(
      /(_oldest_seconds\) > )(\d+)/g,
      (_, before: string, seconds) => before + shorter(Number(seconds)),
    );
}
