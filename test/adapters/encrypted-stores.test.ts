import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { openEmbeddedStore } from '../../src/service/adapters/embedded/store.js';
import { encryptedStores } from '../../src/service/adapters/encryption/encrypted-stores.js';
import { openKeyDirectory } from '../../src/service/adapters/encryption/key-directory.js';
import type { ContentKeys } from '../../src/service/ports/content-keys.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { authenticator } from '../fixtures/authentication.js';
import { MARKS, markedProof, marksIn } from '../store-contract/remains.js';
import { audit, issuedProof, NOW, overlayOf } from '../store-contract/samples.js';
import { type OpenedStore, type OpenOptions, storeContract } from '../store-contract/suite.js';
import { AUDIT_KEY, fileHeads } from './embedded-process.js';

const parent = mkdtempSync(join(tmpdir(), 'takemark-encrypted-stores-'));
t.teardown(() => rmSync(parent, { recursive: true, force: true }));
let opened = 0;

async function openAt(directory: string, options: OpenOptions = {}) {
  const log = { key: AUDIT_KEY, heads: fileHeads(directory) };
  const inner = await openEmbeddedStore({ directory, audit: log, authenticator, ...options });
  const keys = await openKeyDirectory({ directory: `${directory}-keys` });
  const stores = encryptedStores(inner, keys);
  const store: OpenedStore = {
    stores,
    audit: log,
    refusesCharges: true,
    close: () => inner.close(),
    reopen: async () => {
      await inner.close();
      return (await openAt(directory, options)).store;
    },
  };
  return { store, stores, inner, keys };
}

async function openNew(options?: OpenOptions) {
  const directory = join(parent, `store-${(opened += 1)}`);
  return { directory, ...(await openAt(directory, options)) };
}

storeContract(t, 'a store with encrypted content', async (options) => (await openNew(options)).store);

/** Returns the content of all files of a store. */
function filesOf(directory: string): string {
  return readdirSync(directory)
    .map((name) => readFileSync(join(directory, name), 'latin1'))
    .join('\n');
}

async function issue(stores: Stores, proofId: string): Promise<void> {
  await stores.reserveProof(proofId, 'ptr_1', NOW);
  await stores.issueProof(issuedProof(proofId, 'ptr_1'), audit('ptr_1', 'proof_issued', proofId));
}

void t.test('the files of the store have no content in plain text', async (t) => {
  const { directory, stores, inner } = await openNew();
  const { proof } = await markedProof(stores, 'prf_1', 'ptr_1');
  t.strictSame(marksIn(filesOf(directory)), []);
  for (const text of [proof.song.title, proof.asset.fileName, proof.asset.sha256, proof.kid])
    t.notOk(filesOf(directory).includes(text), text);
  t.match(await stores.getProof('prf_1'), {
    overlay: { consent: { consentVersion: MARKS.consent } },
    song: proof.song,
  });
  t.equal(Buffer.from((await stores.readEvidence('prf_1', 'detail')) ?? []).toString(), MARKS.detail);
  await inner.close();
});

void t.test('the files have the content in plain text when encryption is off', async (t) => {
  const { directory, inner } = await openNew();
  await markedProof(inner, 'prf_1', 'ptr_1');
  t.strictSame(marksIn(filesOf(directory)), Object.keys(MARKS));
  await inner.close();
});

void t.test('a proof is damaged when its key is gone, and gone once it is erased', async (t) => {
  const { stores, inner, keys } = await openNew();
  await markedProof(stores, 'prf_1', 'ptr_1');
  await keys.destroy('prf_1');
  const damaged = { code: 'internal', reason: 'record_damaged' };
  await t.rejects(stores.getProof('prf_1'), damaged);
  await t.rejects(stores.listProofs('ptr_1', { limit: 10 }), damaged);
  const change = () =>
    stores.changeOverlay(
      'prf_1',
      () => ({ result: 'changed', overlay: overlayOf([]) }),
      audit('ptr_1', 'declaration_recorded', 'prf_1'),
    );
  await t.rejects(change(), damaged);
  t.equal(await stores.readEvidence('prf_1', 'facts'), undefined);
  // An erasure needs no content.
  t.match(await stores.eraseProof('prf_1', 'ptr_1', NOW, audit('ptr_1', 'proof_erased', 'prf_1')), {
    outcome: 'erased',
  });
  t.match(await stores.getProof('prf_1'), { state: 'erased' });
  t.equal(await change(), 'proof_gone');
  await inner.close();
});

void t.test('an erasure during a read reports no damage', async (t) => {
  const { inner, keys, stores: encrypted } = await openNew();
  for (const id of ['prf_1', 'prf_2', 'prf_3']) await issue(encrypted, id);
  const erase = async (proofId: string) => {
    await inner.eraseProof(proofId, 'ptr_1', NOW, audit('ptr_1', 'proof_erased', proofId));
    await keys.destroy(proofId);
  };
  /**
   * Returns keys that lose one key with its proof, between the read of the record and the read of the key.
   */
  const racing = (proofId: string): ContentKeys => {
    let erased: Promise<void> | undefined;
    return {
      ...keys,
      async read(asked) {
        if (asked === proofId) await (erased ??= erase(proofId));
        return keys.read(asked);
      },
    };
  };
  t.match(await encryptedStores(inner, racing('prf_1')).getProof('prf_1'), { state: 'erased' });
  const listed = await encryptedStores(inner, racing('prf_2')).listProofs('ptr_1', { limit: 10 });
  t.strictSame(
    listed.map(({ proofId }) => proofId),
    ['prf_3'],
  );
  await inner.close();
});

void t.test('records of a version that encrypted nothing are read, changed and erased', async (t) => {
  const { stores, inner } = await openNew();
  const { proof } = await markedProof(inner, 'prf_1', 'ptr_1');
  t.match(await stores.getProof('prf_1'), {
    song: proof.song,
    overlay: { consent: { consentVersion: MARKS.consent } },
  });
  t.equal(Buffer.from((await stores.readEvidence('prf_1', 'facts')) ?? []).toString(), MARKS.facts);
  t.equal(
    await stores.changeOverlay(
      'prf_1',
      () => ({ result: 'changed', overlay: overlayOf([]) }),
      audit('ptr_1', 'declaration_recorded', 'prf_1'),
    ),
    'changed',
  );
  t.match(await stores.getProof('prf_1'), { overlay: { declarations: [] } });
  await inner.close();
});
