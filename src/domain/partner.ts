/** Partners and their plans. */

/** Limits of a plan, each for a whole partner (rule 6.1). */
export interface PlanLimits {
  /** Units of a UTC calendar month; verify and identify cost one. */
  readonly monthlyQuota: number;
  readonly requestsPerSecond: number;
  readonly burst: number;
  readonly concurrentUploads: number;
  /** Rotations of a day, a rate class of their own (rule 4.12). */
  readonly rotationsPerDay: number;
}

export const PLAN_LIMITS = [
  'monthlyQuota',
  'requestsPerSecond',
  'burst',
  'concurrentUploads',
  'rotationsPerDay',
] as const satisfies readonly (keyof PlanLimits)[];

export interface Plan extends PlanLimits {
  readonly name: string;
}

/** Plans of every installation; the operator changes their limits and makes others. */
export const SHIPPED_PLANS: readonly Plan[] = [
  {
    name: 'trial',
    monthlyQuota: 1000,
    requestsPerSecond: 5,
    burst: 10,
    concurrentUploads: 2,
    rotationsPerDay: 5,
  },
  {
    name: 'standard',
    monthlyQuota: 100_000,
    requestsPerSecond: 50,
    burst: 100,
    concurrentUploads: 8,
    rotationsPerDay: 5,
  },
  {
    name: 'volume',
    monthlyQuota: 10_000_000,
    requestsPerSecond: 2000,
    burst: 4000,
    concurrentUploads: 64,
    rotationsPerDay: 5,
  },
];
export const DEFAULT_PLAN = 'standard';

export interface Partner {
  readonly partnerId: string;
  readonly name: string;
  /** Plan that the partner was created with; the log of plans says which one it has since. */
  readonly plan: string;
  readonly createdAt: number;
  /** Present where the partner may be given source detail. */
  readonly sourceDetail?: SourceDetailApproval;
}

/** Approval of a partner for source detail, under one version of the consent text and no other. */
export interface SourceDetailApproval {
  readonly consentVersion: string;
  /** Unix seconds. */
  readonly approvedAt: number;
}

export const SCOPES = ['verify', 'proofs', 'erase', 'reviews', 'keys', 'usage'] as const;
export type Scope = (typeof SCOPES)[number];

export interface PartnerKey {
  readonly keyId: string;
  readonly partnerId: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** HMAC-SHA-256 of the whole secret under the pepper named by `pepperId`, lower-case hex. */
  readonly secretHash: string;
  readonly pepperId: string;
  /**
   * Public key (SPKI in base64): calls with the key must be signed by its private half. Successors have the
   * same.
   */
  readonly publicKey?: string;
  readonly createdAt: number;
  /** End of a key that was rotated: it works until this second. */
  readonly expiresAt?: number;
  readonly revokedAt?: number;
}

export type KeyStatus = 'active' | 'expiring' | 'expired' | 'revoked';

/**
 * Status of a key (rule 4.6): `active`, `expiring` (rotated, in its 72 hours), `expired`, `revoked`. Only the
 * first two open a door.
 */
export function keyStatus(key: PartnerKey, now: number): KeyStatus {
  if (key.revokedAt !== undefined) return 'revoked';
  if (key.expiresAt === undefined) return 'active';
  return now < key.expiresAt ? 'expiring' : 'expired';
}
