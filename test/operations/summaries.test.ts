/** Summaries in lists: settled with the proof, and late for records of earlier versions. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openEmbeddedStore } from '../../src/service/adapters/embedded/store.js';
import { encryptedStores } from '../../src/service/adapters/encryption/encrypted-stores.js';
import { openKeyDirectory } from '../../src/service/adapters/encryption/key-directory.js';
import { SHIPPED_PLANS } from '../../src/service/domain/partner.js';
import type { IssuedProof } from '../../src/service/domain/proof.js';
import type { Caller } from '../../src/service/operations/caller.js';
import { createCursors } from '../../src/service/operations/page.js';
import { recordDeclaration } from '../../src/service/operations/proofs/declarations.js';
import { listProofs } from '../../src/service/operations/proofs/read-proofs.js';
import { grantConsent, revokeConsent } from '../../src/service/operations/proofs/source-detail.js';
import { Fills } from '../../src/service/operations/proofs/summaries.js';
import { HeavyReads } from '../../src/service/operations/usage/heavy-reads.js';
import { createRateLimits } from '../../src/service/operations/usage/rate-limits.js';
import type { Stores } from '../../src/service/ports/stores.js';
import type { EvidenceFacts } from '../../src/witness/domain/evidence.js';
import { summariseEvidence } from '../../src/witness/domain/evidence-report.js';
import { settleSummary } from '../../src/witness/domain/evidence-summary.js';
import { composeReport } from '../../src/witness/report/compose-report.js';
import { composeStored } from '../../src/witness/report/compose-stored.js';
import { encodeEvidence } from '../../src/witness/report/evidence-body.js';
import { AUDIT_KEY, fileHeads } from '../adapters/embedded-process.js';
import { importedSource, sessionEvidence } from '../evidence/reports.js';
import { authenticator } from '../fixtures/authentication.js';
import { audit, issuedProof, NOW, overlayOf, partner } from '../store-contract/samples.js';
import { secretsOf } from './doubles.js';

const FACTS: EvidenceFacts = {
  engineVersion: 2,
  session: sessionEvidence({ midi: 'unknown' }),
  importedSources: [importedSource(1, 2, true)],
  importedSourceCount: 1,
  facts: [{ code: 'trace_truncated', contentClass: 'unverifiable_coverage_gap', status: 'unverifiable' }],
  inputs: { imports: 1 },
};
const BODIES = [
  { part: 'facts', body: encodeEvidence('facts', FACTS) },
  { part: 'detail', body: Buffer.from('detail') },
] as const;
const EVIDENCE: NonNullable<IssuedProof['evidence']> = {
  engineVersion: 2,
  traceSha256: FACTS.session.traceSha256,
  parts: BODIES.map(({ part, body }) => ({
    part,
    bytes: body.length,
    sha256: createHash('sha256').update(body).digest('hex'),
    place: 'registry' as const,
  })),
};
const SETTLED = settleSummary(
  summariseEvidence(composeReport({ facts: FACTS, declarations: [], altered: 0 })),
  undefined,
  FACTS.session.device,
);
const CALLER = { partnerId: 'ptr_1', plan: SHIPPED_PLANS[1]! } as Caller;

async function setUp(t: Test) {
  const directory = t.testdir();
  const store = join(directory, 'store');
  const inner = await openEmbeddedStore({
    directory: store,
    audit: { key: AUDIT_KEY, heads: fileHeads(store) },
    authenticator,
  });
  t.teardown(() => inner.close());
  const keys = await openKeyDirectory({ directory: join(directory, 'keys') });
  const stores = encryptedStores(inner, keys);
  await stores.createPartner(partner('ptr_1'), audit('ptr_1', 'partner_created', 'ptr_1'));
  const read: string[] = [];
  const watched: Stores = {
    ...stores,
    readEvidence: (proofId, part) => {
      read.push(`${proofId} ${part}`);
      return stores.readEvidence(proofId, part);
    },
  };
  const state = { revokedFrom: Number.POSITIVE_INFINITY };
  const deps = {
    stores: watched,
    secrets: secretsOf(),
    assets: { read: async () => undefined },
    clock: { now: () => NOW * 1000 },
    devices: {
      standing: async (_deviceId: string, at: number) =>
        at >= state.revokedFrom
          ? ({ standing: 'revoked', revokedFrom: state.revokedFrom } as const)
          : ({ standing: 'enrolled' } as const),
    },
    compose: async (stored: Parameters<typeof composeStored>[0]) => composeStored(stored),
    reads: new HeavyReads(),
    fills: new Fills(new HeavyReads({ atOnce: 1 }), 0),
    limits: createRateLimits({ now: () => NOW * 1000 }),
    cursors: createCursors(secretsOf(), 'beta'),
  };
  const issue = async (proofId: string, members: Partial<IssuedProof> = {}): Promise<void> => {
    await stores.reserveProof(proofId, 'ptr_1', NOW);
    await stores.issueProof(
      issuedProof(proofId, 'ptr_1', members),
      audit('ptr_1', 'proof_issued', proofId),
      undefined,
      members.evidence === undefined ? [] : BODIES,
    );
  };
  const summary = async () => (await listProofs(deps, CALLER, {})).proofs[0]?.evidenceSummary;
  const report = async () => {
    const [entry] = (await listProofs(deps, CALLER, { include: 'evidenceReport' })).proofs;
    read.length = 0;
    return entry?.evidenceSummary;
  };
  return { directory, deps, stores, keys, inner, read, state, issue, summary, report };
}

t.test('a list reads no evidence when the summary was settled at issuing', async (t) => {
  const { read, issue, summary, report } = await setUp(t);
  await issue('prf_1', { evidence: EVIDENCE, summary: SETTLED });
  const { status, counts, codes } = SETTLED;
  t.strictSame(await summary(), { status, counts, codes });
  t.strictSame(read, []);
  t.strictSame(await summary(), await report(), 'the report has the same summary');
});

t.test('each declaration and each change of consent settles the summary again', async (t) => {
  const { deps, read, issue, summary, report } = await setUp(t);
  await issue('prf_1', { evidence: EVIDENCE, summary: SETTLED });
  const changes: readonly (() => Promise<unknown>)[] = [
    () =>
      recordDeclaration(deps, 'prf_1', {
        surveyVersion: '1',
        submissionId: 'sub_1',
        subject: 'creator',
        submittedAt: NOW,
        answers: { disputedAssessment: 'disputed' },
      }),
    () => grantConsent(deps, { proofId: 'prf_1', consentVersion: 'v1', grantedAt: NOW }),
    () => revokeConsent(deps, { proofId: 'prf_1' }),
  ];
  for (const change of changes) {
    await change();
    read.length = 0;
    const settled = await summary();
    t.strictSame(read, [], 'the list reads no evidence');
    t.match(settled, { status: 'needs_review', counts: { declarations: 1 } });
    t.strictSame(settled, await report());
  }
});

t.test('a record of an earlier version gets its summary at the first list', async (t) => {
  const { stores, read, issue, summary, report } = await setUp(t);
  await issue('prf_1', { evidence: EVIDENCE });
  const first = await summary();
  t.strictSame(read, ['prf_1 facts'], 'the facts are read once, and source detail never');
  t.strictSame(await summary(), first);
  t.strictSame(read, ['prf_1 facts']);
  t.strictSame(first, await report());
  t.match(await stores.getProof('prf_1'), { summary: SETTLED });

  await stores.changeOverlay(
    'prf_1',
    () => ({ result: 'changed', overlay: overlayOf([]) }),
    audit('ptr_1', 'declaration_recorded', 'prf_1'),
  );
  t.match(await summary(), { codes: ['creator_declaration_altered', 'trace_truncated'] });
  t.strictSame(read, ['prf_1 facts'], 'a changed overlay without a summary is read again');
  t.strictSame(await summary(), await report());
});

t.test('summaries are settled late one at a time, and a list that is given up ends', async (t) => {
  const { deps, issue } = await setUp(t);
  for (let i = 1; i <= 3; i += 1) await issue(`prf_${i}`, { evidence: EVIDENCE });
  const left = new AbortController();
  let settling = 0;
  let most = 0;
  const slow = {
    ...deps,
    signal: left.signal,
    compose: async (stored: Parameters<typeof composeStored>[0]) => {
      settling += 1;
      most = Math.max(most, settling);
      await new Promise((resolve) => setImmediate(resolve));
      settling -= 1;
      left.abort(new Error('left'));
      return composeStored(stored);
    },
  };
  await t.rejects(listProofs(slow, CALLER, {}), { message: 'left' });
  t.equal(most, 1);
  t.equal((await listProofs(deps, CALLER, {})).proofs.length, 3, 'the next list settles the others');
});

t.test('altered facts are not settled, so that a body that is restored counts again', async (t) => {
  const { deps, stores, issue, summary } = await setUp(t);
  await issue('prf_1', { evidence: EVIDENCE });
  const lost = { ...deps, stores: { ...deps.stores, readEvidence: async () => undefined } };
  const [entry] = (await listProofs(lost, CALLER, {})).proofs;
  t.match(entry?.evidenceSummary, { status: 'needs_review' });
  t.notOk('summary' in ((await stores.getProof('prf_1')) ?? {}));
  t.match(await summary(), { status: 'recorded' });
});

t.test('a device that was revoked after issuing is in the summary of each of its proofs', async (t) => {
  const { read, state, issue, summary, report } = await setUp(t);
  await issue('prf_1', { evidence: EVIDENCE, summary: SETTLED });
  state.revokedFrom = NOW + 1;
  t.match(await summary(), { status: 'recorded' }, 'revoked from a later time');
  state.revokedFrom = NOW;
  t.match(await summary(), { status: 'needs_review', codes: ['trace_device_revoked', 'trace_truncated'] });
  t.strictSame(read, []);
  t.strictSame(await summary(), await report());
});

t.test('a proof that is erased while its summary is settled is not listed', async (t) => {
  const { deps, stores, issue } = await setUp(t);
  await issue('prf_1', { evidence: EVIDENCE });
  const erasing = {
    ...deps,
    compose: async (stored: Parameters<typeof composeStored>[0]) => {
      await stores.eraseProof('prf_1', 'ptr_1', NOW, audit('ptr_1', 'proof_erased', 'prf_1'));
      return composeStored(stored);
    },
  };
  t.strictSame((await listProofs(erasing, CALLER, {})).proofs, []);
});

t.test('a stored summary cannot be read from any copy once the key is destroyed', async (t) => {
  const { deps, stores, keys, inner, issue } = await setUp(t);
  const canary = 'canary_of_the_summary';
  await issue('prf_1', { evidence: EVIDENCE, summary: { ...SETTLED, codes: [canary] } });
  const copy = await inner.getProof('prf_1');
  const bytes = (value: unknown): string =>
    Object.values(value as object)
      .map((member) =>
        member instanceof Uint8Array ? Buffer.from(member).toString('latin1') : String(member),
      )
      .join(' ');
  t.notOk(bytes(copy).includes(canary), 'not in the clear while the proof exists');
  t.match((await listProofs(deps, CALLER, {})).proofs, [{ evidenceSummary: { codes: [canary] } }]);
  await inner.eraseProof('prf_1', 'ptr_1', NOW, audit('ptr_1', 'proof_erased', 'prf_1'));
  await keys.destroy('prf_1');
  t.strictSame((await listProofs(deps, CALLER, {})).proofs, [], 'nothing in memory brings it back');
  const old = encryptedStores(
    { ...inner, getProof: async () => copy, listProofs: async () => [copy as IssuedProof] },
    keys,
  );
  await t.rejects(
    old.getProof('prf_1'),
    { code: 'internal', reason: 'record_damaged' },
    'an old copy does not open',
  );
  await t.rejects(listProofs({ ...deps, stores: old }, CALLER, {}), {
    code: 'internal',
    reason: 'record_damaged',
  });
  t.match(await stores.getProof('prf_1'), { state: 'erased', summary: undefined });
});
