import type { IncomingMessage, ServerResponse } from 'node:http';
import express from 'express';
import { DomainError } from '../../../core/domain/errors.js';
import type { Route } from '../../contract/route.js';
import { noticesOf } from '../../contract/route-headers.js';
import type { RouteName } from '../../ports/observer.js';
import type { Endpoint } from './endpoint.js';

/** A path with its endpoints. */
export interface Path {
  readonly route: RouteName;
  readonly byMethod: ReadonlyMap<string, { readonly endpoint: Endpoint; readonly headers: Headers }>;
  /** The methods of the path, for the header `Allow`. */
  readonly allow: string;
}
/** The headers of every response of an endpoint, including errors. */
type Headers = Readonly<Record<string, string>>;

/** A path that matches a request, with the parameters of the path as they were sent. */
export interface Match {
  readonly path: Path;
  readonly params: unknown;
}

/** Finds the path of a request. @throws DomainError `not_found` */
export type FindPath = (request: IncomingMessage, response: ServerResponse) => Match | Promise<Match>;

/** Returns the function that finds the paths of endpoints. */
export function createRoutes(endpoints: readonly Endpoint[]): FindPath {
  // An Express application would replace the prototype of each request and response, which slows down every
  // later access.
  const router = express.Router({ caseSensitive: true, strict: true });
  // The router's types ask for an application's requests and responses, but the router does not need them.
  const route = router as unknown as (
    request: { readonly method: string; readonly url: string },
    response: ServerResponse,
    done: (error?: unknown) => void,
  ) => void;
  const waiting = new WeakMap<ServerResponse, (match: Match) => void>();
  /**
   * Paths without parameters. Most calls use them, and they are found here without trying the routes one by
   * one.
   */
  const fixed = new Map<string, Match>();
  for (const path of pathsOf(endpoints)) {
    if (!path.route.includes('{')) fixed.set(path.route, { path, params: undefined });
    // One layer for each path and all methods. Otherwise Express would respond to OPTIONS itself, and other
    // methods would get 404.
    router
      .route(path.route.replaceAll(/\{(\w+)\}/g, ':$1'))
      .all((request, response) => waiting.get(response)!({ path, params: request.params }));
  }
  return (request, response) =>
    fixed.get(request.url!.split('?', 1)[0]!) ??
    new Promise((resolve, reject) => {
      waiting.set(response, resolve);
      // The router decodes parameters, and a broken escape would fail before the method and the key are checked
      // (rule 3.1). Decoding `%25` gives what was sent.
      const copy = { method: request.method!, url: request.url!.replaceAll('%', '%25') };
      route(copy, response, (error) =>
        reject(
          error ?? new DomainError('not_found', 'This path does not exist.', { reason: 'unknown_route' }),
        ),
      );
    });
}

/** Groups the endpoints by path. The paths keep the order of the table. */
function pathsOf(endpoints: readonly Endpoint[]): readonly Path[] {
  const paths = new Map<string, Endpoint[]>();
  for (const endpoint of endpoints) {
    const { path } = endpoint.route;
    const ofPath = paths.get(path);
    if (ofPath === undefined) paths.set(path, [endpoint]);
    else ofPath.push(endpoint);
  }
  return [...paths].map(([path, ofPath]) => ({
    route: path as RouteName,
    byMethod: new Map(
      ofPath.map((endpoint) => [endpoint.route.method, { endpoint, headers: headersOf(endpoint.route) }]),
    ),
    allow: ofPath
      .flatMap(({ route: { method } }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
      .join(', '),
  }));
}

function headersOf(route: Route): Headers {
  const notices = noticesOf(route);
  return {
    ...(route.noStore ? { 'Cache-Control': 'no-store' } : {}),
    // Rule 14.3: the earliest dates of several notices apply.
    ...(notices.length === 0
      ? {}
      : {
          Deprecation: `@${Math.min(...notices.map(({ since }) => since))}`,
          Sunset: new Date(Math.min(...notices.map(({ sunset }) => sunset)) * 1000).toUTCString(),
          Link: [...new Set(notices.map(({ guide }) => `<${guide}>; rel="deprecation"`))].join(', '),
        }),
  };
}
