import { z } from 'zod';
import { shownName, shownText } from '../../core/domain/display-name.js';
import type { Route } from './route.js';

type Output<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;
type Member<R, Name extends string> = R extends { readonly [K in Name]: infer Value } ? Value : undefined;

/** The members of a request after validation by the route's schemas. */
export interface RouteInput<R extends Route> {
  readonly params: Output<Member<R, 'params'>>;
  readonly query: Output<Member<R, 'query'>>;
  readonly headers: Output<Member<R, 'headers'>>;
  /** The JSON body. A form or audio body is read as it streams. */
  readonly body: Output<Member<Member<R, 'body'>, 'schema'>>;
}

/** A JSON value as the service sends it, read-only. Extra members of a loose object are not checked. */
type Sent<Value> = Value extends readonly (infer Item)[]
  ? readonly Sent<Item>[]
  : Value extends object
    ? [keyof Named<Value>] extends [never]
      ? { readonly [Name in keyof Value]: Sent<Value[Name]> }
      : { readonly [Name in keyof Named<Value>]: Sent<Named<Value>[Name]> }
    : Value;
type Named<Value> = { [Name in keyof Value as string extends Name ? never : Name]: Value[Name] };

/** The responses of a route by status. Each has the body of its schema, its media types, or neither. */
export type RouteOutput<R extends Route> = {
  readonly [Status in keyof R['responses']]: R['responses'][Status] extends {
    readonly schema: infer Schema extends z.ZodType;
  }
    ? { readonly body: Sent<z.input<Schema>> }
    : R['responses'][Status] extends { readonly mediaTypes: infer MediaTypes }
      ? { readonly mediaTypes: MediaTypes }
      : Record<never, never>;
};

/** The JSON body of a route's request, as a client sends it. */
export type RequestBodyOf<R extends Route> =
  Member<Member<R, 'body'>, 'schema'> extends infer Schema extends z.ZodType ? Sent<z.input<Schema>> : never;

/** The JSON body of a route's responses. */
export type ResponseBodyOf<R extends Route> = {
  [Status in keyof RouteOutput<R>]: RouteOutput<R>[Status] extends { readonly body: infer Body }
    ? Body
    : never;
}[keyof RouteOutput<R>];

/** The schema of a request. */
export type RequestSchema = z.ZodObject;

/** The schema of a query that has no parameters. */
export const NO_PARAMETERS = z.strictObject({});

/** The part of a request that a schema describes. */
export type RequestPart = 'path' | 'query' | 'header' | 'body';

/**
 * Validates a value against its schema. Treats an optional member that is null as absent (rule 2.18).
 * @returns the parsed value, or the problem (rule 5.12): the member and what was expected, never the value
 * that was sent
 */
export function validate(
  schema: RequestSchema,
  value: unknown,
  part: RequestPart = 'body',
): { readonly value: unknown } | { readonly problem: string } {
  const result = schema.safeParse(withoutNulls(schema, value), { error: inWords });
  if (result.success) return { value: result.data };
  const issue = result.error.issues[0]!;
  const { path, message } = issue;
  const problem =
    issue.code === 'unrecognized_keys'
      ? `has the unknown ${part === 'body' ? 'member' : 'parameter'} ${shownName(issue.keys[0]!)}`
      : message;
  const subject = path.length === 0 ? `The ${part}` : shownText(path.join('.'));
  return { problem: `${subject} ${problem}.` };
}

function withoutNulls({ shape }: RequestSchema, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value);
  if (!members.some(([, member]) => member === null)) return value;
  return Object.fromEntries(
    members.filter(
      ([name, member]) =>
        member !== null || !Object.hasOwn(shape, name) || shape[name]!._zod.optin !== 'optional',
    ),
  );
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
};
const COUNTED: Readonly<Record<string, readonly [one: string, more: string]>> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
};

/** Describes what a schema expected, to follow a member's name. A schema's own message replaces it. */
function inWords(issue: z.core.$ZodRawIssue): string {
  if (issue.input === undefined) return 'is missing';
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${KINDS[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.join(', ')}`;
    case 'too_small':
      return bound(issue.origin, 'at least', issue.minimum);
    case 'too_big':
      return bound(issue.origin, 'at most', issue.maximum);
    default:
      return 'does not have the documented format';
  }
}

function bound(origin: string, how: string, limit: number | bigint): string {
  const counted = COUNTED[origin];
  if (counted === undefined) return `must be ${how} ${limit}`;
  return `must have ${how} ${limit} ${counted[Number(limit) === 1 ? 0 : 1]}`;
}
