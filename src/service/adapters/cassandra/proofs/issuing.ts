import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { DomainError } from '../../../../core/domain/errors.js';
import { assertInline, type EvidencePart } from '../../../../witness/domain/evidence.js';
import type { IssuedProof } from '../../../domain/proof.js';
import type { EvidenceBody, IssuingReplay, ProofStore } from '../../../ports/stores.js';
import type { Decisions } from '../commit/decisions.js';
import type { Blobs } from '../driver/blobs.js';
import {
  numberIn,
  type Row,
  type Session,
  type Statement,
  storeUnavailable,
  textIn,
} from '../driver/session.js';
import type { IdempotencyRecords } from './idempotency-records.js';
import type { ProofIndex } from './proof-index.js';
import type { ProofRows } from './proof-rows.js';
import { ISSUING, type Reservations } from './reservations.js';

const ISSUE =
  "INSERT INTO record (proof_id, part, state, gen, partner_id, body, mac) VALUES (?, '', 'issued', 1, ?, ?, ?) IF NOT EXISTS";
const SET_EVIDENCE = 'INSERT INTO record (proof_id, part, data) VALUES (?, ?, ?)';

/** The wait in milliseconds for another process's issuing under the same key, before its id is taken back. */
const WAIT_MS = 3000;
const PAUSE_MS = 50;

/** Returns the batch that inserts an issued proof with its evidence. */
export function issuingStatements(
  rows: ProofRows,
  blobs: Blobs,
  proof: IssuedProof,
  bodies: readonly EvidenceBody[],
): readonly Statement[] {
  const { proofId, partnerId } = proof;
  const body = rows.encode(proof);
  const code = rows.codeOf({ proofId, partnerId, state: 'issued', body });
  return [
    { query: ISSUE, params: [proofId, partnerId, body, code] },
    ...bodies.map((evidence) => ({
      query: SET_EVIDENCE,
      params: [proofId, partOf(evidence.part), blobs.encode(labelOf(proofId, evidence.part), evidence.body)],
    })),
  ];
}

export interface ProofIssuing extends Pick<ProofStore, 'getIssuingReplay' | 'readEvidence'> {
  issue: ProofStore['issueProof'];
}

/**
 * Returns the calls of issuing, which writes the idempotency record (where there is a key), then the proof with its
 * evidence (the decision), then the indexes. A record counts for readers only once its proof is issued. A record
 * whose proof was never issued, or can not be any more, is replaced: its proof id is made void first.
 */
export function proofIssuing(
  session: Session,
  decisions: Decisions,
  blobs: Blobs,
  {
    rows,
    index,
    reservations,
    records,
  }: {
    readonly rows: ProofRows;
    readonly index: ProofIndex;
    readonly reservations: Reservations;
    readonly records: IdempotencyRecords;
  },
): ProofIssuing {
  const issuing = decisions.operations<undefined>({
    kind: ISSUING,
    table: rows.table,
    async follow(proofId) {
      const head = await rows.head(proofId);
      // An erasure that came right behind removes what is added here, under a later timestamp.
      if (head?.state === 'issued') await index.add(rows.issuedOf(head));
    },
    abandon: (pointer) => reservations.visit(pointer),
  });

  /**
   * Returns whether an idempotency record may be taken over: it was released or has expired at the time of the
   * new proof, or its own proof was erased or can not be issued any more.
   */
  const givesWay = async (record: Row, proofId: string, createdAt: number): Promise<boolean> => {
    const holder = textIn(record, 'proof_id');
    if (holder === undefined || numberIn(record, 'expires_at')! <= createdAt || holder === proofId)
      return true;
    const begun = performance.now();
    for (;;) {
      const head = await rows.head(holder);
      if (head !== undefined) return head.state !== 'issued';
      if (performance.now() - begun > WAIT_MS) return rows.voidId(holder, Math.floor(Date.now() / 1000));
      await delay(PAUSE_MS);
    }
  };

  /** Takes the idempotency record for an issuing. @returns false where another request completed under it */
  const takeKey = async (proof: IssuedProof, replay: IssuingReplay, op: string): Promise<boolean> => {
    for (;;) {
      const record = await records.get(replay.key);
      if (record !== undefined && !(await givesWay(record, proof.proofId, proof.createdAt))) return false;
      const { applied } = await session.lightweightTransaction(
        records.taking(replay, record, op, proof.createdAt),
      );
      if (applied) return true;
    }
  };

  /** Returns whether the proof is issued, and completes what an interrupted call has left of it. */
  const isIssued = async (proof: IssuedProof): Promise<boolean> => {
    const { proofId } = proof;
    const stored = await rows.get(proofId);
    if (
      stored?.state !== 'issued' ||
      stored.partnerId !== proof.partnerId ||
      stored.credentialSha256 !== proof.credentialSha256
    )
      return false;
    await issuing.complete(proofId, proofId);
    return true;
  };

  return {
    async issue(proof, audit, replay, bodies = []) {
      assertInline(bodies);
      const { proofId, partnerId } = proof;
      if (await isIssued(proof)) return 'issued';
      const record = replay && (await records.get(replay.key));
      if (record !== undefined && !(await givesWay(record, proofId, proof.createdAt)))
        return (await isIssued(proof)) ? 'issued' : 'replay_exists';
      const reserved = reservations.get(proofId);
      if (reserved?.partnerId !== partnerId) throw notReserved();
      const op = randomUUID();
      if (replay !== undefined && !(await takeKey(proof, replay, op))) return 'replay_exists';
      const { applied } = await issuing.commit({
        key: proofId,
        audit,
        data: undefined,
        statements: () => issuingStatements(rows, blobs, proof, bodies),
        pointer: await reserved.pointer,
      });
      // The same call, in another process, may have been the quicker one.
      if (applied || (await isIssued(proof))) {
        reservations.end(proofId);
        return 'issued';
      }
      if (replay !== undefined) await records.release(replay.key, op);
      // Taken back meanwhile, by the clock of another process or for a request under the same key.
      if ((await rows.head(proofId))?.state === 'void') throw storeUnavailable();
      throw notReserved();
    },

    async readEvidence(proofId, part) {
      const { head, rows: found } = await rows.parts(proofId, partOf(part));
      const row = found.get(partOf(part));
      if (head?.state !== 'issued' || row === undefined) return undefined;
      return blobs.decode<Uint8Array>(labelOf(proofId, part), row['data']);
    },

    async getIssuingReplay(key, now) {
      const row = await records.get(key);
      const proofId = row && textIn(row, 'proof_id');
      if (row === undefined || proofId === undefined || numberIn(row, 'expires_at')! <= now) return undefined;
      const head = await rows.head(proofId);
      if (head?.state !== 'issued') return undefined;
      // A proof that is reported must be found in lists, too, even where the call that issued it was cut off.
      await issuing.complete(proofId, proofId);
      return {
        key,
        requestSha256: textIn(row, 'request_sha256')!,
        proofId,
        expiresAt: numberIn(row, 'expires_at')!,
      };
    },
  };
}

function partOf(part: EvidencePart): string {
  return `evidence/${part}`;
}

function labelOf(proofId: string, part: EvidencePart): string {
  return `evidence/${proofId}/${part}`;
}

function notReserved(): DomainError {
  return new DomainError('conflict', 'This id is no longer reserved.');
}
