import type { Readable } from 'node:stream';
import type { Partner, Plan, Scope } from '../domain/partner.js';
import type { Carrier } from '../domain/proof.js';
import type { UploadPurpose } from '../domain/upload.js';
import type { VerificationResult } from '../domain/verification.js';

/** Every use case of the service, as the listeners call it. All of them throw DomainError for a refusal. */
export interface Operations {
  readonly partner: PartnerOperations;
  readonly operator: OperatorOperations;
}

/** Who calls, after the key was checked. */
export interface Caller {
  readonly partnerId: string;
  readonly keyId: string;
  readonly scopes: readonly Scope[];
  readonly plan: Plan;
}

export interface CreatedUpload {
  readonly uploadId: string;
  readonly url: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly maxBytes: number;
  readonly expiresAt: number;
}

export interface StoredUpload {
  readonly uploadId: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** One upload on its way into the engine. */
export interface UploadReceiver {
  readonly maxBytes: number;
  /** Aborts, with the DomainError as its reason, when the engine gives the upload up while its client is waited for. */
  readonly signal: AbortSignal;
  /** As AudioIngest.write; throws `payload_too_large` on the first byte too many. */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /** Measures, reads the credential, stores the facts. */
  finish(): Promise<StoredUpload>;
  /** Gives the slot and its memory back; the slot stays open until it expires. Safe at any time, any number of times. */
  abort(): void;
}

export interface PartnerOperations {
  /** @param apiKey the header as sent. Throws `forbidden` for a missing, malformed, foreign, unknown, expired or revoked key alike. */
  authenticate(apiKey: string | undefined): Promise<Caller>;
  createUpload(caller: Caller, request: { readonly purpose: UploadPurpose; readonly contentLength?: number }): Promise<CreatedUpload>;
  /**
   * Checks the signed form fields (every one of them, nothing missing, altered or extra) and claims the slot in this process.
   * Called when the `file` part starts, before the first audio byte is read.
   */
  receiveUpload(uploadId: string, fields: ReadonlyMap<string, string>): Promise<UploadReceiver>;
  verifyUpload(caller: Caller, request: { readonly uploadId: string; readonly sidecar?: Uint8Array }): Promise<VerificationResult>;
}

export interface IssueRequest {
  readonly partnerId: string;
  readonly songTitle: string;
  readonly fileName: string;
  readonly carrier: Carrier;
  readonly idempotencyKey?: string;
  readonly audio: AsyncIterable<Uint8Array>;
}

export interface IssueResult {
  readonly proofId: string;
  readonly issuedAt: number;
  readonly carrier: Carrier;
  readonly originalSha256: string;
  readonly boundAudioSha256: string;
  readonly asset: { readonly bytes: number; readonly sha256: string; readonly fileName: string; readonly mediaType: string };
  /** True where an earlier request under the same Idempotency-Key is answered again. */
  readonly replayed: boolean;
}

export interface OperatorOperations {
  createPartner(request: { readonly name: string; readonly plan?: string }): Promise<Partner>;
  /** The secret is in this answer and nowhere else. */
  createKey(request: { readonly partnerId: string; readonly name: string; readonly scopes?: readonly Scope[] }): Promise<{ readonly keyId: string; readonly apiKey: string; readonly name: string }>;
  issueProof(request: IssueRequest): Promise<IssueResult>;
  /** `part` sidecar: the sidecar of a pair. */
  readDeliverable(proofId: string, part: 'audio' | 'sidecar'): Promise<{ readonly bytes: number; readonly fileName: string; readonly mediaType: string; readonly stream: Readable }>;
  /** PEM of the authority certificates, the current one first. */
  authority(): string;
}
