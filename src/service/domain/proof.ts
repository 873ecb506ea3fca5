/** The registry record of an issued credential. */
import type { SamplesReason } from '../../core/domain/audio.js';
import type { EvidenceOverlay, EvidenceReference } from '../../witness/domain/evidence.js';
import type { StoredSummary } from '../../witness/domain/evidence-summary.js';
import type { LegacyMark } from './legacy-proof.js';

export type Carrier = 'embedded' | 'sidecar';
/** The state of a proof. `pending` is a reserved id, which is 404 on every partner route. */
export type ProofState = 'pending' | 'issued' | 'erased';

/** The song as the issuing side named it. */
export interface Song {
  readonly title: string;
  /** What the issuing side declared about the song. The service did not check it. */
  readonly declared?: DeclaredSong;
}

export interface DeclaredSong {
  readonly artist?: string;
  readonly release?: string;
  /** The International Standard Recording Code, without hyphens. */
  readonly isrc?: string;
}

export interface IssuedProof {
  readonly state: 'issued';
  readonly proofId: string;
  readonly partnerId: string;
  readonly song: Song;
  readonly carrier: Carrier;
  /**
   * The time of issue in unix seconds. It is the statement's `createdAt` and the `issuedAt` of every list.
   */
  readonly createdAt: number;
  /** The SHA-256 of the certificate, in lower-case hex. */
  readonly kid: string;
  /** The name of the service at the time of issuing. Absent in records of versions that stored none. */
  readonly issuer?: string;
  /** The SHA-256 of the audio before its credential was added. */
  readonly originalSha256: string;
  /**
   * The digest that the credential binds: the hard-binding digest (embedded) or the digest of the whole file
   * (sidecar).
   */
  readonly boundAudioSha256: string;
  /**
   * The SHA-256 of the delivered file, for the index. Absent in records of versions that stored
   * none.
   */
  readonly fileSha256?: string;
  /** The samples digest of the audio. Absent if the audio has none, or if it was not computed. */
  readonly samplesSha256?: string;
  /** Why the audio has no samples digest. Absent if it has one, or if it was not computed. */
  readonly samplesReason?: SamplesReason;
  /** The SHA-256 of the credential chunk (including its header) or of the sidecar, exactly as issued. */
  readonly credentialSha256: string;
  /** The delivered file: the credentialed WAV, or the audio of a pair. */
  readonly asset: {
    readonly bytes: number;
    readonly sha256: string;
    readonly fileName: string;
    readonly mediaType: string;
  };
  /**
   * Present only if the service did not know the container of the audio when it issued the proof, and the
   * operator allowed that (rule 10.18).
   */
  readonly unknownContainer?: true;
  /** The whole sidecar of a pair (at most a few hundred bytes). */
  readonly sidecar?: Uint8Array;
  /** Present on a proof that was imported from an earlier registry (rule 9.28). */
  readonly legacy?: LegacyMark;
  /** The evidence derived when the proof was issued. Absent if there was no capture trace. */
  readonly evidence?: EvidenceReference;
  /**
   * The overlay with everything recorded after issuing: declarations and consent. Absent if there is none. It
   * is stored in the record itself, so that a verification needs no other read and an erasure leaves nothing.
   */
  readonly overlay?: EvidenceOverlay;
  /** The summary for lists. Absent without a report, and in records of versions that stored none. */
  readonly summary?: StoredSummary;
}

/** The tombstone of a proof. It contains nothing of the content. */
export interface ErasedProof {
  readonly state: 'erased';
  readonly proofId: string;
  readonly partnerId: string;
  readonly erasedAt: number;
  /** When a consumer confirmed that nothing derived from the proof is left, in unix seconds. */
  readonly confirmedAt?: number;
}

export interface PendingProof {
  readonly state: 'pending';
  readonly proofId: string;
  readonly partnerId: string;
  readonly reservedAt: number;
}

export type Proof = IssuedProof | ErasedProof | PendingProof;
