import { DomainError } from '../../domain/errors.js';
import type { UploadFacts, UploadPurpose } from '../../domain/upload.js';
import type { UploadStore } from '../../ports/stores.js';
import type { Caller } from '../caller.js';

/**
 * Returns the facts of the caller's own upload.
 * @throws DomainError `not_found`, or `conflict` / `upload_incomplete`, `purpose_mismatch`
 */
export async function findUpload(
  stores: UploadStore,
  caller: Caller,
  uploadId: string,
  purpose: UploadPurpose,
  now: number,
): Promise<UploadFacts> {
  const upload = await stores.getUpload(uploadId, now);
  // Rule 5.6: another partner's upload gives the same error as one that never existed.
  if (upload === undefined || upload.slot.partnerId !== caller.partnerId)
    throw new DomainError('not_found', 'There is no such upload.');
  const { facts } = upload;
  if (facts === undefined)
    throw new DomainError('conflict', 'The audio has not been uploaded.', { reason: 'upload_incomplete' });
  if (facts.purpose !== purpose)
    throw new DomainError('conflict', 'The upload slot was created for another purpose.', {
      reason: 'purpose_mismatch',
    });
  return facts;
}
