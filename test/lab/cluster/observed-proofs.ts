/** Sound observations of proofs, for tests of the judges. */
import type { ObservedProof } from './judge.js';

export const AT = 1_800_000_000;
export const GONE: ObservedProof = {
  statuses: [404, 404],
  documents: [],
  records: [],
  assets: [],
  listed: false,
  state: 'erased',
  erasedAt: AT,
  confirmedAt: AT + 1,
  assetPresent: false,
};
export const THERE: ObservedProof = {
  statuses: [200, 200],
  documents: ['d', 'd'],
  records: ['r', 'r'],
  assets: ['a', 'a'],
  listed: true,
  state: 'issued',
  assetPresent: true,
};
