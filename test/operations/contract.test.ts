/** The use cases of the partner contract on a whole service, with a clock that is moved to the second. */
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import type { Scope } from '../../src/domain/partner.js';
import { EVIDENCE_KINDS, REVIEW_LIFE_SECONDS, type ReviewBindings } from '../../src/domain/review.js';
import type { Caller } from '../../src/operations/operations.js';
import { collect, TestClock, TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';

/** Stands between two moves. */
class StillClock extends TestClock {
  #at = Math.floor(Date.now() / 1_000) * 1_000;

  override now(): number {
    return this.#at;
  }

  override advance(seconds: number): void {
    this.#at += seconds * 1_000;
  }

  moveTo(seconds: number): void {
    this.#at = seconds * 1_000;
  }
}

const clock = new StillClock();
const seconds = () => Math.floor(clock.now() / 1_000);
const dataDirectory = await mkdtemp(join(tmpdir(), 'takemark-contract-'));
t.teardown(() => rm(dataDirectory, { recursive: true, force: true }));
const settings = { TAKEMARK_DATA_DIR: dataDirectory, TAKEMARK_DOWNLOADS: '{"plugin/macos-arm64":"https://downloads.example/plugin.pkg"}' };
let service = await TestService.start(settings, clock);
t.teardown(() => service.stop());
const partner = () => service.service.operations.partner;
const operator = () => service.service.operations.operator;
const restart = async (between: () => Promise<unknown> = async () => undefined): Promise<void> => {
  await service.stop({ keep: true });
  await between();
  service = await TestService.start(settings, clock);
};
const notFound = { code: 'not_found' };
const IDEMPOTENCY_KEY = '3f1c8f5e-0000-4000-8000-000000000001';

async function uploadFor(caller: Caller, purpose: 'verify' | 'identify', audio: Uint8Array): Promise<string> {
  const slot = await partner().createUpload(caller, { purpose });
  const receiver = await partner().receiveUpload(slot.uploadId, new Map(Object.entries(slot.fields)));
  await receiver.write(audio);
  await receiver.finish();
  return slot.uploadId;
}

/** What is written under the data directory, as one text. */
async function diskText(): Promise<string> {
  const names = await readdir(dataDirectory, { recursive: true });
  // Directories have no text.
  return (await Promise.all(names.map((name) => readFile(join(dataDirectory, name), 'latin1').catch(() => '')))).join('\n');
}

t.test('rotation', async (t) => {
  const { partnerId, apiKey, keyId, caller } = await service.partner();
  const rotate = (idempotencyKey = IDEMPOTENCY_KEY) => partner().rotateKey(caller, apiKey, idempotencyKey);
  // Keys of one second stand in the order of their ids.
  clock.advance(1);
  const start = seconds();
  for (const bad of ['', 'x'.repeat(15), 'x'.repeat(129), 'with a space in it', 'tab\tin the middle', 'caf\u00e9caf\u00e9caf\u00e9caf\u00e9']) {
    await t.rejects(rotate(bad), { code: 'invalid_request', reason: 'invalid_member' });
  }
  t.match(await partner().listKeys(caller, {}), { keys: [{ keyId, status: 'active' }] }, 'a refused rotation changes nothing');

  const answers = await Promise.all(Array.from({ length: 100 }, () => rotate()));
  const first = answers.find(({ replayed }) => !replayed)!;
  t.equal(answers.filter(({ replayed }) => !replayed).length, 1);
  for (const answer of answers) t.same({ ...answer, replayed: false }, first);
  t.match(first, { name: 'test', previousKeyExpiresAt: start + 72 * 3_600 });
  const successor = await partner().authenticate(first.apiKey);
  t.same(successor, { ...caller, keyId: first.keyId }, 'same partner, plan and scopes');
  t.match(await partner().listKeys(caller, {}), { keys: [{ keyId, status: 'expiring', expiresAt: first.previousKeyExpiresAt }, { keyId: first.keyId, status: 'active', name: 'test', plan: 'volume' }] });
  await t.rejects(rotate(`${IDEMPOTENCY_KEY}x`), { code: 'conflict', reason: 'already_rotated' });
  t.equal((await operator().readAudit({ partnerId, fromSequence: 1, limit: 100 })).filter(({ action }) => action === 'key_rotated').length, 1);

  await restart();
  t.same(await rotate(), { ...first, replayed: true }, 'after a restart');
  const disk = await diskText();
  t.notOk(disk.includes(first.apiKey.split('_')[4]!) || disk.includes(apiKey.split('_')[4]!), 'no secret is on the disk');

  clock.moveTo(start + 24 * 3_600 - 1);
  t.same(await rotate(), { ...first, replayed: true }, 'one second before 24 hours');
  clock.moveTo(start + 24 * 3_600);
  await t.rejects(rotate(), { code: 'conflict', reason: 'already_rotated' }, '24 hours');
  clock.moveTo(start + 72 * 3_600 - 1);
  t.match(await partner().authenticate(apiKey), { keyId }, 'one second before 72 hours');
  clock.moveTo(start + 72 * 3_600);
  await t.rejects(partner().authenticate(apiKey), { code: 'forbidden' }, '72 hours');
  t.match(await partner().listKeys(successor, {}), { keys: [{ status: 'expired' }, { status: 'active' }] });

  // One of the lane's five a day has come back in three days, of course all of them.
  let current = first.apiKey;
  for (let i = 0; i < 5; i++) current = (await partner().rotateKey(await partner().authenticate(current), current, `${IDEMPOTENCY_KEY}-${i}`)).apiKey;
  const last = await partner().authenticate(current);
  const refused = await partner().rotateKey(last, current, IDEMPOTENCY_KEY).then(() => undefined, (error: unknown) => error as { retryAfterSeconds: number });
  t.match(refused, { code: 'rate_limited', reason: 'rate_exceeded', retryAfterSeconds: 17_280 });
  clock.advance(17_279);
  await t.rejects(partner().rotateKey(last, current, IDEMPOTENCY_KEY), { code: 'rate_limited' });
  clock.advance(1);
  t.match(await partner().rotateKey(last, current, IDEMPOTENCY_KEY), { replayed: false }, 'a 429 is not remembered');

  const other = await service.partner();
  await operator().revokeKey({ partnerId: other.partnerId, keyId: other.keyId });
  for (let i = 0; i < 6; i++) await t.rejects(partner().rotateKey(other.caller, other.apiKey, IDEMPOTENCY_KEY), { code: 'forbidden' }, 'a revoked key has no successor, and spends nothing');
  await t.rejects(partner().authenticate(other.apiKey), { code: 'forbidden' });
  t.match(await operator().listPartnerKeys(other.partnerId), [{ keyId: other.keyId, status: 'revoked' }]);
  t.match(await operator().revokeKey({ partnerId: other.partnerId, keyId: other.keyId }), { status: 'revoked' });
  await t.rejects(operator().revokeKey({ partnerId, keyId: other.keyId }), notFound);
});

t.test('keys: inventory, pages, last use, scopes', async (t) => {
  const { partnerId, caller, keyId } = await service.partner('trial');
  for (let i = 0; i < 6; i++) await operator().createKey({ partnerId, name: `key ${i}` });
  const all = await partner().listKeys(caller, {});
  t.equal(all.keys.length, 7);
  t.notOk('nextCursor' in all);
  const paged = [];
  let cursor: string | undefined;
  do {
    const page = await partner().listKeys(caller, { limit: 3, ...(cursor === undefined ? {} : { cursor }) });
    paged.push(...page.keys);
    cursor = page.nextCursor;
    if (cursor !== undefined) await t.rejects(partner().listProofs(caller, { cursor }), { code: 'invalid_request', reason: 'invalid_member' }, 'a cursor of another route');
  } while (cursor !== undefined);
  t.same(paged, all.keys);
  t.notOk('nextCursor' in (await partner().listKeys(caller, { limit: 7 })), 'a full last page is the last page');

  const used = seconds();
  await restart();
  t.match((await partner().listKeys(caller, {})).keys.find((key) => key.keyId === keyId), { lastUsedAt: used }, 'last use outlives a restart');

  const calls: [Scope, (caller: Caller) => unknown][] = [
    ['keys', (caller) => partner().listKeys(caller, {})],
    ['keys', (caller) => partner().rotateKey(caller, '', IDEMPOTENCY_KEY)],
    ['usage', (caller) => partner().readUsage(caller, { days: 1 })],
    ['verify', (caller) => partner().identify(caller, { uploadId: 'upl_1' })],
    ['verify', (caller) => partner().createUpload(caller, { purpose: 'verify' })],
    ['verify', (caller) => partner().verifyUpload(caller, { uploadId: 'upl_1' })],
    ['proofs', (caller) => partner().listProofs(caller, {})],
    ['proofs', (caller) => partner().readProof(caller, 'prf_1')],
    ['proofs', (caller) => partner().readRecord(caller, 'prf_1')],
    ['proofs', (caller) => partner().readAsset(caller, 'prf_1', 'audio')],
    ['erase', (caller) => partner().eraseProof(caller, 'prf_1')],
    ['reviews', (caller) => partner().readReview(caller, 'rev_1')],
    ['reviews', (caller) => partner().createReview(caller, { proofId: 'prf_1', bindings: bindings('s') })],
    ['reviews', (caller) => partner().openEvidence(caller, 'rev_1', { kind: 'source_evidence' })],
    ['reviews', (caller) => partner().closeEvidence(caller, 'rev_1', 'req_1', { status: 'accepted' })],
    ['reviews', (caller) => partner().resolveReview(caller, 'rev_1', { outcome: 'accepted' })],
  ];
  for (const [scope, call] of calls) {
    const without = { ...caller, scopes: caller.scopes.filter((held) => held !== scope) };
    await t.rejects(async () => call(without), { code: 'forbidden' }, `${scope} is needed`);
  }
});

const bindings = (submissionId: string): ReviewBindings => ({ creatorId: 'creator-1', accountId: 'account-1', submissionId, trackId: 'track-1' });

t.test('proofs: list, read, record, asset', async (t) => {
  const { partnerId, caller } = await service.partner();
  const stranger = (await service.partner()).caller;
  const issued = [];
  for (let i = 0; i < 5; i++) {
    issued.unshift(await service.issue(partnerId, wav(2_000, {}, i + 1), i === 4 ? { carrier: 'sidecar', fileName: 'five.wav' } : {}));
    if (i !== 2) clock.advance(10);
  }
  const ids = issued.map(({ proofId, issuedAt }) => ({ proofId, issuedAt })).sort((a, b) => b.issuedAt - a.issuedAt || (a.proofId < b.proofId ? 1 : -1));
  const listed = await partner().listProofs(caller, {});
  t.match(listed.proofs.map(({ proofId, issuedAt }) => ({ proofId, issuedAt })), ids, 'newest first');
  t.notOk('nextCursor' in listed);
  const paged: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await partner().listProofs(caller, { limit: 2, ...(cursor === undefined ? {} : { cursor }) });
    paged.push(...page.proofs.map(({ proofId }) => proofId));
    cursor = page.nextCursor;
    if (cursor !== undefined) {
      await t.rejects(partner().listProofs(caller, { cursor, issuedAfter: 1 }), { code: 'invalid_request', reason: 'invalid_member' }, 'another filter');
      await t.rejects(partner().listProofs(stranger, { cursor }), { code: 'invalid_request', reason: 'invalid_member' }, 'another partner');
    }
  } while (cursor !== undefined);
  t.same(paged, ids.map(({ proofId }) => proofId));
  const bound = ids[1]!.issuedAt;
  t.same((await partner().listProofs(caller, { issuedAfter: bound, issuedBefore: bound })).proofs.map(({ proofId }) => proofId), ids.filter(({ issuedAt }) => issuedAt === bound).map(({ proofId }) => proofId), 'bounds are inclusive');
  t.same((await partner().listProofs(stranger, {})).proofs, []);

  const [pair, embedded] = [issued[0]!, issued[1]!];
  t.match(await partner().readProof(caller, pair.proofId), { proofId: pair.proofId, issuedAt: pair.issuedAt, createdAt: pair.issuedAt, carrier: 'sidecar', originalSha256: pair.originalSha256, song: { title: 'Take one' } });
  const record = await partner().readRecord(stranger, embedded.proofId);
  t.match(record, { proofId: embedded.proofId, boundAudioSha256: embedded.boundAudioSha256, delivery: { carrier: 'embedded', bytes: embedded.file.length } }, 'any key reads a record');
  t.notOk('partnerId' in record || 'grade' in record || 'classification' in record);

  const asset = await partner().readAsset(caller, embedded.proofId, 'audio');
  t.ok((await collect(await asset.read())).equals(embedded.file));
  t.ok((await collect(await asset.read({ start: 5, end: 9 }))).equals(embedded.file.subarray(5, 10)));
  const sidecar = await partner().readAsset(caller, pair.proofId, 'sidecar');
  t.ok((await collect(await sidecar.read())).equals(pair.sidecar!));
  t.ok((await collect(await sidecar.read({ start: 0, end: 0 }))).equals(pair.sidecar!.subarray(0, 1)));
  t.match(sidecar, { fileName: 'five.sidecar', bytes: pair.sidecar!.length });
  await t.rejects(partner().readAsset(caller, embedded.proofId, 'sidecar'), notFound);

  // "Foreign equals never-issued": the same code and the same words.
  const words = async (work: Promise<unknown>) => work.then(() => 'answered', (error: unknown) => `${(error as { code: string }).code} ${(error as Error).message}`);
  for (const call of [(id: string) => partner().readProof(stranger, id), (id: string) => partner().readAsset(stranger, id, 'audio'), (id: string) => partner().eraseProof(stranger, id)]) {
    t.equal(await words(call(embedded.proofId)), await words(call('prf_never')));
    t.match(await words(call(embedded.proofId)), /^not_found /);
  }
  t.equal((await partner().readProof(caller, embedded.proofId)).proofId, embedded.proofId, "a stranger's erasing did nothing");
});

t.test('erase', async (t) => {
  const { partnerId, caller, keyId } = await service.partner();
  const stranger = (await service.partner()).caller;
  const { proofId, file } = await service.issue(partnerId, wav(3_000, {}, 71));
  const kept = await service.issue(partnerId, wav(3_000, {}, 72));
  t.match(await service.verify(caller, file), { verdict: 'valid' });
  const own = await partner().createReview(caller, { proofId, bindings: bindings('erase') });
  const foreign = await partner().createReview(stranger, { proofId, bindings: bindings('erase') });
  t.match(await operator().erasureStatus(proofId), { state: 'issued', assetPresent: true });

  const backup = await mkdtemp(join(tmpdir(), 'takemark-backup-'));
  t.teardown(() => rm(backup, { recursive: true }));
  await restart(async () => {
    for (const part of ['store', 'assets']) await cp(join(dataDirectory, part), join(backup, part), { recursive: true });
  });

  const at = seconds();
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => partner().eraseProof(caller, proofId)));
  t.equal(outcomes.filter(({ outcome }) => outcome === 'erased').length, 1);
  for (const outcome of outcomes) t.match(outcome, { proofId, erasedAt: at });
  clock.advance(100);
  t.same(await partner().eraseProof(caller, proofId), { proofId, outcome: 'already_erased', erasedAt: at });

  const gone = async () => {
    t.match(await service.verify(caller, file), { verdict: 'unregistered', good: false });
    for (const call of [partner().readProof(caller, proofId), partner().readRecord(caller, proofId), partner().readAsset(caller, proofId, 'audio'), partner().createReview(caller, { proofId, bindings: bindings('later') })]) await t.rejects(call as Promise<unknown>, notFound);
    for (const [who, { reviewId }] of [[caller, own], [stranger, foreign]] as const) await t.rejects(partner().readReview(who, reviewId), notFound);
    t.match(await operator().erasureStatus(proofId), { state: 'erased', erasedAt: at, assetPresent: false });
    t.same((await partner().listProofs(caller, {})).proofs.map((proof) => proof.proofId), [kept.proofId]);
    t.same(await partner().identify(caller, { uploadId: await uploadFor(caller, 'identify', file) }), { matches: [] });
  };
  await gone();
  const audit = await operator().readAudit({ partnerId, fromSequence: 1, limit: 100 });
  t.match(audit.filter(({ action }) => action === 'proof_erased'), [{ actor: keyId, subjects: [proofId], at }]);
  t.equal(audit.filter(({ action }) => action === 'proof_erased').length, 1);
  t.match(await operator().verifyAudit(partnerId), { ok: true, entries: audit.length, head: audit.length });
  t.equal(service.log.some((line) => line.includes(proofId)), false, 'no proof id in the log');

  await restart();
  await gone();
  // "A restored backup brings erased proofs back": the journal takes them away again.
  await restart(async () => {
    for (const part of ['store', 'assets']) {
      await rm(join(dataDirectory, part), { recursive: true });
      await cp(join(backup, part), join(dataDirectory, part), { recursive: true });
    }
  });
  await gone();
  t.ok(service.log.some((line) => line.includes('erasures_replayed')));
  t.match(await operator().verifyAudit(partnerId), { ok: false }, 'and the audit log says that it was put back');
});

t.test('identify', async (t) => {
  const { partnerId, caller } = await service.partner();
  const stranger = (await service.partner()).caller;
  const audio = wav(4_000, {}, 81);
  const embedded = await service.issue(partnerId, audio);
  clock.advance(1);
  const pair = await service.issue(partnerId, audio, { carrier: 'sidecar' });
  const identify = async (file: Uint8Array) => (await partner().identify(stranger, { uploadId: await uploadFor(stranger, 'identify', file) })).matches;
  const match = (proofId: string, type: string) => ({ proofId, type, confidence: 1 });
  t.same(await identify(embedded.file), [match(embedded.proofId, 'exact_file')]);
  t.same(await identify(audio), [match(pair.proofId, 'exact_file'), match(embedded.proofId, 'original_file')], 'one entry a proof, the strongest first');
  const altered = Buffer.from(embedded.file);
  altered[altered.length - 20]! ^= 1;
  t.same(await identify(altered), [match(embedded.proofId, 'bound_audio')], 'another credential on the same audio');
  t.same(await identify(wav(4_000, {}, 82)), []);
  const before = (await partner().quota(stranger)).remaining;
  const noise = await uploadFor(stranger, 'identify', Buffer.from('no audio at all, but a text of some length'));
  await t.rejects(partner().identify(stranger, { uploadId: noise }), { code: 'unprocessable' });
  t.equal((await partner().quota(stranger)).remaining, before, 'a refused call costs nothing');
  const uploadId = await uploadFor(stranger, 'identify', audio);
  await Promise.all(Array.from({ length: 10 }, () => partner().identify(stranger, { uploadId })));
  t.equal((await partner().quota(stranger)).remaining, before - 1, 'billed once for an upload');
  await t.rejects(partner().identify(caller, { uploadId }), notFound);
  await t.rejects(partner().verifyUpload(stranger, { uploadId }), { code: 'conflict', reason: 'purpose_mismatch' });
  await t.rejects(partner().identify(stranger, { uploadId: await uploadFor(stranger, 'verify', audio) }), { code: 'conflict', reason: 'purpose_mismatch' });
  const open = await partner().createUpload(stranger, { purpose: 'identify' });
  await t.rejects(partner().identify(stranger, { uploadId: open.uploadId }), { code: 'conflict', reason: 'upload_incomplete' });
});

t.test('usage and quota', async (t) => {
  // To the second before a month ends.
  clock.moveTo(Date.UTC(new Date(clock.now()).getUTCFullYear() + 1, 2, 1) / 1_000 - 1);
  const { caller } = await service.partner('trial');
  t.match(await partner().quota(caller), { limit: 1_000, remaining: 1_000, reset: seconds() + 1 });
  const small = { ...caller, plan: { ...caller.plan, monthlyQuota: 10 } };
  const uploads = await Promise.all(Array.from({ length: 2 }, () => service.upload(caller, wav(500))));
  const calls = await Promise.allSettled(Array.from({ length: 200 }, (_, i) => partner().verifyUpload(small, { uploadId: uploads[0]!.uploadId, sidecar: Buffer.from(String(i)) })));
  t.equal(calls.filter(({ status }) => status === 'fulfilled').length, 10, '200 calls at once: not one too many');
  for (const call of calls) if (call.status === 'rejected') t.match(call.reason, { code: 'rate_limited', reason: 'quota_exceeded', retryAfterSeconds: 1 });
  t.match(await partner().quota(small), { limit: 10, remaining: 0 });
  for (let i = 0; i < 3; i++) partner().meter(caller, 'list_proofs');
  clock.advance(1);
  t.match(await partner().verifyUpload(small, { uploadId: uploads[1]!.uploadId }), { verdict: 'unreadable' }, 'after Retry-After');
  t.match(await partner().quota(small), { limit: 10, remaining: 9 });
  await restart();

  const report = await partner().readUsage(caller, { days: 92 });
  t.match(report, { plan: 'trial', limit: 1_000, used: 1, remaining: 999, period: { start: seconds(), end: Date.UTC(new Date(clock.now()).getUTCFullYear(), 3, 1) / 1_000 } });
  t.equal(report.days.length, 92);
  t.same(report.days.at(-1), { day: new Date(clock.now()).toISOString().slice(0, 10), units: 1, operations: { verify: 1 } });
  t.match(report.days.at(-2), { units: 10, operations: { verify: 10, list_proofs: 3 } }, 'metered, but free');
  for (const { units, operations } of report.days.slice(0, 90)) if (units !== 0 || Object.keys(operations).length !== 0) t.fail('days without use are zero');
  t.same(report.days.map(({ day }) => day), report.days.map((_, i) => new Date(clock.now() - (91 - i) * 86_400_000).toISOString().slice(0, 10)));
  t.same((await partner().readUsage(caller, { days: 1 })).days, report.days.slice(-1));
});

t.test('reviews', async (t) => {
  const { partnerId, caller } = await service.partner();
  const stranger = (await service.partner()).caller;
  const { proofId } = await service.issue(partnerId, wav(2_000, {}, 91));
  const create = (submissionId = 'one') => partner().createReview(stranger, { proofId, bindings: bindings(submissionId) });
  const start = seconds();
  const opened = await Promise.allSettled(Array.from({ length: 20 }, () => create()));
  const review = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))[0]!;
  t.equal(opened.filter(({ status }) => status === 'fulfilled').length, 1, 'one case, whoever asks at once');
  for (const result of opened) if (result.status === 'rejected') t.match(result.reason, { code: 'conflict', reason: 'review_exists' });
  t.same(review, { reviewId: review.reviewId, proofId, bindings: bindings('one'), status: 'open', createdAt: start, updatedAt: start, expiresAt: start + REVIEW_LIFE_SECONDS, evidenceRequests: [] }, "any registered proof, not only the partner's own");
  const { reviewId } = review;
  await t.rejects(partner().createReview(caller, { proofId: 'prf_never', bindings: bindings('x') }), notFound);
  await t.rejects(partner().readReview(caller, reviewId), notFound, "another partner's case");

  clock.advance(5);
  for (const kind of EVIDENCE_KINDS) {
    const results = await Promise.allSettled(Array.from({ length: 100 }, () => partner().openEvidence(stranger, reviewId, { kind })));
    t.equal(results.filter(({ status }) => status === 'fulfilled').length, 1, `${kind}: once, of 100 at once`);
    for (const result of results) if (result.status === 'rejected') t.match(result.reason, { code: 'conflict', reason: 'evidence_kind_already_open' });
  }
  const { evidenceRequests } = await partner().readReview(stranger, reviewId);
  t.match(evidenceRequests, EVIDENCE_KINDS.map((kind) => ({ kind, status: 'requested', createdAt: start + 5 })));
  t.equal(evidenceRequests.length, 3);
  const [first, second, third] = evidenceRequests.map(({ requestId }) => requestId);

  await t.rejects(partner().resolveReview(stranger, reviewId, { outcome: 'accepted' }), { code: 'conflict', reason: 'evidence_requests_open' });
  t.match(await operator().supplyEvidence({ reviewId, requestId: first! }), { evidenceRequests: [{ status: 'supplied' }, { status: 'requested' }, { status: 'requested' }] });
  const supplied = await partner().readReview(stranger, reviewId);
  clock.advance(1);
  t.same(await operator().supplyEvidence({ reviewId, requestId: first! }), supplied, 'said again it changes nothing');
  await t.rejects(operator().supplyEvidence({ reviewId: 'rev_never', requestId: first! }), notFound);
  await t.rejects(partner().closeEvidence(stranger, reviewId, 'req_never', { status: 'accepted' }), notFound);
  await t.rejects(partner().closeEvidence(caller, reviewId, first!, { status: 'accepted' }), notFound);

  const closings = await Promise.allSettled((['accepted', 'declined'] as const).flatMap((status) => Array.from({ length: 10 }, () => partner().closeEvidence(stranger, reviewId, first!, { status, responseReference: 'case/77' }))));
  t.equal(closings.filter(({ status }) => status === 'fulfilled').length, 1, 'closed once, and for good');
  for (const result of closings) if (result.status === 'rejected') t.match(result.reason, { code: 'conflict', reason: 'evidence_request_final' });
  await t.rejects(operator().supplyEvidence({ reviewId, requestId: first! }), { code: 'conflict', reason: 'evidence_request_final' });
  await partner().closeEvidence(stranger, reviewId, second!, { status: 'declined' });
  await t.rejects(partner().resolveReview(stranger, reviewId, { outcome: 'held' }), { code: 'conflict', reason: 'evidence_requests_open' }, 'one is still open');
  t.match(await partner().closeEvidence(stranger, reviewId, third!, { status: 'accepted' }), { evidenceRequests: [{ responseReference: 'case/77' }, { status: 'declined' }, { status: 'accepted' }] }, 'from requested, too');

  clock.advance(10);
  const held = await partner().resolveReview(stranger, reviewId, { outcome: 'held' });
  t.match(held, { status: 'resolved', outcome: 'held', resolvedAt: seconds() });
  await t.rejects(create(), { code: 'conflict', reason: 'review_exists' }, 'held counts as unresolved');
  clock.advance(10);
  t.same(await partner().resolveReview(stranger, reviewId, { outcome: 'held' }), held, 'the same outcome again: unchanged');
  t.match(await partner().resolveReview(stranger, reviewId, { outcome: 'accepted' }), { outcome: 'accepted', expiresAt: start + REVIEW_LIFE_SECONDS });
  await t.rejects(partner().resolveReview(stranger, reviewId, { outcome: 'rejected' }), { code: 'conflict', reason: 'review_resolved' });
  await t.rejects(partner().openEvidence(stranger, reviewId, { kind: 'source_evidence' }), { code: 'conflict', reason: 'review_resolved' });
  const next = await create();
  t.not(next.reviewId, reviewId, 'a resolved case makes room');

  await restart();
  clock.moveTo(start + REVIEW_LIFE_SECONDS - 1);
  t.match(await partner().readReview(stranger, reviewId), { outcome: 'accepted' }, 'one second before 180 days');
  clock.moveTo(start + REVIEW_LIFE_SECONDS);
  await t.rejects(partner().readReview(stranger, reviewId), notFound, '180 days');
  await t.rejects(partner().resolveReview(stranger, reviewId, { outcome: 'accepted' }), notFound);
  await t.rejects(operator().supplyEvidence({ reviewId, requestId: first! }), notFound);
  t.match(await partner().readReview(stranger, next.reviewId), { status: 'open' });

  const audit = await operator().readAudit({ partnerId: stranger.partnerId, fromSequence: 1, limit: 100 });
  const count = (action: string) => audit.filter((entry) => entry.action === action).length;
  t.same([count('review_created'), count('review_evidence_opened'), count('review_evidence_supplied'), count('review_evidence_closed'), count('review_resolved')], [2, 3, 1, 3, 2], 'what changed, once each; nothing of what was refused');
  t.notOk(/case\/77|creator-1|account-1|track-1|Take one/.test(JSON.stringify(audit)), 'ids and closed words only');
  t.match(await operator().verifyAudit(stranger.partnerId), { ok: true, head: audit.length });
  t.match((await operator().readAudit({ partnerId, fromSequence: 2, limit: 1 })).map(({ sequence, actor, action }) => ({ sequence, actor, action })), [{ sequence: 2, actor: 'operator', action: 'key_created' }]);
  await t.rejects(operator().readAudit({ partnerId: 'ptr_never', fromSequence: 1, limit: 1 }), notFound);
  await t.rejects(operator().verifyAudit('ptr_never'), notFound);
});

t.test('download, telemetry, plans', async (t) => {
  const { caller, partnerId } = await service.partner();
  t.equal(partner().download(caller, { product: 'plugin', platform: 'macos-arm64' }), 'https://downloads.example/plugin.pkg');
  for (const query of [{ product: 'plugin', platform: 'windows' }, { product: '__proto__', platform: '' }, { product: 'plugin/macos-arm64', platform: '' }]) t.throws(() => partner().download(caller, query), notFound);
  t.same(partner().telemetry(caller, [{ name: 'app_started', count: 2, at: seconds() }]), { accepted: 1 });
  t.throws(() => partner().telemetry(caller, [{ name: 'app_started', count: 1, at: 1 }, { name: 'My song title', count: 1, at: 1 }]), { code: 'invalid_request' });
  t.match(operator().listPlans().map(({ name }) => name), ['trial', 'standard', 'volume']);
  t.ok((await operator().listPartners()).some((known) => known.partnerId === partnerId));
  await t.rejects(operator().listPartnerKeys('ptr_never'), notFound);
  await t.rejects(operator().erasureStatus('prf_never'), notFound);
  const { burst } = caller.plan;
  const admitted = Array.from({ length: burst + 200 }, () => { try { partner().admit(caller, 'standard'); return 1; } catch { return 0; } }).reduce<number>((sum, one) => sum + one, 0);
  t.equal(admitted, burst);
});
