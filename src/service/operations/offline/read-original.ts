import { createHash } from 'node:crypto';
import { DomainError } from '../../../core/domain/errors.js';
import type { InspectedCredential } from '../../../core/domain/inspection.js';
import { withRiffSize } from '../issuing/seal-audio.js';

/** The header of a RIFF chunk, which the RIFF size does not count, in bytes. */
const RIFF_HEADER_BYTES = 8;

/**
 * Yields the file as it was before its credential was embedded: all bytes before the credential, with the RIFF size
 * that ends there. Issuing embeds only into a RIFF file whose size field and pad bytes are right, so no other bytes
 * were different. The bytes that are read are compared with the binding, so the yielded bytes are right even if the
 * file changes meanwhile. If the generator throws, discard the bytes that it yielded.
 * @param credential of a file without objection: the last chunk of the file, which binds all other bytes
 * @throws DomainError `conflict` if the file changed after it was inspected
 */
export async function* readOriginal(
  { offset, length, boundAudioSha256 }: Pick<InspectedCredential, 'offset' | 'length' | 'boundAudioSha256'>,
  read: () => AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const binding = createHash('sha256');
  let at = 0;
  for await (const chunk of read()) {
    const bytes = chunk.subarray(0, offset - at);
    binding.update(bytes);
    yield withRiffSize(bytes, at, offset - RIFF_HEADER_BYTES);
    at += bytes.length;
    if (at === offset) break;
  }
  // The credential binds the pad byte that follows it.
  if (binding.update(new Uint8Array(length % 2)).digest('hex') !== boundAudioSha256)
    throw new DomainError('conflict', 'The file changed while it was being read.');
}
