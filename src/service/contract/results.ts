import type { ROUTES } from './routes/routes.js';
import type { ResponseBodyOf } from './validation.js';

/** The result of the operation of a route: the JSON body of its response, as its schema declares it. */
export type ResultOf<Id extends keyof typeof ROUTES> = ResponseBodyOf<(typeof ROUTES)[Id]>;
