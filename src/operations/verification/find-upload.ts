import { DomainError } from '../../domain/errors.js';
import type { UploadFacts, UploadPurpose } from '../../domain/upload.js';
import type { UploadStore } from '../../ports/stores.js';
import type { Caller } from '../caller.js';

/** Measured facts of the caller's own upload. */
export async function findUpload(
  stores: UploadStore,
  caller: Caller,
  uploadId: string,
  purpose: UploadPurpose,
  now: number,
): Promise<UploadFacts> {
  const upload = await stores.getUpload(uploadId, now);
  // Rule 5.6: the error does not tell a foreign slot from one that never was.
  if (upload === undefined || upload.slot.partnerId !== caller.partnerId)
    throw new DomainError('not_found', 'There is no such upload.');
  const { facts } = upload;
  if (facts === undefined)
    throw new DomainError('conflict', 'The audio has not been uploaded.', { reason: 'upload_incomplete' });
  if (facts.purpose !== purpose)
    throw new DomainError('conflict', 'The slot was made for another purpose.', {
      reason: 'purpose_mismatch',
    });
  return facts;
}
