import { DIGEST_KINDS, digestsOf, type FurtherDigests, type IndexedProof } from '../../domain/digests.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { Transaction } from './commit-queue.js';
import { digestKey, following, type HoldersRow, holdersKey, lastPart, proofKey, under } from './keys.js';
import { listIssued } from './list-issued.js';
import type { Rows } from './rows.js';

/** The most proofs that a row of holders names. Beyond them it only counts, and the index entries are read. */
const NAMED = 16;
/** Rows that are changed in one batch. */
const REBUILD_STEP = 256;

/**
 * Writes the index entries of a proof's digests, and adds the proof to the holders of each digest.
 * @param former the proof as it is indexed already
 */
export function indexDigests(tx: Transaction, proof: IndexedProof, former?: IndexedProof): void {
  const { proofId } = proof;
  const held = new Set(former && digestsOf(former).map(({ sha256 }) => sha256));
  for (const { kind, sha256 } of digestsOf(proof)) {
    tx.put(digestKey(kind, sha256, proofId), null);
    if (held.has(sha256)) continue;
    held.add(sha256);
    const key = holdersKey(sha256);
    tx.put(key, withHolder(tx.getSound(key), proofId));
  }
}

/** Removes what `indexDigests` wrote. */
export function unindexDigests(tx: Transaction, proof: IndexedProof): void {
  const { proofId } = proof;
  const digests = digestsOf(proof);
  for (const { kind, sha256 } of digests) tx.delete(digestKey(kind, sha256, proofId));
  for (const sha256 of new Set(digests.map((digest) => digest.sha256))) {
    const key = holdersKey(sha256);
    const left = withoutHolder(tx.getSound(key), proofId);
    if (left === undefined) tx.delete(key);
    else tx.put(key, left);
  }
}

function withHolder(row: HoldersRow | undefined, proofId: string): HoldersRow {
  if (row === undefined) return { proofIds: [proofId] };
  if ('count' in row) return { count: row.count + 1 };
  const proofIds = [...row.proofIds, proofId];
  return proofIds.length > NAMED ? { count: proofIds.length } : { proofIds };
}

function withoutHolder(row: HoldersRow | undefined, proofId: string): HoldersRow | undefined {
  if (row === undefined) return undefined;
  if ('count' in row) return row.count > 1 ? { count: row.count - 1 } : undefined;
  const proofIds = row.proofIds.filter((each) => each !== proofId);
  return proofIds.length > 0 ? { proofIds } : undefined;
}

/**
 * Finds proofs by digests. One read of the database answers for all digests, and another one for all proofs that they
 * name. Each proof is read once.
 */
export async function findByDigests(
  rows: Rows,
  digests: readonly string[],
  limit: number,
  further: FurtherDigests = () => [],
): Promise<ReadonlyMap<string, readonly IndexedProof[]>> {
  const read = new Map<string, IssuedProof | undefined>();
  const readProofs = async (proofIds: readonly string[]): Promise<void> => {
    const unread = [...new Set(proofIds)].filter((proofId) => !read.has(proofId));
    const proofs = await rows.getMany(unread.map(proofKey));
    for (const [i, proof] of proofs.entries())
      read.set(unread[i]!, proof?.state === 'issued' ? proof : undefined);
  };
  const found = new Map<string, readonly IndexedProof[]>();
  const lookFor = async (wanted: readonly string[]): Promise<void> => {
    const holders = await rows.getMany(wanted.map(holdersKey));
    await readProofs(holders.flatMap((row) => (row !== undefined && 'proofIds' in row ? row.proofIds : [])));
    for (const [i, row] of holders.entries()) {
      if (row === undefined) continue;
      const sha256 = wanted[i]!;
      const proofs =
        'count' in row
          ? await listHolders(rows, sha256, limit)
          : row.proofIds.map((proofId) => read.get(proofId)).filter((proof) => proof !== undefined);
      found.set(sha256, newest(proofs, limit));
    }
  };
  await lookFor(digests);
  await lookFor(notIn(digests, further(found)));
  return found;
}

/** Returns the digests that were not looked for before, each once. */
function notIn(before: readonly string[], digests: Iterable<string>): readonly string[] {
  const known = new Set(before);
  return [...new Set(digests)].filter((sha256) => !known.has(sha256));
}

async function listHolders(rows: Rows, sha256: string, limit: number): Promise<readonly IssuedProof[]> {
  const lists = await Promise.all(
    DIGEST_KINDS.map((kind) => listIssued(rows, under(kind, sha256), limit, true)),
  );
  return [...new Map(lists.flat().map((proof) => [proof.proofId, proof])).values()];
}

function newest(proofs: readonly IssuedProof[], limit: number): readonly IssuedProof[] {
  return proofs.toSorted((a, b) => (a.proofId < b.proofId ? 1 : -1)).slice(0, limit);
}

/** Writes the holders of all digests anew. A call that a crash interrupted is repeated from the start. */
export async function rebuildDigests(rows: Rows): Promise<void> {
  for (let range = under('digest'), last: string | undefined; ; range = following(range, last)) {
    const entries = await rows.keys(range, REBUILD_STEP);
    last = entries.at(-1);
    if (last === undefined) break;
    await rows.run((tx) => entries.forEach((entry) => tx.delete(entry)));
  }
  for (let range = under('proof'), last: string | undefined; ; range = following(range, last)) {
    const entries = await rows.keys(range, REBUILD_STEP);
    last = entries.at(-1);
    if (last === undefined) break;
    await rows.run((tx) => {
      for (const entry of entries) {
        const proof = tx.getSound(proofKey(lastPart(entry)));
        if (proof?.state === 'issued') indexDigests(tx, proof);
      }
    });
  }
}
