/** Tests that source detail is delivered only to approved partners with exactly the creator's consent. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openAssetDirectory } from '../../src/service/adapters/assets/directory.js';
import { openEmbeddedStore } from '../../src/service/adapters/embedded/store.js';
import type { IssuedProof } from '../../src/service/domain/proof.js';
import type { Caller } from '../../src/service/operations/caller.js';
import { Plans } from '../../src/service/operations/partners/plans.js';
import { listDeclarations, recordDeclaration } from '../../src/service/operations/proofs/declarations.js';
import { eraseProof } from '../../src/service/operations/proofs/erase-proof.js';
import { readPart } from '../../src/service/operations/proofs/evidence-parts.js';
import { findIssued } from '../../src/service/operations/proofs/find-proof.js';
import { checkOverlay } from '../../src/service/operations/proofs/overlay.js';
import {
  approveSourceDetail,
  deliveredConsent,
  grantConsent,
  revokeConsent,
  withdrawSourceDetail,
} from '../../src/service/operations/proofs/source-detail.js';
import type { ErasureJournal } from '../../src/service/ports/journals.js';
import type { Secrets } from '../../src/service/ports/secrets.js';
import type { EvidenceOverlay, StoredSourceDetail } from '../../src/witness/domain/evidence.js';
import { MAX_OVERLAY_REVISIONS } from '../../src/witness/domain/evidence-overlay.js';
import { encodeEvidence } from '../../src/witness/report/evidence-body.js';
import { AUDIT_KEY, fileHeads } from '../adapters/embedded-process.js';
import { authenticator } from '../fixtures/authentication.js';
import { actionsOf } from '../store-contract/audit-contract.js';
import { audit, issuedProof, NOW, partner } from '../store-contract/samples.js';
import { notFound } from './restarted-service.js';

const secrets: Secrets = {
  current: () => ({ id: 'audit-1', key: AUDIT_KEY }),
  find: () => undefined,
  all: () => [{ id: 'audit-1', key: AUDIT_KEY }],
};
const DETAIL: StoredSourceDetail = {
  version: 2,
  observedAtSeconds: 12.5,
  tracks: [{ trackId: 't1', type: 'audio', state: 'present' }],
  trackCount: 1,
  placements: [
    {
      placementId: 'p1',
      trackId: 't1',
      origin: 'recorded',
      beats: { start: 0, end: 4 },
      approximateSeconds: { start: 0, end: 2 },
      state: 'present',
      edits: 3,
    },
  ],
  placementCount: 1,
};

/** Returns the source detail that a partner receives with a report. */
async function detailFor(
  deps: Parameters<typeof readPart>[0] & Parameters<typeof deliveredConsent>[0],
  partnerId: string,
  proof: IssuedProof,
) {
  const consentVersion = await deliveredConsent(deps, { partnerId }, proof, checkOverlay(secrets, proof));
  if (consentVersion === undefined) return undefined;
  const detail = await readPart(deps, proof, 'detail');
  return typeof detail === 'object' ? { ...detail, consentVersion } : detail;
}

async function setUp(t: Test) {
  const directory = join(t.testdir(), 'store');
  const heads = fileHeads(directory);
  const stores = await openEmbeddedStore({ directory, audit: { key: AUDIT_KEY, heads }, authenticator });
  t.teardown(() => stores.close());
  const assets = await openAssetDirectory({ directory: join(directory, '..', 'assets') });
  const clock = { now: () => NOW * 1000 };
  const plans = new Plans({
    stores,
    secrets,
    clock,
    observer: { fault: (_where, error) => void t.error(error) },
  });
  const deps = { stores, assets, secrets, plans, clock };
  for (const id of ['ptr_owner', 'ptr_reader', 'ptr_other'])
    await stores.createPartner(partner(id), audit(id, 'partner_created', id));
  const issue = async (
    proofId: string,
    body?: Uint8Array,
    sha256?: string,
    place: 'registry' | 'objects' = 'registry',
  ) => {
    const digest =
      sha256 ??
      createHash('sha256')
        .update(body ?? '')
        .digest('hex');
    const part = { part: 'detail', bytes: body?.length ?? 0, sha256: digest, place } as const;
    const proof = issuedProof(proofId, 'ptr_owner', {
      evidence: { engineVersion: 1, traceSha256: 'fe'.repeat(32), parts: body === undefined ? [] : [part] },
    });
    await stores.reserveProof(proofId, 'ptr_owner', NOW);
    await stores.issueProof(
      proof,
      audit('ptr_owner', 'proof_issued', proofId),
      undefined,
      body && place === 'registry' ? [{ part: 'detail', body }] : [],
    );
  };
  await issue('prf_1', encodeEvidence('detail', DETAIL));
  const delivered = async (partnerId: string, proofId = 'prf_1') =>
    detailFor(deps, partnerId, await findIssued(stores, proofId));
  const opened = { stores, audit: { key: AUDIT_KEY, heads }, close: () => stores.close() };
  return { deps, stores, opened, issue, delivered };
}

const consentTo = (consentVersion: string, grantedAt = NOW) => ({
  proofId: 'prf_1',
  consentVersion,
  grantedAt,
});

t.test('detail needs approval and consent under exactly one version, and goes with either', async (t) => {
  const { deps, opened, delivered } = await setUp(t);
  const notDelivered = async (why: string) => {
    for (const id of ['ptr_owner', 'ptr_reader', 'ptr_other'])
      t.equal(await delivered(id), undefined, `${id}: ${why}`);
  };
  await notDelivered('neither');
  await approveSourceDetail(deps, { partnerId: 'ptr_reader', consentVersion: 'v2' });
  await notDelivered('no consent');
  t.strictSame(await grantConsent(deps, consentTo('v1')), {
    proofId: 'prf_1',
    consent: { consentVersion: 'v1', grantedAt: NOW },
  });
  await notDelivered('consent to another version');
  await grantConsent(deps, consentTo('v2'));
  t.strictSame(await delivered('ptr_reader'), { ...DETAIL, consentVersion: 'v2' });
  t.equal(await delivered('ptr_owner'), undefined, 'not even to the owner of the proof');
  t.equal(await delivered('ptr_other'), undefined);

  t.strictSame(await revokeConsent(deps, { proofId: 'prf_1' }), { proofId: 'prf_1' });
  await notDelivered('revoked');
  await grantConsent(deps, consentTo('v2', NOW + 1));
  t.ok(await delivered('ptr_reader'), 'granted again');
  t.notOk((await withdrawSourceDetail(deps, { partnerId: 'ptr_reader' })).sourceDetail);
  await notDelivered('withdrawn');
  await approveSourceDetail(deps, { partnerId: 'ptr_reader', consentVersion: 'v3' });
  await notDelivered('approved under another version');
  await approveSourceDetail(deps, { partnerId: 'ptr_reader', consentVersion: 'v2' });
  t.ok(await delivered('ptr_reader'));

  t.strictSame(
    (await actionsOf(opened, 'ptr_owner')).slice(2),
    ['consent_granted', 'consent_granted', 'consent_revoked', 'consent_granted'],
    'each change is audited',
  );
  t.strictSame((await actionsOf(opened, 'ptr_reader')).slice(1), [
    'source_detail_approved',
    'source_detail_withdrawn',
    'source_detail_approved',
    'source_detail_approved',
  ]);
});

t.test('consent is asked for by its rules, and what is said again changes nothing', async (t) => {
  const { deps, stores, issue } = await setUp(t);
  await issue('prf_none');
  await t.rejects(grantConsent(deps, { ...consentTo('v1'), proofId: 'prf_none' }), {
    code: 'conflict',
    reason: 'source_detail_absent',
  });
  await t.rejects(grantConsent(deps, { ...consentTo('v1'), proofId: 'prf_9' }), notFound);
  await t.rejects(revokeConsent(deps, { proofId: 'prf_9' }), notFound);
  await t.rejects(approveSourceDetail(deps, { partnerId: 'ptr_9', consentVersion: 'v1' }), notFound);
  await t.rejects(grantConsent(deps, consentTo('v1', NOW + 301)), { code: 'invalid_request' });
  await revokeConsent(deps, { proofId: 'prf_1' });
  for (let i = 0; i < 3; i += 1) await grantConsent(deps, consentTo('v1'));
  t.match(await findIssued(stores, 'prf_1'), { overlay: { revision: 1 } });

  for (let i = 2; i <= MAX_OVERLAY_REVISIONS; i += 1) await grantConsent(deps, consentTo(`v${i}`));
  await t.rejects(grantConsent(deps, consentTo('v0')), { code: 'conflict', reason: 'overlay_full' });
  await revokeConsent(deps, { proofId: 'prf_1' });
  const { overlay } = await findIssued(stores, 'prf_1');
  t.equal(overlay?.revision, MAX_OVERLAY_REVISIONS + 1, 'taking back is allowed beyond the bound');
  t.notOk('consent' in overlay!);
});

t.test('nothing of an altered overlay is believed, and no later change heals it', async (t) => {
  const { deps, stores, delivered } = await setUp(t);
  await approveSourceDetail(deps, { partnerId: 'ptr_reader', consentVersion: 'v1' });
  await grantConsent(deps, consentTo('v2'));
  const declaration = {
    surveyVersion: '1',
    submissionId: 'sub_1',
    subject: 'creator_1',
    submittedAt: NOW,
    answers: { declaredOrigin: 'from_scratch' },
  } as const;
  await recordDeclaration(deps, 'prf_1', declaration);
  const alter = (change: (overlay: EvidenceOverlay) => EvidenceOverlay) =>
    stores.changeOverlay(
      'prf_1',
      ({ overlay }) => ({ result: 'altered', overlay: change(overlay!) }),
      audit('ptr_owner', 'declaration_recorded', 'prf_1'),
    );
  const checked = async () => checkOverlay(secrets, await findIssued(stores, 'prf_1'))!;
  t.match(await checked(), { altered: 0, consent: { consentVersion: 'v2' } });

  const forged = { code: 'forged', contentClass: 'rule_inference', status: 'inferred' } as const;
  await alter((overlay) => ({
    ...overlay,
    consent: { consentVersion: 'v1', grantedAt: NOW },
    facts: [forged],
  }));
  t.equal(await delivered('ptr_reader'), undefined, 'a forged consent delivers nothing');
  t.match(await checked(), { altered: 1, consent: undefined, facts: [] });
  t.equal((await checked()).declarations.length, 1, 'a declaration has a code of its own');

  await recordDeclaration(deps, 'prf_1', { ...declaration, submissionId: 'sub_2' });
  const later = await checked();
  t.match(later, { altered: 1, consent: undefined });
  t.notOk(later.facts.some(({ code }) => code === 'forged'));
  t.equal(await delivered('ptr_reader'), undefined);
  await grantConsent(deps, consentTo('v1'));
  t.ok(await delivered('ptr_reader'), 'a consent that was given since holds');
  t.equal((await checked()).altered, 1);

  await alter((overlay) => ({ ...overlay, declarations: overlay.declarations.slice(1) }));
  t.match(await checked(), { altered: 1, declarations: [{ submissionId: 'sub_2' }] });
  await alter((overlay) => ({
    ...overlay,
    declarations: [{ ...overlay.declarations[0]!, subject: 'creator_2' }],
  }));
  await recordDeclaration(deps, 'prf_1', { ...declaration, submissionId: 'sub_3' });
  t.match(
    await listDeclarations(deps, 'prf_1'),
    [
      { submissionId: 'sub_2', authentic: false },
      { submissionId: 'sub_3', authentic: true },
    ],
    'an altered one stays as it is stored',
  );
});

t.test('a body in the object store is delivered as settled, and goes with the erasure', async (t) => {
  const { deps, issue, delivered } = await setUp(t);
  const body = encodeEvidence('detail', DETAIL);
  const put = async (bytes: Uint8Array) => {
    const staged = await deps.assets.stage('prf_large', 'detail');
    await staged.append(bytes);
    await staged.publish();
  };
  await put(body);
  await issue('prf_large', body, undefined, 'objects');
  await approveSourceDetail(deps, { partnerId: 'ptr_reader', consentVersion: 'v1' });
  await grantConsent(deps, { ...consentTo('v1'), proofId: 'prf_large' });
  t.match(await delivered('ptr_reader', 'prf_large'), { trackCount: 1, consentVersion: 'v1' });
  for (const bytes of [body.subarray(1), Buffer.concat([body, body]), Buffer.from(body).fill(0, 3, 4)]) {
    await put(bytes);
    t.equal(await delivered('ptr_reader', 'prf_large'), 'altered', `${bytes.length} bytes`);
  }
  await put(body);
  const caller = { partnerId: 'ptr_owner', keyId: 'key_1' } as Caller;
  const journal = { record: async () => undefined } as unknown as ErasureJournal;
  await eraseProof({ ...deps, journal }, caller, { proofId: 'prf_large' });
  t.equal(await deps.assets.size('prf_large', 'detail'), undefined);
  await t.rejects(delivered('ptr_reader', 'prf_large'), notFound);
});

t.test('a body that is not what was settled is not delivered', async (t) => {
  const { deps, issue, delivered } = await setUp(t);
  await approveSourceDetail(deps, { partnerId: 'ptr_reader', consentVersion: 'v1' });
  await issue('prf_altered', encodeEvidence('detail', DETAIL), 'ab'.repeat(32));
  await grantConsent(deps, { ...consentTo('v1'), proofId: 'prf_altered' });
  t.equal(await delivered('ptr_reader', 'prf_altered'), 'altered');
});
