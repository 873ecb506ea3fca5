import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { DomainError } from '../../src/core/domain/errors.js';
import { formatIdentifier } from '../../src/core/domain/identifiers.js';
import type { Displacement } from '../../src/core/ports/audio-engine.js';
import { SCOPES, type Scope, SHIPPED_PLANS } from '../../src/service/domain/partner.js';
import { MAX_UPLOAD_BYTES } from '../../src/service/domain/upload.js';
import type { VerificationResult } from '../../src/service/domain/verification.js';
import type { ListenerLimits } from '../../src/service/http/exchange.js';
import { createOperatorListener } from '../../src/service/http/operator-listener.js';
import { createPartnerListener, type PartnerListenerParts } from '../../src/service/http/partner-listener.js';
import type { Caller } from '../../src/service/operations/caller.js';
import type { IssueRequest } from '../../src/service/operations/issuing/issue-proof.js';
import type { Operations } from '../../src/service/operations/operations.js';
import type { StoredUpload, UploadReceiver } from '../../src/service/operations/uploads/receive-upload.js';
import type { AdmittedFile } from '../../src/service/operations/verification/verify-file.js';
import type { FaultedCall, Observer, Refusal } from '../../src/service/ports/observer.js';
import type { RequestLog, RequestRecord } from '../../src/service/ports/request-log.js';
import type { Ids } from '../../src/service/ports/system.js';
import { MemoryContract } from './memory-contract.js';

export const KEY = 'tmk_production_test_key';
/** The API key of a second partner. */
export const OTHER_KEY = 'tmk_production_other_key';
export const TOKEN = 'operator-token-for-tests';
export const FIELDS = { policy: 'a-signed-policy', signature: 'its-signature' };

export const ids: Ids = {
  next: (kind) => formatIdentifier(kind, Date.now(), randomBytes(10)),
  random: (length) => randomBytes(length),
};

/** The use cases in memory, hashing for real, with handles to make them fail, wait and be counted. */
export class MemoryOperations implements Operations {
  /** The signals of the calls, in the order of the calls. */
  readonly signals: AbortSignal[] = [];
  scopes: readonly Scope[] = SCOPES;
  /** The partners by API key. */
  readonly partners = new Map([
    [KEY, 'ptr_1'],
    [OTHER_KEY, 'ptr_2'],
  ]);
  readonly contract = new MemoryContract(ids);
  maxBytes = MAX_UPLOAD_BYTES;
  /** The length of the large file that the slots are for. */
  largeBytes: number | undefined;
  /** The error that receiveUpload and verifyFile throw while it is set. */
  refusal: DomainError | undefined;
  /** The wait of each write, as with a full engine. */
  gate: (() => Promise<void>) | undefined;
  verifyFault: Error | undefined;
  /** The promise that each verify awaits. */
  verifyGate: Promise<void> | undefined;
  readonly uploads = new Map<string, StoredUpload>();
  readonly opened: string[] = [];
  aborted = 0;
  written = 0;
  /** The calls that may send a file and have not ended. */
  admittedFiles = 0;
  releasedFiles = 0;
  /** The promise that a call awaits before it may send its file. */
  admitGate: Promise<void> | undefined;
  /** The request that each Idempotency-Key of a file is bound to. */
  readonly #requests = new Map<string, string>();
  verified: { uploadId: string; sidecar?: Uint8Array }[] = [];
  issued: (Omit<IssueRequest, 'audio'> & { bytes: number; sha256: string })[] = [];
  asset: { fileName: string; stream: () => Readable; bytes: number } = {
    fileName: 'Morgenröte "1".wav',
    stream: () => Readable.from([Buffer.from('RIFF'), Buffer.from('data')]),
    bytes: 8,
  };

  readonly partner: Operations['partner'] = {
    ...this.contract.partner(),
    authenticate: async (apiKey): Promise<Caller> => {
      const partnerId = this.partners.get(apiKey ?? '');
      if (partnerId === undefined)
        throw apiKey === undefined
          ? new DomainError('forbidden', 'The key is missing.', { reason: 'key_missing' })
          : new DomainError('forbidden', 'The key is not valid.');
      return { partnerId, keyId: 'key_1', scopes: this.scopes, plan: SHIPPED_PLANS[1]! };
    },
    createUpload: async (_caller, request) => {
      const uploadId = ids.next('upload');
      return {
        uploadId,
        url: `http://127.0.0.1/uploads/${uploadId}`,
        fields: { ...FIELDS, purpose: request.purpose },
        maxBytes: request.contentLength ?? MAX_UPLOAD_BYTES,
        units: 1,
        expiresAt: 1,
      };
    },
    receiveUpload: async (uploadId, fields, leastBytes = 0) => {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.refusal !== undefined) throw this.refusal;
      for (const name of fields.keys())
        if (!(name in FIELDS))
          throw new DomainError('invalid_request', 'A field is not part of the slot.', {
            reason: 'form_field_unknown',
          });
      for (const name of Object.keys(FIELDS))
        if (!fields.has(name))
          throw new DomainError('invalid_request', 'A field of the slot is missing.', {
            reason: 'form_field_missing',
          });
      if (fields.get('signature') !== FIELDS.signature)
        throw new DomainError('forbidden', 'The form is not signed.', { reason: 'form_policy_invalid' });
      if (leastBytes > this.maxBytes)
        throw new DomainError('payload_too_large', 'The file is too large.', { reason: 'body_too_large' });
      if (this.uploads.has(uploadId))
        throw new DomainError('conflict', 'The slot has been used.', { reason: 'upload_already_used' });
      this.opened.push(uploadId);
      return this.#receiver(uploadId);
    },
    verifyFile: async (_caller, { idempotencyKey }): Promise<AdmittedFile> => {
      await this.admitGate;
      if (this.refusal !== undefined) throw this.refusal;
      this.admittedFiles += 1;
      let released = false;
      return {
        open: (sidecar) => {
          const uploadId = ids.next('upload');
          this.opened.push(uploadId);
          const { finish, ...receiver } = this.#receiver(uploadId);
          return {
            ...receiver,
            finish: async () => {
              const { bytes, sha256 } = await finish();
              await this.verifyGate;
              if (this.verifyFault !== undefined) throw this.verifyFault;
              this.verified.push({ uploadId, ...(sidecar === undefined ? {} : { sidecar }) });
              const request = `${sha256} ${sidecar === undefined ? '' : Buffer.from(sidecar).toString('hex')}`;
              const earlier = this.#requests.get(idempotencyKey ?? '');
              if (earlier !== undefined && earlier !== request)
                throw new DomainError('conflict', 'The key has been used.', {
                  reason: 'idempotency_key_reused',
                });
              if (idempotencyKey !== undefined) this.#requests.set(idempotencyKey, request);
              const result = { ...VERIFICATION, audio: { ...VERIFICATION.audio, bytes, sha256 } };
              return { result, replayed: earlier !== undefined };
            },
          };
        },
        release: () => {
          if (released) return;
          this.admittedFiles -= 1;
          this.releasedFiles += 1;
          released = true;
        },
      };
    },
    verifyUpload: async (_caller, request): Promise<VerificationResult> => {
      this.verified.push(request);
      await this.verifyGate;
      if (this.verifyFault !== undefined) throw this.verifyFault;
      const upload = this.uploads.get(request.uploadId);
      if (upload === undefined) throw new DomainError('not_found', 'There is no such upload.');
      return VERIFICATION;
    },
    until: (signal): Operations['partner'] => {
      this.signals.push(signal);
      return this.partner;
    },
  };

  readonly operator: Operations['operator'] = {
    ...this.contract.operator(),
    createPartner: async ({ name, plan }) => ({
      partnerId: ids.next('partner'),
      name,
      plan: plan ?? 'standard',
      createdAt: 1,
    }),
    createKey: async ({ name }) => ({ keyId: ids.next('key'), apiKey: 'tmk_secret', name }),
    issueProof: async ({ audio, ...request }) => {
      if (request.partnerId === 'ptr_none') throw new DomainError('not_found', 'There is no such partner.');
      const hash = createHash('sha256');
      let bytes = 0;
      for await (const chunk of audio) {
        hash.update(chunk);
        bytes += chunk.length;
        if (bytes > this.maxBytes)
          throw new DomainError('payload_too_large', 'The file is too large.', { reason: 'body_too_large' });
        this.written = bytes;
      }
      const sha256 = hash.digest('hex');
      const replayed =
        request.idempotencyKey !== undefined &&
        this.issued.some(({ idempotencyKey }) => idempotencyKey === request.idempotencyKey);
      this.issued.push({ ...request, bytes, sha256 });
      return {
        proofId: 'prf_1',
        issuedAt: 1,
        carrier: request.carrier,
        originalSha256: sha256,
        boundAudioSha256: sha256,
        asset: { bytes, sha256, fileName: request.fileName, mediaType: 'audio/wav' },
        replayed,
      };
    },
    readAsset: async (proofId, part) => {
      if (proofId !== 'prf_1') throw new DomainError('not_found', 'There is no such proof.');
      if (part === 'sidecar')
        return {
          bytes: 3,
          sha256: '',
          fileName: 'a.sidecar',
          mediaType: 'application/octet-stream',
          read: async () => Readable.from([Buffer.from('abc')]),
        };
      const { fileName, stream, bytes } = this.asset;
      return { bytes, sha256: '', fileName, mediaType: 'audio/wav', read: async () => stream() };
    },
    readSnapshot: async () => Readable.from([Buffer.from('rows')]),
    readAuthority: () => '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n',
    until: (signal): Operations['operator'] => {
      this.signals.push(signal);
      return this.operator;
    },
  };

  #receiver(uploadId: string): UploadReceiver {
    const hash = createHash('sha256');
    let bytes = 0;
    let writing = 0;
    let done = false;
    return {
      signal: new AbortController().signal,
      ...(this.largeBytes !== undefined && { largeBytes: this.largeBytes }),
      write: (chunk) => {
        hash.update(chunk);
        bytes += chunk.length;
        if (bytes > this.maxBytes)
          throw new DomainError('payload_too_large', 'The file is too large.', { reason: 'body_too_large' });
        this.written = bytes;
        if (this.gate === undefined) return undefined;
        writing += 1;
        return this.gate().finally(() => (writing -= 1));
      },
      finish: async () => {
        // As a real engine does.
        if (writing > 0) throw new Error('one write at a time');
        done = true;
        const stored = { uploadId, bytes, sha256: hash.digest('hex') };
        this.uploads.set(uploadId, stored);
        return stored;
      },
      abort: () => {
        if (!done) this.aborted += 1;
        done = true;
      },
    };
  }
}

export const VERIFICATION: VerificationResult = {
  verdict: 'unregistered',
  good: false,
  decision: {
    status: 'invalid_proof',
    reasons: ['proof_not_registered'],
    recommendedAction: 'reject',
    credentialCarrier: 'embedded',
    sourceDetailCoverage: 'none',
    counts: { declarations: 0, conflicts: 0, unverifiable: 0 },
  },
  verifiedAt: 1,
  audio: {
    container: 'riff',
    bytes: 1,
    sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  },
};

/** Keeps what was reported. */
export class MemoryReports implements Observer, RequestLog {
  readonly records: RequestRecord[] = [];
  readonly uploads: string[] = [];
  readonly faults: unknown[] = [];
  /** The calls of the faults, in the same order. */
  readonly faultedCalls: (FaultedCall | undefined)[] = [];
  readonly displacements: Displacement[] = [];
  readonly refusals: Refusal[] = [];
  request(record: RequestRecord): void {
    this.records.push(record);
  }
  verdict(): void {}
  productEvent(): void {}
  refused(reason: Refusal): void {
    this.refusals.push(reason);
  }
  displaced(reason: Displacement): void {
    this.displacements.push(reason);
  }
  issued(): void {}
  events(): void {}
  upload(outcome: string): void {
    this.uploads.push(outcome);
  }
  fault(_where: string, error: unknown, call?: FaultedCall): void {
    this.faults.push(error);
    this.faultedCalls.push(call);
  }
}

export async function startPartner(
  limits: Partial<ListenerLimits> = {},
  parts: Pick<PartnerListenerParts, 'budget' | 'trustedProxies' | 'assertOpen' | 'isBusy'> = {},
  environment = 'production',
) {
  const operations = new MemoryOperations();
  const reports = new MemoryReports();
  const build = { version: '1.0.0', commit: 'abc', deployedAt: 1, environment };
  const listener = createPartnerListener({
    operations: operations.partner,
    build,
    ids,
    requestLog: reports,
    observer: reports,
    requestIdHeader: 'X-Gateway-Id',
    limits,
    ...parts,
  });
  const { port } = await listener.listen(0, '127.0.0.1');
  return { operations, reports, listener, port };
}

export async function startOperator(limits: Partial<ListenerLimits> = {}) {
  const operations = new MemoryOperations();
  const reports = new MemoryReports();
  const state = { ready: true, missing: [] as string[] };
  const listener = createOperatorListener({
    operations: operations.operator,
    tokens: [TOKEN],
    metrics: async () => ({ mediaType: 'text/plain; version=0.0.4', text: 'takemark_up 1\n' }),
    names: ['probes.internal', '.mesh.internal'],
    ready: async () => {
      if (!state.ready)
        throw new DomainError('unavailable', 'The store does not respond.', { reason: 'store_unavailable' });
      return { issuing: { ok: true }, ...(state.missing.length === 0 ? {} : { missing: state.missing }) };
    },
    ids,
    requestLog: reports,
    observer: reports,
    limits,
  });
  const { port } = await listener.listen(0, '127.0.0.1');
  return { operations, reports, listener, port, state };
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
