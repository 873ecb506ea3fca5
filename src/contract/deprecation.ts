import type { z } from 'zod';

/** Notice of an end: RFC 9745 `Deprecation` and RFC 8594 `Sunset`. */
export interface Deprecation {
  /** Unix seconds at which the end was announced, and from which the thing counts as deprecated. */
  readonly since: number;
  /** Unix seconds after which it may be gone. */
  readonly sunset: number;
  /** Address of the migration guide. */
  readonly guide: string;
  /** True where integrations in production use what ends. */
  readonly inProduction: boolean;
}

/** Member of a field's metadata, and of the contract's document, that holds the notice of the field's end. */
export const NOTICE = 'x-deprecation';

/**
 * Marks a member of a request or a response: the responses of every route that holds the member carry the
 * notice.
 */
export function deprecated<Schema extends z.ZodType>(schema: Schema, notice: Deprecation): Schema {
  return schema.meta({ ...schema.meta(), deprecated: true, [NOTICE]: notice });
}

/**
 * The check of a notice's length (rule 14.3): months of the calendar, in UTC.
 * @returns the problem of the notice, or undefined
 */
export function noticeProblem({ since, sunset, guide, inProduction }: Deprecation): string | undefined {
  const months = inProduction ? 12 : 6;
  if (sunset < addMonths(since, months)) return `the notice is shorter than ${months} months`;
  if (!URL.canParse(guide) || !guide.startsWith('https://')) return 'the guide is no https address';
  return undefined;
}

function addMonths(at: number, months: number): number {
  const date = new Date(at * 1000);
  const day = date.getUTCDate();
  date.setUTCMonth(date.getUTCMonth() + months);
  // 31 August and six months would be 3 March: the notice ends with the month then.
  if (date.getUTCDate() !== day) date.setUTCDate(0);
  return date.getTime() / 1000;
}
