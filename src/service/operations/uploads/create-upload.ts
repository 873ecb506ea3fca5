import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { ResultOf } from '../../contract/results.js';
import {
  isLarge,
  MAX_UPLOAD_BYTES,
  SLOT_LIFE_SECONDS,
  type UploadPurpose,
  unitsOf,
} from '../../domain/upload.js';
import type { UploadStore, UsageStore } from '../../ports/stores.js';
import type { Clock, Ids } from '../../ports/system.js';
import type { Caller } from '../caller.js';
import { requireQuota } from '../usage/quota.js';
import type { UploadPolicySigner } from './upload-policy.js';

export interface CreateUploadDeps {
  readonly stores: UploadStore & UsageStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly policies: UploadPolicySigner;
  /** Returns the base of the presigned address, without a trailing slash. */
  readonly publicUrl: () => string;
  /** The largest file of a large purpose, in bytes. */
  readonly largeBytes: number;
}

/**
 * Creates a short-lived upload slot. The signed form fields authorise the upload.
 * @throws DomainError `invalid_request` if the length does not suit the purpose
 * @throws DomainError `rate_limited` / `quota_exceeded` when the quota does not pay for the file,
 * before the client sends it
 */
export async function createUpload(
  deps: CreateUploadDeps,
  caller: Caller,
  request: { readonly purpose: UploadPurpose; readonly contentLength?: number },
): Promise<ResultOf<'createUpload'>> {
  const { purpose, contentLength } = request;
  const largest = isLarge(purpose) ? deps.largeBytes : MAX_UPLOAD_BYTES;
  if (contentLength === undefined && isLarge(purpose))
    throw invalidLength(`is missing. The purpose ${purpose} needs it.`);
  if (contentLength !== undefined && contentLength > largest)
    throw invalidLength(`must be at most ${largest}.`);
  const maxBytes = contentLength ?? MAX_UPLOAD_BYTES;
  const units = isLarge(purpose) ? unitsOf(maxBytes) : 1;
  const createdAt = Math.floor(deps.clock.now() / 1000);
  await requireQuota(deps.stores, caller, createdAt, units);
  const uploadId = deps.ids.next('upload');
  const expiresAt = createdAt + SLOT_LIFE_SECONDS;
  await deps.stores.createSlot(
    defined({ uploadId, partnerId: caller.partnerId, purpose, contentLength, createdAt, expiresAt }),
  );
  return {
    uploadId,
    url: `${deps.publicUrl()}/uploads/${uploadId}`,
    fields: deps.policies.sign({ uploadId, maxBytes, expiresAt }),
    maxBytes,
    units,
    expiresAt,
  };
}

/** Returns the error that the schema would give if it knew the purpose of the query. */
function invalidLength(problem: string): DomainError {
  return new DomainError('invalid_request', `contentLength ${problem}`, { reason: 'invalid_member' });
}
