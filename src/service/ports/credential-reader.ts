import type { EmbeddedParseResult, SidecarParseResult } from '../../core/domain/parsed-credential.js';

/**
 * Reads the content of a credential and its signer. Untrusted input is parsed in isolation from the service's
 * secrets, so a read may fail. A failure is never a finding about the credential.
 */
export interface CredentialReader {
  /**
   * Reads an embedded credential.
   * @param owner the id of the partner whose load the read is, or the issuing side
   * @param store the data of the credential chunk
   * @param extent the position of the chunk in the file: the offset of its header, and the length of header
   * and data, in bytes
   * @throws DomainError `unavailable` with `retryAfterSeconds`: `reader_full` when the queue is full and the
   * owner has used its share, or when this read waited too long. `reader_failed` when the read did not
   * finish. `shutting_down` after the stop.
   */
  readEmbedded(
    owner: string,
    store: Uint8Array,
    extent: { readonly offset: number; readonly length: number },
  ): Promise<EmbeddedParseResult>;
  /**
   * Reads a sidecar.
   * @throws DomainError as `readEmbedded` does
   */
  readSidecar(owner: string, sidecar: Uint8Array): Promise<SidecarParseResult>;
}
