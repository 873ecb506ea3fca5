import { readCertificate } from '../../../core/credential/certificate.js';
import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { RevocationReason } from '../../../core/domain/signer-revocation.js';
import type { Signer, SigningIdentity, TrustList } from '../../../core/ports/signing.js';
import type { ResultOf } from '../../contract/results.js';
import { reinstatementEntry, revocationEntry } from '../../domain/signers-log.js';
import type { AuditStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { SignerRevocations } from './signer-revocations.js';

export type SignerEntry = ResultOf<'revokeSigner'>;

export interface SignersDeps {
  readonly stores: AuditStore;
  readonly revocations: SignerRevocations;
  readonly signer: Signer;
  readonly trust: TrustList;
  readonly clock: Clock;
}

/** Returns every signing certificate that this service trusts, the current one first. */
export async function listSigners(deps: SignersDeps): Promise<readonly SignerEntry[]> {
  await deps.revocations.refresh();
  return Promise.all(deps.trust.identities().map((identity) => entryOf(deps, identity)));
}

/**
 * Revokes a signing certificate from a time on. A second revocation replaces the first, and the log of
 * signers keeps both.
 * @throws DomainError `not_found` for a certificate that this service does not know
 */
export async function revokeSigner(
  deps: SignersDeps,
  { kid, from, reason }: { readonly kid: string; readonly from: number; readonly reason: RevocationReason },
): Promise<SignerEntry> {
  const identity = identityOf(deps, kid);
  await deps.stores.appendAudit(
    revocationEntry({ kid, from, reason, at: Math.floor(deps.clock.now() / 1000) }),
  );
  await deps.revocations.refresh();
  return entryOf(deps, identity);
}

/** Reverses a revocation. A certificate that is not revoked stays unchanged. */
export async function reinstateSigner(
  deps: SignersDeps,
  { kid }: { readonly kid: string },
): Promise<SignerEntry> {
  const identity = identityOf(deps, kid);
  await deps.revocations.refresh();
  if ((await deps.revocations.find(kid)) !== undefined) {
    await deps.stores.appendAudit(reinstatementEntry(kid, Math.floor(deps.clock.now() / 1000)));
    await deps.revocations.refresh();
  }
  return entryOf(deps, identity);
}

function identityOf({ trust }: SignersDeps, kid: string): SigningIdentity {
  const identity = trust.identities().find((known) => known.kid === kid);
  if (identity === undefined)
    throw new DomainError('not_found', 'This service has no such signing certificate.');
  return identity;
}

async function entryOf(
  { revocations, signer }: SignersDeps,
  { kid, algorithm, issuer, certificate }: SigningIdentity,
): Promise<SignerEntry> {
  const { notBefore, notAfter } = readCertificate(certificate)!;
  const revocation = await revocations.find(kid);
  return defined({
    kid,
    algorithm,
    issuer,
    notBefore,
    notAfter,
    signs: kid === signer.identity.kid,
    revocation: revocation && { from: revocation.from, reason: revocation.reason, at: revocation.at },
  });
}

/** Returns the authority certificates in PEM, the current one first. */
export function readAuthority({ trust }: Pick<SignersDeps, 'trust'>): string {
  return trust.authorities().join('');
}
