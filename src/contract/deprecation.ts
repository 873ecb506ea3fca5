import { z } from 'zod';
import type { Route } from './route.js';

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

/** Member of a field's metadata under which its notice stands, and of the contract's document. */
const NOTICE = 'x-deprecation';

/** Marks a member of a request or an answer: the responses of every row that holds it carry the notice. */
export function deprecated<Schema extends z.ZodType>(schema: Schema, notice: Deprecation): Schema {
  return schema.meta({ ...schema.meta(), deprecated: true, [NOTICE]: notice });
}

/** The notices of a row: its own, then those of its fields. */
export function noticesOf(route: Route): readonly Deprecation[] {
  const notices = route.deprecation === undefined ? [] : [route.deprecation];
  const schemas = [
    route.params,
    route.query,
    route.headers,
    route.body?.kind === 'json' ? route.body.schema : undefined,
    ...Object.values(route.answers).map(({ schema }) => schema),
  ];
  for (const schema of schemas)
    if (schema !== undefined) collect(z.toJSONSchema(schema, { io: 'input' }), notices);
  return notices;
}

function collect(node: unknown, notices: Deprecation[]): void {
  if (typeof node !== 'object' || node === null) return;
  for (const [name, value] of Object.entries(node)) {
    if (name === NOTICE) notices.push(value as Deprecation);
    else collect(value, notices);
  }
}

/**
 * "Breaking changes are announced at least 6 months ahead (12 months for integrations in production on the
 * old behaviour)": months of the calendar, in UTC.
 * @returns what is wrong with a notice, or undefined
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
