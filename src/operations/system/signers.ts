import { readCertificate } from '../../credential/certificate.js';
import { defined } from '../../domain/defined.js';
import { DomainError } from '../../domain/errors.js';
import type { SignatureAlgorithm } from '../../domain/parsed-credential.js';
import {
  type RevocationReason,
  reinstatementEntry,
  revocationEntry,
  type SignerRevocation,
} from '../../domain/signer-revocation.js';
import type { Signer, SigningIdentity, TrustList } from '../../ports/signing.js';
import type { AuditStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { SignerRevocations } from './signer-revocations.js';

/** A leaf of the service. Times in unix seconds. */
export interface SignerEntry {
  /** Lower-case hex SHA-256 of the certificate (DER). */
  readonly kid: string;
  readonly algorithm: SignatureAlgorithm;
  readonly issuer: string;
  readonly notBefore: number;
  readonly notAfter: number;
  /** True for the one that new proofs are signed with. */
  readonly signs: boolean;
  readonly revocation?: Omit<SignerRevocation, 'kid'>;
}

export interface SignersDeps {
  readonly stores: AuditStore;
  readonly revocations: SignerRevocations;
  readonly signer: Signer;
  readonly trust: TrustList;
  readonly clock: Clock;
}

/** Every leaf that verifies here, the one that signs first. */
export async function listSigners(deps: SignersDeps): Promise<readonly SignerEntry[]> {
  await deps.revocations.refresh();
  return Promise.all(deps.trust.identities().map((identity) => entryOf(deps, identity)));
}

/**
 * Revokes a leaf from a time on. A second revocation replaces the first; both stay in the log of signers.
 * @throws DomainError `not_found` for a leaf that is not known here
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

/** Takes a revocation back; a leaf that is not revoked stays as it is. */
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
    throw new DomainError('not_found', 'There is no such signing certificate here.');
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

/** PEM of the authority certificates, the current one first. */
export function readAuthority({ trust }: Pick<SignersDeps, 'trust'>): string {
  return trust.authorities().join('');
}
