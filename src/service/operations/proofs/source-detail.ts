import { DomainError } from '../../../core/domain/errors.js';
import { SUBMISSION_SKEW_SECONDS } from '../../../witness/domain/declaration.js';
import type { StoredConsent } from '../../../witness/domain/evidence.js';
import { MAX_OVERLAY_REVISIONS } from '../../../witness/domain/evidence-overlay.js';
import type { ResultOf } from '../../contract/results.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { AssetStore } from '../../ports/assets.js';
import type { Secrets } from '../../ports/secrets.js';
import type { PartnerStore, ProofStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import type { PartnerView, Plans } from '../partners/plans.js';
import { readFacts } from './evidence-parts.js';
import { findIssued, noSuchProof } from './find-proof.js';
import { type CheckedOverlay, checkOverlay, reviseProof } from './overlay.js';

export interface ApproveDeps {
  readonly stores: PartnerStore;
  readonly plans: Plans;
  readonly clock: Clock;
}

/**
 * Approves a partner for source detail under one version of the consent text. The approval replaces any
 * other.
 */
export function approveSourceDetail(
  deps: ApproveDeps,
  { partnerId, consentVersion }: { readonly partnerId: string; readonly consentVersion: string },
): Promise<PartnerView> {
  return setApproval(deps, partnerId, consentVersion);
}

/** Withdraws a partner's approval. Repeating the call changes nothing. */
export function withdrawSourceDetail(
  deps: ApproveDeps,
  { partnerId }: { readonly partnerId: string },
): Promise<PartnerView> {
  return setApproval(deps, partnerId, undefined);
}

async function setApproval(
  { stores, plans, clock }: ApproveDeps,
  partnerId: string,
  consentVersion: string | undefined,
): Promise<PartnerView> {
  const at = Math.floor(clock.now() / 1000);
  const approval = consentVersion === undefined ? undefined : { consentVersion, approvedAt: at };
  const outcome = await stores.setSourceDetail(partnerId, approval, {
    partnerId,
    action: approval === undefined ? 'source_detail_withdrawn' : 'source_detail_approved',
    at,
    actor: 'operator',
    subjects: consentVersion === undefined ? [partnerId] : [partnerId, consentVersion],
  });
  const partner = outcome === 'not_found' ? undefined : await stores.getPartner(partnerId);
  if (partner === undefined) throw new DomainError('not_found', 'There is no such partner.');
  return plans.view(partner);
}

export interface ConsentDeps {
  readonly stores: ProofStore;
  readonly secrets: Secrets;
  readonly assets: Pick<AssetStore, 'read'>;
  readonly clock: Clock;
}

/**
 * Records a creator's consent, which replaces any other. Repeating the call changes nothing.
 * @throws DomainError `conflict` / `source_detail_absent` when the proof has no source detail. `conflict` /
 * `overlay_full`
 */
export async function grantConsent(
  deps: ConsentDeps,
  { proofId, consentVersion, grantedAt }: { readonly proofId: string } & StoredConsent,
): Promise<ResultOf<'grantConsent'>> {
  const issued = await findIssued(deps.stores, proofId);
  const { partnerId } = issued;
  const at = Math.floor(deps.clock.now() / 1000);
  if (grantedAt > at + SUBMISSION_SKEW_SECONDS)
    throw new DomainError('invalid_request', 'grantedAt is in the future.', { reason: 'invalid_member' });
  const consent: StoredConsent = { consentVersion, grantedAt };
  const facts = await readFacts(deps, issued);
  const refused = await deps.stores.changeOverlay<'source_detail_absent' | 'overlay_full' | undefined>(
    proofId,
    (proof) => {
      if (!hasDetail(proof)) return { result: 'source_detail_absent' };
      const known = checkOverlay(deps.secrets, proof)?.consent;
      if (known?.consentVersion === consentVersion && known.grantedAt === grantedAt)
        return { result: undefined };
      if ((proof.overlay?.revision ?? 0) >= MAX_OVERLAY_REVISIONS) return { result: 'overlay_full' };
      return { result: undefined, ...reviseProof(deps.secrets, proof, facts, { consent }) };
    },
    {
      partnerId,
      action: 'consent_granted',
      at,
      actor: 'operator',
      subjects: [proofId],
    },
  );
  if (refused === 'proof_gone') throw noSuchProof();
  if (refused !== undefined) throw new DomainError('conflict', MESSAGES[refused], { reason: refused });
  return { proofId, consent };
}

const MESSAGES = {
  source_detail_absent: 'This proof has no source detail.',
  overlay_full: `The declarations and consents of a proof can be changed at most ${MAX_OVERLAY_REVISIONS} times.`,
} as const;

/**
 * Revokes a creator's consent. Repeating the call changes nothing. Consent is stored in the proof's record,
 * so the revocation applies from the next read of the proof.
 */
export async function revokeConsent(
  deps: ConsentDeps,
  { proofId }: { readonly proofId: string },
): Promise<ResultOf<'grantConsent'>> {
  const issued = await findIssued(deps.stores, proofId);
  const { partnerId } = issued;
  const at = Math.floor(deps.clock.now() / 1000);
  const facts = await readFacts(deps, issued);
  const step = await deps.stores.changeOverlay<'revoked'>(
    proofId,
    (proof) =>
      // Any stored consent is removed, even if the overlay was altered.
      proof.overlay?.consent === undefined
        ? { result: 'revoked' }
        : { result: 'revoked', ...reviseProof(deps.secrets, proof, facts, { consent: null }) },
    { partnerId, action: 'consent_revoked', at, actor: 'operator', subjects: [proofId] },
  );
  if (step === 'proof_gone') throw noSuchProof();
  return { proofId };
}

export interface DeliverDetailDeps {
  readonly stores: Pick<PartnerStore, 'getPartner'> & Pick<ProofStore, 'readEvidence'>;
  readonly secrets: Secrets;
  readonly assets: Pick<AssetStore, 'read'>;
}

/**
 * Returns the version of the consent under which a partner receives the source detail of a proof. Three
 * conditions must hold. The proof has source detail. Its creator consents. The partner is approved under
 * exactly the version of the consent.
 */
export async function deliveredConsent(
  { stores }: Pick<DeliverDetailDeps, 'stores'>,
  { partnerId }: { readonly partnerId: string },
  proof: IssuedProof,
  overlay: CheckedOverlay | undefined,
): Promise<string | undefined> {
  const consentVersion = hasDetail(proof) ? overlay?.consent?.consentVersion : undefined;
  if (consentVersion === undefined) return undefined;
  const partner = await stores.getPartner(partnerId);
  return partner?.sourceDetail?.consentVersion === consentVersion ? consentVersion : undefined;
}

function hasDetail({ evidence }: IssuedProof): boolean {
  return evidence?.parts.some(({ part }) => part === 'detail') === true;
}
