import type { z } from 'zod';
import type { Scope } from '../domain/partner.js';
import type { Environment } from '../domain/partner-key.js';
import type { Deprecation } from './deprecation.js';
import type { RouteErrors } from './errors.js';
import type { HeaderName } from './response-headers.js';

export type RouteBody =
  /** `required: false`: a request without a body means `{}`. */
  | {
      readonly kind: 'json';
      readonly schema: z.ZodObject;
      readonly required: boolean;
      readonly maxBytes: number;
    }
  /** multipart/form-data, read as it streams. */
  | { readonly kind: 'form'; readonly maxBytes: number }
  /**
   * The bytes of one audio file, or a form of it with a capture trace before it and small fields before that, read as
   * they stream. `maxBytes` is the form's.
   */
  | {
      readonly kind: 'issuing';
      readonly maxBytes: number;
      readonly audioBytes: number;
      readonly traceBytes: number;
      readonly fields: Readonly<Record<string, string>>;
    }
  /** No body: one that is sent is 400. */
  | { readonly kind: 'none' };

export interface RouteResponse {
  readonly description: string;
  /** Absent: the response has no body. */
  readonly mediaTypes?: readonly [string, ...string[]];
  /** For `application/json`. */
  readonly schema?: z.ZodType;
  /** Headers of this response alone; those that whole routes have in common stand in route-headers.ts. */
  readonly headers?: Readonly<Partial<Record<HeaderName, 'always' | 'sometimes'>>>;
}

/** Chapters of the contract's document. */
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
 * Route of the path table. The listeners are built from the table, and the contract's document and types
 * are derived from it.
 */
export type Route = KeyRoute | OpenRoute;

/** A route that a partner's key opens (header `x-api-key`). */
export interface KeyRoute extends RouteFacts {
  readonly auth: 'key';
  /** The scope that the key must have; `any`: every key opens the route. */
  readonly scope: Scope | 'any';
  /**
   * The throttle that the call spends from. The operation spends `rotation`, because replays do not (rule
   * 4.12).
   */
  readonly rateClass: 'standard' | 'rotation';
  /**
   * True where a call counts against the monthly quota; every other call is metered per day and free (rule
   * 6.4).
   */
  readonly billed?: true;
}

/**
 * A route without a key. `form`: the signed form fields are the authority. `bearer`: the operator's token.
 */
export interface OpenRoute extends RouteFacts {
  readonly auth: 'public' | 'form' | 'bearer';
}

interface RouteFacts {
  readonly listener: 'partner' | 'operator';
  readonly group: (typeof ROUTE_GROUPS)[number];
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `{name}` for a path parameter, as OpenAPI writes it. */
  readonly path: `/${string}`;
  readonly summary: string;
  /** Further facts for the caller. */
  readonly description?: string;
  readonly params?: z.ZodObject;
  /**
   * Absent: a caller who must authenticate may send no query; that of a public or presigned address is
   * ignored.
   */
  readonly query?: z.ZodObject;
  /** Request headers beyond authentication, by lower-case name. */
  readonly headers?: z.ZodObject;
  readonly body?: RouteBody;
  readonly responses: Readonly<Record<number, RouteResponse>>;
  /** The closed list of errors: statuses, and the reasons of each. */
  readonly errors: RouteErrors;
  /** Environments in which the route is; absent: in all. Elsewhere its path is one that does not exist. */
  readonly environments?: readonly Environment[];
  /** `Cache-Control: no-store` on every response. */
  readonly noStore: boolean;
  readonly deprecation?: Deprecation;
}
