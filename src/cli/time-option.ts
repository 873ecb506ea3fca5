import { UsageError } from './command.js';

const SECONDS = /^\d{1,12}$/;
const DATE_TIME = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}:\d{2}(?:Z|[+-]\d{2}:\d{2}))?$/;

/**
 * Unix seconds of an option's value: as such, as a date, which means its first second in UTC, or as a time with its
 * offset (RFC 3339). @throws UsageError
 */
export function parseTime(option: string, text: string): number {
  const day = DATE_TIME.exec(text)?.[1];
  // `Date.parse` takes 30 February for 2 March.
  const exists = day !== undefined && new Date(Date.parse(day)).getUTCDate() === Number(day.slice(8));
  const seconds = SECONDS.test(text) ? Number(text) : exists ? Math.floor(Date.parse(text) / 1000) : NaN;
  if (!Number.isSafeInteger(seconds) || seconds < 0)
    throw new UsageError(`${option} must be a time: 2026-01-31, 2026-01-31T12:00:00Z, or unix seconds`);
  return seconds;
}
