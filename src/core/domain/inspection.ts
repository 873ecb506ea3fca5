import type { AudioFormat, ChunkEntry, Container, MeasuredSamples } from './audio.js';
import type { StructureFinding } from './findings.js';
import type { CredentialReport, ProductionStatement, SealStatement } from './parsed-credential.js';
import type { FileRefusal } from './verdict.js';

/** What a file shows without a service. Digests are SHA-256 in lower-case hex. */
export interface Inspection {
  readonly bytes: number;
  readonly sha256: string;
  /** The samples digest, or the reason why the file has none. */
  readonly samples: MeasuredSamples;
  readonly container: Container;
  readonly format?: AudioFormat;
  /** The number of sample frames in the data chunk. */
  readonly frames?: number;
  /** The first 256 top-level chunks in file order. */
  readonly chunks: readonly ChunkEntry[];
  /** The number of all top-level chunks. The reader stops after 4,096, and the number is then 4,097. */
  readonly chunkCount: number;
  readonly findings: readonly InspectedFinding[];
  /** Present if issuing with `--mend` repairs the file. */
  readonly mendable?: true;
  readonly credential?: InspectedCredential;
  /** Why a verify would refuse the file before it looks at signer and registry. Absent if it would not. */
  readonly objection?: FileRefusal;
}

/**
 * The effect of a finding. `unreadable` makes a verify without a sidecar refuse the file. `not_issued` makes
 * issuing refuse to embed a credential.
 */
export type FindingEffect = 'unreadable' | 'not_issued' | 'none';

export interface InspectedFinding {
  readonly code: StructureFinding;
  /** The offset of the first occurrence in the file, in bytes. */
  readonly offset: number;
  readonly effect: FindingEffect;
  /** What is in the file, and what a sound file has there. Both are present in a RIFF file with an effect. */
  readonly found?: string;
  readonly expected?: string;
}

/**
 * The kind of a credential. `production_record` and `local_seal` are in the form of this product, and their
 * signature fits the certificate in them. `foreign` has another form. `altered` failed a check. `not_a_store` does not
 * begin like a credential. `not_read` is the first of several, which are not read.
 */
export type InspectedKind =
  | 'production_record'
  | 'local_seal'
  | 'foreign'
  | 'altered'
  | 'not_a_store'
  | 'not_read';

export interface InspectedCredential {
  readonly kind: InspectedKind;
  /** The offset of the chunk header, and the length of header and data, in bytes. */
  readonly offset: number;
  readonly length: number;
  /** The digest of header and data, as the registry stores it. */
  readonly credentialSha256: string;
  /** The digest of all bytes except the credential. Absent if there are several credentials. */
  readonly boundAudioSha256?: string;
  /** The digest of the file without the credential. Present if the file is as the writer left it. */
  readonly originalSha256?: string;
  /** What the signer states. Present for `production_record` and `local_seal`. */
  readonly statement?: ProductionStatement | SealStatement;
  /** The name in the certificate of the signer. A file alone does not show who has the key. */
  readonly signer?: string;
  readonly algorithm?: string;
  /** The report on a credential that is `foreign` or `altered`. */
  readonly report?: CredentialReport;
}
