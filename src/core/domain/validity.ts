import type { DomainError } from './errors.js';

/** A period of validity in unix seconds, both ends included (RFC 5280, 4.1.2.5). */
export interface Validity {
  readonly notBefore: number;
  readonly notAfter: number;
}

/** The certificates whose validity the service watches. */
export const WATCHED_CERTIFICATES = ['signing', 'authority', 'tls'] as const;
export type WatchedCertificate = (typeof WATCHED_CERTIFICATES)[number];

/** The warnings before and after a period of validity. At most one applies at a time. */
export const VALIDITY_WARNINGS = ['not_begun', '90_days', '30_days', '7_days', 'expired'] as const;
export type ValidityWarning = (typeof VALIDITY_WARNINGS)[number];

const DAY_SECONDS = 86_400;
/** The days before the end at which a warning starts, the latest first. */
const STARTS = [
  ['7_days', 7],
  ['30_days', 30],
  ['90_days', 90],
] as const;
/**
 * A warning needs a certificate that is valid for at least this many times the days of the warning. Otherwise a
 * certificate that is renewed every few weeks would be warned about all the time.
 */
const LEAST_LIVES = 3;

/** Returns the warning that applies now, or undefined. `now` is in unix seconds. */
export function validityWarning({ notBefore, notAfter }: Validity, now: number): ValidityWarning | undefined {
  if (now < notBefore) return 'not_begun';
  if (now > notAfter) return 'expired';
  const life = notAfter - notBefore;
  return STARTS.find(
    ([, days]) => notAfter - now < days * DAY_SECONDS && life >= LEAST_LIVES * days * DAY_SECONDS,
  )?.[0];
}

/** Returns the whole days from now to the end of a validity. 0 after the end. */
export function daysLeft({ notAfter }: Validity, now: number): number {
  return Math.max(0, Math.floor((notAfter - now) / DAY_SECONDS));
}

/** Whether the service can issue proofs now. */
export type IssuingState =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: NonNullable<DomainError['reason']> };
