import { defined } from '../../core/domain/defined.js';

/**
 * The result of a check. `refuse`: the service could not keep one of its promises. `not_checked`: the server does
 * not report the value.
 */
export type CheckVerdict = 'ok' | 'warn' | 'refuse' | 'not_checked';

/** A check of one thing that the service needs from a server. */
export interface ServerCheck {
  /** The name of the check, such as `kafka.replication`. */
  readonly name: string;
  readonly found: string;
  readonly wanted: string;
  readonly verdict: CheckVerdict;
  /** The reason for the verdict. Absent if the check passed. */
  readonly reason?: string;
}

/** Returns a passed check. No central list of check names exists. */
export function passed(name: string, found: string, wanted: string): ServerCheck {
  return { name, found, wanted, verdict: 'ok' };
}

export function unchecked(name: string, wanted: string, reason: string): ServerCheck {
  return { name, found: 'unknown', wanted, verdict: 'not_checked', reason };
}

/** @param fault why the found value is not acceptable, or undefined if it is acceptable */
export function checked(
  name: string,
  { found, wanted }: { readonly found: string; readonly wanted: string },
  verdict: 'warn' | 'refuse',
  fault: string | undefined,
): ServerCheck {
  return {
    name,
    found,
    wanted,
    verdict: fault === undefined ? 'ok' : verdict,
    ...defined({ reason: fault }),
  };
}

/**
 * The checks that no setting and no environment turns into a warning: decisions are not safe if one of them
 * fails.
 */
const NEVER_ACCEPTED: ReadonlySet<string> = new Set(['cassandra.topology']);

/**
 * Returns the checks with their effective verdicts. A refusal becomes a warning outside production, or if the
 * operator has accepted the check by name.
 */
export function countedChecks(
  checks: readonly ServerCheck[],
  { isProduction, accepted }: { readonly isProduction: boolean; readonly accepted: readonly string[] },
): readonly ServerCheck[] {
  return checks.map((check) =>
    check.verdict === 'refuse' &&
    !NEVER_ACCEPTED.has(check.name) &&
    (!isProduction || accepted.includes(check.name))
      ? { ...check, verdict: 'warn' }
      : check,
  );
}
