import { defined } from '../../../core/domain/defined.js';
import type { ResultOf } from '../../contract/results.js';
import { MAX_UPLOAD_BYTES, SLOT_LIFE_SECONDS, type UploadPurpose } from '../../domain/upload.js';
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
}

/**
 * Creates a short-lived upload slot. The signed form fields authorise the upload.
 * @throws DomainError `rate_limited` / `quota_exceeded` when the quota is used up, before the client sends
 * its file
 */
export async function createUpload(
  deps: CreateUploadDeps,
  caller: Caller,
  request: { readonly purpose: UploadPurpose; readonly contentLength?: number },
): Promise<ResultOf<'createUpload'>> {
  const { purpose, contentLength } = request;
  const createdAt = Math.floor(deps.clock.now() / 1000);
  await requireQuota(deps.stores, caller, createdAt);
  const uploadId = deps.ids.next('upload');
  const expiresAt = createdAt + SLOT_LIFE_SECONDS;
  const maxBytes = contentLength ?? MAX_UPLOAD_BYTES;
  await deps.stores.createSlot(
    defined({ uploadId, partnerId: caller.partnerId, purpose, contentLength, createdAt, expiresAt }),
  );
  return {
    uploadId,
    url: `${deps.publicUrl()}/uploads/${uploadId}`,
    fields: deps.policies.sign({ uploadId, maxBytes, expiresAt }),
    maxBytes,
    expiresAt,
  };
}
