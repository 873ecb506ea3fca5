import type { z } from 'zod';
import type { Scope } from '../domain/partner.js';

/** Statuses a refusal can have; each has one code (http/status.ts). */
export type ErrorStatus = 400 | 403 | 404 | 405 | 408 | 409 | 411 | 413 | 415 | 422 | 429 | 431 | 500 | 503;

/** Notice of an end: RFC 9745 `Deprecation` and RFC 8594 `Sunset`. */
export interface Deprecation {
  /** Unix seconds from which the route counts as deprecated. */
  readonly since: number;
  /** Unix seconds after which it may be gone. */
  readonly sunset: number;
  /** Address of the migration guide. */
  readonly guide: string;
}

export type RouteBody =
  /** `required: false`: a request without a body means `{}`. */
  | { readonly kind: 'json'; readonly schema: z.ZodObject; readonly required: boolean; readonly maxBytes: number }
  /** multipart/form-data, read as it streams. */
  | { readonly kind: 'form'; readonly maxBytes: number }
  /** The bytes of one audio file, read as they stream. */
  | { readonly kind: 'audio'; readonly maxBytes: number };

export interface RouteAnswer {
  readonly description: string;
  readonly mediaType: string;
  /** For `application/json`. */
  readonly schema?: z.ZodType;
}

/** One row of the path table: what the routes are built from, and the contract's document and types are derived from. */
export interface Route {
  readonly listener: 'partner' | 'operator';
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** With `{name}` for a path parameter, as OpenAPI writes it. */
  readonly path: `/${string}`;
  readonly summary: string;
  /** `key`: x-api-key. `form`: the signed form fields are the authority. `bearer`: the operator's token. */
  readonly auth: 'public' | 'key' | 'form' | 'bearer';
  /** What the key must be allowed to do. */
  readonly scope?: Scope;
  readonly params?: z.ZodObject;
  /** Absent: the query is not looked at. */
  readonly query?: z.ZodObject;
  /** Request headers beyond authentication, by lower-case name. */
  readonly headers?: z.ZodObject;
  readonly body?: RouteBody;
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  readonly errors: readonly ErrorStatus[];
  /** Which throttle the call spends from. */
  readonly lane: 'none' | 'standard' | 'rotation';
  /** `Cache-Control: no-store` on every answer. */
  readonly noStore: boolean;
  readonly deprecation?: Deprecation;
}
