import { createHash } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { challengeKey, challengeResponse } from '../../src/service/contract/operator-challenge.js';
import { SHIPPED_PLANS } from '../../src/service/domain/partner.js';
import { REVIEW } from './review-case.js';

const STANDARD = SHIPPED_PLANS.find(({ name }) => name === 'standard')!;
const DEVICE = { deviceId: 'ab'.repeat(32), algorithm: 'Ed25519', enrolledAt: 1_767_225_600 };

const SIGNER = {
  kid: 'ab'.repeat(32),
  algorithm: 'Ed25519',
  issuer: 'Takemark',
  notBefore: 1,
  notAfter: 1_767_225_600,
  signs: false,
};
const DECLARATION = {
  surveyVersion: '1',
  submissionId: 'sub_1',
  subject: 'creator_1',
  submittedAt: 1_767_225_600,
  answers: { manualWork: 'entire', aiShareBand: 'none' },
  recordedAt: 1_767_225_700,
  bindingStatus: 'authenticated_post_issuance_record',
};

/**
 * Double of the operator listener, over real HTTP and without any credential: the deliverable is the audio
 * and a few bytes.
 */
export class OperatorDouble {
  url = '';
  readonly token = 'operator-token-of-the-double';
  readonly calls: {
    readonly method: string;
    readonly path: string;
    readonly query: URLSearchParams;
    readonly headers: http.IncomingHttpHeaders;
    readonly body: Buffer;
  }[] = [];
  /** Statuses to answer with before the ordinary answers. */
  refusals: number[] = [];
  /** Flips a byte of the next deliverable. */
  damage = false;
  readonly #challengeKey = challengeKey(this.token);
  #asset = Buffer.alloc(0);
  readonly #server = http.createServer((request, response) => void this.#answer(request, response));

  async start(): Promise<this> {
    this.#server.keepAliveTimeout = 0;
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    const body = await buffer(request);
    if (url.pathname === '/operator/v1/challenge') {
      const { port } = this.#server.address() as AddressInfo;
      response.end(
        JSON.stringify({
          port,
          answers: [challengeResponse(this.#challengeKey, url.searchParams.get('nonce') ?? '', port)],
        }),
      );
      return;
    }
    this.calls.push({
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body,
    });
    const send = (status: number, value: Buffer | object | string): void => {
      const bytes =
        Buffer.isBuffer(value) || typeof value === 'string'
          ? Buffer.from(value)
          : Buffer.from(JSON.stringify(value));
      response.writeHead(status, { 'x-request-id': 'rq_double', 'content-length': bytes.length }).end(bytes);
    };
    const refusal = this.refusals.shift();
    if (refusal !== undefined)
      return send(refusal, { error: 'Refused for the test.', code: 'refused', reason: 'a_reason' });
    if (request.headers.authorization !== `Bearer ${this.token}`)
      return send(403, { error: 'The token is not valid.', code: 'forbidden' });
    switch (`${request.method ?? ''} ${url.pathname}`) {
      case 'POST /operator/v1/partners':
        return send(201, {
          partnerId: 'ptr_1',
          plan: 'standard',
          createdAt: 1_767_225_600,
          ...(JSON.parse(body.toString()) as object),
        });
      case 'POST /operator/v1/partners/ptr_1/keys':
        return send(201, {
          keyId: 'key_1',
          apiKey: 'tmk_secret',
          ...(JSON.parse(body.toString()) as object),
        });
      case 'POST /operator/v1/proofs': {
        this.#asset = Buffer.concat([body, Buffer.from('credential')]);
        const sha256 = createHash('sha256').update(this.#asset).digest('hex');
        return send(201, {
          proofId: 'prf_1',
          issuedAt: 1_767_225_600,
          carrier: url.searchParams.get('carrier'),
          originalSha256: sha256,
          boundAudioSha256: sha256,
          asset: { bytes: this.#asset.length, sha256, fileName: 'a.wav', mediaType: 'audio/wav' },
          ...(url.searchParams.get('mend') === 'true' && {
            warnings: [{ code: 'list_malformed', offset: 36 }],
            mended: {
              sentSha256: 'a'.repeat(64),
              changes: [
                { offset: 4, from: 0xb5, to: 0xb4 },
                { offset: 443, to: 0 },
              ],
            },
          }),
        });
      }
      case 'GET /operator/v1/proofs/prf_1/asset': {
        if (url.searchParams.get('part') === 'sidecar') return send(200, 'the sidecar');
        const bytes = Buffer.from(this.#asset);
        if (this.damage) bytes[0] = (bytes[0] ?? 0) ^ 1;
        return send(200, bytes);
      }
      case 'GET /operator/v1/partners':
        return send(200, {
          partners: [
            {
              partnerId: 'ptr_1',
              name: 'Nord\u0007Licht',
              plan: 'standard',
              createdAt: 1_767_225_600,
              later: 1,
            },
          ],
        });
      case 'GET /operator/v1/plans':
        return send(200, { plans: [{ ...STANDARD, later: 1 }] });
      case 'POST /operator/v1/plans':
        return send(201, JSON.parse(body.toString()) as object);
      case 'PUT /operator/v1/plans/standard': {
        const { effect, ...limits } = JSON.parse(body.toString()) as { readonly effect: string };
        return send(
          200,
          effect === 'at_once'
            ? { name: 'standard', ...limits }
            : { ...STANDARD, next: { ...limits, from: 1_769_904_000 } },
        );
      }
      case 'PUT /operator/v1/partners/ptr_1/plan': {
        const { plan, effect } = JSON.parse(body.toString()) as {
          readonly plan: string;
          readonly effect: string;
        };
        const partner = { partnerId: 'ptr_1', name: 'N', plan: 'standard', createdAt: 1 };
        return send(
          200,
          effect === 'at_once'
            ? { ...partner, plan }
            : { ...partner, nextPlan: { plan, from: 1_769_904_000 } },
        );
      }
      case 'GET /operator/v1/partners/ptr_1/keys':
        return send(200, {
          keys: [
            {
              keyId: 'key_1',
              name: 'ingest',
              status: 'expiring',
              plan: 'standard',
              createdAt: 1,
              expiresAt: 1_767_225_600,
            },
          ],
        });
      case 'POST /operator/v1/partners/ptr_1/keys/key_1/revoke':
        return send(200, {
          keyId: 'key_1',
          name: 'ingest',
          status: 'revoked',
          plan: 'standard',
          createdAt: 1,
        });
      case 'GET /operator/v1/partners/ptr_1/reviews':
        return send(
          200,
          url.searchParams.has('cursor')
            ? { reviews: [REVIEW] }
            : {
                reviews: [{ ...REVIEW, reviewId: 'rev_2', createdAt: 1_767_312_000 }],
                nextCursor: 'bmV4dA',
              },
        );
      case 'GET /operator/v1/reviews/rev_1':
        return send(200, { partnerId: 'ptr_1', ...REVIEW });
      case 'POST /operator/v1/reviews/rev_1/evidence-requests/req_1/supply':
        return send(200, {
          reviewId: 'rev_1',
          proofId: 'prf_1',
          status: 'open',
          evidenceRequests: [{ requestId: 'req_1', kind: 'source_evidence', status: 'supplied' }],
        });
      case 'GET /operator/v1/proofs/prf_1/erasure':
        return send(200, {
          proofId: 'prf_1',
          state: 'erased',
          erasedAt: 1_767_225_600,
          confirmedAt: 1_767_225_601,
          assetPresent: false,
        });
      case 'POST /operator/v1/proofs/prf_1/declarations':
        return send(201, {
          ...(JSON.parse(body.toString()) as object),
          recordedAt: 1_767_225_700,
          bindingStatus: 'authenticated_post_issuance_record',
        });
      case 'GET /operator/v1/proofs/prf_1/declarations':
        return send(200, { declarations: [{ ...DECLARATION, authentic: true }] });
      case 'GET /operator/v1/proofs/prf_left/declarations':
        return send(200, {
          declarations: [
            { ...DECLARATION, authentic: true },
            { ...DECLARATION, submissionId: 'sub_2', authentic: false },
          ],
        });
      case 'GET /operator/v1/proofs/prf_left/erasure':
        return send(200, {
          proofId: 'prf_left',
          state: 'erased',
          erasedAt: 1_767_225_600,
          assetPresent: true,
        });
      case 'GET /operator/v1/dead-letters':
        return send(200, {
          deadLetters: [
            {
              topic: 'usage',
              position: '0/17',
              reason: 'the span is empty',
              at: 1_767_225_600,
              eventId: 'units_counted/ptr_1/x/4',
              kind: 'units_counted',
            },
            { topic: 'usage', position: '0/18', reason: 'not\u0007 an event', at: 1_767_225_600 },
          ],
        });
      case 'POST /operator/v1/dead-letters/replay':
        return send(200, { replayed: 2 });
      case 'POST /operator/v1/dead-letters/discard':
        return send(200, {
          deadLetters: [
            { topic: 'usage', position: '0/18', reason: 'not\u0007 an event', at: 1_767_225_600 },
          ],
        });
      case 'GET /operator/v1/partners/ptr_1/audit':
        return send(200, {
          entries: [
            {
              sequence: 7,
              at: 1_767_225_600,
              action: 'key_rotated',
              actor: 'key_1',
              subjects: ['key_1', 'key_2'],
              mac: 'ab',
            },
          ],
        });
      case 'GET /operator/v1/partners/ptr_1/audit/verification':
        return send(200, { ok: true, entries: 12 });
      case 'GET /operator/v1/partners/ptr_2/audit/verification':
        return send(200, { ok: false, entries: 9, fault: { sequence: 9, reason: 'truncated' } });
      case 'GET /operator/v1/partners/signers/audit/verification':
        return send(200, { ok: true, entries: 2 });
      case 'POST /operator/v1/samples/fill':
        return send(
          200,
          url.searchParams.get('from') === '2:'
            ? { looked: 1, filled: 1, without: 0, failed: [] }
            : { looked: 3, filled: 1, without: 1, failed: ['prf_1'], next: '2:' },
        );
      case 'GET /operator/v1/audit/stores':
        return send(
          200,
          url.searchParams.get('from') === 'months'
            ? { findings: [], looked: 2 }
            : {
                findings: [
                  { kind: 'object_missing', subject: 'prf_1', detail: 'the deliverable is missing' },
                ],
                looked: 3,
                next: 'months',
              },
        );
      case 'PUT /operator/v1/partners/ptr_1/source-detail':
        return send(200, {
          partnerId: 'ptr_1',
          name: 'N',
          plan: 'standard',
          createdAt: 1,
          sourceDetail: { ...(JSON.parse(body.toString()) as object), approvedAt: 1_767_225_600 },
        });
      case 'DELETE /operator/v1/partners/ptr_1/source-detail':
        return send(200, { partnerId: 'ptr_1', name: 'N', plan: 'standard', createdAt: 1 });
      case 'PUT /operator/v1/proofs/prf_1/source-detail-consent':
        return send(200, { proofId: 'prf_1', consent: JSON.parse(body.toString()) as object });
      case 'DELETE /operator/v1/proofs/prf_1/source-detail-consent':
        return send(200, { proofId: 'prf_1' });
      case 'GET /operator/v1/partners/devices/audit/verification':
        return send(200, { ok: true, entries: 3 });
      case 'GET /operator/v1/partners/plans/audit/verification':
        return send(200, { ok: true, entries: 2 });
      case 'GET /operator/v1/partners/content-keys/audit/verification':
      case 'GET /operator/v1/partners/dead-letters/audit/verification':
        return send(200, { ok: true, entries: 1 });
      case 'GET /operator/v1/devices':
        return send(200, {
          devices: [DEVICE, { ...DEVICE, revocation: { from: 1_767_225_600, at: 1_767_225_700 } }],
          deviceCount: 2,
        });
      case 'POST /operator/v1/devices':
        return send(201, { ...(JSON.parse(body.toString()) as object), enrolledAt: 1_767_225_600 });
      case `POST /operator/v1/devices/${DEVICE.deviceId}/revoke`:
        return send(200, {
          ...DEVICE,
          revocation: { from: 1_767_225_600, ...(JSON.parse(body.toString()) as object), at: 1_767_225_700 },
        });
      case 'GET /operator/v1/signers':
        return send(200, {
          signers: [
            { ...SIGNER, signs: true },
            { ...SIGNER, issuer: 'Take\u0007proof' },
          ],
        });
      case `POST /operator/v1/signers/${SIGNER.kid}/revoke`:
        return send(200, {
          ...SIGNER,
          revocation: { ...(JSON.parse(body.toString()) as object), at: 1_767_225_700 },
        });
      case `POST /operator/v1/signers/${SIGNER.kid}/reinstate`:
        return send(200, SIGNER);
      case 'GET /operator/v1/snapshot':
        return send(200, 'rows');
      case 'GET /operator/v1/authority':
        return send(200, '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n');
      default:
        return send(404, { error: 'No such route.', code: 'not_found' });
    }
  }
}
