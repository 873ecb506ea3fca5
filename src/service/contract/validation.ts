import { z } from 'zod';
import { shownName, shownText } from '../../core/domain/display-name.js';
import type { BodySchema, Route } from './route.js';

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

/** The schema of parameters or headers. */
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
  schema: BodySchema,
  value: unknown,
  part: RequestPart = 'body',
): { readonly value: unknown } | { readonly problem: string } {
  const alternatives = schema instanceof z.ZodObject ? [schema] : schema.options;
  const meant = alternativeFor(alternatives, value);
  const result = meant.safeParse(withoutNulls(meant, value, alternatives), { error: inWords });
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

/** Returns the alternative that a value is meant for: the first one with a member that the value has. */
function alternativeFor(alternatives: readonly z.ZodObject[], value: unknown): z.ZodObject {
  const given = isObject(value) ? value : {};
  const meant = alternatives.find(({ shape }) =>
    Object.keys(shape).some((name) => (given[name] ?? null) !== null),
  );
  return meant ?? alternatives[0]!;
}

/**
 * Returns a value without the members that are null and may be absent, at any depth. A member of another alternative
 * may be absent, too.
 */
function withoutNulls(
  { shape }: z.ZodObject,
  value: unknown,
  alternatives: readonly z.ZodObject[] = [],
): unknown {
  if (!isObject(value)) return value;
  const members = Object.entries(value);
  if (!members.some(([, member]) => member === null || Array.isArray(member))) return value;
  const mayLack = (name: string): boolean =>
    Object.hasOwn(shape, name)
      ? shape[name]!._zod.optin === 'optional'
      : alternatives.some((each) => Object.hasOwn(each.shape, name));
  return Object.fromEntries(
    members
      .filter(([name, member]) => member !== null || !mayLack(name))
      .map(([name, member]) => [
        name,
        Object.hasOwn(shape, name) ? withoutInner(shape[name]!, member) : member,
      ]),
  );
}

function withoutInner(schema: z.core.$ZodType, member: unknown): unknown {
  if (!Array.isArray(member) || !(schema instanceof z.ZodArray)) return member;
  const { element } = schema;
  return element instanceof z.ZodObject ? member.map((item) => withoutNulls(element, item)) : member;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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
