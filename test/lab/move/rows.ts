/**
 * What the store of the machine holds. Each row is a function of its number, so that both sides can be asked for it
 * without a list.
 */
import { createHash } from 'node:crypto';
import type { IssuedProof } from '../../../src/service/domain/proof.js';
import type { ReviewCase } from '../../../src/service/domain/review.js';
import type { UsageCharge } from '../../../src/service/ports/stores.js';
import { issuedProof, reviewCase, usageCharge } from '../../store-contract/samples.js';

/** A number without a common factor with the shares below, so that each partner has something of every kind. */
const PARTNER_COUNT = 19;
export const PARTNERS: readonly string[] = Array.from({ length: PARTNER_COUNT }, (_, i) => `ptr_move-${i}`);
export const REVIEW_AGE_SECONDS = 100 * 24 * 3600;
const DAY_SECONDS = 24 * 3600;

/** Every so many proofs, beginning with the number, one has what the name says. */
const SHARES = {
  erased: [20, 7],
  evidence: [10, 0],
  file: [50, 0],
  /** A file that is larger than a piece of an export. */
  large: [1000, 0],
  review: [10, 3],
  resolved: [40, 3],
  charge: [5, 1],
  replay: [5, 2],
} as const satisfies Readonly<Record<string, readonly [every: number, first: number]>>;

export function has(i: number, what: keyof typeof SHARES): boolean {
  const [every, first] = SHARES[what];
  return i % every === first;
}

export function proofIdOf(i: number): string {
  return `prf_move-${i}`;
}

export function reviewIdOf(i: number): string {
  return `rvw_move-${i}`;
}

export function partnerOf(i: number): string {
  return PARTNERS[i % PARTNERS.length]!;
}

/** @param now unix seconds of the first proof */
export function proofOf(i: number, now: number): IssuedProof {
  return issuedProof(proofIdOf(i), partnerOf(i), {
    createdAt: now,
    song: { title: `Take ${i}` },
    originalSha256: digestOf('original', i),
    boundAudioSha256: digestOf('bound', i),
  });
}

export function reviewOf(i: number, now: number): ReviewCase {
  return reviewCase(reviewIdOf(i), partnerOf(i), proofIdOf(i), { createdAt: now - REVIEW_AGE_SECONDS });
}

export function chargeOf(i: number, now: number): UsageCharge {
  return usageCharge(partnerOf(i), `unit-${i}`, {
    at: now,
    dedupeUntil: now + DAY_SECONDS,
    request: digestOf('request', i),
  });
}

export function traceOf(i: number): Buffer {
  return Buffer.alloc(2000, digestOf('trace', i));
}

export function fileOf(i: number): Buffer {
  return Buffer.alloc(has(i, 'large') ? 200_000 : 20_000, digestOf('file', i));
}

function digestOf(what: string, i: number): string {
  return createHash('sha256').update(`${what} ${i}`).digest('hex');
}
