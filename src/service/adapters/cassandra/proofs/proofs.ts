import { briefOf } from '../../../domain/proof-brief.js';
import type { ProofStore } from '../../../ports/stores.js';
import type { Decisions } from '../commit/decisions.js';
import type { Outbox } from '../commit/outbox.js';
import type { Pointers } from '../commit/pointers.js';
import type { Blobs } from '../driver/blobs.js';
import { KeyedMutex } from '../driver/keyed-mutex.js';
import { Lease } from '../driver/lease.js';
import type { Session } from '../driver/session.js';
import { addingDigests } from './adding-digests.js';
import { proofErasing } from './erasing.js';
import { IdempotencyRecords } from './idempotency-records.js';
import { proofIssuing } from './issuing.js';
import { proofOverlaying } from './overlaying.js';
import { ProofIndex } from './proof-index.js';
import type { ProofRows } from './proof-rows.js';
import { Reservations } from './reservations.js';

/** The life of the lease in seconds, longer than the time between two collections, so that one process keeps it. */
const RESERVATIONS_LEASE_SECONDS = 1200;

export interface ProofParts {
  readonly session: Session;
  readonly decisions: Decisions;
  readonly pointers: Pointers;
  readonly outbox: Outbox;
  readonly blobs: Blobs;
  readonly rows: ProofRows;
  /** Removes what counts a partner's reviews on a proof. */
  readonly forgetReviews: (partnerId: string, proofId: string) => Promise<void>;
}

export function proofStore({
  session,
  decisions,
  pointers,
  outbox,
  blobs,
  rows,
  forgetReviews,
}: ProofParts): ProofStore {
  const mutex = new KeyedMutex();
  const index = new ProofIndex(session, rows);
  const reservations = new Reservations(
    pointers,
    rows,
    new Lease(session, 'reservations', RESERVATIONS_LEASE_SECONDS),
  );
  const records = new IdempotencyRecords(session);
  const { issue, readEvidence, getIssuingReplay } = proofIssuing(session, decisions, blobs, {
    rows,
    index,
    reservations,
    records,
  });
  const erasing = proofErasing(session, decisions, { rows, index, outbox, forgetReviews });
  const { changeOverlay, changeSummary } = proofOverlaying(session, decisions, rows);
  const { addDigests } = addingDigests(decisions, rows, index);

  return {
    reserveProof: (proofId, partnerId, now) => reservations.reserve(proofId, partnerId, now),
    issueProof: (proof, audit, replay, bodies) =>
      mutex.run(replay === undefined ? `proof/${proof.proofId}` : `replay/${replay.key}`, () =>
        issue(proof, audit, replay, bodies),
      ),
    readEvidence,
    async getProof(proofId) {
      const proof = await rows.get(proofId);
      const reserved = proof === undefined ? reservations.get(proofId) : undefined;
      return reserved === undefined
        ? proof
        : { state: 'pending', proofId, partnerId: reserved.partnerId, reservedAt: reserved.reservedAt };
    },
    listProofs: (partnerId, query) => index.list(partnerId, query),
    listBriefs: async (partnerId, query) => (await index.list(partnerId, query)).map(briefOf),
    findProofs: (kind, sha256, limit) => index.find(kind, sha256, limit),
    findByDigests: (...search) => index.findByDigests(...search),
    addDigests: (proofId, digests) => mutex.run(`proof/${proofId}`, () => addDigests(proofId, digests)),
    collectReservations: (before, remove) => reservations.collect(before, remove),
    eraseProof: (proofId, ...rest) =>
      mutex.run(`proof/${proofId}`, () => erasing.eraseProof(proofId, ...rest)),
    confirmErasure: erasing.confirmErasure,
    changeOverlay: (proofId, change, audit) =>
      mutex.run(`proof/${proofId}`, () => changeOverlay(proofId, change, audit)),
    changeSummary: (proofId, settle) => mutex.run(`proof/${proofId}`, () => changeSummary(proofId, settle)),
    getIssuingReplay,
  };
}
