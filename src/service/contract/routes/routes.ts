import type { Route } from '../route.js';
import { OPERATOR_ROUTES } from './operator-routes.js';
import { PARTNER_ROUTES } from './partner-routes.js';

/** The version of the contract that this table describes. */
export const CONTRACT_VERSION = '3.0.0';

/**
 * The path table: the one source of routes and validation. The contract's document and types are derived from
 * it.
 */
export const ROUTES = { ...PARTNER_ROUTES, ...OPERATOR_ROUTES } as const;

export type RouteId = keyof typeof ROUTES;
/** The ids of the routes of one listener. */
export type RouteIdOf<Listener extends Route['listener']> = {
  [Id in RouteId]: (typeof ROUTES)[Id]['listener'] extends Listener ? Id : never;
}[RouteId];
