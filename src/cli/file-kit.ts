import type { InspectedCredential, Inspection } from '../core/domain/inspection.js';

/** Reads files offline, with the engine and the credential reader of the service. */
export interface FileKit {
  /** @param read opens the file. It is called several times */
  inspect(read: () => AsyncIterable<Uint8Array>): Promise<Inspection>;
  /** Reads a file once and returns the digests that a service can look for. */
  digests(
    audio: AsyncIterable<Uint8Array>,
  ): Promise<{ readonly file: string; readonly bound?: string; readonly samples?: string }>;
  /** Yields the file without its credential. If it throws, discard the bytes that it yielded. */
  readOriginal(
    credential: Pick<InspectedCredential, 'offset' | 'length' | 'boundAudioSha256'>,
    read: () => AsyncIterable<Uint8Array>,
  ): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}
