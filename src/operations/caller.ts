import { DomainError } from '../domain/errors.js';
import type { Plan, Scope } from '../domain/partner.js';
import type { TestAnswer } from '../domain/test-key.js';

/** The calling partner, after the key was checked. */
export interface Caller {
  readonly partnerId: string;
  readonly keyId: string;
  readonly scopes: readonly Scope[];
  readonly plan: Plan;
  /** SPKI in base64, where the key's calls must be signed. */
  readonly publicKey?: string;
  /** The answer that the key forces; its calls are not billed. */
  readonly testAnswer?: TestAnswer;
  /**
   * The partner's units of a month after this call's charge: the quota headers need no second read then. `at` is
   * the time of the charge in unix seconds, and with it the month.
   */
  used?: { readonly units: number; readonly at: number };
}

/**
 * The one check of a key's scope: the listener calls it before every use case, with the scope of the route.
 * @throws DomainError `forbidden`, as for a key that is not valid
 */
export function requireScope(caller: Caller, scope: Scope): void {
  if (!caller.scopes.includes(scope))
    throw new DomainError('forbidden', `The key does not have the scope ${scope}.`, {
      reason: 'scope_missing',
    });
}
