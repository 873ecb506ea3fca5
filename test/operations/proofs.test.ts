/** Proofs, erasure, identification and reviews on a whole service, to the second. */
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { EVIDENCE_KINDS, REVIEW_LIFE_SECONDS } from '../../src/service/domain/review.js';
import { collect } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import { bindings, notFound, RestartedService } from './restarted-service.js';

const house = await RestartedService.start();
t.teardown(() => house.stop());

t.test('proofs are listed, read and retrieved by their owner; the record by every partner', async (t) => {
  const { partnerId, caller } = await house.service.partner();
  const stranger = (await house.service.partner()).caller;
  const issued = [];
  for (let i = 0; i < 5; i += 1) {
    issued.unshift(
      await house.service.issue(
        partnerId,
        wav(2000, {}, i + 1),
        i === 4 ? { carrier: 'sidecar', fileName: 'five.wav' } : {},
      ),
    );
    if (i !== 2) house.clock.advance(10);
  }
  const ids = issued
    .map(({ proofId, issuedAt }) => ({ proofId, issuedAt }))
    .sort((a, b) => b.issuedAt - a.issuedAt || (a.proofId < b.proofId ? 1 : -1));
  const listed = await house.partner.listProofs(caller, {});
  t.match(
    listed.proofs.map(({ proofId, issuedAt }) => ({ proofId, issuedAt })),
    ids,
    'newest first',
  );
  t.notOk('nextCursor' in listed);
  const paged: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await house.partner.listProofs(caller, {
      limit: 2,
      ...(cursor === undefined ? {} : { cursor }),
    });
    paged.push(...page.proofs.map(({ proofId }) => proofId));
    cursor = page.nextCursor;
    if (cursor !== undefined) {
      await t.rejects(
        house.partner.listProofs(caller, { cursor, issuedAfter: 1 }),
        { code: 'invalid_request', reason: 'invalid_member' },
        'another filter',
      );
      await t.rejects(
        house.partner.listProofs(stranger, { cursor }),
        { code: 'invalid_request', reason: 'invalid_member' },
        'another partner',
      );
    }
  } while (cursor !== undefined);
  t.strictSame(
    paged,
    ids.map(({ proofId }) => proofId),
  );
  const bound = ids[1]!.issuedAt;
  t.strictSame(
    (await house.partner.listProofs(caller, { issuedAfter: bound, issuedBefore: bound })).proofs.map(
      ({ proofId }) => proofId,
    ),
    ids.filter(({ issuedAt }) => issuedAt === bound).map(({ proofId }) => proofId),
    'bounds are inclusive',
  );
  t.strictSame((await house.partner.listProofs(stranger, {})).proofs, []);

  const [pair, embedded] = [issued[0]!, issued[1]!];
  t.match(await house.partner.readProof(caller, { proofId: pair.proofId }), {
    proofId: pair.proofId,
    issuedAt: pair.issuedAt,
    createdAt: pair.issuedAt,
    carrier: 'sidecar',
    originalSha256: pair.originalSha256,
    song: { title: 'Take one' },
  });
  const record = await house.partner.readRecord(stranger, { proofId: embedded.proofId });
  t.match(
    record,
    {
      proofId: embedded.proofId,
      boundAudioSha256: embedded.boundAudioSha256,
      delivery: { carrier: 'embedded', bytes: embedded.file.length },
    },
    'any key reads a record',
  );
  t.notOk('partnerId' in record || 'grade' in record || 'classification' in record);

  const asset = await house.partner.readAsset(caller, embedded.proofId, 'audio');
  t.ok((await collect(await asset.read())).equals(embedded.file));
  t.ok((await collect(await asset.read({ start: 5, end: 9 }))).equals(embedded.file.subarray(5, 10)));
  const sidecar = await house.partner.readAsset(caller, pair.proofId, 'sidecar');
  t.ok((await collect(await sidecar.read())).equals(pair.sidecar!));
  t.ok((await collect(await sidecar.read({ start: 0, end: 0 }))).equals(pair.sidecar!.subarray(0, 1)));
  t.match(sidecar, { fileName: 'five.sidecar', bytes: pair.sidecar!.length });
  await t.rejects(house.partner.readAsset(caller, embedded.proofId, 'sidecar'), notFound);

  // Foreign and never issued have the same code and the same words: rule 5.6.
  const words = async (work: Promise<unknown>) =>
    work.then(
      () => 'answered',
      (error: unknown) => `${(error as { code: string }).code} ${(error as Error).message}`,
    );
  for (const call of [
    (id: string) => house.partner.readProof(stranger, { proofId: id }),
    (id: string) => house.partner.readAsset(stranger, id, 'audio'),
    (id: string) => house.partner.eraseProof(stranger, { proofId: id }),
  ]) {
    t.equal(await words(call(embedded.proofId)), await words(call('prf_never')));
    t.match(await words(call(embedded.proofId)), /^not_found /);
  }
  t.equal(
    (await house.partner.readProof(caller, { proofId: embedded.proofId })).proofId,
    embedded.proofId,
    "a stranger's erasing did nothing",
  );
});

t.test('an erased proof is gone for every read, and a repeat returns the first time', async (t) => {
  const { partnerId, caller, keyId } = await house.service.partner();
  const stranger = (await house.service.partner()).caller;
  const { proofId, file } = await house.service.issue(partnerId, wav(3000, {}, 71));
  const kept = await house.service.issue(partnerId, wav(3000, {}, 72));
  t.match(await house.service.verify(caller, file), { verdict: 'valid' });
  const own = await house.partner.createReview(caller, { proofId, bindings: bindings('erase') });
  const foreign = await house.partner.createReview(stranger, { proofId, bindings: bindings('erase') });
  t.match(await house.operator.erasureStatus(proofId), { state: 'issued', assetPresent: true });

  const backup = await mkdtemp(join(tmpdir(), 'takemark-backup-'));
  t.teardown(() => rm(backup, { recursive: true }));
  await house.restart(async () => {
    for (const part of ['store', 'assets'])
      await cp(join(house.directory, part), join(backup, part), { recursive: true });
  });

  const at = house.seconds();
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, () => house.partner.eraseProof(caller, { proofId })),
  );
  t.equal(outcomes.filter(({ outcome }) => outcome === 'erased').length, 1);
  for (const outcome of outcomes) t.match(outcome, { proofId, erasedAt: at });
  house.clock.advance(100);
  t.strictSame(await house.partner.eraseProof(caller, { proofId }), {
    proofId,
    outcome: 'already_erased',
    erasedAt: at,
  });

  const gone = async () => {
    t.match(await house.service.verify(caller, file), { verdict: 'unregistered', good: false });
    for (const call of [
      house.partner.readProof(caller, { proofId }),
      house.partner.readRecord(caller, { proofId }),
      house.partner.readAsset(caller, proofId, 'audio'),
      house.partner.createReview(caller, { proofId, bindings: bindings('later') }),
    ])
      await t.rejects(call as Promise<unknown>, notFound);
    for (const [who, { reviewId }] of [
      [caller, own],
      [stranger, foreign],
    ] as const) {
      await t.rejects(house.partner.readReview(who, { reviewId }), notFound);
      await t.rejects(house.operator.readPartnerReview({ reviewId }), notFound, 'nor for the operator');
      const theirs = { partnerId: who.partnerId };
      t.strictSame(await house.operator.listPartnerReviews(theirs), { reviews: [] });
      t.strictSame(await house.operator.listPartnerReviews({ ...theirs, proofId }), { reviews: [] });
    }
    t.match(await house.operator.erasureStatus(proofId), {
      state: 'erased',
      erasedAt: at,
      assetPresent: false,
    });
    t.strictSame(
      (await house.partner.listProofs(caller, {})).proofs.map((proof) => proof.proofId),
      [kept.proofId],
    );
    const uploadId = await house.upload(caller, 'identify', file);
    const identified = await house.partner.identify(caller, { uploadId });
    t.strictSame('matches' in identified && identified.matches, []);
  };
  await gone();
  const audit = await house.operator.readAudit({ partnerId, fromSequence: 1, limit: 100 });
  t.match(
    audit.filter(({ action }) => action === 'proof_erased'),
    [{ actor: keyId, subjects: [proofId], at }],
  );
  t.equal(audit.filter(({ action }) => action === 'proof_erased').length, 1);
  t.match(await house.operator.verifyAudit({ partnerId }), {
    ok: true,
    entries: audit.length,
    head: audit.length,
  });
  t.equal(
    house.service.log.some((line) => line.includes(proofId)),
    false,
    'no proof id in the log',
  );

  await house.restart();
  await gone();
  // A restored backup brings erased proofs back, and the journal takes them away again: rule 11.13.
  const refused = await house
    .restart(async () => {
      for (const part of ['store', 'assets']) {
        await rm(join(house.directory, part), { recursive: true });
        await cp(join(backup, part), join(house.directory, part), { recursive: true });
      }
    })
    .catch((error: unknown) => error as Error);
  t.match(
    refused,
    { message: /older than the heads of its audit logs.*lack entries/ },
    'a store that was put back does not serve unasked',
  );
  const code = /TAKEMARK_ACCEPT_PUT_BACK=([0-9a-f]{16})/.exec((refused as Error).message)![1]!;
  await t.rejects(
    house.restart(undefined, { TAKEMARK_ACCEPT_PUT_BACK: '0123456789abcdef' }),
    { message: /older than the heads/ },
    'nor under another code',
  );
  await house.restart(undefined, { TAKEMARK_ACCEPT_PUT_BACK: code });
  await gone();
  for (const note of ['store_put_back', 'erasures_replayed'])
    t.ok(
      house.service.log.some((line) => line.includes(note)),
      note,
    );
  t.match(
    await house.operator.verifyAudit({ partnerId }),
    { ok: true },
    'its log is held against where it ended there',
  );
  await house.restart();
  await gone();
});

t.test('identify names issued proofs by digest', async (t) => {
  const { partnerId, caller } = await house.service.partner();
  const stranger = (await house.service.partner()).caller;
  const audio = wav(4000, {}, 81);
  const embedded = await house.service.issue(partnerId, audio);
  house.clock.advance(1);
  const pair = await house.service.issue(partnerId, audio, { carrier: 'sidecar' });
  const identify = async (file: Uint8Array) => {
    const uploadId = await house.upload(stranger, 'identify', file);
    const identified = await house.partner.identify(stranger, { uploadId });
    return 'matches' in identified ? identified.matches : [];
  };
  const match = (proofId: string, type: string) => ({ proofId, type, confidence: 1 });
  t.strictSame(await identify(embedded.file), [
    match(embedded.proofId, 'exact_file'),
    match(pair.proofId, 'same_samples'),
  ]);
  t.strictSame(
    await identify(audio),
    [match(pair.proofId, 'exact_file'), match(embedded.proofId, 'original_file')],
    'one entry a proof, the strongest first',
  );
  const altered = Buffer.from(embedded.file);
  altered[altered.length - 20]! ^= 1;
  t.strictSame(
    await identify(altered),
    [match(embedded.proofId, 'bound_audio'), match(pair.proofId, 'same_samples')],
    'another credential on the same audio',
  );
  t.strictSame(await identify(wav(4000, {}, 82)), []);
  const before = (await house.partner.quota(stranger)).remaining;
  const noise = await house.upload(
    stranger,
    'identify',
    Buffer.from('no audio at all, but a text of some length'),
  );
  await t.rejects(house.partner.identify(stranger, { uploadId: noise }), { code: 'unprocessable' });
  t.equal((await house.partner.quota(stranger)).remaining, before, 'a refused call costs nothing');
  for (const begins of ['fLaC\0\0\0\x22', 'OggS\0\x02\0\0', 'none of the known ones']) {
    const file = Buffer.concat([Buffer.from(begins, 'latin1'), Buffer.alloc(500, 7)]);
    const issued = await house.service.issue(partnerId, file, {
      carrier: 'sidecar',
      allowUnknownContainer: true,
    });
    t.strictSame(await identify(file), [match(issued.proofId, 'exact_file')], 'issued as a pair');
  }
  t.strictSame(
    await identify(Buffer.concat([Buffer.from('fLaC'), Buffer.alloc(500, 8)])),
    [],
    'audio without a proof',
  );
  const paid = (await house.partner.quota(stranger)).remaining;
  const uploadId = await house.upload(stranger, 'identify', audio);
  await Promise.all(Array.from({ length: 10 }, () => house.partner.identify(stranger, { uploadId })));
  t.equal((await house.partner.quota(stranger)).remaining, paid - 1, 'billed once for an upload');
  await t.rejects(house.partner.identify(caller, { uploadId }), notFound);
  await t.rejects(house.partner.verifyUpload(stranger, { uploadId }), {
    code: 'conflict',
    reason: 'purpose_mismatch',
  });
  await t.rejects(
    house.partner.identify(stranger, { uploadId: await house.upload(stranger, 'verify', audio) }),
    { code: 'conflict', reason: 'purpose_mismatch' },
  );
  const open = await house.partner.createUpload(stranger, { purpose: 'identify' });
  await t.rejects(house.partner.identify(stranger, { uploadId: open.uploadId }), {
    code: 'conflict',
    reason: 'upload_incomplete',
  });
});

t.test('a resolved review keeps its outcome, and its requests are closed once', async (t) => {
  const { partnerId, caller } = await house.service.partner();
  const stranger = (await house.service.partner()).caller;
  const { proofId } = await house.service.issue(partnerId, wav(2000, {}, 91));
  const create = (submissionId = 'one') =>
    house.partner.createReview(stranger, { proofId, bindings: bindings(submissionId) });
  const start = house.seconds();
  const opened = await Promise.allSettled(Array.from({ length: 20 }, () => create()));
  const review = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))[0]!;
  t.equal(
    opened.filter(({ status }) => status === 'fulfilled').length,
    1,
    'one case for all concurrent calls',
  );
  for (const result of opened)
    if (result.status === 'rejected')
      t.match(result.reason, { code: 'conflict', reason: 'review_exists', reviewId: review.reviewId });
  t.strictSame(
    review,
    {
      reviewId: review.reviewId,
      proofId,
      bindings: bindings('one'),
      status: 'open',
      createdAt: start,
      updatedAt: start,
      expiresAt: start + REVIEW_LIFE_SECONDS,
      evidenceRequests: [],
      replayed: false,
    },
    "any registered proof, not only the partner's own",
  );
  const { reviewId } = review;
  await t.rejects(
    house.partner.createReview(caller, { proofId: 'prf_never', bindings: bindings('x') }),
    notFound,
  );
  await t.rejects(house.partner.readReview(caller, { reviewId }), notFound, "another partner's case");

  house.clock.advance(5);
  for (const kind of EVIDENCE_KINDS) {
    const results = await Promise.allSettled(
      Array.from({ length: 100 }, () => house.partner.openEvidence(stranger, { reviewId, kind })),
    );
    t.equal(
      results.filter(({ status }) => status === 'fulfilled').length,
      1,
      `${kind}: once, of 100 at once`,
    );
    for (const result of results)
      if (result.status === 'rejected')
        t.match(result.reason, { code: 'conflict', reason: 'evidence_kind_already_open' });
  }
  const { evidenceRequests } = await house.partner.readReview(stranger, { reviewId });
  t.match(
    evidenceRequests,
    EVIDENCE_KINDS.map((kind) => ({ kind, status: 'requested', createdAt: start + 5 })),
  );
  t.equal(evidenceRequests.length, 3);
  const [first, second, third] = evidenceRequests.map(({ requestId }) => requestId);

  await t.rejects(house.partner.resolveReview(stranger, { reviewId, outcome: 'accepted' }), {
    code: 'conflict',
    reason: 'evidence_requests_open',
  });
  t.match(await house.operator.supplyEvidence({ reviewId, requestId: first! }), {
    evidenceRequests: [{ status: 'supplied' }, { status: 'requested' }, { status: 'requested' }],
  });
  const supplied = await house.partner.readReview(stranger, { reviewId });
  const theirs = { partnerId: stranger.partnerId };
  t.strictSame(await house.operator.readPartnerReview({ reviewId }), { ...theirs, ...supplied });
  t.strictSame(await house.operator.listPartnerReviews({ ...theirs, status: 'open' }), {
    reviews: [supplied],
  });
  t.strictSame(await house.operator.listPartnerReviews({ ...theirs, status: 'resolved' }), { reviews: [] });
  t.strictSame(await house.operator.listPartnerReviews({ partnerId: caller.partnerId }), { reviews: [] });
  await t.rejects(house.operator.readPartnerReview({ reviewId: 'rev_never' }), notFound);
  await t.rejects(house.operator.listPartnerReviews({ partnerId: 'ptr_never' }), notFound);
  house.clock.advance(1);
  t.strictSame(
    await house.operator.supplyEvidence({ reviewId, requestId: first! }),
    supplied,
    'said again it changes nothing',
  );
  await t.rejects(house.operator.supplyEvidence({ reviewId: 'rev_never', requestId: first! }), notFound);
  await t.rejects(
    house.partner.closeEvidence(stranger, { reviewId, requestId: 'req_never', status: 'accepted' }),
    notFound,
  );
  await t.rejects(
    house.partner.closeEvidence(caller, { reviewId, requestId: first!, status: 'accepted' }),
    notFound,
  );

  const closings = await Promise.allSettled(
    (['accepted', 'declined'] as const).flatMap((status) =>
      Array.from({ length: 10 }, () =>
        house.partner.closeEvidence(stranger, {
          reviewId,
          requestId: first!,
          status,
          responseReference: 'case/77',
        }),
      ),
    ),
  );
  t.equal(closings.filter(({ status }) => status === 'fulfilled').length, 1, 'closed once, and for good');
  for (const result of closings)
    if (result.status === 'rejected')
      t.match(result.reason, { code: 'conflict', reason: 'evidence_request_final' });
  await t.rejects(house.operator.supplyEvidence({ reviewId, requestId: first! }), {
    code: 'conflict',
    reason: 'evidence_request_final',
  });
  await house.partner.closeEvidence(stranger, { reviewId, requestId: second!, status: 'declined' });
  await t.rejects(
    house.partner.resolveReview(stranger, { reviewId, outcome: 'held' }),
    { code: 'conflict', reason: 'evidence_requests_open' },
    'one is still open',
  );
  t.match(
    await house.partner.closeEvidence(stranger, { reviewId, requestId: third!, status: 'accepted' }),
    { evidenceRequests: [{ responseReference: 'case/77' }, { status: 'declined' }, { status: 'accepted' }] },
    'from requested, too',
  );

  house.clock.advance(10);
  const held = await house.partner.resolveReview(stranger, { reviewId, outcome: 'held' });
  t.match(held, { status: 'resolved', outcome: 'held', resolvedAt: house.seconds() });
  await t.rejects(create(), { code: 'conflict', reason: 'review_exists' }, 'held counts as unresolved');
  house.clock.advance(10);
  t.strictSame(
    await house.partner.resolveReview(stranger, { reviewId, outcome: 'held' }),
    held,
    'the same outcome again: unchanged',
  );
  t.match(await house.partner.resolveReview(stranger, { reviewId, outcome: 'accepted' }), {
    outcome: 'accepted',
    expiresAt: start + REVIEW_LIFE_SECONDS,
  });
  await t.rejects(house.partner.resolveReview(stranger, { reviewId, outcome: 'rejected' }), {
    code: 'conflict',
    reason: 'review_resolved',
  });
  await t.rejects(house.partner.openEvidence(stranger, { reviewId, kind: 'source_evidence' }), {
    code: 'conflict',
    reason: 'review_resolved',
    message: 'The review is resolved. No more evidence can be requested.',
  });
  await t.rejects(
    house.partner.closeEvidence(stranger, { reviewId, requestId: 'req_none', status: 'accepted' }),
    { code: 'not_found', message: 'There is no such review, or no such evidence request in it.' },
  );
  const next = await create();
  t.not(next.reviewId, reviewId, 'a resolved case makes room');

  await house.restart();
  house.clock.moveTo(start + REVIEW_LIFE_SECONDS - 1);
  t.match(
    await house.partner.readReview(stranger, { reviewId }),
    { outcome: 'accepted' },
    'one second before 180 days',
  );
  house.clock.moveTo(start + REVIEW_LIFE_SECONDS);
  await t.rejects(house.partner.readReview(stranger, { reviewId }), notFound, '180 days');
  await t.rejects(house.partner.resolveReview(stranger, { reviewId, outcome: 'accepted' }), notFound);
  await t.rejects(house.operator.supplyEvidence({ reviewId, requestId: first! }), notFound);
  await t.rejects(house.operator.readPartnerReview({ reviewId }), notFound);
  t.match(await house.partner.readReview(stranger, { reviewId: next.reviewId }), { status: 'open' });

  const audit = await house.operator.readAudit({
    partnerId: stranger.partnerId,
    fromSequence: 1,
    limit: 100,
  });
  const count = (action: string) => audit.filter((entry) => entry.action === action).length;
  t.strictSame(
    [
      count('review_created'),
      count('review_evidence_opened'),
      count('review_evidence_supplied'),
      count('review_evidence_closed'),
      count('review_resolved'),
    ],
    [2, 3, 1, 3, 2],
    'what changed, once each; nothing of what was refused',
  );
  t.notOk(
    /case\/77|creator-1|account-1|track-1|Take one/.test(JSON.stringify(audit)),
    'ids and closed words only',
  );
  t.match(await house.operator.verifyAudit({ partnerId: stranger.partnerId }), {
    ok: true,
    head: audit.length,
  });
  t.match(
    (await house.operator.readAudit({ partnerId, fromSequence: 2, limit: 1 })).map(
      ({ sequence, actor, action }) => ({ sequence, actor, action }),
    ),
    [{ sequence: 2, actor: 'operator', action: 'key_created' }],
  );
  await t.rejects(house.operator.readAudit({ partnerId: 'ptr_never', fromSequence: 1, limit: 1 }), notFound);
  await t.rejects(house.operator.verifyAudit({ partnerId: 'ptr_never' }), notFound);
});

t.test(
  'a creation under an Idempotency-Key makes one review, and gives its answer for 24 hours',
  async (t) => {
    const { partnerId, caller } = await house.service.partner();
    const stranger = (await house.service.partner()).caller;
    const { proofId } = await house.service.issue(partnerId, wav(2000, {}, 131));
    const idempotencyKey = 'a-key-of-one-review';
    const create = (by = caller, submissionId = 'keyed') =>
      house.partner.createReview(by, { proofId, bindings: bindings(submissionId), idempotencyKey });
    const at = house.seconds();
    const made = await Promise.all(Array.from({ length: 10 }, () => create()));
    t.equal(made.filter(({ replayed }) => !replayed).length, 1);
    const { replayed: _replayed, ...review } = made[0]!;
    for (const { replayed: _, ...each } of made) t.strictSame(each, review);

    await house.partner.resolveReview(caller, { reviewId: review.reviewId, outcome: 'accepted' });
    await house.restart();
    house.clock.moveTo(at + 24 * 3600 - 1);
    t.strictSame(await create(), { ...review, replayed: true }, 'the answer of its creation');
    await t.rejects(create(caller, 'other'), { code: 'conflict', reason: 'idempotency_key_reused' });
    const foreign = await create(stranger, 'other');
    t.match(foreign, { replayed: false }, "another partner's key is another one");
    house.clock.moveTo(at + 24 * 3600);
    const next = await create();
    t.notOk(next.replayed);
    t.not(next.reviewId, review.reviewId);

    await house.partner.eraseProof(caller, { proofId });
    await t.rejects(create(), notFound, 'no proof is left to refer to');
    t.strictSame(await house.partner.listReviews(caller, {}), { reviews: [] });
  },
);

t.test('a refused creation does not bind its Idempotency-Key', async (t) => {
  const { partnerId, caller } = await house.service.partner();
  const { proofId } = await house.service.issue(partnerId, wav(2000, {}, 133));
  const request = { proofId, bindings: bindings('refused') };
  const idempotencyKey = 'the-key-of-a-refusal';
  const { reviewId } = await house.partner.createReview(caller, request);
  const again = (key = idempotencyKey) =>
    house.partner.createReview(caller, { ...request, idempotencyKey: key });
  for (let i = 0; i < 2; i += 1)
    await t.rejects(again(`${idempotencyKey}-${i}`), { code: 'conflict', reason: 'review_exists', reviewId });
  await house.partner.resolveReview(caller, { reviewId, outcome: 'rejected' });
  const other = await house.partner.createReview(caller, {
    proofId,
    bindings: bindings('other'),
    idempotencyKey: `${idempotencyKey}-0`,
  });
  t.match(other, { replayed: false }, 'the key is free for other data');
  const made = await again();
  t.match(made, { replayed: false });
  t.not(made.reviewId, reviewId);
  t.strictSame(await again(), { ...made, replayed: true });
});

t.test('reviews are listed for their partner, newest first, in pages', async (t) => {
  const { partnerId, caller } = await house.service.partner();
  const stranger = (await house.service.partner()).caller;
  const proofs = [133, 134].map((seed) => house.service.issue(partnerId, wav(2000, {}, seed)));
  const [first, second] = (await Promise.all(proofs)).map(({ proofId }) => proofId) as [string, string];
  const ids: string[] = [];
  for (let i = 0; i < 6; i += 1) {
    const proofId = i < 4 ? first : second;
    const { reviewId } = await house.partner.createReview(caller, {
      proofId,
      bindings: bindings(`list-${i}`),
    });
    ids.unshift(reviewId);
    house.clock.advance(1);
  }
  for (const reviewId of ids.slice(2, 5))
    await house.partner.resolveReview(caller, { reviewId, outcome: 'accepted' });
  type Query = Parameters<typeof house.partner.listReviews>[1];
  const listed = async (query: Query): Promise<readonly string[]> => {
    const found: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await house.partner.listReviews(caller, { ...query, ...(cursor && { cursor }) });
      found.push(...page.reviews.map(({ reviewId }) => reviewId));
      if (page.nextCursor === undefined) return found;
      cursor = page.nextCursor;
    }
  };
  for (const limit of [1, 2, 4, 6, 100]) {
    t.strictSame(await listed({ limit }), ids);
    t.strictSame(await listed({ limit, status: 'resolved' }), ids.slice(2, 5));
    t.strictSame(await listed({ limit, status: 'open' }), [...ids.slice(0, 2), ids[5]]);
    t.strictSame(await listed({ limit, proofId: second }), ids.slice(0, 2));
  }
  t.match((await house.partner.listReviews(caller, { limit: 1 })).reviews, [
    { reviewId: ids[0], proofId: second },
  ]);
  t.strictSame(await house.partner.listReviews(stranger, {}), { reviews: [] });
  const { nextCursor: cursor } = await house.partner.listReviews(caller, { limit: 2 });
  const foreign = { code: 'invalid_request', reason: 'invalid_member' };
  await t.rejects(house.partner.listReviews(stranger, { cursor: cursor! }), foreign);
  await t.rejects(house.partner.listReviews(caller, { cursor: cursor!, status: 'open' }), foreign);
  await house.partner.eraseProof(caller, { proofId: second });
  t.strictSame(await listed({ limit: 1 }), ids.slice(2), 'a page over what is erased is not the last');
});
