import { createHash } from 'node:crypto';
import type { Test } from 'tap';
import type { IssuedProof } from '../../src/service/domain/proof.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { actionsOf } from './audit-contract.js';
import { audit, issuedProof, issuingReplay, NOW, reviewCase } from './samples.js';
import type { Contract } from './suite.js';

/** Tests the lists, digests and erasure of proofs. */
export async function proofContract(t: Test, { opened, id }: Contract): Promise<void> {
  await t.test('proofs are listed newest first, with bounds to the second', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'list');
    const proofs = [100, 101, 101, 102, 110].map((at, i) =>
      issuedProof(id('prf', `list-${i}`), partnerId, { createdAt: NOW + at }),
    );
    t.strictSame(await stores.listProofs(partnerId, { limit: 10 }), []);
    for (const proof of proofs) await issue(stores, proof);
    await issue(stores, issuedProof(id('prf', 'list-foreign'), id('ptr', 'list2')));
    await stores.reserveProof(id('prf', 'list-pending'), partnerId, NOW);
    const list = async (query: Omit<Parameters<Stores['listProofs']>[1], 'limit'>, limit = 10) =>
      (await stores.listProofs(partnerId, { ...query, limit })).map(({ proofId }) =>
        proofs.findIndex((proof) => proof.proofId === proofId),
      );
    t.strictSame(await stores.listProofs(partnerId, { limit: 10 }), proofs.toReversed());
    t.strictSame(await list({}, 2), [4, 3]);
    t.strictSame(await list({ issuedAfter: NOW + 101 }), [4, 3, 2, 1], 'the bound’s own second is in');
    t.strictSame(await list({ issuedAfter: NOW + 102 }), [4, 3], 'and one second later not');
    t.strictSame(await list({ issuedBefore: NOW + 101 }), [2, 1, 0]);
    t.strictSame(await list({ issuedBefore: NOW + 100 }), [0]);
    t.strictSame(await list({ issuedAfter: NOW + 101, issuedBefore: NOW + 101 }), [2, 1]);
    t.strictSame(await list({ issuedAfter: NOW + 102, issuedBefore: NOW + 101 }), []);
    t.strictSame(await list({ issuedAfter: 0, issuedBefore: Number.MAX_SAFE_INTEGER }), [4, 3, 2, 1, 0]);
    t.strictSame(await list({ issuedAfter: Number.MAX_SAFE_INTEGER }), []);
    t.strictSame(await list({ issuedBefore: 0 }), []);
    t.strictSame(
      await list({ before: { createdAt: NOW + 101, proofId: proofs[2]!.proofId } }),
      [1, 0],
      'strictly before the position, within a second too',
    );
    t.strictSame(
      await list({ before: { createdAt: NOW + 110, proofId: proofs[4]!.proofId }, issuedBefore: NOW + 101 }),
      [2, 1, 0],
      'the tighter bound holds',
    );
    t.strictSame(
      await list({ before: { createdAt: NOW + 101, proofId: proofs[1]!.proofId }, issuedBefore: NOW + 102 }),
      [0],
    );
  });

  await t.test('pages of proofs are complete while proofs come and go', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'pages');
    const make = (name: string, at: number) =>
      issuedProof(id('prf', `pages-${name}`), partnerId, { createdAt: NOW + at });
    const kept = Array.from({ length: 120 }, (_, i) =>
      make(`kept-${String(i).padStart(3, '0')}`, Math.floor(i / 5)),
    );
    const erased = Array.from({ length: 30 }, (_, i) => make(`erased-${i}`, i));
    await Promise.all([...kept, ...erased].map((proof) => issue(stores, proof)));

    const read: IssuedProof[] = [];
    let round = 0;
    for (let page = await stores.listProofs(partnerId, { limit: 7 }); page.length > 0; round += 1) {
      read.push(...page);
      if (round < 5) t.equal(page.length, 7, 'a page is full while there is more');
      const { createdAt, proofId } = page.at(-1)!;
      const busy = [
        issue(stores, make(`new-${round}`, 1000 + round)),
        issue(stores, make(`old-${round}`, round % 20)),
        erase(stores, erased[29 - round] ?? erased[0]!),
      ];
      page = await stores.listProofs(partnerId, { before: { createdAt, proofId }, limit: 7 });
      await Promise.all(busy);
    }
    const ids = read.map(({ proofId }) => proofId);
    t.equal(new Set(ids).size, ids.length, 'nothing twice');
    t.strictSame(
      kept.filter(({ proofId }) => !ids.includes(proofId)),
      [],
      'nothing left out',
    );
    const sorted = read.toSorted((a, b) => b.createdAt - a.createdAt || (a.proofId < b.proofId ? 1 : -1));
    t.strictSame(
      ids,
      sorted.map(({ proofId }) => proofId),
      'in order',
    );
    t.notOk(
      ids.some((each) => each.includes('new-')),
      'later proofs are not in the following pages',
    );
  });

  await t.test('proofs are found by their bound and original digests', async (t) => {
    const { stores } = opened();
    const bound = createHash('sha256').update(id('digest', 'bound')).digest('hex');
    const original = createHash('sha256').update(id('digest', 'original')).digest('hex');
    const proofs = ['a', 'b', 'c'].map((name, i) =>
      issuedProof(id('prf', `digest-${name}`), id('ptr', `digest-${name}`), {
        originalSha256: original,
        ...(i === 0 ? { boundAudioSha256: bound } : {}),
      }),
    );
    t.strictSame(await stores.findProofs('bound', bound, 5), []);
    for (const proof of proofs) await issue(stores, proof);
    t.strictSame(await stores.findProofs('bound', bound, 5), [proofs[0]]);
    t.strictSame(
      await stores.findProofs('original', original, 5),
      proofs.toReversed(),
      'of all partners, newest first',
    );
    t.strictSame(await stores.findProofs('original', original, 2), [proofs[2], proofs[1]]);
    t.strictSame(await stores.findProofs('bound', original, 5), []);
    await erase(stores, proofs[0]!);
    t.strictSame(await stores.findProofs('bound', bound, 5), []);
    t.strictSame(await stores.findProofs('original', original, 2), [proofs[2], proofs[1]]);
  });

  await t.test('proofs are found by any of their digests until they are erased', async (t) => {
    const { stores } = opened();
    const digest = (name: string) => createHash('sha256').update(id('digest', name)).digest('hex');
    const { file, bound, original, samples } = {
      file: digest('any-file'),
      bound: digest('any-bound'),
      original: digest('any-original'),
      samples: digest('any-samples'),
    };
    const find = async (...digests: readonly string[]) => {
      const found = await stores.findByDigests(digests, 100);
      return digests.map((sha256) => (found.get(sha256) ?? []).map(({ proofId }) => proofId));
    };
    const embedded = issuedProof(id('prf', 'any-1'), id('ptr', 'any-1'), {
      fileSha256: file,
      boundAudioSha256: bound,
      originalSha256: original,
      samplesSha256: samples,
    });
    // All digests of the files of this pair are the same.
    const pair = issuedProof(id('prf', 'any-2'), id('ptr', 'any-2'), {
      fileSha256: original,
      boundAudioSha256: original,
      originalSha256: original,
    });
    t.strictSame(await find(file, bound, original, samples), [[], [], [], []]);
    await issue(stores, embedded);
    await issue(stores, pair);
    t.strictSame(await find(file, bound, original, samples, digest('none')), [
      [embedded.proofId],
      [embedded.proofId],
      [pair.proofId, embedded.proofId],
      [embedded.proofId],
      [],
    ]);
    t.match((await stores.findByDigests([file], 100)).get(file), [
      {
        proofId: embedded.proofId,
        createdAt: embedded.createdAt,
        fileSha256: file,
        boundAudioSha256: bound,
        originalSha256: original,
        samplesSha256: samples,
      },
    ]);
    t.strictSame(await stores.findProofs('file', file, 5), [embedded]);
    t.strictSame(await stores.findProofs('samples', samples, 5), [embedded]);
    t.strictSame(
      (await stores.findByDigests([original], 1)).get(original)?.map(({ proofId }) => proofId),
      [pair.proofId],
      'the newest are within the limit',
    );
    const followed = await stores.findByDigests([file], 100, (first) =>
      (first.get(file) ?? []).map(({ originalSha256 }) => originalSha256),
    );
    t.strictSame(
      [file, bound, original].map((sha256) => followed.get(sha256)?.map(({ proofId }) => proofId)),
      [[embedded.proofId], undefined, [pair.proofId, embedded.proofId]],
      'digests of what was found are looked for, too',
    );
    await erase(stores, embedded);
    t.strictSame(await find(file, bound, original, samples), [[], [], [pair.proofId], []]);
    t.strictSame(await stores.findProofs('file', file, 5), []);
    t.strictSame(await stores.findProofs('samples', samples, 5), []);
    await erase(stores, pair);
    t.strictSame(await find(original), [[]]);
  });

  await t.test('a digest that many proofs have finds them all, within the limit', async (t) => {
    const { stores } = opened();
    const original = createHash('sha256').update(id('digest', 'many')).digest('hex');
    const proofs = Array.from({ length: 20 }, (_, i) =>
      issuedProof(id('prf', `many-${String(i).padStart(2, '0')}`), id('ptr', 'many'), {
        originalSha256: original,
      }),
    );
    await Promise.all(proofs.map((proof) => issue(stores, proof)));
    const find = async (limit: number) =>
      ((await stores.findByDigests([original], limit)).get(original) ?? []).map(({ proofId }) => proofId);
    const ids = proofs.map(({ proofId }) => proofId).reverse();
    t.strictSame(await find(100), ids);
    t.strictSame(await find(7), ids.slice(0, 7));
    for (const proof of proofs.slice(1)) await erase(stores, proof);
    t.strictSame(await find(100), [proofs[0]!.proofId]);
    await erase(stores, proofs[0]!);
    t.strictSame(await find(100), []);
  });

  await t.test('a record gets digests that it lacks, and an erasure removes them', async (t) => {
    const { stores } = opened();
    const digest = (name: string) => createHash('sha256').update(id('digest', name)).digest('hex');
    const file = digest('added-file');
    const samples = digest('added-samples');
    const find = async (sha256: string) =>
      ((await stores.findByDigests([sha256], 5)).get(sha256) ?? []).map(({ proofId }) => proofId);
    const proof = issuedProof(id('prf', 'added'), id('ptr', 'added'), { originalSha256: digest('added') });
    t.equal(await stores.addDigests(proof.proofId, { fileSha256: file }), 'proof_gone');
    await issue(stores, proof);
    t.equal(await stores.addDigests(proof.proofId, { fileSha256: file }), 'added');
    t.strictSame(await find(file), [proof.proofId]);
    t.equal(
      await stores.addDigests(proof.proofId, { fileSha256: digest('other'), samplesSha256: samples }),
      'added',
    );
    t.strictSame(await stores.getProof(proof.proofId), {
      ...proof,
      fileSha256: file,
      samplesSha256: samples,
    });
    t.strictSame(await find(samples), [proof.proofId]);
    t.strictSame(await find(digest('other')), [], 'a digest that the record has stays');
    await erase(stores, proof);
    for (const sha256 of [file, samples, proof.originalSha256]) t.strictSame(await find(sha256), []);
    t.equal(await stores.addDigests(proof.proofId, { samplesSha256: samples }), 'proof_gone');
    t.strictSame(await find(samples), []);
  });

  await t.test('the first erasure of a proof wins and leaves nothing derived', async (t) => {
    const { stores } = opened();
    const proof = issuedProof(id('prf', 'erase'), id('ptr', 'erase'));
    const { proofId, partnerId } = proof;
    const attempt = (at: number, owner = partnerId) =>
      stores.eraseProof(proofId, owner, at, audit(owner, 'proof_erased', proofId));
    t.equal(await attempt(NOW), 'not_found');
    await stores.reserveProof(proofId, partnerId, NOW);
    t.equal(await attempt(NOW), 'not_found', 'a reserved id is not a proof');
    const replay = issuingReplay(id('replay', 'erase'), proofId);
    await issue(stores, proof, replay);
    t.equal(await attempt(NOW, id('ptr', 'erase2')), 'not_found', 'another partner’s is not there');
    const reviews = ['erase', 'erase2', 'erase3'].map((name) =>
      reviewCase(id('rev', name), id('ptr', name), proofId),
    );
    for (const review of reviews)
      t.strictSame(
        await stores.createReview(
          review,
          review.createdAt,
          audit(review.partnerId, 'review_created', review.reviewId),
        ),
        { outcome: 'created' },
      );

    const outcomes = await Promise.all(Array.from({ length: 100 }, (_, i) => attempt(NOW + i)));
    const first = outcomes.findIndex((each) => each !== 'not_found' && each.outcome === 'erased');
    const tombstone = { state: 'erased', proofId, partnerId, erasedAt: NOW + first };
    for (const [i, each] of outcomes.entries())
      t.strictSame(each, { outcome: i === first ? 'erased' : 'already_erased', proof: tombstone });
    t.strictSame(await stores.getProof(proofId), tombstone);
    t.strictSame(await stores.listProofs(partnerId, { limit: 10 }), []);
    t.equal(await stores.getIssuingReplay(replay.key, NOW), undefined);
    for (const { reviewId, partnerId: owner } of reviews) {
      t.equal(await stores.getReview(owner, reviewId, NOW), undefined);
      t.equal(await stores.findReviewPartner(reviewId, NOW), undefined);
    }
    t.strictSame(await attempt(NOW + 1000), { outcome: 'already_erased', proof: tombstone });
    t.equal(await attempt(NOW, id('ptr', 'erase2')), 'not_found');
    t.strictSame(await actionsOf(opened(), partnerId), ['proof_issued', 'review_created', 'proof_erased']);

    await t.rejects(issue(stores, proof), { code: 'conflict' }, 'an erased id is never issued again');
    const again = issuedProof(id('prf', 'erase-again'), partnerId);
    t.equal(
      await issue(stores, again, { ...replay, proofId: again.proofId }),
      'issued',
      'its Idempotency-Key is free',
    );
    t.strictSame(await attempt(NOW + 1000), { outcome: 'already_erased', proof: tombstone });
    t.equal((await stores.getIssuingReplay(replay.key, NOW))?.proofId, again.proofId);
  });

  await t.test('an erasure leaves an idempotency record that another proof has by now', async (t) => {
    const { stores } = opened();
    const partnerId = id('ptr', 'taken');
    const first = issuedProof(id('prf', 'taken-1'), partnerId);
    const replay = issuingReplay(id('replay', 'taken'), first.proofId);
    await issue(stores, first, replay);
    const second = issuedProof(id('prf', 'taken-2'), partnerId, { createdAt: replay.expiresAt });
    t.equal(
      await issue(stores, second, issuingReplay(replay.key, second.proofId, replay.expiresAt + 60)),
      'issued',
    );
    await erase(stores, first);
    t.equal((await stores.getIssuingReplay(replay.key, replay.expiresAt))?.proofId, second.proofId);
  });

  await t.test('reviews created beside an erasure do not outlive the proof', async (t) => {
    const { stores } = opened();
    const proofs = Array.from({ length: 40 }, (_, i) =>
      issuedProof(id('prf', `raced-${i}`), id('ptr', 'raced')),
    );
    await Promise.all(proofs.map((proof) => issue(stores, proof)));
    const outcomes = new Set<string>();
    await Promise.all(
      proofs.map(async (proof, i) => {
        const create = (name: string) => {
          const review = reviewCase(
            id('rev', `raced-${i}-${name}`),
            id('ptr', `raced-${name}`),
            proof.proofId,
          );
          return stores.createReview(
            review,
            review.createdAt,
            audit(review.partnerId, 'review_created', review.reviewId),
          );
        };
        const [a, , b, c] = await Promise.all([
          create('a'),
          erase(stores, proof),
          create('b'),
          Promise.resolve().then(() => create('c')),
        ]);
        for (const { outcome } of [a, b, c]) outcomes.add(outcome);
        t.strictSame(await create('late'), { outcome: 'proof_gone' });
        for (const name of ['a', 'b', 'c', 'late']) {
          t.equal(
            await stores.getReview(id('ptr', `raced-${name}`), id('rev', `raced-${i}-${name}`), NOW),
            undefined,
          );
          t.equal(await stores.findReviewPartner(id('rev', `raced-${i}-${name}`), NOW), undefined);
        }
      }),
    );
    t.ok(outcomes.has('proof_gone'));
    t.notOk(outcomes.has('exists'));
  });
}

/** Issues a proof, which is reserved first where it is not. */
async function issue(
  stores: Stores,
  proof: IssuedProof,
  replay?: Parameters<Stores['issueProof']>[2],
): Promise<string> {
  if ((await stores.getProof(proof.proofId)) === undefined)
    await stores.reserveProof(proof.proofId, proof.partnerId, NOW);
  return stores.issueProof(proof, audit(proof.partnerId, 'proof_issued', proof.proofId), replay);
}

function erase(stores: Stores, { proofId, partnerId }: IssuedProof) {
  return stores.eraseProof(proofId, partnerId, NOW, audit(partnerId, 'proof_erased', proofId));
}
