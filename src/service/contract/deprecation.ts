import type { z } from 'zod';

/** A deprecation notice: RFC 9745 `Deprecation` and RFC 8594 `Sunset`. */
export interface Deprecation {
  /** When the removal was announced, in unix seconds. The feature counts as deprecated from then on. */
  readonly since: number;
  /** When the feature may be removed, in unix seconds. */
  readonly sunset: number;
  /** The URL of the migration guide. */
  readonly guide: string;
  /** True if integrations in production use the deprecated feature. */
  readonly inProduction: boolean;
}

/**
 * The member of a field's metadata and of the contract's document that holds the field's deprecation notice.
 */
export const NOTICE = 'x-deprecation';

/**
 * Marks a member of a request or a response as deprecated. The responses of every route with the member carry
 * the notice.
 */
export function deprecated<Schema extends z.ZodType>(schema: Schema, notice: Deprecation): Schema {
  return schema.meta({ ...schema.meta(), deprecated: true, [NOTICE]: notice });
}

/**
 * Checks the length of a notice in UTC calendar months (rule 14.3).
 * @returns the problem of the notice, or undefined
 */
export function noticeProblem({ since, sunset, guide, inProduction }: Deprecation): string | undefined {
  const months = inProduction ? 12 : 6;
  if (sunset < addMonths(since, months)) return `the notice is shorter than ${months} months`;
  if (!URL.canParse(guide) || !guide.startsWith('https://')) return 'the guide is not an https address';
  return undefined;
}

function addMonths(at: number, months: number): number {
  const date = new Date(at * 1000);
  const day = date.getUTCDate();
  date.setUTCMonth(date.getUTCMonth() + months);
  // 31 August plus six months would be 3 March. The notice ends on the last day of February instead.
  if (date.getUTCDate() !== day) date.setUTCDate(0);
  return date.getTime() / 1000;
}
