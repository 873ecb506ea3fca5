import type { IssuedProof } from '../../../domain/proof.js';
import type { ProofStore } from '../../../ports/stores.js';
import { isReadFailure, numberIn, type Row, type Session, textIn } from '../driver/session.js';
import type { ProofRows } from './proof-rows.js';

const DAY_SECONDS = 86_400;
/** Days read at once: a partner that issues seldom has few proofs in each. */
const DAYS_AT_ONCE = 8;
/** Pieces of a day that cannot be read at once. */
const PIECES = 16;
const LAST_DAY = 2 ** 31 - 1;
const BEHIND_ALL_IDS = '~';

const SET_DAY = 'INSERT INTO proof_day (partner_id, day) VALUES (?, ?)';
const DAYS = 'SELECT day FROM proof_day WHERE partner_id = ? AND day <= ? AND day >= ?';
const SET_PARTNER =
  'INSERT INTO proof_by_partner (partner_id, day, created_at, proof_id) VALUES (?, ?, ?, ?) USING TIMESTAMP ?';
const DELETE_PARTNER =
  'DELETE FROM proof_by_partner USING TIMESTAMP ? WHERE partner_id = ? AND day = ? AND created_at = ? AND proof_id = ?';
const LIST_DAY =
  'SELECT created_at, proof_id FROM proof_by_partner WHERE partner_id = ? AND day = ? AND (created_at, proof_id) < (?, ?) AND (created_at) >= (?) LIMIT ?';
const DIGESTS = {
  bound: {
    set: 'INSERT INTO proof_by_bound (sha256, proof_id) VALUES (?, ?) USING TIMESTAMP ?',
    delete: 'DELETE FROM proof_by_bound USING TIMESTAMP ? WHERE sha256 = ? AND proof_id = ?',
    find: 'SELECT proof_id FROM proof_by_bound WHERE sha256 = ? AND proof_id < ? ORDER BY proof_id DESC LIMIT ?',
  },
  original: {
    set: 'INSERT INTO proof_by_original (sha256, proof_id) VALUES (?, ?) USING TIMESTAMP ?',
    delete: 'DELETE FROM proof_by_original USING TIMESTAMP ? WHERE sha256 = ? AND proof_id = ?',
    find: 'SELECT proof_id FROM proof_by_original WHERE sha256 = ? AND proof_id < ? ORDER BY proof_id DESC LIMIT ?',
  },
} as const;

/** Members of an issued proof by which its index entries are found. */
export type Indexed = Pick<
  IssuedProof,
  'proofId' | 'partnerId' | 'createdAt' | 'boundAudioSha256' | 'originalSha256'
>;
type Query = Parameters<ProofStore['listProofs']>[1];
interface PageKey {
  readonly createdAt: number;
  readonly proofId: string;
}

/**
 * Index of a partner's proofs by time, and of all proofs by digest. An entry only points: the proof's own row
 * says whether there is a proof. Timestamps of entries are made of the proof's own times, with a removal's
 * above its entry's. So an entry that a slow process writes after the proof was erased stays removed,
 * whatever the clocks say. An id is never issued twice, so no entry has to come back.
 */
export class ProofIndex {
  readonly #session: Session;
  readonly #rows: ProofRows;

  constructor(session: Session, rows: ProofRows) {
    this.#session = session;
    this.#rows = rows;
  }

  async add({ proofId, partnerId, createdAt, boundAudioSha256, originalSha256 }: Indexed): Promise<void> {
    const at = createdAt * 1_000_000;
    const day = dayOf(createdAt);
    await this.#session.write(SET_DAY, [partnerId, day]);
    await Promise.all([
      this.#session.write(SET_PARTNER, [partnerId, day, createdAt, proofId, at]),
      this.#session.write(DIGESTS.bound.set, [boundAudioSha256, proofId, at]),
      this.#session.write(DIGESTS.original.set, [originalSha256, proofId, at]),
    ]);
  }

  async remove(
    { proofId, partnerId, createdAt, boundAudioSha256, originalSha256 }: Indexed,
    erasedAt: number,
  ): Promise<void> {
    const at = Math.max(createdAt, erasedAt) * 1_000_000 + 1;
    await Promise.all([
      this.#session.write(DELETE_PARTNER, [at, partnerId, dayOf(createdAt), createdAt, proofId]),
      this.#session.write(DIGESTS.bound.delete, [at, boundAudioSha256, proofId]),
      this.#session.write(DIGESTS.original.delete, [at, originalSha256, proofId]),
    ]);
  }

  async list(
    partnerId: string,
    { issuedAfter, issuedBefore, before, limit }: Query,
  ): Promise<readonly IssuedProof[]> {
    const from = Math.max(0, issuedAfter ?? 0);
    const end: PageKey = {
      createdAt: Math.min(issuedBefore ?? Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER - 1) + 1,
      proofId: '',
    };
    let upper = before !== undefined && before.createdAt < end.createdAt ? before : end;
    const days = (await this.#session.rows(DAYS, [partnerId, dayOf(upper.createdAt), dayOf(from)])).map(
      (row) => numberIn(row, 'day')!,
    );
    const found: IssuedProof[] = [];
    while (days.length > 0) {
      const group = days.splice(0, DAYS_AT_ONCE);
      for (let more = true; more; ) {
        const asked = limit - found.length;
        const pages = await Promise.all(
          group.map((day) => this.#entriesOfDay(partnerId, day, { before: upper, from, limit: asked })),
        );
        const entries = pages.flat().slice(0, asked);
        found.push(...(await this.#issuedProofs(entries.map((row) => textIn(row, 'proof_id')!))));
        if (found.length >= limit) return found;
        const last = entries.at(-1);
        if (last !== undefined)
          upper = { createdAt: numberIn(last, 'created_at')!, proofId: textIn(last, 'proof_id')! };
        // A proof that is erased while it is read does not count, so that only the last page is short.
        more = entries.length === asked;
      }
    }
    return found;
  }

  async find(kind: 'bound' | 'original', sha256: string, limit: number): Promise<readonly IssuedProof[]> {
    const found: IssuedProof[] = [];
    let before = BEHIND_ALL_IDS;
    while (found.length < limit) {
      const asked = limit - found.length;
      const ids = (await this.#session.rows(DIGESTS[kind].find, [sha256, before, asked])).map(
        (row) => textIn(row, 'proof_id')!,
      );
      found.push(...(await this.#issuedProofs(ids)));
      if (ids.length < asked) break;
      before = ids.at(-1)!;
    }
    return found;
  }

  /**
   * Entries of a day, newest first; read in pieces where too much was removed for one read. A refused read costs
   * the nodes as much as one that passes over all they allow, so there are many pieces rather than two.
   */
  async #entriesOfDay(
    partnerId: string,
    day: number,
    { before, from, limit }: { readonly before: PageKey; readonly from: number; readonly limit: number },
  ): Promise<readonly Row[]> {
    try {
      return await this.#session.rows(LIST_DAY, [
        partnerId,
        day,
        before.createdAt,
        before.proofId,
        from,
        limit,
      ]);
    } catch (error) {
      const start = Math.max(from, day * DAY_SECONDS);
      const seconds = Math.min(before.createdAt, (day + 1) * DAY_SECONDS) - start;
      if (!isReadFailure(error) || seconds < 2) throw error;
      const found: Row[] = [];
      let upper = before;
      for (let piece = PIECES - 1; piece >= 0 && found.length < limit; piece -= 1) {
        const lower = start + Math.floor((seconds * piece) / PIECES);
        if (lower >= upper.createdAt) continue;
        const range = { before: upper, from: lower, limit: limit - found.length };
        found.push(...(await this.#entriesOfDay(partnerId, day, range)));
        upper = { createdAt: lower, proofId: '' };
      }
      return found;
    }
  }

  async #issuedProofs(proofIds: readonly string[]): Promise<readonly IssuedProof[]> {
    const proofs = await Promise.all(proofIds.map((proofId) => this.#rows.get(proofId)));
    return proofs.filter((proof) => proof?.state === 'issued');
  }
}

/** Day of a time; the caller's bounds may lie where no proof can be. */
function dayOf(at: number): number {
  return Math.min(LAST_DAY, Math.floor(at / DAY_SECONDS));
}
