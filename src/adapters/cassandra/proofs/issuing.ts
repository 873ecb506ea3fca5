import { defined } from '../../../domain/defined.js';
import { DomainError } from '../../../domain/errors.js';
import { assertInline } from '../../../domain/evidence.js';
import type { IssuedProof } from '../../../domain/proof.js';
import type { IssuingReplay, ProofStore } from '../../../ports/stores.js';
import type { Intent, Intents, Transact } from '../commit/intents.js';
import type { Blobs } from '../driver/blobs.js';
import { numberIn, type Row, type Session, textIn } from '../driver/session.js';
import type { EvidenceRows } from './evidence-rows.js';
import type { IdempotencyRecords } from './idempotency-records.js';
import type { ProofIndex } from './proof-index.js';
import { isInState, type ProofRows } from './proof-rows.js';
import type { Reservations } from './reservations.js';

const ISSUE =
  "UPDATE proof SET state = 'issued', body = ?, replay_key = ?, issue_op = ?, mac = ? WHERE proof_id = ? IF state = 'pending' AND partner_id = ? AND issue_op = null";
interface Issuing {
  readonly proof: IssuedProof;
  readonly reservedAt: number;
  readonly replayKey?: string;
}

export interface ProofIssuing extends Pick<ProofStore, 'getIssuingReplay'> {
  issue: ProofStore['issueProof'];
}

/**
 * Issuing: evidence, intent, the idempotency record (where there is a key), the proof's own row (the
 * decision), indexes, audit. Evidence comes first, so that whoever finishes the issuing finds it written; that of
 * an issuing which came to nothing goes with its reservation. The idempotency record holds all of the issuing, so that whoever finds it unfinished
 * finishes it; it counts for readers only once its proof is issued. A record whose proof can not be issued
 * any more gives way.
 */
export function proofIssuing(
  session: Session,
  intents: Intents,
  blobs: Blobs,
  {
    rows,
    index,
    evidence,
    reservations,
    records,
  }: {
    readonly rows: ProofRows;
    readonly index: ProofIndex;
    readonly evidence: EvidenceRows;
    readonly reservations: Reservations;
    readonly records: IdempotencyRecords;
  },
): ProofIssuing {
  const serialRows = rows.serialReads();
  const serialRecords = records.serialReads();

  /** @returns not applied where the id is not reserved for this partner, and was not issued by `op` */
  const writeIssued = (transact: Transact, { op, target }: Intent<Issuing>) => {
    const { proof, reservedAt, replayKey } = target;
    const { proofId, partnerId } = proof;
    const body = rows.encode(proof);
    const code = rows.codeOf(
      defined({ proofId, partnerId, state: 'issued' as const, reservedAt, body, replayKey }),
    );
    return transact({
      query: ISSUE,
      params: [body, replayKey, op, code, proofId, partnerId],
      operation: { column: 'issue_op', id: op },
    });
  };

  const issuing = intents.operations<Issuing>({
    kind: 'proof_issued',
    async isDecided(intent) {
      const { proof, replayKey } = intent.target;
      const row = await serialRows.row(proof.proofId);
      if (row !== undefined && textIn(row, 'issue_op') === intent.op) return true;
      const record = replayKey === undefined ? undefined : await serialRecords.get(replayKey);
      if (record === undefined || textIn(record, 'op') !== intent.op || !isInState(row, 'pending'))
        return false;
      return (await writeIssued((...sent) => session.lightweightTransaction(...sent), intent)).applied;
    },
    async follow({ target: { proof, reservedAt } }) {
      await index.add(proof);
      await reservations.remove(proof.proofId, reservedAt);
    },
  });

  /**
   * Tells whether an idempotency record may be taken over: it was released or has expired at the time of the
   * new proof, or its own proof was erased or can not be issued any more. An unfinished issuing is finished.
   */
  const givesWay = async (record: Row, createdAt: number): Promise<boolean> => {
    const proofId = textIn(record, 'proof_id');
    if (proofId === undefined || numberIn(record, 'expires_at')! <= createdAt) return true;
    const row = await rows.row(proofId);
    if (isInState(row, 'issued')) {
      await index.add(rows.issuedOf(row!));
      return false;
    }
    if (!isInState(row, 'pending')) return true;
    const key = textIn(record, 'replay_key')!;
    return !(await issuing.resume(blobs.decode<Intent<Issuing>>(`issuing/${key}`, record['issuing'])));
  };

  /** Takes the idempotency record for an issuing. @returns false where another request completed under it */
  const takeKey = async (
    transact: Transact,
    intent: Intent<Issuing>,
    replay: IssuingReplay,
  ): Promise<boolean> => {
    const { createdAt } = intent.target.proof;
    const blob = blobs.encode(`issuing/${replay.key}`, intent);
    for (;;) {
      const record = await records.get(replay.key);
      if (record !== undefined && !(await givesWay(record, createdAt))) return false;
      const { applied } = await transact(records.taking(replay, record, intent.op, blob, createdAt));
      if (applied) return true;
    }
  };

  return {
    async issue(proof, audit, replay, bodies = []) {
      assertInline(bodies);
      const { proofId, partnerId } = proof;
      const isIssued = async (): Promise<boolean> => isSame(await rows.get(proofId), proof);
      if (await isIssued()) {
        await index.add(proof);
        return 'issued';
      }
      const record = replay && (await records.get(replay.key));
      if (record !== undefined && !(await givesWay(record, proof.createdAt)))
        return (await isIssued()) ? 'issued' : 'replay_exists';
      const row = await rows.row(proofId);
      if (!isInState(row, 'pending') || textIn(row!, 'partner_id') !== partnerId) throw notReserved();

      const reservedAt = numberIn(row!, 'reserved_at')!;
      await evidence.write({ proofId, reservedAt }, bodies);
      const target = defined({ proof, reservedAt, replayKey: replay?.key });
      const { applied, hasKey } = await issuing.commit(target, audit, async (transact, intent) => {
        if (replay !== undefined && !(await takeKey(transact, intent, replay)))
          return { applied: false, hasKey: false };
        const outcome = await writeIssued(transact, intent);
        if (!outcome.applied && replay !== undefined) await records.release(replay.key, intent.op);
        return { applied: outcome.applied, hasKey: true };
      });
      // The same call, in another process, may have been the quicker one.
      if (applied || (await isIssued())) return 'issued';
      if (!hasKey) return 'replay_exists';
      throw notReserved();
    },

    async getIssuingReplay(key, now) {
      const row = await records.get(key);
      const proofId = row && textIn(row, 'proof_id');
      if (row === undefined || proofId === undefined || numberIn(row, 'expires_at')! <= now) return undefined;
      const proof = await rows.get(proofId);
      if (proof?.state !== 'issued') return undefined;
      // The process that issued the proof may have died right after the decision. A proof that is told of
      // must be found in lists, too.
      await index.add(proof);
      return {
        key,
        requestSha256: textIn(row, 'request_sha256')!,
        proofId,
        expiresAt: numberIn(row, 'expires_at')!,
      };
    },
  };
}

function isSame(
  proof: Awaited<ReturnType<ProofStore['getProof']>>,
  { partnerId, credentialSha256 }: IssuedProof,
): boolean {
  return (
    proof?.state === 'issued' && proof.partnerId === partnerId && proof.credentialSha256 === credentialSha256
  );
}

function notReserved(): DomainError {
  return new DomainError('conflict', 'This id is not reserved any more.');
}
