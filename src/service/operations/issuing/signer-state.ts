import { DomainError } from '../../../core/domain/errors.js';
import { isRevokedAt } from '../../../core/domain/signer-revocation.js';
import { type IssuingState, validityWarning } from '../../../core/domain/validity.js';
import type { IssuingCertificates, Signer } from '../../../core/ports/signing.js';
import type { Clock } from '../../ports/system.js';
import type { SignerRevocations } from '../system/signer-revocations.js';

export interface SignerStateDeps {
  readonly signer: Signer;
  readonly certificates: IssuingCertificates;
  readonly revocations: Pick<SignerRevocations, 'find'>;
}

const RETRY_SECONDS = 60;
/** The longest `Retry-After` of a certificate that is not valid yet, in seconds. */
const LONGEST_RETRY_SECONDS = 3600;

/**
 * Refuses to issue if the proof would not be valid, here or for other validators: the signing certificate is revoked,
 * or a certificate is outside its validity (rules 8.15 and 10.8).
 * @param now in unix seconds
 * @throws DomainError `unavailable`, with a reason
 */
export async function requireSigner(deps: SignerStateDeps, now: number): Promise<void> {
  const fault = await findSignerFault(deps, now);
  if (fault !== undefined) throw fault;
}

/** Returns whether the service can issue proofs now, for the readiness probe. */
export async function readIssuingState(
  deps: SignerStateDeps & { readonly clock: Clock },
): Promise<IssuingState> {
  const fault = await findSignerFault(deps, Math.floor(deps.clock.now() / 1000));
  return fault?.reason === undefined ? { ok: true } : { ok: false, reason: fault.reason };
}

/** Returns why no proof can be issued at a time, or undefined. */
export async function findSignerFault(
  { signer, certificates, revocations }: SignerStateDeps,
  now: number,
): Promise<DomainError | undefined> {
  if (isRevokedAt(await revocations.find(signer.identity.kid), now))
    return new DomainError(
      'unavailable',
      'The signing certificate was revoked. No proof is issued until another certificate is installed.',
      { reason: 'signer_revoked', retryAfterSeconds: RETRY_SECONDS },
    );
  return findValidityFault(certificates, now);
}

/** Returns why no proof can be issued with these certificates at a time, or undefined. */
export function findValidityFault(
  { chain, renewal }: IssuingCertificates,
  now: number,
): DomainError | undefined {
  for (const { certificate, kid, validity } of chain) {
    const warning = validityWarning(validity, now);
    const name = certificate === 'signing' ? 'signing certificate' : "authority's certificate";
    if (warning === 'expired')
      return new DomainError(
        'unavailable',
        `The ${name} ${kid} expired at ${timeText(validity.notAfter)}. Nothing is issued until a new one is in use. ${renewal}`,
        { reason: 'signer_expired', retryAfterSeconds: RETRY_SECONDS },
      );
    if (warning === 'not_begun')
      return new DomainError(
        'unavailable',
        `The ${name} ${kid} is not valid before ${timeText(validity.notBefore)}. Nothing is issued until then. Check the clock of this machine. ${renewal}`,
        {
          reason: 'signer_not_begun',
          retryAfterSeconds: Math.min(validity.notBefore - now, LONGEST_RETRY_SECONDS),
        },
      );
  }
  return undefined;
}

function timeText(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000', '');
}
