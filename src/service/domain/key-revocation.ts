import { keyStatus, type PartnerKey } from './partner.js';

/** A request to revoke a key. */
export interface KeyRevocation {
  readonly partnerId: string;
  readonly keyId: string;
  /** The time of the revocation in unix seconds. */
  readonly at: number;
  /** The partner's key that makes the call, which rule 4.15 restricts. Absent if the operator revokes. */
  readonly callingKeyId?: string;
  /** The actor in the audit entries if a named operator revokes. */
  readonly operator?: string;
  /** The id of the request, for the audit entries. */
  readonly requestId?: string;
  /** Present to revoke every successor of the key as well. */
  readonly withSuccessors?: true;
}

/** Why a partner's key may not revoke (rule 4.15). `calling_key_ended`: the calling key has become invalid. */
export type RevocationRefusal = 'calling_key_ended' | 'key_expiring' | 'last_active_key';

/** Returns why the calling key may not revoke these keys, whichever keys remain. Undefined means it may. */
export function refuseCallingKey(
  calling: PartnerKey | undefined,
  { keyId, withSuccessors, at }: KeyRevocation,
): RevocationRefusal | undefined {
  const status = calling === undefined ? 'revoked' : keyStatus(calling, at);
  if (status === 'revoked' || status === 'expired') return 'calling_key_ended';
  // A rotated key has a successor, so it may not revoke successors either.
  const revokesOthers = keyId !== calling?.keyId || withSuccessors === true;
  return status === 'expiring' && revokesOthers ? 'key_expiring' : undefined;
}

/**
 * Reports whether the partner must have another active key when these keys are revoked. An active calling key
 * that stays is such a key.
 * @param keys the keys that the revocation ends
 */
export function needsAnotherActive(
  calling: PartnerKey,
  keys: readonly PartnerKey[],
  { at }: KeyRevocation,
): boolean {
  const callingStays =
    keyStatus(calling, at) === 'active' && keys.every(({ keyId }) => keyId !== calling.keyId);
  return !callingStays && keys.some((key) => keyStatus(key, at) === 'active');
}
