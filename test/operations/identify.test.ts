/** Identification by digests on a whole service, compared with the identification of uploads. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import t from 'tap';
import type { IssuedProof } from '../../src/service/domain/proof.js';
import type { Caller } from '../../src/service/operations/caller.js';
import { findMatches } from '../../src/service/operations/verification/find-matches.js';
import type { AskedDigest } from '../../src/service/operations/verification/identify.js';
import type { ProofStore } from '../../src/service/ports/stores.js';
import { corpusFiles, NO_CORPUS } from '../fixtures/corpus.js';
import { sampled } from '../fixtures/sampling.js';
import { chunk, wav } from '../fixtures/wav.js';
import { issuedProof } from '../store-contract/samples.js';
import { RestartedService } from './restarted-service.js';

const house = await RestartedService.start();
t.teardown(() => house.stop());

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const match = (proofId: string, type: string) => ({ proofId, type, confidence: 1 });

async function byDigests(caller: Caller, digests: readonly AskedDigest[]) {
  const identified = await house.partner.identify(caller, { digests });
  return 'results' in identified ? identified.results : [];
}

async function byUpload(caller: Caller, file: Uint8Array) {
  return (await identified(caller, file)).matches;
}

async function identified(caller: Caller, file: Uint8Array) {
  const uploadId = await house.upload(caller, 'identify', file);
  const found = await house.partner.identify(caller, { uploadId });
  if (!('matches' in found)) throw new Error('an upload has the result of digests');
  return found;
}

/** Returns a WAV file with a chunk added at its end. */
function tagged(file: Uint8Array): Buffer {
  const bytes = Buffer.concat([file, chunk({ id: 'id3 ', data: Buffer.from('a tag of a player') })]);
  bytes.writeUInt32LE(bytes.length - 8, 4);
  return bytes;
}

t.test('the digest of a known file finds what an upload of the file finds', async (t) => {
  const { partnerId, caller } = await house.service.partner();
  const audio = wav(4000, {}, 51);
  const first = await house.service.issue(partnerId, audio);
  house.clock.advance(1);
  const second = await house.service.issue(partnerId, audio);
  house.clock.advance(1);
  const pair = await house.service.issue(partnerId, audio, { carrier: 'sidecar' });
  const other = await house.service.issue(partnerId, wav(4000, {}, 52), { carrier: 'sidecar' });
  for (const file of [first.file, second.file, audio, wav(4000, {}, 52), wav(4000, {}, 53)]) {
    const expected = await byUpload(caller, file);
    for (const of of [undefined, 'file'] as const)
      t.strictSame(
        await byDigests(caller, [{ sha256: sha256(file), ...(of !== undefined && { of }) }]),
        [{ sha256: sha256(file), matches: expected }],
        `${of}`,
      );
  }
  t.match(await byUpload(caller, first.file), [{ type: 'exact_file' }]);
  t.match(await byUpload(caller, audio), [{ type: 'exact_file' }, { type: 'original_file' }, {}]);

  const bound = first.boundAudioSha256;
  const unknown = sha256(wav(4000, {}, 53));
  const asked: readonly AskedDigest[] = [
    { sha256: bound, of: 'bound' },
    { sha256: unknown },
    { sha256: bound, of: 'samples' },
    { sha256: sha256(first.file), of: 'bound' },
    { sha256: other.originalSha256, of: 'bound' },
    { sha256: bound, of: 'bound' },
  ];
  const ofBound = await byDigests(caller, [{ sha256: bound, of: 'bound' }]);
  t.ok(ofBound[0]!.matches.some(({ proofId, type }) => proofId === first.proofId && type === 'bound_audio'));
  t.strictSame(
    await byDigests(caller, asked),
    [
      ofBound[0],
      { sha256: unknown, matches: [] },
      { sha256: bound, matches: [] },
      { sha256: sha256(first.file), matches: [] },
      { sha256: other.originalSha256, matches: [match(other.proofId, 'bound_audio')] },
      ofBound[0],
    ],
    'one result for each digest, in order, also for a digest that occurs twice',
  );
  const stranger = (await house.service.partner()).caller;
  t.strictSame(await byDigests(stranger, asked), await byDigests(caller, asked), 'for every partner');

  await house.partner.eraseProof(caller, { proofId: pair.proofId });
  await house.partner.eraseProof(caller, { proofId: first.proofId });
  t.notOk(
    (await byDigests(caller, [{ sha256: sha256(audio) }, { sha256: bound }, { sha256: sha256(first.file) }]))
      .flatMap(({ matches }) => matches)
      .some(({ proofId }) => proofId === first.proofId || proofId === pair.proofId),
    'an erased proof is not found',
  );
});

t.test('a list of digests costs a unit, and weighs a call, for each hundred begun', async (t) => {
  const { caller } = await house.service.partner('volume');
  const list = (length: number): readonly AskedDigest[] =>
    Array.from({ length }, (_, i) => ({ sha256: sha256(Buffer.from(String(i))) }));
  const remaining = async (): Promise<number> => (await house.partner.quota(caller)).remaining;
  const rate = (): number => house.partner.rate(caller).remaining;
  for (const [length, units] of [
    [1, 1],
    [100, 1],
    [101, 2],
    [1000, 10],
  ] as const) {
    const before = await remaining();
    // The service's clock does not move, but the rate has the clock of the machine: a refill ends at the burst.
    const weighed = rate();
    await byDigests(caller, list(length));
    t.equal(before - (await remaining()), units, `${length} digests`);
    t.ok(weighed - rate() <= units - 1, `${length} digests weigh at most ${units - 1} calls more`);
  }
  const before = await remaining();
  await byDigests(caller, list(1));
  await byDigests(caller, list(1));
  t.equal(before - (await remaining()), 2, 'each call is billed');

  const used = caller.plan.monthlyQuota - (await remaining());
  const poor: Caller = { ...caller, plan: { ...caller.plan, monthlyQuota: used + 1 } };
  await t.rejects(byDigests(poor, list(101)), { code: 'rate_limited', reason: 'quota_exceeded' });
  t.equal(await remaining(), caller.plan.monthlyQuota - used, 'a refused call costs nothing');
  t.strictSame((await byDigests(poor, list(100))).length, 100);
});

t.test('a record without the digest of its file is completed by one read when digests find it', async (t) => {
  const record = (proofId: string, boundAudioSha256: string): IssuedProof =>
    issuedProof(proofId, 'ptr_1', { originalSha256: 'original', boundAudioSha256 });
  const [former, erased] = [record('prf_2', 'bound'), record('prf_1', 'other')];
  const read: string[] = [];
  const stores: Pick<ProofStore, 'findByDigests' | 'getProof'> = {
    findByDigests: async () =>
      new Map([
        ['original', [former, erased]],
        ['bound', [former]],
      ]),
    getProof: async (proofId) => {
      read.push(proofId);
      return proofId === former.proofId ? former : undefined;
    },
  };
  const files = [{ file: 'original' }, { bound: 'bound' }, { file: former.asset.sha256, bound: 'bound' }];
  t.strictSame(await findMatches(stores, files), [
    [match('prf_2', 'original_file')],
    [match('prf_2', 'bound_audio')],
    [match('prf_2', 'exact_file')],
  ]);
  t.strictSame(read, ['prf_2', 'prf_1']);
});

t.test('the matches of a digest that a list names several times are computed once', async (t) => {
  const { caller } = await house.service.partner();
  const asked = (bytes: string, of?: AskedDigest['of']): AskedDigest => ({
    sha256: sha256(Buffer.from(bytes)),
    ...(of !== undefined && { of }),
  });
  const found = await byDigests(caller, [asked('a'), asked('b'), asked('a'), asked('a', 'file')]);
  t.equal(found[2]!.matches, found[0]!.matches);
  t.not(found[1]!.matches, found[0]!.matches, 'another digest');
  t.not(found[3]!.matches, found[0]!.matches, 'the same digest of something else');
});

t.test('a list of digests is refused if earlier ones exceed the rate when its turn comes', async (t) => {
  const { caller: given } = await house.service.partner();
  const caller: Caller = { ...given, plan: { ...given.plan, burst: 1, requestsPerSecond: 1 } };
  const asked = Array.from({ length: 1000 }, (_, i) => ({ sha256: sha256(Buffer.from(String(i))) }));
  const { remaining } = await house.partner.quota(given);
  const lists = await Promise.allSettled(Array.from({ length: 3 }, () => byDigests(caller, asked)));
  t.match(lists, [
    { status: 'fulfilled' },
    { status: 'fulfilled' },
    {
      status: 'rejected',
      reason: { code: 'rate_limited', reason: 'rate_exceeded', limit: 'request_rate' },
    },
  ]);
  t.equal(remaining - (await house.partner.quota(given)).remaining, 20, 'the third one is not billed');
  t.equal(house.partner.rate(caller).remaining, 0, 'no header has a negative number');
});

t.test('a list of digests is refused when too many lists of the partner run or wait', async (t) => {
  const { caller: given } = await house.service.partner();
  const caller: Caller = { ...given, plan: { ...given.plan, burst: 1 } };
  const asked = [{ sha256: sha256(Buffer.from('any')) }];
  const uploadId = await house.upload(caller, 'identify', wav(4000, {}, 55));
  const lists = Promise.allSettled(Array.from({ length: 4 }, () => byDigests(caller, asked)));
  t.strictSame(await house.partner.identify(caller, { uploadId }).then((found) => 'matches' in found), true);
  const found = { status: 'fulfilled', value: [{ ...asked[0], matches: [] }] };
  t.match(await lists, [
    found,
    found,
    found,
    { status: 'rejected', reason: { reason: 'concurrency_exceeded', limit: 'large_reads' } },
  ]);
  t.strictSame((await byDigests(caller, asked)).length, 1, 'later ones have their turn');
});

t.test('a file with the same samples is found, and only the owner learns what changed', async (t) => {
  const { partnerId, caller } = await house.service.partner();
  const stranger = (await house.service.partner()).caller;
  const audio = wav(4000, {}, 61);
  const { proofId, file } = await house.service.issue(partnerId, audio);
  const retagged = tagged(file);
  const same = match(proofId, 'same_samples');
  t.match(await house.service.verify(caller, retagged), { verdict: 'unreadable' });
  const { samples, matches } = await identified(caller, retagged);
  t.strictSame(matches, [{ ...same, unreadableBecause: ['credential_not_last'] }]);
  t.strictSame(await byUpload(stranger, retagged), [same]);
  t.strictSame((await identified(caller, audio)).samples, samples);
  t.match(samples, /^[0-9a-f]{64}$/);
  t.strictSame(await byUpload(caller, tagged(audio)), [
    { ...same, unreadableBecause: ['credential_missing'] },
  ]);

  const other = await house.service.issue(partnerId, tagged(audio), { carrier: 'sidecar' });
  t.strictSame(
    (await byUpload(stranger, file)).map(({ type }) => type),
    ['exact_file', 'same_samples'],
  );
  for (const each of [file, audio, tagged(audio)])
    t.strictSame(
      (await byDigests(stranger, [{ sha256: sha256(each), of: 'file' }]))[0]!.matches,
      await byUpload(stranger, each),
    );
  const ofSamples = { sha256: samples!, of: 'samples' } as const;
  t.strictSame(
    (await byDigests(stranger, [ofSamples]))[0]!.matches.map((each) => each.proofId).sort(),
    [proofId, other.proofId].sort(),
  );

  const changed = Buffer.from(audio);
  changed[2000]! ^= 1;
  const longer = wav(4001, {}, 61);
  for (const each of [changed, longer]) t.strictSame(await byUpload(caller, each), []);
  t.match(await identified(caller, Buffer.concat([Buffer.from('OggS'), Buffer.alloc(500, 9)])), {
    matches: [],
    samples: null,
    samplesReason: 'container_unsupported',
  });
  for (const id of [proofId, other.proofId]) await house.partner.eraseProof(caller, { proofId: id });
  t.strictSame((await byDigests(stranger, [ofSamples]))[0]!.matches, []);
  t.strictSame(await byUpload(caller, retagged), []);
});

t.test(
  'digests of the files of a corpus find what uploads of the files find',
  { skip: corpusFiles() === undefined && NO_CORPUS },
  async (t) => {
    const { partnerId } = await house.service.partner('volume');
    // Not the owner, who learns more from an upload.
    const { caller } = await house.service.partner('volume');
    const isTried = sampled(11);
    const files = corpusFiles()!
      .filter(isTried)
      .map(({ path }) => readFileSync(path))
      .filter((file) => file.length > 0 && file.length < 10_000_000);
    const known: Uint8Array[] = [];
    for (const file of files) {
      const issued = await house.service
        .issue(partnerId, file)
        .catch(() =>
          house.service.issue(partnerId, file, { carrier: 'sidecar', allowUnknownContainer: true }),
        );
      known.push(file, issued.file);
    }
    const expected = new Map<string, unknown>();
    for (const file of known)
      if (!expected.has(sha256(file))) expected.set(sha256(file), await byUpload(caller, file));
    const digests = [...expected.keys()];
    const asked = Array.from({ length: 1000 }, (_, i) => ({ sha256: digests[i % digests.length]! }));
    t.ok(digests.length > 10, `${digests.length} digests`);
    t.strictSame(
      await byDigests(caller, asked),
      asked.map((digest) => ({ ...digest, matches: expected.get(digest.sha256) })),
    );
  },
);
