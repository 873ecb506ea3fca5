import type { EmbeddedParseResult, SidecarParseResult } from '../domain/parsed-credential.js';

/**
 * Reader of what a credential says of itself and who signed it. Whatever a stranger made is read apart from
 * the service's secrets, so a read may fail; a failure is never a finding.
 */
export interface CredentialReader {
  /**
   * @param owner whose load the reading is: a partner's id, or the issuing side
   * @param store data of the credential chunk
   * @param extent place of the chunk in the file: offset of its header, length of header and data, in bytes
   * @throws DomainError `unavailable` with `retryAfterSeconds`: `reader_full` when reads that wait are at
   * their bound and the owner at its share, or this one waited too long, `reader_failed` when it came to no
   * end, `shutting_down` after the stop
   */
  readEmbedded(
    owner: string,
    store: Uint8Array,
    extent: { readonly offset: number; readonly length: number },
  ): Promise<EmbeddedParseResult>;
  /** @throws DomainError as `readEmbedded` does */
  readSidecar(owner: string, sidecar: Uint8Array): Promise<SidecarParseResult>;
}
