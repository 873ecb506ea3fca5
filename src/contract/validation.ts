import type { z } from 'zod';
import type { Route } from './route.js';

type Output<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;
type Member<R, Name extends string> = R extends { readonly [K in Name]: infer Value } ? Value : undefined;

/** What a row's schemas make of a request. */
export interface RouteInput<R extends Route> {
  readonly params: Output<Member<R, 'params'>>;
  readonly query: Output<Member<R, 'query'>>;
  readonly headers: Output<Member<R, 'headers'>>;
  /** The JSON body; a form or audio body is read as it streams. */
  readonly body: Output<Member<Member<R, 'body'>, 'schema'>>;
}

/** Each of a row's schemas as the listener sees it. */
export type RequestSchema = z.ZodObject;

/**
 * Holds a value to its schema.
 * @returns the value as the schema gives it, or what is wrong with it: the member and the rule, never what
 * was sent
 */
export function validate(
  schema: RequestSchema,
  value: unknown,
): { readonly value: unknown } | { readonly problem: string } {
  const result = schema.safeParse(value);
  if (result.success) return { value: result.data };
  const issue = result.error.issues[0]!;
  const path = issue.path.length === 0 ? '' : `${issue.path.join('.')}: `;
  // The name of an unknown member is the caller's text, so it is not repeated.
  return {
    problem:
      issue.code === 'unrecognized_keys'
        ? `${path}There is a member that this request does not have.`
        : `${path}${issue.message}.`,
  };
}
