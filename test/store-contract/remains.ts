import type { Test } from 'tap';
import type { Stores } from '../../src/service/ports/stores.js';
import {
  audit,
  issuedProof,
  issuingReplay,
  NOW,
  overlayOf,
  storedDeclaration,
  summaryOf,
} from './samples.js';

/** Marks in the content that an erasure must delete, by the kind of content. */
export const MARKS = {
  facts: 'mark-of-the-facts',
  detail: 'mark-of-the-detail',
  trace: 'mark-of-the-trace',
  declaration: 'mark-of-the-subject',
  consent: 'mark-of-the-consent',
  conflict: 'mark_of_the_conflict',
  summary: 'mark_of_the_summary',
} as const;
export type Mark = keyof typeof MARKS;

/**
 * Creates a proof with evidence, declarations and consent, as issuing and operator leave it. Each has its
 * mark.
 */
export async function markedProof(stores: Stores, proofId: string, partnerId: string) {
  const proof = issuedProof(proofId, partnerId, {
    evidence: {
      engineVersion: 1,
      traceSha256: MARKS.trace,
      parts: [{ part: 'facts', bytes: 17, sha256: 'ab'.repeat(32), place: 'registry' }],
    },
  });
  await stores.reserveProof(proofId, partnerId, NOW);
  await stores.issueProof(
    proof,
    audit(partnerId, 'proof_issued', proofId),
    issuingReplay(`replay-${proofId}`, proofId),
    [
      { part: 'facts', body: Buffer.from(MARKS.facts) },
      { part: 'detail', body: Buffer.from(MARKS.detail) },
    ],
  );
  const overlay = {
    ...overlayOf([storedDeclaration('sub_1', { subject: MARKS.declaration })]),
    consent: { consentVersion: MARKS.consent, grantedAt: NOW },
    facts: [{ code: MARKS.conflict, contentClass: 'explicit_conflict', status: 'needs_review' } as const],
  };
  await stores.changeOverlay(
    proofId,
    () => ({ result: 'changed', overlay, summary: summaryOf(overlay.mac, MARKS.summary) }),
    audit(partnerId, 'declaration_recorded', proofId, 'sub_1'),
  );
  return {
    proof,
    erase: () => stores.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId)),
  };
}

/** Returns the names of the marks that a store's raw content has. */
export function marksIn(content: string): readonly Mark[] {
  return (Object.keys(MARKS) as Mark[]).filter((mark) => content.includes(MARKS[mark]));
}

/**
 * Checks that all marks are found while the proof exists. Otherwise their later absence would show nothing.
 */
export function allFound(t: Test, content: string): void {
  t.strictSame(marksIn(content), Object.keys(MARKS), 'the store has everything while the proof exists');
}
