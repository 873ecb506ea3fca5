import { z } from 'zod';
import { type Deprecation, NOTICE } from './deprecation.js';
import type { HeaderName } from './response-headers.js';
import type { Route } from './route.js';

/** The statuses of responses that may be sent before the route is found or the key is checked. */
const BEFORE_ROUTE: ReadonlySet<number> = new Set([400, 408, 431]);
const BEFORE_CALLER: ReadonlySet<number> = new Set([...BEFORE_ROUTE, 403, 500, 503]);

const LIMIT_HEADERS = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit-Policy',
  'RateLimit',
] as const;

/** Returns the headers of one status of one route, and whether each is always present. */
export function headersOf(route: Route, status: number): ReadonlyMap<HeaderName, 'always' | 'sometimes'> {
  const headers = new Map<HeaderName, 'always' | 'sometimes'>([
    ['X-Request-Id', 'always'],
    ['X-Content-Type-Options', BEFORE_ROUTE.has(status) ? 'sometimes' : 'always'],
  ]);
  const routed = BEFORE_ROUTE.has(status) ? 'sometimes' : 'always';
  if (route.noStore) headers.set('Cache-Control', routed);
  // Rules 6.9 and 6.16: these headers are present once the partner is known. What is left of the quota is absent if its
  // counter cannot be read.
  if (route.auth === 'key')
    for (const name of LIMIT_HEADERS)
      headers.set(
        name,
        BEFORE_CALLER.has(status) || name === 'X-RateLimit-Remaining' ? 'sometimes' : 'always',
      );
  // Rule 5.7.
  if (status === 429 || status === 503) headers.set('Retry-After', 'always');
  if (noticesOf(route).length > 0)
    for (const name of ['Deprecation', 'Sunset', 'Link'] as const) headers.set(name, routed);
  if (status === 416) headers.set('Content-Range', 'sometimes').set('Accept-Ranges', 'sometimes');
  for (const [name, when] of Object.entries(route.responses[status]?.headers ?? {}))
    headers.set(name as HeaderName, when);
  return headers;
}

/** The notices of each route: to collect them takes a JSON Schema of every schema of the route. */
const NOTICES_BY_ROUTE = new WeakMap<Route, readonly Deprecation[]>();

/** Returns the notices of a route: its own, then the notices of its fields. */
export function noticesOf(route: Route): readonly Deprecation[] {
  const known = NOTICES_BY_ROUTE.get(route);
  if (known !== undefined) return known;
  const notices = collectNotices(route);
  NOTICES_BY_ROUTE.set(route, notices);
  return notices;
}

function collectNotices(route: Route): readonly Deprecation[] {
  const notices = route.deprecation === undefined ? [] : [route.deprecation];
  const schemas = [
    route.params,
    route.query,
    route.headers,
    route.body?.kind === 'json' ? route.body.schema : undefined,
    ...Object.values(route.responses).map(({ schema }) => schema),
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
