import { DomainError } from '../../domain/errors.js';
import type { UploadPurpose } from '../../domain/upload.js';
import { MAX_UPLOAD_BYTES, SLOT_LIFE_SECONDS } from '../../domain/upload.js';
import type { Clock } from '../../ports/clock.js';
import type { Ids } from '../../ports/ids.js';
import type { UploadStore } from '../../ports/stores.js';
import type { Caller, CreatedUpload } from '../operations.js';
import { requireScope } from '../require-scope.js';
import type { UploadPolicySigner } from './upload-policy.js';

export interface CreateUploadDeps {
  readonly stores: UploadStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly policies: UploadPolicySigner;
  /** Base of the presigned address, without a trailing slash. */
  readonly publicUrl: string;
}

/** "Mints a fresh short-lived presigned slot per call": the signed fields are the authority of the post. */
export async function createUpload(
  deps: CreateUploadDeps,
  caller: Caller,
  request: { readonly purpose: UploadPurpose; readonly contentLength?: number },
): Promise<CreatedUpload> {
  requireScope(caller, 'verify');
  const { purpose, contentLength } = request;
  if (contentLength !== undefined && contentLength > MAX_UPLOAD_BYTES) {
    throw new DomainError('payload_too_large', `An upload holds at most ${MAX_UPLOAD_BYTES} bytes.`, {
      reason: 'body_too_large',
    });
  }
  const createdAt = Math.floor(deps.clock.now() / 1000);
  const uploadId = deps.ids.next('upload');
  const expiresAt = createdAt + SLOT_LIFE_SECONDS;
  const maxBytes = contentLength ?? MAX_UPLOAD_BYTES;
  await deps.stores.createSlot({
    uploadId,
    partnerId: caller.partnerId,
    purpose,
    ...(contentLength === undefined ? {} : { contentLength }),
    createdAt,
    expiresAt,
  });
  return {
    uploadId,
    url: `${deps.publicUrl}/uploads/${uploadId}`,
    fields: deps.policies.sign({ uploadId, maxBytes, expiresAt }),
    maxBytes,
    expiresAt,
  };
}
