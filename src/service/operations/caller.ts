import { DomainError } from '../../core/domain/errors.js';
import type { Plan, Scope } from '../domain/partner.js';
import type { TestAnswer } from '../domain/test-key.js';

/** The calling partner, after its key was checked. */
export interface Caller {
  readonly partnerId: string;
  readonly keyId: string;
  readonly scopes: readonly Scope[];
  readonly plan: Plan;
  /** The public key as SPKI in base64. Present when the key's calls must be signed. */
  readonly publicKey?: string;
  /** The answer that a test key forces. Such calls are not billed. */
  readonly testAnswer?: TestAnswer;
  /**
   * The partner's units in the month after this call's charge, so that the quota headers need no second read.
   * `at` is the time of the charge in unix seconds, and determines the month.
   */
  used?: { readonly units: number; readonly at: number };
}

/**
 * Checks the key's scope. The listener calls this function before every use case, with the scope of the
 * route.
 * @throws DomainError `forbidden` / `scope_missing`
 */
export function requireScope(caller: Caller, scope: Scope): void {
  if (!caller.scopes.includes(scope))
    throw new DomainError('forbidden', `This call needs a key with the scope ${scope}.`, {
      reason: 'scope_missing',
    });
}
