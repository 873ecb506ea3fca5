import { UsageError } from './command.js';

const SECONDS = /^\d{1,12}$/;
const DATE_TIME = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}:\d{2}(?:Z|[+-]\d{2}:\d{2}))?$/;

/**
 * Parses an option's value to unix seconds. The value is unix seconds, a date (its first second in UTC), or a
 * time with an offset (RFC 3339).
 * @throws UsageError
 */
export function parseTime(option: string, text: string): number {
  const day = DATE_TIME.exec(text)?.[1];
  // `Date.parse` turns 30 February into 2 March.
  const exists = day !== undefined && new Date(Date.parse(day)).getUTCDate() === Number(day.slice(8));
  const seconds = SECONDS.test(text) ? Number(text) : exists ? Math.floor(Date.parse(text) / 1000) : NaN;
  if (!Number.isSafeInteger(seconds) || seconds < 0)
    throw new UsageError(`${option} must be a time: 2026-01-31, 2026-01-31T12:00:00Z, or unix seconds`);
  return seconds;
}
