import { defined } from './defined.js';

/** `refuse`: a promise of the service would not hold. `not_checked`: the server does not say. */
export type CheckVerdict = 'ok' | 'warn' | 'refuse' | 'not_checked';

/** A look at one thing that the service needs of a server. */
export interface ServerCheck {
  /** Name, such as `kafka.replication`. */
  readonly name: string;
  readonly found: string;
  readonly wanted: string;
  readonly verdict: CheckVerdict;
  /** Absent where all is as it should be. */
  readonly reason?: string;
}

/** The names of checks are listed nowhere else: a server answers by itself, or its settings do. */
export function passed(name: string, found: string, wanted: string): ServerCheck {
  return { name, found, wanted, verdict: 'ok' };
}

export function unchecked(name: string, wanted: string, reason: string): ServerCheck {
  return { name, found: 'unknown', wanted, verdict: 'not_checked', reason };
}

/** @param fault reason for which what was found will not do; absent where it will */
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

/** Checks that no setting and no environment turns into a warning: without them decisions fall apart. */
const NEVER_ACCEPTED: ReadonlySet<string> = new Set(['cassandra.topology']);

/**
 * The checks as they count here: a refusal is one in production alone, and not where the operator has accepted
 * it by name.
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
