import t from 'tap';
import { formatIdentifier } from '../../src/core/domain/identifiers.js';
import type { Route } from '../../src/service/contract/route.js';
import { PARTNER_ROUTES } from '../../src/service/contract/routes/partner-routes.js';
import { ContractCheck } from '../fixtures/contract-check.js';
import { TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import { ask, jsonOf, request } from '../http/raw-client.js';

const BINDINGS = { creatorId: 'c-1', accountId: 'a-1', submissionId: 's-1', trackId: 't-1' };

interface Answered {
  readonly status: number;
  /** Headers and body without the request id, the time and the callers' own quota. */
  readonly comparable: string;
}

/** The things that the ids of a row can name, and what the owner and everyone else may learn of each. */
interface Subject {
  readonly own: Readonly<Record<string, string>>;
  readonly never: Readonly<Record<string, string>>;
}

t.test("every route with an id answers another partner's id as one that is not there", async (t) => {
  const service = await TestService.start({ TAKEMARK_LOG_LEVEL: 'silent' });
  const beta = await TestService.start({ TAKEMARK_LOG_LEVEL: 'silent', TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => Promise.all([service.stop(), beta.stop()]));
  const check = new ContractCheck({ routes: PARTNER_ROUTES });
  const [owner, other, stranger] = [await service.partner(), await service.partner(), await beta.partner()];

  const call = async (
    at: TestService,
    apiKey: string,
    id: string,
    params: Readonly<Record<string, string>>,
  ): Promise<Answered> => {
    const route: Route = PARTNER_ROUTES[id as keyof typeof PARTNER_ROUTES];
    const target = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(params[name]!),
    );
    const body = BODIES[id]?.(params);
    const headers: Record<string, string> = {
      'x-api-key': apiKey,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const response = await fetch(`${at.partnerUrl}${target}`, {
      method: route.method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const received = new Map(response.headers);
    t.strictSame(
      check.problems(
        {
          method: route.method,
          target,
          headers,
          ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) }),
        },
        { status: response.status, headers: received, body: bytes },
      ),
      [],
      `${id}: within the contract`,
    );
    for (const name of [
      'x-request-id',
      'date',
      'keep-alive',
      'connection',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
      'ratelimit',
    ])
      received.delete(name);
    return {
      status: response.status,
      comparable: JSON.stringify([response.status, [...received], bytes.toString()]),
    };
  };

  let seed = 1;
  const newProof = async () =>
    (await service.issue(owner.partnerId, wav(800, {}, (seed += 1)), { carrier: 'embedded' })).proofId;
  const madeUpProof = () => formatIdentifier('proof', Date.now(), Buffer.alloc(10, (seed += 1)));
  const newReview = async () => {
    const { reviewId } = await service.service.operations.partner.createReview(owner.caller, {
      proofId: await newProof(),
      bindings: BINDINGS,
    });
    const { evidenceRequests } = await service.service.operations.partner.openEvidence(owner.caller, {
      reviewId,
      kind: 'source_evidence',
    });
    return { reviewId, requestId: evidenceRequests[0]!.requestId };
  };
  const neverProof = { proofId: madeUpProof() };
  const neverReview = {
    reviewId: formatIdentifier('review', Date.now(), Buffer.alloc(10, 9)),
    requestId: formatIdentifier('evidenceRequest', Date.now(), Buffer.alloc(10, 9)),
  };
  const ofProof = async (): Promise<Subject> => ({ own: { proofId: await newProof() }, never: neverProof });
  const ofReview = async (): Promise<Subject> => ({ own: await newReview(), never: neverReview });

  const rows: Record<string, () => Promise<Subject>> = {
    readProof: ofProof,
    readProofAsset: ofProof,
    eraseProof: ofProof,
    readRecord: ofProof,
    createReview: ofProof,
    readReview: ofReview,
    openEvidence: ofReview,
    closeEvidence: ofReview,
    resolveReview: async () => {
      const own = await newReview();
      await service.service.operations.partner.closeEvidence(owner.caller, {
        reviewId: own.reviewId,
        requestId: own.requestId,
        status: 'accepted',
      });
      return { own, never: neverReview };
    },
    verify: async () => ({
      own: { uploadId: (await service.upload(owner.caller, wav(800))).uploadId },
      never: { uploadId: formatIdentifier('upload', Date.now(), Buffer.alloc(10, 9)) },
    }),
    identify: async () => {
      const { partner } = service.service.operations;
      const slot = await partner.createUpload(owner.caller, { purpose: 'identify' });
      const receiver = await partner.receiveUpload(slot.uploadId, new Map(Object.entries(slot.fields)));
      await receiver.write(wav(800));
      await receiver.finish();
      return {
        own: { uploadId: slot.uploadId },
        never: { uploadId: formatIdentifier('upload', Date.now(), Buffer.alloc(10, 9)) },
      };
    },
    revokeOwnKey: async () => ({
      own: {
        keyId: (
          await service.service.operations.operator.createKey({ partnerId: owner.partnerId, name: 'leaked' })
        ).keyId,
      },
      never: { keyId: formatIdentifier('key', Date.now(), Buffer.alloc(10, 9)) },
    }),
  };
  // The matrix has every route with an id and a key.
  for (const [id, route] of Object.entries<Route>(PARTNER_ROUTES))
    if (route.auth === 'key' && route.params !== undefined && route.environments === undefined)
      t.ok(rows[id], `${id} is in the matrix`);

  const pending = { proofId: await pendingProof() };
  for (const [id, prepare] of Object.entries(rows)) {
    const { own, never } = await prepare();
    const shared = SHARED.has(id);
    const absent = await call(service, owner.apiKey, id, never);
    t.equal(absent.status, 404, `${id}: never issued is 404`);
    if ('proofId' in never) {
      for (const { apiKey } of [owner, other])
        t.equal(
          (await call(service, apiKey, id, pending)).comparable,
          (await call(service, apiKey, id, never)).comparable,
          `${id}: pending is like never issued, to the byte`,
        );
    }
    // The foreign call comes first, so that the owner's call shows its effects.
    const foreign = await call(service, other.apiKey, id, own);
    if (shared) t.ok(foreign.status < 300, `${id}: any key of the environment may`);
    else
      t.equal(
        foreign.comparable,
        (await call(service, other.apiKey, id, never)).comparable,
        `${id}: foreign is like never issued, to the byte`,
      );
    t.equal(
      (await call(beta, stranger.apiKey, id, own)).comparable,
      (await call(beta, stranger.apiKey, id, never)).comparable,
      `${id}: of another environment too`,
    );
    t.equal(
      (await call(beta, owner.apiKey, id, own)).status,
      403,
      `${id}: a key of another environment opens nothing`,
    );
    if ('requestId' in own && id === 'closeEvidence') {
      const elsewhere = await newReview();
      t.equal(
        (
          await call(service, owner.apiKey, id, {
            reviewId: elsewhere.reviewId,
            requestId: own['requestId']!,
          })
        ).status,
        404,
        `${id}: a request of another case`,
      );
    }
    const answer = await call(service, owner.apiKey, id, own);
    t.ok(answer.status < 300, `${id}: own is answered`);
    const first = Object.keys(own)[0]!;
    for (const malformed of ['-a', 'a b', 'x'.repeat(129), 'a@b', 'a\u0000', 'a/b', 'a%62']) {
      t.equal(
        (await call(service, owner.apiKey, id, { ...own, [first]: malformed })).status,
        400,
        `${id}: ${JSON.stringify(malformed.slice(0, 6))} is malformed`,
      );
    }
    const gone = await goneId(id, own);
    if (gone !== undefined)
      t.equal(
        (await call(service, owner.apiKey, id, gone)).comparable,
        absent.comparable,
        `${id}: erased is like never issued, to the byte`,
      );
  }

  /** Returns the id of an issuing whose audio has not arrived completely. */
  async function pendingProof(): Promise<string> {
    let finish = (): void => {};
    const stalled = new Promise<void>((resolve) => (finish = resolve));
    const audio = async function* () {
      yield wav(800).subarray(0, 400);
      await stalled;
    };
    const known = service.reservedProofs.length;
    const issuing = service.service.operations.operator.issueProof({
      partnerId: owner.partnerId,
      songTitle: 'Pending',
      fileName: 'pending.wav',
      carrier: 'embedded',
      audio: audio(),
    });
    t.teardown(() => {
      finish();
      return issuing.catch(() => {});
    });
    while (service.reservedProofs.length === known) await new Promise(setImmediate);
    const proofId = service.reservedProofs[known]!;
    while (
      (await service.service.operations.operator.erasureStatus(proofId).catch(() => undefined))?.state !==
      'pending'
    )
      await new Promise(setImmediate);
    return proofId;
  }

  /**
   * Returns the ids of the row after its proof was erased. Returns nothing for uploads and keys, and for a
   * second erasure, which reports the first.
   */
  async function goneId(
    id: string,
    own: Readonly<Record<string, string>>,
  ): Promise<Readonly<Record<string, string>> | undefined> {
    if ('uploadId' in own || 'keyId' in own || id === 'eraseProof') return undefined;
    const params = 'reviewId' in own ? await newReview() : { proofId: await newProof() };
    const proofId =
      'proofId' in params
        ? params.proofId
        : (await service.service.operations.partner.readReview(owner.caller, { reviewId: params.reviewId }))
            .proofId;
    await service.service.operations.partner.eraseProof(owner.caller, { proofId });
    return params;
  }
});

t.test('a former host name serves the contract and gives the canonical address', async (t) => {
  const service = await TestService.start({
    TAKEMARK_LOG_LEVEL: 'silent',
    TAKEMARK_PUBLIC_URL: 'https://api.example.com/base',
  });
  t.teardown(() => service.stop());
  const { apiKey } = await service.partner();
  for (const Host of ['api.example.com', 'former-name.example.org:8443', 'localhost']) {
    const slot = await ask(
      service.service.partner.port,
      request('POST', '/v1/uploads', { Host, 'x-api-key': apiKey }),
    );
    t.equal(slot!.status, 201, `${Host} serves the contract`);
    t.match(
      jsonOf(slot)['url'],
      /^https:\/\/api\.example\.com\/base\/uploads\/upl_/,
      'and gives the canonical address',
    );
  }
});

/** Routes that every partner may call (rules 11.3 and 12.3). */
const SHARED = new Set(['readRecord', 'createReview']);

const BODIES: Readonly<Record<string, (params: Readonly<Record<string, string>>) => object>> = {
  createReview: ({ proofId }) => ({ proofId, bindings: BINDINGS }),
  openEvidence: () => ({ kind: 'source_licence' }),
  closeEvidence: () => ({ status: 'accepted' }),
  resolveReview: () => ({ outcome: 'accepted' }),
  verify: ({ uploadId }) => ({ uploadId }),
  identify: ({ uploadId }) => ({ uploadId }),
};
