import type { z } from 'zod';
import type { Scope } from '../domain/partner.js';
import type { Deprecation } from './deprecation.js';
import type { Refusals } from './refusals.js';
import type { HeaderName } from './response-headers.js';

/** Statuses a refusal can have; each has one code (error-codes.ts). */
export type ErrorStatus =
  | 400
  | 403
  | 404
  | 405
  | 408
  | 409
  | 411
  | 412
  | 413
  | 415
  | 416
  | 422
  | 429
  | 431
  | 500
  | 503;

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
  /** The bytes of one audio file, read as they stream. */
  | { readonly kind: 'audio'; readonly maxBytes: number }
  /** "No body": one that is sent is 400. */
  | { readonly kind: 'none' };

export interface RouteAnswer {
  readonly description: string;
  /** Absent: the answer has no body. */
  readonly mediaTypes?: readonly [string, ...string[]];
  /** For `application/json`. */
  readonly schema?: z.ZodType;
  /** Headers of this answer alone; what whole rows have in common stands in response-headers.ts. */
  readonly headers?: Readonly<Partial<Record<HeaderName, 'always' | 'sometimes'>>>;
}

/** Chapters of the contract's document. */
export const ROUTE_GROUPS = [
  'Verification',
  'Proofs',
  'Keys and usage',
  'Reviews',
  'System',
  'Operator',
] as const;

/**
 * One row of the path table: what the routes are built from, and the contract's document and types are
 * derived from.
 */
export interface Route {
  readonly listener: 'partner' | 'operator';
  readonly group: (typeof ROUTE_GROUPS)[number];
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** With `{name}` for a path parameter, as OpenAPI writes it. */
  readonly path: `/${string}`;
  readonly summary: string;
  /** What a caller should know beyond the summary. */
  readonly description?: string;
  /** `key`: x-api-key. `form`: the signed form fields are the authority. `bearer`: the operator's token. */
  readonly auth: 'public' | 'key' | 'form' | 'bearer';
  /** What the key must be allowed to do; absent where every key may. */
  readonly scope?: Scope;
  readonly params?: z.ZodObject;
  /**
   * Absent: a caller who must authenticate may send none; that of a public or presigned address is not looked
   * at.
   */
  readonly query?: z.ZodObject;
  /** Request headers beyond authentication, by lower-case name. */
  readonly headers?: z.ZodObject;
  readonly body?: RouteBody;
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  /** The closed list of refusals: statuses, and the reasons each can have. */
  readonly errors: Refusals;
  /**
   * Which throttle the call spends from. The rotation lane is spent by the operation, because "replays do not
   * spend" it.
   */
  readonly lane: 'none' | 'standard' | 'rotation';
  /** True where a call counts against the monthly quota; "everything else is metered per day but free". */
  readonly billed?: true;
  /** `Cache-Control: no-store` on every answer. */
  readonly noStore: boolean;
  readonly deprecation?: Deprecation;
}
