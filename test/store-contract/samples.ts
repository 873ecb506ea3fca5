import type { AuditAction, AuditDraft } from '../../src/service/domain/audit.js';
import type { Partner, PartnerKey } from '../../src/service/domain/partner.js';
import type { IssuedProof } from '../../src/service/domain/proof.js';
import { REVIEW_LIFE_SECONDS, type ReviewCase } from '../../src/service/domain/review.js';
import {
  FACTS_LIFE_SECONDS,
  SLOT_LIFE_SECONDS,
  type UploadFacts,
  type UploadSlot,
} from '../../src/service/domain/upload.js';
import type { IssuingReplay, ProofStore, Rotation, UsageCharge } from '../../src/service/ports/stores.js';
import type { StoredDeclaration } from '../../src/witness/domain/declaration.js';
import type { EvidenceOverlay } from '../../src/witness/domain/evidence.js';
import type { StoredSummary } from '../../src/witness/domain/evidence-summary.js';

/** The last second of a month in Unix seconds: 2026-03-31T23:59:59Z. */
export const NOW = 1_775_001_599;

export function partner(partnerId: string): Partner {
  return { partnerId, name: 'Größenwahn Records', plan: 'standard', createdAt: NOW };
}

export function partnerKey(keyId: string, partnerId: string, over: Partial<PartnerKey> = {}): PartnerKey {
  return {
    keyId,
    partnerId,
    name: 'live',
    scopes: ['verify', 'usage'],
    secretHash: 'ab'.repeat(32),
    pepperId: 'pepper-1',
    createdAt: NOW,
    ...over,
  };
}

/** @param mark distinguishes the rotations of several callers */
export function rotation(key: PartnerKey, newKeyId: string, mark: number): Rotation {
  return {
    keyId: key.keyId,
    partnerId: key.partnerId,
    newKeyId,
    rotatedAt: NOW + 10,
    previousKeyExpiresAt: NOW + 10 + 72 * 3600,
    replayUntil: NOW + 10 + 24 * 3600,
    replay: { nonce: String(mark).padStart(64, '0'), secretId: 'rotation-1' },
  };
}

export function reviewCase(
  reviewId: string,
  partnerId: string,
  proofId: string,
  over: Partial<ReviewCase> = {},
): ReviewCase {
  const createdAt = over.createdAt ?? NOW;
  return {
    reviewId,
    partnerId,
    proofId,
    bindings: {
      creatorId: 'creator-1',
      accountId: 'account:1',
      submissionId: 'submission.1',
      trackId: 'track_1',
    },
    status: 'open',
    createdAt,
    updatedAt: createdAt,
    expiresAt: createdAt + REVIEW_LIFE_SECONDS,
    evidenceRequests: [],
    ...over,
  };
}

export function audit(partnerId: string, action: AuditAction, ...subjects: readonly string[]): AuditDraft {
  return { partnerId, action, at: NOW, actor: 'operator', subjects };
}

export function uploadSlot(uploadId: string, createdAt = NOW): UploadSlot {
  return {
    uploadId,
    partnerId: 'ptr_test',
    purpose: 'verify',
    contentLength: 1000,
    createdAt,
    expiresAt: createdAt + SLOT_LIFE_SECONDS,
  };
}

/** @param mark distinguishes the facts of several writers */
export function uploadFacts(slot: UploadSlot, mark: string, uploadedAt = slot.createdAt + 1): UploadFacts {
  return {
    uploadId: slot.uploadId,
    partnerId: slot.partnerId,
    purpose: slot.purpose,
    uploadedAt,
    expiresAt: uploadedAt + FACTS_LIFE_SECONDS,
    measurement: {
      bytes: 68_157_440,
      sha256: 'cd'.repeat(32),
      container: 'rf64',
      data: { offset: 80, size: 2 ** 40 },
      chunkCount: 3,
      findings: [{ slug: 'chunk_past_end', offset: 2 ** 33 }],
      broadcastWave: false,
      credential: { offset: 17, length: 9 },
    },
    embedded: {
      kind: 'foreign',
      report: {
        format: 'c2pa',
        generator: mark,
        integrity: 'not_checked',
        trust: 'unknown',
        reasons: ['compressed_manifest'],
      },
    },
  };
}

/** Returns the summary that belongs to an overlay. */
export function summaryOf(overlayMac: string, ...codes: readonly string[]): StoredSummary {
  const counts = { declarations: 0, conflicts: 0, unverifiable: codes.length };
  return { version: 1, overlayMac, status: 'recorded', counts, codes };
}

export function issuedProof(
  proofId: string,
  partnerId: string,
  over: Partial<IssuedProof> = {},
): IssuedProof {
  return {
    state: 'issued',
    proofId,
    partnerId,
    song: { title: 'Déjà vu 🎧' },
    carrier: 'sidecar',
    createdAt: NOW,
    kid: '12'.repeat(32),
    originalSha256: '34'.repeat(32),
    boundAudioSha256: '56'.repeat(32),
    credentialSha256: '78'.repeat(32),
    asset: { bytes: 1234, sha256: '9a'.repeat(32), fileName: 'song.aiff', mediaType: 'audio/aiff' },
    sidecar: Uint8Array.from({ length: 300 }, (_, i) => i & 0xff),
    ...over,
  };
}

export function storedDeclaration(
  submissionId: string,
  over: Partial<StoredDeclaration> = {},
): StoredDeclaration {
  return {
    surveyVersion: '1',
    submissionId,
    subject: 'creator_1',
    submittedAt: NOW - 60,
    answers: { declaredOrigin: 'own_material', aiShareBand: 'none' },
    recordedAt: NOW,
    mac: 'ab'.repeat(32),
    ...over,
  };
}

export function overlayOf(
  declarations: readonly StoredDeclaration[],
  revision = declarations.length,
): EvidenceOverlay {
  return {
    revision,
    engineVersion: 1,
    declarations,
    consent: { consentVersion: '2026-01', grantedAt: NOW },
    facts: [
      {
        code: 'a_conflict',
        contentClass: 'explicit_conflict',
        status: 'needs_review',
        values: { imports: 3 },
      },
    ],
    mac: 'ef'.repeat(32),
  };
}

export function issuingReplay(key: string, proofId: string, expiresAt = NOW + 86_400): IssuingReplay {
  return { key, requestSha256: 'be'.repeat(32), proofId, expiresAt };
}

export function usageCharge(
  partnerId: string,
  dedupeKey: string,
  over: Partial<UsageCharge> = {},
): UsageCharge {
  return {
    partnerId,
    operation: 'verify',
    dedupeKey,
    at: NOW,
    monthlyQuota: 1_000_000,
    dedupeUntil: NOW + 7200,
    ...over,
  };
}

/**
 * Takes back ids that were reserved before a time.
 * @returns the ids, whose files have all been removed
 */
export async function takeBack(
  stores: Pick<ProofStore, 'collectReservations'>,
  before: number,
): Promise<readonly string[]> {
  const ids: string[] = [];
  await stores.collectReservations(before, async (proofId) => {
    ids.push(proofId);
    return true;
  });
  return ids;
}

let batches = 0;

/** Returns the number of a batch of free calls, higher than all before. */
export function nextBatch(): number {
  batches += 1;
  return batches;
}
