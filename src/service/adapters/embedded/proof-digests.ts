import {
  DIGEST_KINDS,
  digestsOf,
  type FoundProof,
  type FurtherDigests,
  type IndexedProof,
} from '../../domain/digests.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { Transaction } from './commit-queue.js';
import {
  digestKey,
  following,
  type HolderRow,
  type HoldersRow,
  holdersKey,
  lastPart,
  proofKey,
  under,
} from './keys.js';
import { listIssued } from './list-issued.js';
import type { Rows } from './rows.js';

/** The most proofs that a row of holders has. Beyond them it only counts, and the index entries are read. */
const NAMED = 16;
/** Rows that are changed in one batch. */
const REBUILD_STEP = 256;
/** The length of a digest as text. */
const SHA256_DIGITS = 64;

/**
 * Writes the index entries of a proof's digests, and adds the proof to the holders of each digest.
 * @param former the proof as it is indexed already
 */
export function indexDigests(tx: Transaction, proof: IndexedProof, former?: IndexedProof): void {
  const { proofId } = proof;
  for (const { kind, sha256 } of digestsOf(proof)) tx.put(digestKey(kind, sha256, proofId), null);
  const digests = distinctDigests(proof);
  const holder = holderOf(proof, shareDigests(tx, proofId, digests));
  const held = new Set(former && distinctDigests(former));
  for (const sha256 of digests) putHolder(tx, sha256, holder, held.has(sha256));
}

/** Removes what `indexDigests` wrote. */
export function unindexDigests(tx: Transaction, proof: IndexedProof): void {
  const { proofId } = proof;
  for (const { kind, sha256 } of digestsOf(proof)) tx.delete(digestKey(kind, sha256, proofId));
  for (const sha256 of distinctDigests(proof)) {
    const key = holdersKey(sha256);
    const left = withoutHolder(tx.getSound(key), proofId);
    if (left === undefined) tx.delete(key);
    else tx.put(key, left);
  }
}

/**
 * Marks the other proofs that have one of these digests as shared, in each row that has them.
 * @returns whether there are other proofs
 */
function shareDigests(tx: Transaction, proofId: string, digests: readonly string[]): boolean {
  let isShared = false;
  for (const sha256 of digests) {
    const row = tx.getSound(holdersKey(sha256));
    if (row === undefined) continue;
    const others = 'count' in row ? [] : row.proofs.filter((each) => each.proofId !== proofId);
    isShared ||= 'count' in row || others.length > 0;
    for (const other of others) {
      if (other.isShared) continue;
      const shared = { ...other, isShared: true } as const;
      for (const each of distinctDigests(foundProof(other))) putHolder(tx, each, shared, true);
    }
  }
  return isShared;
}

/** @param isHeld whether the row has the holder, or counts it, already */
function putHolder(tx: Transaction, sha256: string, holder: HolderRow, isHeld: boolean): void {
  const key = holdersKey(sha256);
  const row = tx.getSound(key);
  if (row !== undefined && 'count' in row) {
    if (!isHeld) tx.put(key, { count: row.count + 1 });
    return;
  }
  const others = row?.proofs.filter(({ proofId }) => proofId !== holder.proofId) ?? [];
  const proofs = [...others, holder];
  tx.put(key, proofs.length > NAMED ? { count: proofs.length } : { proofs });
}

function withoutHolder(row: HoldersRow | undefined, proofId: string): HoldersRow | undefined {
  if (row === undefined) return undefined;
  if ('count' in row) return row.count > 1 ? { count: row.count - 1 } : undefined;
  const proofs = row.proofs.filter((each) => each.proofId !== proofId);
  return proofs.length > 0 ? { proofs } : undefined;
}

function distinctDigests(proof: IndexedProof): readonly string[] {
  return [...new Set(digestsOf(proof).map(({ sha256 }) => sha256))];
}

function holderOf(proof: IndexedProof, isShared: boolean): HolderRow {
  const { proofId, partnerId, createdAt } = proof;
  const digests = digestsOf(proof);
  return {
    proofId,
    partnerId,
    createdAt,
    kinds: digests.reduce((kinds, { kind }) => kinds | (1 << DIGEST_KINDS.indexOf(kind)), 0),
    digests: Buffer.from(digests.map(({ sha256 }) => sha256).join(''), 'hex'),
    ...(isShared && { isShared }),
  };
}

function foundProof({ proofId, partnerId, createdAt, kinds, digests, isShared }: HolderRow): FoundProof {
  const text = Buffer.from(digests.buffer, digests.byteOffset, digests.length).toString('hex');
  let at = 0;
  const [file, bound, original, samples] = DIGEST_KINDS.map((_, i) => {
    if ((kinds & (1 << i)) === 0) return undefined;
    at += SHA256_DIGITS;
    return text.slice(at - SHA256_DIGITS, at);
  });
  return {
    proofId,
    partnerId,
    createdAt,
    boundAudioSha256: bound!,
    originalSha256: original!,
    ...(file !== undefined && { fileSha256: file }),
    ...(samples !== undefined && { samplesSha256: samples }),
    ...(!isShared && { isAlone: true }),
  };
}

/** Finds proofs by digests. One read of the database returns the proofs of all digests, and another one of further ones. */
export async function findByDigests(
  rows: Rows,
  digests: readonly string[],
  limit: number,
  further: FurtherDigests = () => [],
): Promise<ReadonlyMap<string, readonly FoundProof[]>> {
  const found = new Map<string, readonly FoundProof[]>();
  const lookFor = async (wanted: readonly string[]): Promise<void> => {
    const holders = await rows.getMany(wanted.map(holdersKey));
    for (const [i, row] of holders.entries()) {
      if (row === undefined) continue;
      const sha256 = wanted[i]!;
      const proofs = 'count' in row ? await listHolders(rows, sha256, limit) : row.proofs.map(foundProof);
      found.set(sha256, newest(proofs, limit));
    }
  };
  await lookFor(digests);
  const others = notIn(digests, further(found));
  if (others.length > 0) await lookFor(others);
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

function newest(proofs: readonly FoundProof[], limit: number): readonly FoundProof[] {
  if (proofs.length === 1) return proofs;
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
