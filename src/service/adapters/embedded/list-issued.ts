import type { IssuedProof } from '../../domain/proof.js';
import { following, type KeyRange, lastPart, preceding, proofKey } from './keys.js';
import type { Rows } from './rows.js';

/**
 * Returns the first `limit` issued proofs that an index's range names. A proof that is erased while the index is
 * read does not count, so that only the last page is short.
 */
export async function listIssued(
  rows: Rows,
  range: KeyRange,
  limit: number,
  reverse = false,
): Promise<readonly IssuedProof[]> {
  const found: IssuedProof[] = [];
  let rest = range;
  while (found.length < limit) {
    const entries = await rows.keys(rest, limit - found.length, reverse);
    const last = entries.at(-1);
    if (last === undefined) break;
    rest = reverse ? preceding(rest, last) : following(rest, last);
    for (const entry of entries) {
      const proof = rows.getKept(proofKey(lastPart(entry)));
      if (proof?.state === 'issued') found.push(proof);
    }
  }
  return found;
}
