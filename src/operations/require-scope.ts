import { DomainError } from '../domain/errors.js';
import type { Scope } from '../domain/partner.js';
import type { Caller } from './operations.js';

/** Keys carry scopes; an action outside them is 403. */
export function requireScope(caller: Caller, scope: Scope): void {
  if (!caller.scopes.includes(scope))
    throw new DomainError('forbidden', 'The API key does not allow this action.');
}
