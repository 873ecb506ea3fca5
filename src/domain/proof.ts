/** Record of an issued credential in the registry. */
import type { EvidenceOverlay, EvidenceReference } from './evidence.js';
import type { LegacyMark } from './legacy-proof.js';

export type Carrier = 'embedded' | 'sidecar';
/** State of a proof. `pending` is a reserved id, 404 on every partner route. */
export type ProofState = 'pending' | 'issued' | 'erased';

export interface IssuedProof {
  readonly state: 'issued';
  readonly proofId: string;
  readonly partnerId: string;
  readonly song: { readonly title: string };
  readonly carrier: Carrier;
  /** Unix seconds; the statement's createdAt and every list's issuedAt. */
  readonly createdAt: number;
  /** Lower-case hex of the certificate's SHA-256. */
  readonly kid: string;
  /** Digest of the audio as it came to be issued. */
  readonly originalSha256: string;
  /** Digest that the credential binds: the hard-binding digest (embedded) or the whole file's (sidecar). */
  readonly boundAudioSha256: string;
  /** SHA-256 of the credential chunk (header included) or of the sidecar, exactly as issued. */
  readonly credentialSha256: string;
  /** Asset of the proof: the credentialed WAV, or the audio of a pair. */
  readonly asset: {
    readonly bytes: number;
    readonly sha256: string;
    readonly fileName: string;
    readonly mediaType: string;
  };
  /** Sidecar of a pair, whole (at most a few hundred bytes). */
  readonly sidecar?: Uint8Array;
  /** Present on a proof of an earlier registry, which was imported (rule 9.28). */
  readonly legacy?: LegacyMark;
  /** Evidence that was settled when the proof was issued; absent where there was no capture trace. */
  readonly evidence?: EvidenceReference;
  /**
   * Overlay of what came after: declarations and consent. Absent where nothing came. It lies in the record
   * itself, so that verifying reads nothing more and erasing leaves none.
   */
  readonly overlay?: EvidenceOverlay;
}

/** Tombstone: nothing of the content is left. */
export interface ErasedProof {
  readonly state: 'erased';
  readonly proofId: string;
  readonly partnerId: string;
  readonly erasedAt: number;
  /** Time at which a consumer had made sure that nothing derived from the proof is left. */
  readonly confirmedAt?: number;
}

export interface PendingProof {
  readonly state: 'pending';
  readonly proofId: string;
  readonly partnerId: string;
  readonly reservedAt: number;
}

export type Proof = IssuedProof | ErasedProof | PendingProof;
