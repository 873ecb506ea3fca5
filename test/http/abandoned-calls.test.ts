/**
 * Calls of every route that are given up at each of their steps. A step is one call of a port. The step that
 * runs ends, and no further step begins.
 */
import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { readSidecar } from '../../src/core/credential/sidecar.js';
import { createAudioEngine } from '../../src/core/engine/create-engine.js';
import { openAssetDirectory } from '../../src/service/adapters/assets/directory.js';
import { openEmbeddedStore } from '../../src/service/adapters/embedded/store.js';
import { encryptedAssets } from '../../src/service/adapters/encryption/encrypted-assets.js';
import { encryptedStores } from '../../src/service/adapters/encryption/encrypted-stores.js';
import { openKeyDirectory } from '../../src/service/adapters/encryption/key-directory.js';
import { createIds, systemClock } from '../../src/service/adapters/system/system.js';
import type { Route } from '../../src/service/contract/route.js';
import { ROUTES } from '../../src/service/contract/routes/routes.js';
import { DEFAULT_LARGE_BYTES } from '../../src/service/domain/upload.js';
import { createOperatorListener } from '../../src/service/http/operator-listener.js';
import { createPartnerListener } from '../../src/service/http/partner-listener.js';
import { createOperations } from '../../src/service/operations/operations.js';
import { Devices } from '../../src/service/operations/system/devices.js';
import { SignerRevocations } from '../../src/service/operations/system/signer-revocations.js';
import { composeStored } from '../../src/witness/report/compose-stored.js';
import { AUDIT_KEY, fileHeads } from '../adapters/embedded-process.js';
import { authenticator } from '../fixtures/authentication.js';
import { sized } from '../fixtures/sampling.js';
import { inPieces } from '../fixtures/service.js';
import { testSigning } from '../fixtures/signing.js';
import { wav } from '../fixtures/wav.js';
import { secretsOf } from '../operations/doubles.js';
import { MemoryReports } from './doubles.js';

const TOKEN = 'vtd-abandoned-calls-token';
const AUDIO = wav(1000);
/** The logs that all calls follow together. No caller ends their reading for the others. */
const SHARED_LOGS = ['plans', 'devices', 'signers'];
/** The routes whose work callers share. */
const SHARED_ROUTES = ['sandboxFixtures', 'readSandboxFile'];

/** Returns a promise with the function that resolves it. */
function pending<Value>() {
  let resolve: (value: Value) => void = () => undefined;
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

const LIMITS = {
  monthlyQuota: 1,
  requestsPerSecond: 1,
  burst: 1,
  concurrentUploads: 1,
  rotationsPerDay: 1,
};

/** Counts the calls of ports, and holds one of them. */
class Steps {
  readonly #after: string[] = [];
  #count = 0;
  #holdAt = 0;
  #isReleased = false;
  #held = pending<string>();
  #release = pending<void>();

  /** Holds the step with this number, counted from 1. The number 0 holds none. */
  arm(holdAt: number): void {
    this.#count = 0;
    this.#holdAt = holdAt;
    this.#isReleased = false;
    this.#after.length = 0;
    this.#held = pending();
    this.#release = pending();
  }

  /** Resolves with the name of the held step. */
  get held(): Promise<string> {
    return this.#held.promise;
  }

  /** The steps that began after the release. */
  get after(): readonly string[] {
    return this.#after;
  }

  release(): void {
    this.#isReleased = true;
    this.#release.resolve();
  }

  /** Returns the same port with its calls counted. */
  counted<Port extends object>(name: string, port: Port): Port {
    return new Proxy(port, {
      get: (target, member) => {
        const method: unknown = Reflect.get(target, member);
        if (typeof method !== 'function') return method;
        return (...given: unknown[]): unknown => {
          if (member === 'readAudit' && SHARED_LOGS.includes(given[0] as string))
            return method.apply(target, given);
          return this.#step(`${name}.${String(member)}`, () => method.apply(target, given));
        };
      },
    });
  }

  async #step(name: string, run: () => unknown): Promise<unknown> {
    if (this.#isReleased) this.#after.push(name);
    this.#count += 1;
    if (this.#count === this.#holdAt) {
      this.#held.resolve(name);
      await this.#release.promise;
    }
    return run();
  }
}

/** Starts both listeners over real operations and real stores, and counts the calls of their ports. */
async function startCounted(t: Test) {
  const directory = t.testdir();
  const heads = fileHeads(join(directory, 'store'));
  const raw = await openEmbeddedStore({
    directory: join(directory, 'store'),
    audit: { key: AUDIT_KEY, heads },
    authenticator,
  });
  const keys = await openKeyDirectory({ directory: join(directory, 'keys') });
  const files = await openAssetDirectory({ directory: join(directory, 'assets') });
  const steps = new Steps();
  const stores = steps.counted('stores', encryptedStores(raw, keys));
  const { signer, trust } = testSigning();
  const secrets = {
    ...secretsOf(),
    all: (purpose: Parameters<ReturnType<typeof secretsOf>['all']>[0]) =>
      purpose === 'audit' ? [{ id: 'audit', key: AUDIT_KEY }] : known.all(purpose),
    current: (purpose: Parameters<ReturnType<typeof secretsOf>['all']>[0]) =>
      purpose === 'audit' ? { id: 'audit', key: AUDIT_KEY } : known.current(purpose),
    find: (purpose: Parameters<ReturnType<typeof secretsOf>['all']>[0], id: string) =>
      known.find(purpose, id),
  };
  const reports = new MemoryReports();
  const engine = createAudioEngine({ kind: 'native', workers: 1, maxUploads: 4 });
  await engine.start();
  const ids = createIds(systemClock);
  const { operations } = createOperations({
    environment: 'beta',
    downloads: new Map([['companion/linux', 'https://downloads.example.com/']]),
    publicUrl: () => url,
    secrets,
    stores,
    encrypted: steps.counted('encrypted', raw),
    assets: steps.counted('assets', encryptedAssets(files, keys)),
    keys: steps.counted('keys', keys),
    journal: steps.counted('journal', {
      record: async () => undefined,
      close: async () => undefined,
    } as never),
    heads: steps.counted('heads', heads),
    audited: steps.counted('audited', raw.audited),
    snapshots: steps.counted('snapshots', raw),
    bus: steps.counted('bus', {
      deadLetters: async () => [],
      replayDeadLetters: async () => 0,
      discardDeadLetters: async () => [],
    }),
    engine,
    issuingEngine: engine,
    reader: steps.counted('reader', {
      readEmbedded: async () => {
        throw new Error('nothing here is embedded');
      },
      readSidecar: async (_owner: string, sidecar: Uint8Array) => readSidecar(sidecar, trust),
    }),
    signer,
    certificates: { chain: [], renewal: '' },
    trust,
    newDevice: () => signer,
    revocations: new SignerRevocations({ stores, secrets }),
    devices: new Devices({ stores, secrets }),
    replay: async () => {
      throw new Error('nothing here has a trace');
    },
    compose: async (stored) => composeStored(stored),
    clock: systemClock,
    wallClock: systemClock,
    ids,
    observer: reports,
    processes: () => 1,
    samplesRate: 1e9,
    largeBytes: DEFAULT_LARGE_BYTES,
  });
  const signals: AbortSignal[] = [];
  const watched = <Methods extends { until(signal: AbortSignal): unknown }>(methods: Methods): Methods => ({
    ...methods,
    until: (signal: AbortSignal) => {
      signals.push(signal);
      return methods.until(signal);
    },
  });
  const ended = new Map<number, () => void>();
  const requestLog = {
    request: () => {
      for (const resolve of ended.values()) resolve();
      ended.clear();
    },
  };
  const common = { ids, requestLog, observer: reports };
  const partner = createPartnerListener({
    ...common,
    operations: watched(operations.partner),
    build: { version: '1', commit: 'abc', deployedAt: 1, environment: 'beta' },
    limits: { callMs: 60_000 },
  });
  const operator = createOperatorListener({
    ...common,
    operations: watched(operations.operator),
    tokens: [TOKEN],
    metrics: async () => ({ mediaType: 'text/plain', text: '' }),
    ready: async () => ({}),
  });
  const partnerPort = (await partner.listen(0, '127.0.0.1')).port;
  const operatorPort = (await operator.listen(0, '127.0.0.1')).port;
  url = `http://127.0.0.1:${partnerPort}`;
  t.teardown(async () => {
    await Promise.all([partner.close(1000), operator.close(1000)]);
    await engine.stop();
    await raw.close();
  });
  let number = 0;
  return {
    steps,
    signals,
    operations,
    reports,
    ports: { partner: partnerPort, operator: operatorPort },
    /** Resolves when the next call was logged, which is after its work has ended. */
    nextEnd: () =>
      new Promise<void>((resolve) => {
        ended.set((number += 1), resolve);
      }),
  };
}
const known = secretsOf();
let url = '';

interface Sent {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

type Counted = Awaited<ReturnType<typeof startCounted>>;

/** Returns what each route is called with, from functions that can make a new subject for each call. */
async function callsOf({ operations }: Counted) {
  const { partner, operator } = operations;
  const { partnerId } = await operator.createPartner({ name: 'Counted', plan: 'volume' });
  const { keyId, apiKey } = await operator.createKey({ partnerId, name: 'main' });
  const caller = await partner.authenticate(apiKey);
  const issue = async (): Promise<string> => {
    const { proofId } = await operator.issueProof({
      partnerId,
      songTitle: 'Take',
      fileName: 'take.wav',
      carrier: 'sidecar',
      audio: inPieces(AUDIO),
    });
    return proofId;
  };
  const proofId = await issue();
  const uploaded = async (purpose: 'verify' | 'identify'): Promise<string> => {
    const slot = await partner.createUpload(caller, { purpose });
    const receiver = await partner.receiveUpload(slot.uploadId, new Map(Object.entries(slot.fields)));
    await receiver.write(AUDIO);
    return (await receiver.finish()).uploadId;
  };
  const verifyId = await uploaded('verify');
  const identifyId = await uploaded('identify');
  const sidecarAsset = await (await operator.readAsset(proofId, 'sidecar')).read();
  const sidecar = Buffer.concat(await sidecarAsset.toArray()).toString('base64');
  let count = 0;
  const bindings = () => {
    count += 1;
    return { creatorId: 'c', accountId: 'a', submissionId: `s${count}`, trackId: 't' };
  };
  const review = async (): Promise<string> =>
    (await partner.createReview(caller, { proofId, bindings: bindings() })).reviewId;
  const reviewId = await review();
  const withRequest = async () => {
    const id = await review();
    const { evidenceRequests } = await partner.openEvidence(caller, {
      reviewId: id,
      kind: 'source_evidence',
    });
    return { reviewId: id, requestId: evidenceRequests[0]!.requestId };
  };
  const newKey = () => operator.createKey({ partnerId, name: 'other' });
  const [identity] = await operator.listSigners();
  const device = { deviceId: 'a'.repeat(64) };
  await operator.enrolDevice(device);
  const key = (sent: Sent = {}): Sent => ({ ...sent, headers: { 'x-api-key': apiKey, ...sent.headers } });
  const own = { partnerId };
  const declaration = () => ({
    surveyVersion: '1',
    submissionId: `sub_${(count += 1)}`,
    subject: 'creator',
    submittedAt: 1_700_000_000,
    answers: { declaredOrigin: 'from_scratch' },
  });
  const digest = 'ab'.repeat(32);
  const calls: Readonly<Record<string, () => Sent | Promise<Sent>>> = {
    verify: () => key({ body: { uploadId: verifyId, sidecar } }),
    createUpload: () => key({ body: { purpose: 'verify' } }),
    postUpload: async () => {
      const { uploadId, fields } = await partner.createUpload(caller, { purpose: 'verify' });
      return { params: { uploadId }, ...multipart(fields) };
    },
    verifyFile: () => key(multipart({})),
    readRecord: () => key({ params: { proofId } }),
    listProofs: () => key({ query: 'limit=10' }),
    readProof: () => key({ params: { proofId } }),
    eraseProof: async () => key({ params: { proofId: await issue() } }),
    readProofAsset: () => key({ params: { proofId }, query: 'part=audio' }),
    listKeys: () => key(),
    rotateKey: async () => ({
      headers: {
        'x-api-key': (await newKey()).apiKey,
        'idempotency-key': `rotation-${(count += 1)}-0123456789`,
      },
    }),
    revokeOwnKey: async () => key({ params: { keyId: (await newKey()).keyId } }),
    readUsage: () => key(),
    createReview: () => key({ body: { proofId, bindings: bindings() } }),
    listReviews: () => key(),
    readReview: () => key({ params: { reviewId } }),
    openEvidence: async () =>
      key({ params: { reviewId: await review() }, body: { kind: 'source_evidence' } }),
    closeEvidence: async () => key({ params: await withRequest(), body: { status: 'accepted' } }),
    resolveReview: async () => key({ params: { reviewId: await review() }, body: { outcome: 'accepted' } }),
    identify: () => key({ body: { uploadId: identifyId } }),
    download: () => key({ query: 'product=companion&platform=linux' }),
    telemetry: () => key({ body: { events: [{ name: 'app_started', count: 1, at: 1_700_000_000 }] } }),
    createPartner: () => ({ body: { name: 'Another' } }),
    listPartners: () => ({}),
    listPlans: () => ({}),
    createPlan: () => ({
      body: {
        name: `plan-${(count += 1)}`,
        ...LIMITS,
      },
    }),
    setPlan: () => ({ params: { plan: 'trial' }, body: { ...LIMITS, burst: 10 + (count += 1) } }),
    assignPlan: () => ({ params: own, body: { plan: (count += 1) % 2 === 0 ? 'standard' : 'volume' } }),
    createKey: () => ({ params: own, body: { name: 'again' } }),
    listPartnerKeys: () => ({ params: own }),
    revokeKey: async () => ({ params: { partnerId, keyId: (await newKey()).keyId } }),
    approveSourceDetail: () => ({ params: own, body: { consentVersion: `v${(count += 1)}` } }),
    withdrawSourceDetail: () => ({ params: own }),
    listSigners: () => ({}),
    revokeSigner: () => ({
      params: { kid: identity!.kid },
      body: { from: 4_000_000_000, reason: 'superseded' },
    }),
    reinstateSigner: () => ({ params: { kid: identity!.kid } }),
    listDevices: () => ({}),
    enrolDevice: () => ({ body: { deviceId: String((count += 1)).padStart(64, '0') } }),
    revokeDevice: () => ({ params: device, body: { from: 1_700_000_000 - (count += 1) } }),
    readAudit: () => ({ params: own }),
    verifyAudit: () => ({ params: own }),
    auditStores: () => ({}),
    fillSamples: () => ({}),
    listPartnerReviews: () => ({ params: own }),
    readPartnerReview: () => ({ params: { reviewId } }),
    supplyEvidence: async () => ({ params: await withRequest() }),
    issueProof: () => ({
      query: new URLSearchParams({ partnerId, song: 'x', fileName: 'x.wav', carrier: 'sidecar' }).toString(),
      headers: { 'content-type': 'application/octet-stream' },
      body: AUDIO,
    }),
    importLegacy: () => ({
      body: {
        proofId: `prf_legacy_${(count += 1)}`,
        partnerId,
        createdAt: 1_700_000_000,
        kid: digest,
        carrier: 'embedded',
        song: { title: 'Old' },
        originalSha256: digest,
        boundAudioSha256: digest,
        credentialSha256: digest,
        asset: { bytes: 1, sha256: digest, fileName: 'old.wav', mediaType: 'audio/wav' },
      },
    }),
    readAsset: () => ({ params: { proofId }, query: 'part=audio' }),
    recordDeclaration: () => ({ params: { proofId }, body: declaration() }),
    listDeclarations: () => ({ params: { proofId } }),
    grantConsent: () => ({ params: { proofId }, body: { consentVersion: 'v1', grantedAt: 1_700_000_000 } }),
    revokeConsent: () => ({ params: { proofId } }),
    readErasure: () => ({ params: { proofId } }),
    listDeadLetters: () => ({ query: 'topic=usage' }),
    replayDeadLetters: () => ({ body: { topic: 'usage', limit: 1 } }),
    discardDeadLetters: () => ({ body: { topic: 'usage', limit: 1 } }),
    readOperatorDocument: () => ({}),
    readAuthority: () => ({}),
    readSnapshot: () => ({}),
  };
  return { calls, keyId };
}

function multipart(fields: Readonly<Record<string, string>>): Sent {
  const parts = Object.entries(fields).map(
    ([name, value]) => `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  return {
    headers: { 'content-type': 'multipart/form-data; boundary=B' },
    body: Buffer.concat([
      Buffer.from(parts.join('')),
      Buffer.from('--B\r\nContent-Disposition: form-data; name="file"; filename="f.wav"\r\n\r\n'),
      AUDIO,
      Buffer.from('\r\n--B--\r\n'),
    ]),
  };
}

/**
 * Sends a call. Returns its status, and a function that leaves. A connection that only ends its own half still
 * waits for the response, so leaving resets the connection.
 */
function send(port: number, { method, path, listener }: Route, { params = {}, query, headers, body }: Sent) {
  const target = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name]!);
  const content =
    body === undefined ? undefined : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  const outgoing = request({
    port,
    host: '127.0.0.1',
    method,
    path: query === undefined ? target : `${target}?${query}`,
    headers: {
      ...(listener === 'operator' ? { authorization: `Bearer ${TOKEN}` } : {}),
      ...(content === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': content.length }),
      ...headers,
    },
  });
  const status = new Promise<number>((resolve) => {
    outgoing
      .once('response', (response) => response.resume().once('end', () => resolve(response.statusCode!)))
      .once('error', () => resolve(0));
  });
  outgoing.end(content);
  return { status, leave: () => outgoing.socket?.resetAndDestroy() };
}

/** The statuses of calls that end with a refusal here. */
const REFUSED: Readonly<Record<string, number>> = {
  // A proof without a trace has no source detail.
  grantConsent: 409,
};

/** The steps that complete what the held step decided. */
const COMPLETING: Readonly<Record<string, readonly string[]>> = {
  // The tombstone exists, so the erasure runs to its end.
  'encrypted.eraseProof': ['journal.record', 'assets.delete'],
  'journal.record': ['assets.delete'],
};

/** The gate leaves each call at every third step, the laboratory at each. */
const STRIDE = sized(1, 3);

void t.test('a call that was given up stops at its next step, in every route', async (t) => {
  const counted = await startCounted(t);
  const { steps, signals, ports, nextEnd } = counted;
  const { calls } = await callsOf(counted);
  const routes = Object.entries<Route>(ROUTES).filter(([, { auth }]) => auth !== 'public');
  t.strictSame(
    routes.map(([id]) => id).filter((id) => !(id in calls) && !SHARED_ROUTES.includes(id)),
    [],
    'every route is called',
  );
  for (const [id, route] of routes) {
    const call = calls[id];
    if (call === undefined) continue;
    for (let step = 1; ; step += STRIDE) {
      // The preparation of a call has steps too, and none of them is held.
      steps.arm(0);
      const sent = await call();
      steps.arm(step);
      signals.length = 0;
      const end = nextEnd();
      const { status, leave } = send(ports[route.listener], route, sent);
      const first = await Promise.race([steps.held, status]);
      if (typeof first === 'number') {
        t.ok(
          first === REFUSED[id] || (first >= 200 && first < 400),
          `${id} is answered with ${first} before step ${step}`,
        );
        break;
      }
      leave();
      const [signal] = signals;
      if (signal?.aborted === false) await once(signal, 'abort');
      steps.release();
      await end;
      t.strictSame(steps.after, COMPLETING[first] ?? [], `${id}: left during ${first}`);
    }
  }
  t.strictSame(counted.reports.faults, [], 'a caller who leaves is not a fault');
});
