import { eachOf } from '../../../../core/async/each-of.js';
import {
  DIGEST_KINDS,
  type DigestKind,
  digestsOf,
  type FurtherDigests,
  type IndexedProof,
} from '../../../domain/digests.js';
import type { IssuedProof } from '../../../domain/proof.js';
import type { ProofStore } from '../../../ports/stores.js';
import { isReadFailure, numberIn, type Row, type Session, textIn } from '../driver/session.js';
import type { ProofRows } from './proof-rows.js';

const DAY_SECONDS = 86_400;
/** The number of days that are read at once. A partner that issues seldom has few proofs in each. */
const DAYS_AT_ONCE = 8;
/** The number of pieces of a day that is too long for one read. */
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
const TABLES: Readonly<Record<DigestKind, string>> = {
  file: 'proof_by_file',
  bound: 'proof_by_bound',
  original: 'proof_by_original',
  samples: 'proof_by_samples',
};
const setIn = (table: string) => `INSERT INTO ${table} (sha256, proof_id) VALUES (?, ?) USING TIMESTAMP ?`;
const deleteFrom = (table: string) =>
  `DELETE FROM ${table} USING TIMESTAMP ? WHERE sha256 = ? AND proof_id = ?`;
const findIn = (table: string) =>
  `SELECT proof_id FROM ${table} WHERE sha256 = ? AND proof_id < ? ORDER BY proof_id DESC LIMIT ?`;
/** The number of digests that are looked for at once. */
const DIGESTS_AT_ONCE = 32;

type Query = Parameters<ProofStore['listProofs']>[1];
interface PageKey {
  readonly createdAt: number;
  readonly proofId: string;
}

/**
 * The index of a partner's proofs by time, and of all proofs by digest. An entry only points: the proof's own row
 * shows whether there is a proof. Timestamps of entries are made of the proof's own times, and that of a removal
 * is above that of its entry. So an entry that a slow process writes after the proof was erased stays removed,
 * also if clocks differ. An id is never issued twice, so no entry has to come back.
 */
export class ProofIndex {
  readonly #session: Session;
  readonly #rows: ProofRows;

  constructor(session: Session, rows: ProofRows) {
    this.#session = session;
    this.#rows = rows;
  }

  async add(proof: IndexedProof): Promise<void> {
    const { proofId, partnerId, createdAt } = proof;
    const at = createdAt * 1_000_000;
    const day = dayOf(createdAt);
    await this.#session.write(SET_DAY, [partnerId, day]);
    await Promise.all([
      this.#session.write(SET_PARTNER, [partnerId, day, createdAt, proofId, at]),
      ...digestsOf(proof).map(({ kind, sha256 }) =>
        this.#session.write(setIn(TABLES[kind]), [sha256, proofId, at]),
      ),
    ]);
  }

  async remove(proof: IndexedProof, erasedAt: number): Promise<void> {
    const { proofId, partnerId, createdAt } = proof;
    const at = Math.max(createdAt, erasedAt) * 1_000_000 + 1;
    await Promise.all([
      this.#session.write(DELETE_PARTNER, [at, partnerId, dayOf(createdAt), createdAt, proofId]),
      ...digestsOf(proof).map(({ kind, sha256 }) =>
        this.#session.write(deleteFrom(TABLES[kind]), [at, sha256, proofId]),
      ),
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

  async find(kind: DigestKind, sha256: string, limit: number): Promise<readonly IssuedProof[]> {
    const found: IssuedProof[] = [];
    let before = BEHIND_ALL_IDS;
    while (found.length < limit) {
      const asked = limit - found.length;
      const ids = (await this.#session.rows(findIn(TABLES[kind]), [sha256, before, asked])).map(
        (row) => textIn(row, 'proof_id')!,
      );
      found.push(...(await this.#issuedBy(kind, sha256, ids)));
      if (ids.length < asked) break;
      before = ids.at(-1)!;
    }
    return found;
  }

  async findByDigests(
    digests: readonly string[],
    limit: number,
    further: FurtherDigests = () => [],
  ): Promise<ReadonlyMap<string, readonly IndexedProof[]>> {
    const found = new Map<string, readonly IndexedProof[]>();
    const wanted = new Set(digests);
    const lookFor = (some: readonly string[]): Promise<void> =>
      eachOf(some, DIGESTS_AT_ONCE, async (sha256) => {
        const lists = await Promise.all(DIGEST_KINDS.map((kind) => this.find(kind, sha256, limit)));
        const proofs = [...new Map(lists.flat().map((proof) => [proof.proofId, proof])).values()];
        if (proofs.length > 0)
          found.set(sha256, proofs.sort((a, b) => (a.proofId < b.proofId ? 1 : -1)).slice(0, limit));
      });
    await lookFor([...wanted]);
    await lookFor([...new Set(further(found))].filter((sha256) => !wanted.has(sha256)));
    return found;
  }

  /**
   * Reads the entries of a day, newest first, in pieces where too much was removed for one read. A refused read
   * costs the nodes as much as one that passes over all they allow, so there are many pieces rather than two.
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

  /** Returns the issued proofs of a digest. Removes the entries of erased proofs that an earlier version left. */
  async #issuedBy(
    kind: DigestKind,
    sha256: string,
    proofIds: readonly string[],
  ): Promise<readonly IssuedProof[]> {
    const proofs = await Promise.all(proofIds.map((proofId) => this.#rows.get(proofId)));
    for (const proof of proofs)
      if (proof?.state === 'erased')
        // Not waited for: the next look-up finds an entry that stays.
        this.#session
          .write(deleteFrom(TABLES[kind]), [proof.erasedAt * 1_000_000 + 1, sha256, proof.proofId])
          .catch(() => undefined);
    return proofs.filter((proof) => proof?.state === 'issued');
  }

  async #issuedProofs(proofIds: readonly string[]): Promise<readonly IssuedProof[]> {
    const proofs = await Promise.all(proofIds.map((proofId) => this.#rows.get(proofId)));
    return proofs.filter((proof) => proof?.state === 'issued');
  }
}

/** Returns the day of a unix second. The caller's bounds may be times at which no proof can exist. */
function dayOf(at: number): number {
  return Math.min(LAST_DAY, Math.floor(at / DAY_SECONDS));
}
