import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { DomainError, type ErrorReason } from '../../src/core/domain/errors.js';
import type { AuditEntry } from '../../src/service/domain/audit.js';
import type { Device } from '../../src/service/domain/device.js';
import { type Partner, SHIPPED_PLANS } from '../../src/service/domain/partner.js';
import {
  openEvidence,
  type ReviewCase,
  type ReviewChange,
  resolveReview,
  stepEvidence,
} from '../../src/service/domain/review.js';
import type { KeyEntry } from '../../src/service/operations/keys/list-keys.js';
import type { Operations } from '../../src/service/operations/operations.js';
import type { ProofDetail } from '../../src/service/operations/proofs/read-proofs.js';
import type { ReviewView } from '../../src/service/operations/reviews/reviews.js';
import type { SignerEntry } from '../../src/service/operations/system/signers.js';
import type { QuotaFacts } from '../../src/service/operations/usage/quota.js';
import type { Ids } from '../../src/service/ports/system.js';
import { BINDING_STATUS } from '../../src/witness/domain/declaration.js';
import { composeReport } from '../../src/witness/report/compose-report.js';
import { withPlainReport } from '../fixtures/plain-report.js';

/** A deliverable in which each byte depends on its offset. */
export const ASSET = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251));
export const ASSET_SHA256 = createHash('sha256').update(ASSET).digest('hex');
const SIDECAR = Buffer.from('the sidecar');
const NOW = 1_767_225_600;

/**
 * The independent double of the operations: the tests of the listeners and of the generated requests run on it. It has
 * no code of `src/service/operations`, so these tests compare the contract with a second implementation. A test reads
 * its state, and makes it refuse, fail or wait. Real operations would need keys, stores and an engine for that.
 */
export class MemoryContract {
  readonly proofs = new Map<string, ProofDetail>();
  readonly erased = new Map<string, number>();
  readonly reviews = new Map<string, ReviewCase>();
  readonly reviewReplays = new Map<string, ReviewCase>();
  readonly rotations = new Map<
    string,
    {
      readonly apiKey: string;
      readonly keyId: string;
      readonly name: string;
      readonly previousKeyExpiresAt: number;
    }
  >();
  readonly admitted: string[] = [];
  readonly metered: string[] = [];
  readonly asked: unknown[] = [];
  quota: QuotaFacts = {
    limit: 100_000,
    remaining: 99_999,
    reset: 1_769_904_000,
    resetSeconds: 60,
  };
  quotaFault: Error | undefined;
  /** The error that admit throws while it is set. */
  rateRefusal: DomainError | undefined;
  readonly #ids: Ids;
  readonly #devices = new Map<string, Device>();

  constructor(ids: Ids) {
    this.#ids = ids;
    for (let i = 1; i <= 3; i += 1) {
      const proofId = `prf_${i}`;
      this.proofs.set(proofId, {
        proofId,
        issuedAt: NOW + i,
        createdAt: NOW + i,
        song: { title: `Take ${i} – 夜明け` },
        carrier: 'sidecar',
        boundAudioSha256: ASSET_SHA256,
        originalSha256: ASSET_SHA256,
        delivery: {
          carrier: 'sidecar',
          bytes: ASSET.length,
          sha256: ASSET_SHA256,
          mediaType: 'audio/wav',
          fileName: 'take.wav',
        },
      });
    }
  }

  partner(): Omit<
    Operations['partner'],
    'authenticate' | 'createUpload' | 'receiveUpload' | 'until' | 'verifyFile' | 'verifyUpload'
  > {
    return {
      checkSignature: () => undefined,
      admit: (_caller, lane, check) => {
        this.admitted.push(lane);
        if (this.rateRefusal !== undefined) throw this.rateRefusal;
        return check();
      },
      rate: () => ({ remaining: 99, resetSeconds: 1 }),
      quota: async () => {
        if (this.quotaFault !== undefined) throw this.quotaFault;
        return this.quota;
      },
      meter: (_caller, operation) => void this.metered.push(operation),
      identify: async (_caller, request) => {
        if (request.digests !== undefined)
          return {
            results: request.digests.map(({ sha256, of }) => ({
              sha256,
              matches: of === 'samples' ? [{ proofId: 'prf_1', type: 'same_samples', confidence: 1 }] : [],
            })),
          };
        if (request.uploadId === 'upl_text')
          throw new DomainError('unprocessable', 'The file is no audio that the service knows.');
        if (!request.uploadId.startsWith('upl_'))
          throw new DomainError('not_found', 'There is no such upload.');
        return {
          matches: [{ proofId: 'prf_1', type: 'bound_audio', confidence: 1 }],
          samples: null,
          samplesReason: 'encoding_unsupported',
        };
      },
      listProofs: async (_caller, query) => {
        this.asked.push(query);
        if (query.cursor !== undefined && query.cursor !== 'bmV4dA')
          throw new DomainError('invalid_request', 'The cursor is not one of this list.', {
            reason: 'invalid_member',
          });
        const proofs = [...this.proofs.values()].map(
          ({
            createdAt: _createdAt,
            originalSha256: _originalSha256,
            delivery: _delivery,
            evidenceReport: _evidenceReport,
            ...entry
          }) => entry,
        );
        return query.limit === undefined
          ? { proofs }
          : { proofs: proofs.slice(0, query.limit), nextCursor: 'bmV4dA' };
      },
      readProof: async (_caller, { proofId }) => this.#proof(proofId),
      readRecord: async (_caller, { proofId }) => {
        const { song, issuedAt, boundAudioSha256, evidenceReport, delivery } = this.#proof(proofId);
        return {
          proofId,
          song,
          issuedAt,
          boundAudioSha256,
          ...(evidenceReport === undefined ? {} : { evidenceReport }),
          delivery,
        };
      },
      sandboxFixtures: async () => ({ fixtures: [] }),
      sandboxFile: async () => {
        throw new DomainError('not_found', 'The sandbox has no such file.');
      },
      readAsset: async (_caller, proofId, part) => {
        this.#proof(proofId);
        const bytes = part === 'sidecar' ? SIDECAR : ASSET;
        return {
          bytes: bytes.length,
          sha256: createHash('sha256').update(bytes).digest('hex'),
          fileName: part === 'sidecar' ? '夜明け.sidecar' : '夜明け "1".wav',
          mediaType: part === 'sidecar' ? 'application/octet-stream' : 'audio/wav',
          read: async (range) => {
            this.asked.push(range);
            return Readable.from([range === undefined ? bytes : bytes.subarray(range.start, range.end + 1)]);
          },
        };
      },
      eraseProof: async (_caller, { proofId }) => {
        const erasedAt = this.erased.get(proofId);
        if (erasedAt !== undefined) return { proofId, outcome: 'already_erased', erasedAt };
        this.#proof(proofId);
        this.proofs.delete(proofId);
        this.erased.set(proofId, NOW);
        return { proofId, outcome: 'erased', erasedAt: NOW };
      },
      listKeys: async (_caller, query) => {
        this.asked.push(query);
        return query.limit === undefined
          ? { keys: [KEY_ENTRY] }
          : { keys: [KEY_ENTRY], nextCursor: 'bmV4dA' };
      },
      rotateKey: async (_caller, apiKey, idempotencyKey) => {
        const earlier = this.rotations.get(idempotencyKey);
        if (earlier !== undefined) return { ...earlier, replayed: true };
        if (this.rotations.size > 0) throw conflict('already_rotated');
        const rotated = {
          apiKey: `${apiKey}_new`,
          keyId: 'key_2',
          name: 'ingest',
          previousKeyExpiresAt: NOW,
        };
        this.rotations.set(idempotencyKey, rotated);
        return { ...rotated, replayed: false };
      },
      revokeOwnKey: async (_caller, { keyId }) => {
        if (keyId !== KEY_ENTRY.keyId) throw new DomainError('not_found', 'There is no such key.');
        return { ...KEY_ENTRY, status: 'revoked' };
      },
      readUsage: async (_caller, { days }) => ({
        plan: 'standard',
        period: { start: NOW, end: NOW + 1 },
        limit: 100_000,
        limits: { requestsPerSecond: 50, burst: 100, concurrentUploads: 8, rotationsPerDay: 5 },
        used: 1,
        remaining: 99_999,
        days: Array.from({ length: days }, (_, i) => ({
          day: new Date((NOW + i * 86_400) * 1000).toISOString().slice(0, 10),
          units: 1,
          operations: { verify: 1 },
        })),
      }),
      createReview: async (_caller, { proofId, bindings, idempotencyKey }) => {
        this.#proof(proofId);
        const earlier = idempotencyKey === undefined ? undefined : this.reviewReplays.get(idempotencyKey);
        if (earlier !== undefined) return { ...view(earlier), replayed: true };
        const review: ReviewCase = {
          reviewId: this.#ids.next('review'),
          partnerId: 'ptr_1',
          proofId,
          bindings,
          status: 'open',
          createdAt: NOW,
          updatedAt: NOW,
          expiresAt: NOW + 1,
          evidenceRequests: [],
        };
        for (const other of this.reviews.values())
          if (JSON.stringify([other.proofId, other.bindings]) === JSON.stringify([proofId, bindings]))
            throw conflict('review_exists');
        this.reviews.set(review.reviewId, review);
        if (idempotencyKey !== undefined) this.reviewReplays.set(idempotencyKey, review);
        return { ...view(review), replayed: false };
      },
      listReviews: async (_caller, { limit }) => {
        const reviews = [...this.reviews.values()].map(view);
        return limit === undefined ? { reviews } : { reviews: reviews.slice(0, limit), nextCursor: 'bmV4dA' };
      },
      readReview: async (_caller, { reviewId }) => view(this.#review(reviewId)),
      openEvidence: async (_caller, { reviewId, kind }) =>
        this.#change(openEvidence(this.#review(reviewId), kind, this.#ids.next('evidenceRequest'), NOW)),
      closeEvidence: async (_caller, { reviewId, requestId, status, responseReference }) =>
        this.#change(
          stepEvidence(
            this.#review(reviewId),
            requestId,
            status === 'accepted' ? 'accept' : 'decline',
            responseReference,
            NOW,
          ),
        ),
      resolveReview: async (_caller, { reviewId, outcome }) =>
        this.#change(resolveReview(this.#review(reviewId), outcome, NOW)),
      download: ({ product, platform }) => {
        if (product !== 'companion') throw new DomainError('not_found', 'There is no such download.');
        return `https://downloads.example.com/${product}/${platform}`;
      },
      telemetry: (_caller, events) => ({ accepted: events.length }),
    };
  }

  operator(): Pick<
    Operations['operator'],
    | 'listPartners'
    | 'listPlans'
    | 'createPlan'
    | 'setPlan'
    | 'assignPlan'
    | 'listPartnerKeys'
    | 'revokeKey'
    | 'supplyEvidence'
    | 'listPartnerReviews'
    | 'readPartnerReview'
    | 'importLegacy'
    | 'recordDeclaration'
    | 'listDeclarations'
    | 'erasureStatus'
    | 'listDeadLetters'
    | 'replayDeadLetters'
    | 'discardDeadLetters'
    | 'readAudit'
    | 'verifyAudit'
    | 'listSigners'
    | 'revokeSigner'
    | 'reinstateSigner'
    | 'listDevices'
    | 'enrolDevice'
    | 'approveSourceDetail'
    | 'withdrawSourceDetail'
    | 'grantConsent'
    | 'revokeConsent'
    | 'revokeDevice'
    | 'auditStores'
    | 'fillSamples'
  > {
    return {
      listPartners: async () => [PARTNER],
      listPlans: async () => SHIPPED_PLANS,
      createPlan: async (plan) => {
        const known = SHIPPED_PLANS.find(({ name }) => name === plan.name);
        if (known === undefined) return { plan, repeated: false };
        if (known.burst !== plan.burst) throw conflict('plan_exists');
        return { plan: known, repeated: true };
      },
      setPlan: async ({ plan, effect, ...limits }) => {
        const known = SHIPPED_PLANS.find(({ name }) => name === plan);
        if (known === undefined) throw new DomainError('not_found', 'There is no such plan.');
        return effect === 'at_once'
          ? { name: plan, ...limits }
          : { ...known, next: { ...limits, from: NOW + 1 } };
      },
      assignPlan: async ({ partnerId, plan, effect }) => {
        if (!SHIPPED_PLANS.some(({ name }) => name === plan))
          throw new DomainError('invalid_request', 'No plan has this name.', {
            reason: 'plan_unknown',
          });
        const partner = partnerOf(partnerId);
        return effect === 'at_once'
          ? { ...partner, plan }
          : { ...partner, nextPlan: { plan, from: NOW + 1 } };
      },
      listPartnerKeys: async (partnerId) => {
        if (partnerId !== 'ptr_1') throw new DomainError('not_found', 'There is no such partner.');
        return [KEY_ENTRY];
      },
      revokeKey: async ({ keyId }) => {
        if (keyId !== 'key_1') throw new DomainError('not_found', 'There is no such key of this partner.');
        return { ...KEY_ENTRY, status: 'revoked' };
      },
      listPartnerReviews: async ({ partnerId, limit, ...query }) => {
        partnerOf(partnerId);
        this.asked.push({ partnerId, ...query });
        const reviews = [...this.reviews.values()].map(view);
        return limit === undefined ? { reviews } : { reviews: reviews.slice(0, limit), nextCursor: 'bmV4dA' };
      },
      readPartnerReview: async ({ reviewId }) => this.#review(reviewId),
      supplyEvidence: async ({ reviewId, requestId }) =>
        this.#change(stepEvidence(this.#review(reviewId), requestId, 'supply', undefined, NOW)),
      importLegacy: async ({ proofId }) => {
        if (!this.proofs.has(proofId)) return { proofId, outcome: 'imported' };
        throw conflict('legacy_differs');
      },
      recordDeclaration: async (proofId, declaration) => {
        const known = withPlainReport(this.#proof(proofId)).evidenceReport?.declarations ?? [];
        const earlier = known.find(({ submissionId }) => submissionId === declaration.submissionId);
        if (earlier !== undefined && JSON.stringify(earlier.answers) !== JSON.stringify(declaration.answers))
          throw conflict('submission_id_reused');
        if (earlier !== undefined) return { declaration: earlier, repeated: true };
        const recorded = { ...declaration, recordedAt: NOW, bindingStatus: BINDING_STATUS } as const;
        this.proofs.set(proofId, {
          ...this.#proof(proofId),
          evidenceReport: composeReport({ declarations: [...known, recorded], altered: 0 }),
        });
        return { declaration: recorded, repeated: false };
      },
      listDeclarations: async (proofId) =>
        (withPlainReport(this.#proof(proofId)).evidenceReport?.declarations ?? []).map((declaration) => ({
          ...declaration,
          authentic: true,
        })),
      fillSamples: async (request) => {
        this.asked.push(request);
        return { looked: 0, filled: 0, without: 0, failed: [] };
      },
      auditStores: async (request) => {
        this.asked.push(request);
        return { findings: [], looked: 0 };
      },
      erasureStatus: async (proofId) => {
        const erasedAt = this.erased.get(proofId);
        if (erasedAt !== undefined)
          return { proofId, state: 'erased', erasedAt, confirmedAt: erasedAt + 1, assetPresent: false };
        this.#proof(proofId);
        return { proofId, state: 'issued', assetPresent: true };
      },
      listDeadLetters: async (request) => {
        this.asked.push(request);
        return [
          {
            topic: 'usage',
            position: '0/17',
            reason: 'the span is empty',
            at: NOW,
            eventId: 'units_counted/ptr_1/billed/2026-01/41',
            kind: 'units_counted',
          },
        ];
      },
      replayDeadLetters: async (request) => {
        this.asked.push(request);
        return 1;
      },
      discardDeadLetters: async (request) => {
        this.asked.push(request);
        return [{ topic: request.topic, position: '0/17', reason: 'the span is empty', at: NOW }];
      },
      readAudit: async (request) => {
        this.asked.push(request);
        return [AUDIT_ENTRY];
      },
      listSigners: async () => [SIGNER],
      revokeSigner: async ({ kid, ...revocation }) => ({
        ...signerOf(kid),
        revocation: { ...revocation, at: NOW },
      }),
      reinstateSigner: async ({ kid }) => signerOf(kid),
      approveSourceDetail: async ({ partnerId, consentVersion }) => ({
        ...partnerOf(partnerId),
        sourceDetail: { consentVersion, approvedAt: NOW },
      }),
      withdrawSourceDetail: async ({ partnerId }) => partnerOf(partnerId),
      grantConsent: async ({ proofId, ...consent }) => {
        this.#proof(proofId);
        if (proofId !== 'prf_1') throw conflict('source_detail_absent');
        return { proofId, consent };
      },
      revokeConsent: async ({ proofId }) => ({ proofId: this.#proof(proofId).proofId }),
      listDevices: async (request) => {
        this.asked.push(request);
        return { devices: [...this.#devices.values()], deviceCount: this.#devices.size };
      },
      enrolDevice: async (request) => {
        const known = this.#devices.get(request.deviceId);
        if (known?.revocation !== undefined) throw conflict('device_revoked');
        const device = { ...request, enrolledAt: NOW };
        this.#devices.set(request.deviceId, device);
        return { device, repeated: known !== undefined };
      },
      revokeDevice: async ({ deviceId, from = NOW }) => {
        const known = this.#devices.get(deviceId);
        if (known === undefined) throw new DomainError('not_found', 'There is no such device.');
        const device = { ...known, revocation: { from, at: NOW } };
        this.#devices.set(deviceId, device);
        return device;
      },
      verifyAudit: async () => ({ ok: true, entries: 1, head: 1 }),
    };
  }

  #proof(proofId: string): ProofDetail {
    const proof = this.proofs.get(proofId);
    if (proof === undefined) throw new DomainError('not_found', 'There is no such proof.');
    return proof;
  }

  #review(reviewId: string): ReviewCase {
    const review = this.reviews.get(reviewId);
    if (review === undefined) throw new DomainError('not_found', 'There is no such review.');
    return review;
  }

  #change(change: ReviewChange | undefined): ReviewView {
    if (change === undefined) throw new DomainError('not_found', 'There is no such review.');
    if ('refused' in change) throw conflict(change.refused);
    this.reviews.set(change.review.reviewId, change.review);
    return view(change.review);
  }
}

const PARTNER: Partner = { partnerId: 'ptr_1', name: 'Nordlicht', plan: 'standard', createdAt: NOW };

function partnerOf(partnerId: string): Partner {
  if (partnerId !== PARTNER.partnerId) throw new DomainError('not_found', 'There is no such partner.');
  return PARTNER;
}

const KEY_ENTRY: KeyEntry = {
  keyId: 'key_1',
  name: 'ingest',
  status: 'active',
  scopes: ['verify'],
  plan: 'standard',
  createdAt: NOW,
  lastUsedAt: NOW,
};
const AUDIT_ENTRY: AuditEntry = {
  partnerId: 'ptr_1',
  sequence: 1,
  action: 'partner_created',
  at: NOW,
  actor: 'operator',
  subjects: ['ptr_1'],
  mac: '0'.repeat(64),
};

const SIGNER: SignerEntry = {
  kid: 'ab'.repeat(32),
  algorithm: 'Ed25519',
  issuer: 'Takemark',
  notBefore: NOW,
  notAfter: NOW + 1,
  signs: true,
};

function signerOf(kid: string): SignerEntry {
  if (kid !== SIGNER.kid) throw new DomainError('not_found', 'There is no such signing certificate here.');
  return SIGNER;
}

function view({ partnerId: _partnerId, ...review }: ReviewCase): ReviewView {
  return review;
}

function conflict(reason: ErrorReason): DomainError {
  return new DomainError('conflict', 'The state does not allow this.', { reason });
}
