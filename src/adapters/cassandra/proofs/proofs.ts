import { randomUUID } from 'node:crypto';
import type { AuditDraft } from '../../../domain/audit.js';
import { addDeclaration } from '../../../domain/declaration.js';
import { DomainError } from '../../../domain/errors.js';
import { proofErased } from '../../../domain/events.js';
import type { IssuedProof } from '../../../domain/proof.js';
import type { IssuingReplay, ProofStore } from '../../../ports/stores.js';
import type { Intent, Intents } from '../commit/intents.js';
import type { Outbox } from '../commit/outbox.js';
import type { Blobs } from '../driver/blobs.js';
import { Lanes } from '../driver/keyed-mutex.js';
import { numberIn, type Row, type Session, textIn } from '../driver/session.js';
import { type Indexed, ProofIndex } from './proof-index.js';
import { columnsOf, isIn, type ProofRows } from './proof-rows.js';
import { Reservations } from './reservations.js';

const ISSUE =
  "UPDATE proof SET state = 'issued', body = ?, replay_key = ?, issue_op = ?, mac = ? WHERE proof_id = ? IF state = 'pending' AND partner_id = ? AND issue_op = null";
// The witness of the issuing stays: it is no content.
const ERASE =
  "UPDATE proof SET state = 'erased', erased_at = ?, erase_op = ?, body = null, declared = null, replay_key = null, mac = ? WHERE proof_id = ? IF state = 'issued' AND partner_id = ? AND erase_op = null AND erased_at = null";
const CONFIRM =
  "UPDATE proof SET confirmed_at = ?, confirm_op = ?, mac = ? WHERE proof_id = ? IF state = 'erased' AND confirmed_at = null AND confirm_op = null";
/**
 * `declared` holds, for each submission, the operation that recorded it: the witness, since the body changes
 * with the next one.
 */
const DECLARE =
  "UPDATE proof SET body = ?, declared = declared + ?, mac = ? WHERE proof_id = ? IF state = 'issued' AND body = ?";
const REPLAY =
  'SELECT replay_key, request_sha256, proof_id, expires_at, op, issuing FROM issuing_replay WHERE replay_key = ?';
const CLAIM =
  'INSERT INTO issuing_replay (replay_key, request_sha256, proof_id, expires_at, op, issuing) VALUES (?, ?, ?, ?, ?, ?) IF NOT EXISTS USING TTL ?';
const TAKE_OVER =
  'UPDATE issuing_replay USING TTL ? SET request_sha256 = ?, proof_id = ?, expires_at = ?, op = ?, issuing = ? WHERE replay_key = ? IF op = ?';
// All but the witness, until the claim would have ended: a node that hung may still carry out what took the
// key, after others have done so and given it up.
const EMPTY = 'DELETE request_sha256, proof_id, expires_at, issuing FROM issuing_replay WHERE replay_key = ?';
const RELEASE = `${EMPTY} IF op = ?`;
const REMOVE_REPLAY = `${EMPTY} IF proof_id = ?`;

const SPARE_SECONDS = 3600;

interface Declaring {
  readonly proofId: string;
  readonly submissionId: string;
}
interface Issuing {
  readonly proof: IssuedProof;
  readonly reservedAt: number;
  readonly replayKey?: string;
}
interface Erasure extends Indexed {
  readonly erasedAt: number;
  readonly replayKey?: string;
}

/**
 * Issuing: intent, claim of the Idempotency-Key (where there is one), the proof's own row (the decision),
 * indexes, audit. The claim holds all of the issuing, so that whoever finds it unfinished finishes it; and it
 * counts for readers only once the proof is issued. A claim whose proof can not be issued any more gives way.
 *
 * Erasing: intent with what leads to the derived rows, the tombstone (the decision), removals, the event,
 * audit. From the tombstone on no reader sees anything derived, whatever is still there. The cases, however
 * many, are left to whoever takes the event.
 * @param removeReviews removes the cases of all partners on a proof
 */
export function proofStore(
  session: Session,
  intents: Intents,
  blobs: Blobs,
  rows: ProofRows,
  outbox: Outbox,
  removeReviews: (proofId: string) => Promise<void>,
): ProofStore {
  const lanes = new Lanes();
  const settled = rows.settled();
  const index = new ProofIndex(session, rows);
  const reservations = new Reservations(session, rows);

  /** @returns false where the id is not reserved for this partner any more, and this is not its issuing */
  const finishIssuing = async (intent: Intent<Issuing>): Promise<boolean> => {
    const { op, target } = intent;
    const { proof, reservedAt, replayKey } = target;
    const { proofId, partnerId } = proof;
    const body = rows.encode(proof);
    const code = rows.codeOf({ proofId, partnerId, state: 'issued', reservedAt, body, replayKey });
    const { applied, current } = await session.decide({
      query: ISSUE,
      params: [body, replayKey, op, code, proofId, partnerId],
    });
    if (!applied && (current === undefined || textIn(current, 'issue_op') !== op)) return false;
    await index.add(proof);
    await reservations.done(proof.proofId, reservedAt);
    await intents.finish(intent);
    return true;
  };

  const finishErasing = async (intent: Intent<Erasure>): Promise<void> => {
    const { target } = intent;
    await index.remove(target, target.erasedAt);
    // A key that expired may be another proof's by now.
    if (target.replayKey !== undefined)
      await session.decide({ query: REMOVE_REPLAY, params: [target.replayKey, target.proofId] });
    // Before the intent goes, so that the event is there whenever the intent is not.
    await outbox.add(
      proofErased({ proofId: target.proofId, partnerId: target.partnerId, erasedAt: target.erasedAt }),
    );
    await intents.finish(intent);
  };

  intents.onAbandoned('proof_issued', async (intent: Intent<Issuing>) => {
    const { proof, replayKey } = intent.target;
    const row = await settled.row(proof.proofId);
    const claim = replayKey === undefined ? undefined : await session.settled().first(REPLAY, [replayKey]);
    const decided = row !== undefined && textIn(row, 'issue_op') === intent.op;
    const claimed = claim !== undefined && textIn(claim, 'op') === intent.op;
    if (decided || (claimed && isIn(row, 'pending'))) await finishIssuing(intent);
  });
  intents.onAbandoned('proof_erased', async (intent: Intent<Erasure>) => {
    const row = await settled.row(intent.target.proofId);
    if (row !== undefined && textIn(row, 'erase_op') === intent.op) await finishErasing(intent);
  });

  intents.onAbandoned('declaration_recorded', async (intent: Intent<Declaring>) => {
    if (await isDeclaredBy(intent, settled)) await intents.finish(intent);
  });
  const isDeclaredBy = async ({ op, target }: Intent<Declaring>, reader = rows): Promise<boolean> => {
    const declared = (await reader.row(target.proofId))?.['declared'] as
      | Readonly<Record<string, string>>
      | null
      | undefined;
    return declared?.[target.submissionId] === op;
  };

  /**
   * Takes the Idempotency-Key for this issuing, finishing what holds it where that is unfinished.
   * @returns false where another request has completed under it
   */
  const claimKey = async (intent: Intent<Issuing>, replay: IssuingReplay): Promise<boolean> => {
    const { createdAt } = intent.target.proof;
    const ttl = replay.expiresAt - createdAt + SPARE_SECONDS;
    const issuing = blobs.encode(`issuing/${replay.key}`, intent);
    for (;;) {
      const held = await session.first(REPLAY, [replay.key]);
      if (held !== undefined && !(await givesWay(held, createdAt))) return false;
      intents.assertTimely(intent);
      const { applied, current } = await session.decide(
        held === undefined
          ? {
              query: CLAIM,
              params: [
                replay.key,
                replay.requestSha256,
                replay.proofId,
                replay.expiresAt,
                intent.op,
                issuing,
                ttl,
              ],
            }
          : {
              query: TAKE_OVER,
              params: [
                ttl,
                replay.requestSha256,
                replay.proofId,
                replay.expiresAt,
                intent.op,
                issuing,
                replay.key,
                textIn(held, 'op'),
              ],
            },
      );
      if (applied || (current !== undefined && textIn(current, 'op') === intent.op)) return true;
    }
  };

  /**
   * One that was given up or has expired gives way, one whose proof was erased or can not be issued any more
   * too; the time is that of the statement.
   */
  const givesWay = async (held: Row, createdAt: number): Promise<boolean> => {
    const proofId = textIn(held, 'proof_id');
    if (proofId === undefined || numberIn(held, 'expires_at')! <= createdAt) return true;
    const row = await rows.row(proofId);
    if (isIn(row, 'issued')) {
      await index.add(rows.issuedOf(row!));
      return false;
    }
    if (!isIn(row, 'pending')) return true;
    return !(await finishIssuing(
      blobs.decode<Intent<Issuing>>(`issuing/${textIn(held, 'replay_key')!}`, held['issuing']),
    ));
  };

  const issue = async (
    proof: IssuedProof,
    audit: AuditDraft,
    replay?: IssuingReplay,
  ): Promise<'issued' | 'replay_exists'> => {
    const { proofId, partnerId } = proof;
    if (isSame(await rows.get(proofId), proof)) {
      await index.add(proof);
      return 'issued';
    }
    const held = replay && (await session.first(REPLAY, [replay.key]));
    if (held !== undefined && !(await givesWay(held, proof.createdAt)))
      return isSame(await rows.get(proofId), proof) ? 'issued' : 'replay_exists';
    const row = await rows.row(proofId);
    if (!isIn(row, 'pending') || textIn(row!, 'partner_id') !== partnerId) throw notReserved();

    const target: Issuing = {
      proof,
      reservedAt: numberIn(row!, 'reserved_at')!,
      ...(replay === undefined ? {} : { replayKey: replay.key }),
    };
    const intent = await intents.begin('proof_issued', target, audit);
    if (replay !== undefined && !(await claimKey(intent, replay))) {
      intents.drop(intent);
      return isSame(await rows.get(proofId), proof) ? 'issued' : 'replay_exists';
    }
    intents.assertTimely(intent);
    if (await finishIssuing(intent)) return 'issued';
    if (replay !== undefined) await session.decide({ query: RELEASE, params: [replay.key, intent.op] });
    intents.drop(intent);
    // The same call, in another process, may have been the quicker one.
    if (isSame(await rows.get(proofId), proof)) return 'issued';
    throw notReserved();
  };

  const erase = async (row: Row, at: number, audit: AuditDraft): ReturnType<ProofStore['eraseProof']> => {
    const { proofId, partnerId, createdAt, boundAudioSha256, originalSha256 } = rows.issuedOf(row);
    const replayKey = textIn(row, 'replay_key');
    const target: Erasure = {
      proofId,
      partnerId,
      createdAt,
      boundAudioSha256,
      originalSha256,
      erasedAt: at,
      ...(replayKey === undefined ? {} : { replayKey }),
    };
    const code = rows.codeOf({
      proofId,
      partnerId,
      state: 'erased',
      reservedAt: columnsOf(row).reservedAt,
      erasedAt: at,
    });
    const intent = await intents.begin('proof_erased', target, audit);
    intents.assertTimely(intent);
    const { applied, current } = await session.decide({
      query: ERASE,
      params: [at, intent.op, code, proofId, partnerId],
    });
    if (applied || (current !== undefined && textIn(current, 'erase_op') === intent.op)) {
      await finishErasing(intent);
      return { outcome: 'erased', proof: { state: 'erased', proofId, partnerId, erasedAt: at } };
    }
    intents.drop(intent);
    const erased = await rows.row(proofId);
    return isIn(erased, 'erased')
      ? { outcome: 'already_erased', proof: rows.erasedOf(erased!) }
      : 'not_found';
  };

  return {
    reserveProof: (proofId, partnerId, now) => reservations.reserve(proofId, partnerId, now),
    issueProof: (proof, audit, replay) =>
      lanes.run(replay === undefined ? `proof/${proof.proofId}` : `replay/${replay.key}`, () =>
        issue(proof, audit, replay),
      ),
    getProof: (proofId) => rows.get(proofId),
    listProofs: (partnerId, query) => index.list(partnerId, query),
    findProofs: (kind, sha256, limit) => index.find(kind, sha256, limit),
    collectReservations: (before) => reservations.sweep(before),

    eraseProof: (proofId, partnerId, at, audit, room) =>
      lanes.run(`proof/${proofId}`, async () => {
        const row = await rows.row(proofId);
        if (row === undefined || textIn(row, 'partner_id') !== partnerId || isIn(row, 'pending'))
          return 'not_found';
        if (isIn(row, 'erased')) return { outcome: 'already_erased', proof: rows.erasedOf(row) };
        return room === 'waived' ? erase(row, at, audit) : outbox.withRoom(() => erase(row, at, audit));
      }),

    // Cases that came to be beside the tombstone are removed again and again, a first time or not.
    async confirmErasure(proofId, at) {
      const row = await rows.row(proofId);
      if (!isIn(row, 'erased')) return 'not_erased';
      await removeReviews(proofId);
      if (numberIn(row!, 'confirmed_at') !== undefined) return 'already_confirmed';
      const op = randomUUID();
      const { applied, current } = await session.decide({
        query: CONFIRM,
        params: [at, op, rows.codeOf({ ...columnsOf(row!), confirmedAt: at }), proofId],
      });
      return applied || (current !== undefined && textIn(current, 'confirm_op') === op)
        ? 'confirmed'
        : 'already_confirmed';
    },

    recordDeclaration: (proofId, declaration, audit) =>
      lanes.run(`proof/${proofId}`, async () => {
        for (;;) {
          const row = await rows.row(proofId);
          if (row === undefined || !isIn(row, 'issued')) return { outcome: 'proof_gone' };
          const proof = rows.issuedOf(row);
          const step = addDeclaration(proof.declarations ?? [], declaration);
          if (step.outcome !== 'recorded') return step;
          const target: Declaring = { proofId, submissionId: declaration.submissionId };
          const intent = await intents.begin('declaration_recorded', target, audit);
          intents.assertTimely(intent);
          const body = rows.encode({ ...proof, declarations: step.declarations });
          const { applied } = await session.decide({
            query: DECLARE,
            params: [
              body,
              { [target.submissionId]: intent.op },
              rows.codeOf({ ...columnsOf(row), body }),
              proofId,
              row['body'],
            ],
          });
          if (applied || (await isDeclaredBy(intent))) {
            await intents.finish(intent);
            return step;
          }
          // Another process changed the proof meanwhile: what it left decides anew.
          intents.drop(intent);
        }
      }),

    async getIssuingReplay(key, now) {
      const row = await session.first(REPLAY, [key]);
      const proofId = row && textIn(row, 'proof_id');
      if (row === undefined || proofId === undefined || numberIn(row, 'expires_at')! <= now) return undefined;
      const proof = await rows.get(proofId);
      if (proof?.state !== 'issued') return undefined;
      // Whoever issued it may have died right after the decision: what is answered from here is to be found
      // in lists, too.
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
