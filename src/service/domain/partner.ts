/** Partners and their plans. */

/** The limits of a plan. Each limit applies to a whole partner (rule 6.1). */
export interface PlanLimits {
  /** The units per UTC calendar month. `verify` and `identify` cost one for each 65 MiB begun of the file. */
  readonly monthlyQuota: number;
  readonly requestsPerSecond: number;
  readonly burst: number;
  readonly concurrentUploads: number;
  /** The key rotations per 24 hours. They have a separate rate class (rule 4.12). */
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

/** The built-in plans of every installation. The operator may change their limits and create other plans. */
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
  /** The plan that the partner was created with. The log of plans has the current plan. */
  readonly plan: string;
  readonly createdAt: number;
  /** Present if the partner is approved for source detail. */
  readonly sourceDetail?: SourceDetailApproval;
}

/** The approval of a partner for source detail, under exactly one version of the consent text. */
export interface SourceDetailApproval {
  readonly consentVersion: string;
  /** The time of the approval in unix seconds. */
  readonly approvedAt: number;
}

export const SCOPES = ['verify', 'proofs', 'erase', 'reviews', 'keys', 'usage'] as const;
export type Scope = (typeof SCOPES)[number];

export interface PartnerKey {
  readonly keyId: string;
  readonly partnerId: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** The HMAC-SHA-256 of the whole secret under the pepper `pepperId`, in lower-case hex. */
  readonly secretHash: string;
  readonly pepperId: string;
  /**
   * The public key (SPKI in base64). Calls with the API key must be signed with the matching private key.
   * Successors have the same public key.
   */
  readonly publicKey?: string;
  readonly createdAt: number;
  /** The end of a rotated key in unix seconds. It works before this second. */
  readonly expiresAt?: number;
  readonly revokedAt?: number;
}

export type KeyStatus = 'active' | 'expiring' | 'expired' | 'revoked';

/**
 * Returns the status of a key (rule 4.6). Only `active` and `expiring` (rotated, within 72 hours) keys work.
 */
export function keyStatus(key: PartnerKey, now: number): KeyStatus {
  if (key.revokedAt !== undefined) return 'revoked';
  if (key.expiresAt === undefined) return 'active';
  return now < key.expiresAt ? 'expiring' : 'expired';
}
