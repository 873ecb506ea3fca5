import { createHash } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { challengeKey, challengeResponse } from '../../src/service/contract/operator-challenge.js';
import type { Route } from '../../src/service/contract/route.js';
import { OPERATOR_ROUTES } from '../../src/service/contract/routes/operator-routes.js';
import { NO_PARAMETERS, validate } from '../../src/service/contract/validation.js';
import { SHIPPED_PLANS } from '../../src/service/domain/partner.js';
import { REVIEW } from './review-case.js';

interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

type Json = Readonly<Record<string, unknown>>;
/** The same JSON body for each request, or one that depends on the body or the query that was sent. */
type Answer = Json | ((sent: Json, query: URLSearchParams) => Json);

const AT = 1_767_225_600;
const FEBRUARY = 1_769_904_000;
const STANDARD = SHIPPED_PLANS.find(({ name }) => name === 'standard')!;
const PARTNER = { partnerId: 'ptr_1', name: 'N', plan: 'standard', createdAt: AT };
const KEY = { keyId: 'key_1', name: 'ingest', scopes: ['verify'], plan: 'standard', createdAt: AT };
const DEVICE = { deviceId: 'ab'.repeat(32), algorithm: 'Ed25519', enrolledAt: AT };
const SIGNER = {
  kid: 'ab'.repeat(32),
  algorithm: 'Ed25519',
  issuer: 'Takemark',
  notBefore: 1,
  notAfter: AT,
  signs: false,
};
const DECLARATION = {
  surveyVersion: '1',
  submissionId: 'sub_1',
  subject: 'creator_1',
  submittedAt: AT,
  answers: { manualWork: 'entire', aiShareBand: 'none' },
};
const RECORDED = { recordedAt: AT + 100, bindingStatus: 'authenticated_post_issuance_record' };
const LISTED = { ...DECLARATION, ...RECORDED, authentic: true };
const LETTER = { topic: 'usage', position: '0/18', reason: 'not\u0007 an event', at: AT };
const SUPPLIED = { ...REVIEW.evidenceRequests[0], kind: 'source_evidence' };

/** The answers by method and path. Some have members of a later version, or characters that control a terminal. */
const ANSWERS: Readonly<Record<string, Answer>> = {
  'POST partners': (sent) => ({ ...PARTNER, ...sent }),
  'GET partners': { partners: [{ ...PARTNER, name: 'Nord\u0007Licht', later: 1 }] },
  'POST partners/ptr_1/keys': ({ name }) => ({ keyId: 'key_1', apiKey: 'tmk_secret', name }),
  'GET partners/ptr_1/keys': { keys: [{ ...KEY, status: 'expiring', expiresAt: AT }] },
  'POST partners/ptr_1/keys/key_1/revoke': { ...KEY, status: 'revoked' },
  'PUT partners/ptr_1/plan': ({ plan, effect }) =>
    effect === 'at_once' ? { ...PARTNER, plan } : { ...PARTNER, nextPlan: { plan, from: FEBRUARY } },
  'PUT partners/ptr_1/source-detail': (sent) => ({ ...PARTNER, sourceDetail: { ...sent, approvedAt: AT } }),
  'DELETE partners/ptr_1/source-detail': PARTNER,
  'GET plans': { plans: [{ ...STANDARD, later: 1 }] },
  'POST plans': (sent) => sent,
  'PUT plans/standard': ({ effect, ...limits }) =>
    effect === 'at_once'
      ? { name: 'standard', ...limits }
      : { ...STANDARD, next: { ...limits, from: FEBRUARY } },
  'GET partners/ptr_1/reviews': (_sent, query) =>
    query.has('cursor')
      ? { reviews: [REVIEW] }
      : { reviews: [{ ...REVIEW, reviewId: 'rev_2', createdAt: AT + 86_400 }], nextCursor: 'bmV4dA' },
  'GET reviews/rev_1': { partnerId: 'ptr_1', ...REVIEW },
  'POST reviews/rev_1/evidence-requests/req_1/supply': { ...REVIEW, evidenceRequests: [SUPPLIED] },
  'GET proofs/prf_1/erasure': {
    proofId: 'prf_1',
    state: 'erased',
    erasedAt: AT,
    confirmedAt: AT + 1,
    assetPresent: false,
  },
  'GET proofs/prf_left/erasure': { proofId: 'prf_left', state: 'erased', erasedAt: AT, assetPresent: true },
  'POST proofs/prf_1/declarations': (sent) => ({ ...sent, ...RECORDED }),
  'GET proofs/prf_1/declarations': { declarations: [LISTED] },
  'GET proofs/prf_left/declarations': {
    declarations: [LISTED, { ...LISTED, submissionId: 'sub_2', authentic: false }],
  },
  'PUT proofs/prf_1/source-detail-consent': (consent) => ({ proofId: 'prf_1', consent }),
  'DELETE proofs/prf_1/source-detail-consent': { proofId: 'prf_1' },
  'GET dead-letters': {
    deadLetters: [
      {
        topic: 'usage',
        position: '0/17',
        reason: 'the span is empty',
        at: AT,
        eventId: 'units_counted/ptr_1/x/4',
        kind: 'units_counted',
      },
      LETTER,
    ],
  },
  'POST dead-letters/replay': { replayed: 2 },
  'POST dead-letters/discard': { deadLetters: [LETTER] },
  'GET partners/ptr_1/audit': {
    entries: [
      {
        partnerId: 'ptr_1',
        sequence: 7,
        at: AT,
        action: 'key_rotated',
        actor: 'key_1',
        subjects: ['key_1', 'key_2'],
        mac: 'ab'.repeat(32),
      },
    ],
  },
  'GET partners/ptr_1/audit/verification': { ok: true, entries: 12 },
  'GET partners/ptr_2/audit/verification': {
    ok: false,
    entries: 9,
    fault: { sequence: 9, reason: 'truncated' },
  },
  'GET partners/signers/audit/verification': { ok: true, entries: 2 },
  'GET partners/devices/audit/verification': { ok: true, entries: 3 },
  'GET partners/plans/audit/verification': { ok: true, entries: 2 },
  'GET partners/content-keys/audit/verification': { ok: true, entries: 1 },
  'GET partners/dead-letters/audit/verification': { ok: true, entries: 1 },
  'POST samples/fill': (_sent, query) =>
    query.get('from') === '2:'
      ? { looked: 1, filled: 1, without: 0, failed: [] }
      : { looked: 3, filled: 1, without: 1, failed: ['prf_1'], next: '2:' },
  'GET audit/stores': (_sent, query) =>
    query.get('from') === 'months'
      ? { findings: [], looked: 2 }
      : {
          findings: [{ kind: 'object_missing', subject: 'prf_1', detail: 'the deliverable is missing' }],
          looked: 3,
          next: 'months',
        },
  'GET devices': {
    devices: [DEVICE, { ...DEVICE, revocation: { from: AT, at: AT + 100 } }],
    deviceCount: 2,
  },
  'POST devices': (sent) => ({ ...sent, enrolledAt: AT }),
  [`POST devices/${DEVICE.deviceId}/revoke`]: (sent) => ({
    ...DEVICE,
    revocation: { from: AT, ...sent, at: AT + 100 },
  }),
  'GET signers': {
    signers: [
      { ...SIGNER, signs: true },
      { ...SIGNER, issuer: 'Take\u0007proof' },
    ],
  },
  [`POST signers/${SIGNER.kid}/revoke`]: (sent) => ({ ...SIGNER, revocation: { ...sent, at: AT + 100 } }),
  [`POST signers/${SIGNER.kid}/reinstate`]: SIGNER,
};

/** The routes, each with the expression that its paths match. */
const ROUTES = Object.values<Route>(OPERATOR_ROUTES).map(
  (route) => [new RegExp(`^${route.method} ${route.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`), route] as const,
);

/**
 * A double of the operator listener over real HTTP. It makes no real credential: the deliverable is the audio and a
 * few bytes. It knows nothing of the operations. Each request and each answer is compared with the schemas of its
 * route, so that the double cannot differ from the contract.
 */
export class OperatorDouble {
  url = '';
  readonly token = 'operator-token-of-the-double';
  readonly calls: Call[] = [];
  /** The statuses of refusals that are sent before the ordinary answers. */
  refusals: number[] = [];
  /** True if a bit of each downloaded deliverable is changed. */
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
      const nonce = url.searchParams.get('nonce') ?? '';
      response.end(JSON.stringify({ port, answers: [challengeResponse(this.#challengeKey, nonce, port)] }));
      return;
    }
    const { method = '', headers } = request;
    const call = { method, path: url.pathname, query: url.searchParams, headers, body };
    this.calls.push(call);
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
    if (headers.authorization !== `Bearer ${this.token}`)
      return send(403, { error: 'The token is not valid.', code: 'forbidden' });
    const answer = this.#answerTo(call);
    if (answer === undefined) return send(404, { error: 'No such route.', code: 'not_found' });
    try {
      assertContract(call, answer);
    } catch (error) {
      return send(400, { error: String(error), code: 'invalid_request' });
    }
    send(200, answer);
  }

  #answerTo({ method, path, query, body }: Call): Buffer | object | string | undefined {
    const address = `${method} ${path.replace('/operator/v1/', '')}`;
    switch (address) {
      case 'POST proofs':
        this.#asset = Buffer.concat([body, Buffer.from('credential')]);
        return issued(this.#asset, query);
      case 'GET proofs/prf_1/asset': {
        if (query.get('part') === 'sidecar') return 'the sidecar';
        const bytes = Buffer.from(this.#asset);
        if (this.damage) bytes[0] = (bytes[0] ?? 0) ^ 1;
        return bytes;
      }
      case 'GET snapshot':
        return 'rows';
      case 'GET authority':
        return '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n';
    }
    const answer = ANSWERS[address];
    if (typeof answer !== 'function') return answer;
    return answer(body.length === 0 ? {} : JSON.parse(body.toString()), query);
  }
}

function issued(asset: Buffer, query: URLSearchParams): object {
  const sha256 = createHash('sha256').update(asset).digest('hex');
  return {
    proofId: 'prf_1',
    issuedAt: AT,
    carrier: query.get('carrier'),
    originalSha256: sha256,
    boundAudioSha256: sha256,
    asset: { bytes: asset.length, sha256, fileName: 'a.wav', mediaType: 'audio/wav' },
    ...(query.get('mend') === 'true' && {
      warnings: [{ code: 'list_malformed', offset: 36 }],
      mended: {
        sentSha256: 'a'.repeat(64),
        changes: [
          { offset: 4, from: 0xb5, to: 0xb4 },
          { offset: 443, to: 0 },
        ],
      },
    }),
  };
}

/** @throws Error if a request, or its answer, is not of the schemas of its route */
function assertContract({ method, path, query, body }: Call, answer: Buffer | object | string): void {
  const [, route] = ROUTES.find(([pattern]) => pattern.test(`${method} ${path}`))!;
  const problems: object[] = [validate(route.query ?? NO_PARAMETERS, Object.fromEntries(query), 'query')];
  if (route.body?.kind === 'json') problems.push(validate(route.body.schema, JSON.parse(body.toString())));
  for (const problem of problems)
    if ('problem' in problem) throw new Error(`${method} ${path}: ${problem.problem}`);
  const { schema } = Object.values(route.responses)[0]!;
  if (schema !== undefined) schema.parse(answer);
}
