import type { z } from 'zod';
import type { Scope } from '../domain/partner.js';
import type { Environment } from '../domain/partner-key.js';
import type { Deprecation } from './deprecation.js';
import type { RouteErrors } from './errors.js';
import type { HeaderName } from './response-headers.js';

/** The schema of a JSON body: an object, or exactly one of several objects. */
export type BodySchema = z.ZodObject | z.ZodXor<readonly z.ZodObject[]>;

export type RouteBody =
  /** With `required: false`, a request without a body means `{}`. */
  | {
      readonly kind: 'json';
      readonly schema: BodySchema;
      readonly required: boolean;
      readonly maxBytes: number;
    }
  /**
   * A multipart/form-data body, read as it streams. `fileBytes` limits its file, `maxBytes` the whole form. The form
   * has an optional sidecar of at most `sidecarBytes` before the file.
   */
  | {
      readonly kind: 'form';
      readonly maxBytes: number;
      readonly fileBytes: number;
      readonly sidecarBytes: number;
    }
  /** A multipart/form-data body with the fields of a slot and a file, read as it streams. The slot limits the file. */
  | { readonly kind: 'slot' }
  /**
   * The bytes of one audio file, or a form with small fields, a capture trace and the audio file, in this
   * order. The body is read as it streams. `maxBytes` limits the whole form.
   */
  | {
      readonly kind: 'issuing';
      readonly maxBytes: number;
      readonly audioBytes: number;
      readonly traceBytes: number;
      readonly fields: Readonly<Record<string, string>>;
    }
  /** No body. A request that has one is 400. */
  | { readonly kind: 'none' };

export interface RouteResponse {
  readonly description: string;
  /** Absent if the response has no body. */
  readonly mediaTypes?: readonly [string, ...string[]];
  /** The schema of an `application/json` body. */
  readonly schema?: z.ZodType;
  /** The headers of this response only. Headers that whole routes have in common are in route-headers.ts. */
  readonly headers?: Readonly<Partial<Record<HeaderName, 'always' | 'sometimes'>>>;
  /** The routes that a caller may call next, with the input that this response supplies for each. */
  readonly next?: Readonly<Record<string, NextCall>>;
}

/** The input of a route as runtime expressions of OpenAPI, such as `$response.body#/uploadId`. */
export interface NextCall {
  readonly parameters?: Readonly<Record<string, `$${string}`>>;
  /** The members of the JSON body. */
  readonly body?: Readonly<Record<string, `$${string}`>>;
}

/** The chapters of the contract's document. */
export const ROUTE_GROUPS = [
  'Verification',
  'Proofs',
  'Keys and usage',
  'Reviews',
  'Sandbox',
  'System',
  'Operator',
] as const;

/**
 * A route of the path table. The listeners and the contract's document and types are derived from the table.
 */
export type Route = KeyRoute | OpenRoute;

/** A route that a partner's key opens (header `x-api-key`). */
export interface KeyRoute extends RouteFacts {
  readonly auth: 'key';
  /** The scope that the key must have. `any`: every valid key opens the route. */
  readonly scope: Scope | 'any';
  /**
   * The throttle that limits the call. The operation itself spends from `rotation`, because a replay spends
   * nothing (rule 4.12).
   */
  readonly rateClass: 'standard' | 'rotation';
  /**
   * True if a call counts against the monthly quota. Every other call is free and metered per day (rule 6.4).
   */
  readonly billed?: true;
}

/**
 * A route without a key. `form`: the signed form fields authorise the call. `bearer`: the operator's token
 * does.
 */
export interface OpenRoute extends RouteFacts {
  readonly auth: 'public' | 'form' | 'bearer';
}

interface RouteFacts {
  readonly listener: 'partner' | 'operator';
  readonly group: (typeof ROUTE_GROUPS)[number];
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path, with `{name}` for a path parameter as in OpenAPI. */
  readonly path: `/${string}`;
  readonly summary: string;
  /** A description with further facts for the caller. */
  readonly description?: string;
  readonly params?: z.ZodObject;
  /**
   * The query. If absent, a query is refused where the caller must authenticate, and ignored at a public or
   * presigned address (rule 2.8).
   */
  readonly query?: z.ZodObject;
  /** The request headers beyond authentication, by lower-case name. */
  readonly headers?: z.ZodObject;
  readonly body?: RouteBody;
  readonly responses: Readonly<Record<number, RouteResponse>>;
  /** The closed list of errors: the statuses, and the reasons of each status. */
  readonly errors: RouteErrors;
  /** The environments that have the route. Absent: all of them. Elsewhere its path does not exist. */
  readonly environments?: readonly Environment[];
  /** True if every response has `Cache-Control: no-store`. */
  readonly noStore: boolean;
  readonly deprecation?: Deprecation;
}

/** Returns whether an environment has the route. Without an environment, every route counts. */
export function isRouteOf(environment: string | undefined, { environments }: Route): boolean {
  return (
    environment === undefined ||
    environments === undefined ||
    environments.some((name) => name === environment)
  );
}
