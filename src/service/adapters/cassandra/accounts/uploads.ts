import { randomUUID } from 'node:crypto';
import { defined } from '../../../../core/domain/defined.js';
import { DomainError } from '../../../../core/domain/errors.js';
import {
  extraSecondsOf,
  FACTS_LIFE_SECONDS,
  SLOT_LIFE_SECONDS,
  type UploadFacts,
  type UploadPurpose,
  type UploadSlot,
} from '../../../domain/upload.js';
import type { UploadStore } from '../../../ports/stores.js';
import type { Blobs } from '../driver/blobs.js';
import { numberIn, type Row, type Session, textIn } from '../driver/session.js';

const GET =
  'SELECT upload_id, partner_id, purpose, content_length, created_at, expires_at, facts FROM upload WHERE upload_id = ?';
const INSERT =
  'INSERT INTO upload (upload_id, partner_id, purpose, content_length, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?) IF NOT EXISTS USING TTL ?';
// partner_id is in every row, so a condition on a row that is not there is refused without columns.
const PUT_FACTS =
  'UPDATE upload USING TTL ? SET facts = ?, facts_op = ? WHERE upload_id = ? IF partner_id = ? AND facts_op = null';

/** The seconds that a row lives beyond its time. The caller's clock decides what exists, and clocks differ. */
const SPARE_SECONDS = 3600;
/** The life of a row in seconds. A post may end up to an hour after its slot, and its facts live an hour more. */
const ROW_SECONDS = SLOT_LIFE_SECONDS + 2 * FACTS_LIFE_SECONDS + SPARE_SECONDS;

/** Returns the life of a row in seconds. The post of a large file may end later than others. */
function rowSeconds(purpose: UploadPurpose, bytes: number): number {
  return ROW_SECONDS + extraSecondsOf(purpose, bytes);
}

/**
 * Inserts a slot.
 * @param age the seconds since its creation. Its row lives shorter by this time
 * @throws DomainError `conflict` when the id is taken
 */
export async function insertSlot(session: Session, slot: UploadSlot, age = 0): Promise<void> {
  const { uploadId, partnerId, purpose, contentLength, createdAt, expiresAt } = slot;
  const { applied, current } = await session.lightweightTransaction({
    query: INSERT,
    params: [
      uploadId,
      partnerId,
      purpose,
      contentLength,
      createdAt,
      expiresAt,
      rowSeconds(purpose, contentLength ?? 0) - age,
    ],
  });
  // Ids are drawn once, so a row with the same owner and time is of this call.
  if (
    !applied &&
    (current === undefined ||
      textIn(current, 'partner_id') !== partnerId ||
      numberIn(current, 'created_at') !== createdAt)
  )
    throw new DomainError('conflict', 'This id is taken.');
}

/**
 * Inserts the facts of a slot, unless it has facts.
 * @param age the seconds since the upload. The facts live shorter by this time
 * @throws DomainError `not_found` when the slot does not exist
 */
export async function insertFacts(
  session: Session,
  blobs: Blobs,
  facts: UploadFacts,
  age = 0,
): Promise<'stored' | 'already_used'> {
  const { uploadId, partnerId, purpose, measurement } = facts;
  const op = randomUUID();
  // The facts live at least as long as the slot's own columns, so that a used slot stays used.
  const { applied, current } = await session.lightweightTransaction({
    query: PUT_FACTS,
    params: [
      rowSeconds(purpose, measurement.bytes) - age,
      blobs.encode(`facts/${uploadId}`, facts),
      op,
      uploadId,
      partnerId,
    ],
    operation: { column: 'facts_op', id: op },
  });
  if (applied) return 'stored';
  if (current === undefined || textIn(current, 'partner_id') !== partnerId)
    throw new DomainError('not_found', 'There is no such upload.');
  return 'already_used';
}

export function uploadStore(session: Session, blobs: Blobs): UploadStore {
  return {
    createSlot: (slot) => insertSlot(session, slot),

    async getUpload(uploadId, now) {
      const row = await session.first(GET, [uploadId]);
      if (row === undefined || textIn(row, 'partner_id') === undefined) return undefined;
      const slot = slotOf(row);
      if (row['facts'] === null) return slot.expiresAt > now ? { slot } : undefined;
      const facts = blobs.decode<UploadFacts>(`facts/${uploadId}`, row['facts']);
      return facts.expiresAt > now ? { slot, facts } : undefined;
    },

    putFacts: (facts) => insertFacts(session, blobs, facts),
  };
}

function slotOf(row: Row): UploadSlot {
  return defined({
    uploadId: textIn(row, 'upload_id')!,
    partnerId: textIn(row, 'partner_id')!,
    purpose: textIn(row, 'purpose') as UploadPurpose,
    contentLength: numberIn(row, 'content_length'),
    createdAt: numberIn(row, 'created_at')!,
    expiresAt: numberIn(row, 'expires_at')!,
  });
}
