import { DomainError } from '../../../core/domain/errors.js';
import { createdAtOf } from '../../../core/domain/identifiers.js';
import { SLOT_LIFE_SECONDS, type UploadFacts } from '../../domain/upload.js';
import type { UploadStore } from '../../ports/stores.js';
import type { Caller } from '../caller.js';

/**
 * Returns the facts of the caller's own upload, of any length.
 * @throws DomainError `not_found`, perhaps with `upload_expired`, or `conflict` / `upload_incomplete`, `purpose_mismatch`
 */
export async function findUpload(
  stores: UploadStore,
  caller: Caller,
  uploadId: string,
  purpose: 'verify' | 'identify',
  now: number,
): Promise<UploadFacts> {
  const upload = await stores.getUpload(uploadId, now);
  // Rule 5.6: another partner's upload gives the same error as one of the same age that never existed.
  if (upload === undefined || upload.slot.partnerId !== caller.partnerId) throw noSuchUpload(uploadId, now);
  const { facts } = upload;
  if (facts === undefined)
    throw new DomainError('conflict', 'The audio has not been uploaded.', { reason: 'upload_incomplete' });
  if (facts.purpose !== purpose && facts.purpose !== `${purpose}_large`)
    throw new DomainError('conflict', 'The upload slot was created for another purpose.', {
      reason: 'purpose_mismatch',
    });
  return facts;
}

/** Returns the error for an upload that does not exist. Only the age of the id decides the reason. */
function noSuchUpload(uploadId: string, now: number): DomainError {
  const createdAt = createdAtOf('upload', uploadId);
  if (createdAt === undefined || now * 1000 < createdAt + SLOT_LIFE_SECONDS * 1000)
    return new DomainError('not_found', 'There is no such upload.');
  return new DomainError('not_found', 'There is no such upload, or it has expired. Create a new slot.', {
    reason: 'upload_expired',
  });
}
