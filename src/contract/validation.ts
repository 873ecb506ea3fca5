import type { z } from 'zod';
import type { Route } from './route.js';

type Output<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;
type Member<R, Name extends string> = R extends { readonly [K in Name]: infer Value } ? Value : undefined;

/** Members of a request as the route's schemas give them. */
export interface RouteInput<R extends Route> {
  readonly params: Output<Member<R, 'params'>>;
  readonly query: Output<Member<R, 'query'>>;
  readonly headers: Output<Member<R, 'headers'>>;
  /** The JSON body; a form or audio body is read as it streams. */
  readonly body: Output<Member<Member<R, 'body'>, 'schema'>>;
}

/**
 * JSON as it is sent: never changed after it was made. Further members of a loose object are not looked at.
 */
type Sent<Value> = Value extends readonly (infer Item)[]
  ? readonly Sent<Item>[]
  : Value extends object
    ? [keyof Named<Value>] extends [never]
      ? { readonly [Name in keyof Value]: Sent<Value[Name]> }
      : { readonly [Name in keyof Named<Value>]: Sent<Named<Value>[Name]> }
    : Value;
type Named<Value> = { [Name in keyof Value as string extends Name ? never : Name]: Value[Name] };

/** Responses of a route by status: each with the body of its schema, its media types, or neither. */
export type RouteOutput<R extends Route> = {
  readonly [Status in keyof R['responses']]: R['responses'][Status] extends {
    readonly schema: infer Schema extends z.ZodType;
  }
    ? { readonly body: Sent<z.input<Schema>> }
    : R['responses'][Status] extends { readonly mediaTypes: infer MediaTypes }
      ? { readonly mediaTypes: MediaTypes }
      : Record<never, never>;
};

/** A schema of a request as the listener sees it. */
export type RequestSchema = z.ZodObject;

/**
 * Holds a value to its schema.
 * @returns the value as the schema gives it, or the problem: the member and the rule, never the text that was
 * sent
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
