import type { ProofStore } from '../../../ports/stores.js';
import type { Intents } from '../commit/intents.js';
import type { Outbox } from '../commit/outbox.js';
import type { Blobs } from '../driver/blobs.js';
import { KeyedMutex } from '../driver/keyed-mutex.js';
import type { Session } from '../driver/session.js';
import { proofErasing } from './erasing.js';
import { EvidenceRows } from './evidence-rows.js';
import { IdempotencyRecords } from './idempotency-records.js';
import { proofIssuing } from './issuing.js';
import { proofOverlaying } from './overlaying.js';
import { ProofIndex } from './proof-index.js';
import type { ProofRows } from './proof-rows.js';
import { Reservations } from './reservations.js';

/** @param removeReviews removes the reviews of all partners on a proof */
export function proofStore(
  session: Session,
  intents: Intents,
  blobs: Blobs,
  rows: ProofRows,
  outbox: Outbox,
  removeReviews: (proofId: string) => Promise<void>,
): ProofStore {
  const mutex = new KeyedMutex();
  const index = new ProofIndex(session, rows);
  const evidence = new EvidenceRows(session, blobs);
  const reservations = new Reservations(session, rows, evidence);
  const records = new IdempotencyRecords(session);
  const { issue, getIssuingReplay } = proofIssuing(session, intents, blobs, {
    rows,
    index,
    evidence,
    reservations,
    records,
  });
  const erasing = proofErasing(session, intents, {
    rows,
    index,
    evidence,
    records,
    outbox,
    removeReviews,
  });
  const changeOverlay = proofOverlaying(intents, rows);

  return {
    reserveProof: (proofId, partnerId, now) => reservations.reserve(proofId, partnerId, now),
    issueProof: (proof, audit, replay, bodies) =>
      mutex.run(replay === undefined ? `proof/${proof.proofId}` : `replay/${replay.key}`, () =>
        issue(proof, audit, replay, bodies),
      ),
    async readEvidence(proofId, part) {
      const [isIssued, body] = await Promise.all([rows.isIssued(proofId), evidence.read(proofId, part)]);
      return isIssued ? body : undefined;
    },
    getProof: (proofId) => rows.get(proofId),
    listProofs: (partnerId, query) => index.list(partnerId, query),
    findProofs: (kind, sha256, limit) => index.find(kind, sha256, limit),
    collectReservations: (before) => reservations.collect(before),
    eraseProof: (proofId, ...rest) =>
      mutex.run(`proof/${proofId}`, () => erasing.eraseProof(proofId, ...rest)),
    confirmErasure: erasing.confirmErasure,
    changeOverlay: (proofId, change, audit) =>
      mutex.run(`proof/${proofId}`, () => changeOverlay(proofId, change, audit)),
    getIssuingReplay,
  };
}
