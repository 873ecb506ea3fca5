import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { type EmbeddedStore, openEmbeddedStore } from '../../../src/service/adapters/embedded/store.js';
import { identifySchema } from '../../../src/service/contract/schemas/verify-schemas.js';
import { validate } from '../../../src/service/contract/validation.js';
import { SHIPPED_PLANS } from '../../../src/service/domain/partner.js';
import type { Caller } from '../../../src/service/operations/caller.js';
import { HeavyReads } from '../../../src/service/operations/usage/heavy-reads.js';
import { createRateLimits } from '../../../src/service/operations/usage/rate-limits.js';
import { type IdentifyRequest, identify } from '../../../src/service/operations/verification/identify.js';
import { figure, interleave, type Measure, type Run, type Section } from '../../measure.js';
import { UNAUDITED } from './unaudited.js';

const DIGESTS = 1000;
const PARTNER = 'ptr_bench';
const CALLS = 20;

/** The lists of a call: how many of its digests a proof has. */
const LISTS = [
  { name: 'none', known: 0, label: '1,000 digests, none of them known' },
  { name: 'tenth', known: DIGESTS / 10, label: '1,000 digests, 100 of them known' },
  { name: 'all', known: DIGESTS, label: '1,000 digests, each of another proof' },
] as const;

export const digests: Measure = { name: 'digests', run: measureDigests };

async function measureDigests(run: Run): Promise<Section> {
  const stores = await openEmbeddedStore({ directory: join(run.dataDir, 'digests'), ...UNAUDITED });
  try {
    const now = Math.floor(Date.now() / 1000);
    await Promise.all(Array.from({ length: DIGESTS }, (_, i) => issue(stores, i, now)));
    const ask = asker(stores);
    const costs = await interleave(
      run,
      'digests',
      run.scale.rounds,
      LISTS.map(({ name, known }) => ({ name, once: () => cpuOf(run, known, ask) })),
    );
    return {
      id: 'digests',
      title: 'Digests',
      method: `identify() of ${DIGESTS} digests on the embedded store with ${DIGESTS} proofs, from the text of the body to the text of the response, without HTTP. CPU of the whole process, a mean of ${CALLS} calls. The number of matches is checked.`,
      figures: LISTS.map(({ name, label }) =>
        figure(`digests.${name}`, label, 'CPU µs a call', 'ours', costs.get(name)!),
      ),
      comparisons: [],
      notes: [],
    };
  } finally {
    await stores.close();
  }
}

async function issue(stores: EmbeddedStore, i: number, now: number): Promise<void> {
  const proofId = `prf_${String(i).padStart(26, '0')}`;
  await stores.reserveProof(proofId, PARTNER, now);
  await stores.issueProof(
    {
      state: 'issued',
      proofId,
      partnerId: PARTNER,
      song: { title: 'Song' },
      carrier: 'embedded',
      createdAt: now,
      kid: sha256('kid'),
      originalSha256: sha256(`original ${i}`),
      boundAudioSha256: sha256(`bound ${i}`),
      fileSha256: sha256(`file ${i}`),
      samplesSha256: sha256(`samples ${i}`),
      credentialSha256: sha256(`credential ${i}`),
      asset: { bytes: 1, sha256: sha256(`file ${i}`), fileName: 'song.wav', mediaType: 'audio/wav' },
    },
    { partnerId: PARTNER, action: 'proof_issued', at: now, actor: 'operator', subjects: [proofId] },
  );
}

/** Returns a function from the body of a request to the body of its response. */
function asker(stores: EmbeddedStore): (body: string) => Promise<string> {
  const clock = { now: () => Date.now() };
  let calls = 0;
  const ids = { next: () => `rq_${(calls += 1)}`, random: (length: number) => new Uint8Array(length) };
  const deps = { stores, clock, ids, limits: createRateLimits(clock), reads: new HeavyReads() };
  const plan = { ...SHIPPED_PLANS.find(({ name }) => name === 'volume')!, monthlyQuota: 1e9 };
  return async (body) => {
    const checked = validate(identifySchema, JSON.parse(body));
    if ('problem' in checked) throw new Error(checked.problem);
    const caller: Caller = { partnerId: PARTNER, keyId: 'key_bench', scopes: ['verify'], plan };
    return JSON.stringify(await identify(deps, caller, checked.value as IdentifyRequest));
  };
}

async function cpuOf(run: Run, known: number, ask: (body: string) => Promise<string>): Promise<number> {
  const list = Array.from({ length: DIGESTS }, (_, i) => ({
    sha256: sha256(i < known ? `file ${i}` : `unknown ${i}`),
    of: 'file',
  }));
  const body = JSON.stringify({ digests: list });
  const before = process.cpuUsage();
  let response = '';
  for (let call = 0; call < CALLS; call += 1) response = await ask(body);
  const { user, system } = process.cpuUsage(before);
  const matches = response.split('"exact_file"').length - 1;
  if (matches !== known) run.wrong(`digests: ${known} digests are known, ${matches} were found`);
  return (user + system) / CALLS;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
