/** Moves a small store of one machine to any target. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { ArchiveError, openArchive, sealArchive } from '../../src/core/codec/sealed-archive.js';
import { openAssetDirectory } from '../../src/service/adapters/assets/directory.js';
import { openEmbeddedStore } from '../../src/service/adapters/embedded/store.js';
import { openKeyDirectory } from '../../src/service/adapters/encryption/key-directory.js';
import {
  type ImportTarget,
  importArchive,
  isApart,
  readForExport,
} from '../../src/service/background/move.js';
import type { ArchiveRow, MoveTarget } from '../../src/service/ports/moved-rows.js';
import { authenticator } from '../fixtures/authentication.js';
import { takeWaiting, usageOf } from '../store-contract/outbox-contract.js';
import {
  audit,
  issuedProof,
  issuingReplay,
  NOW,
  partner,
  partnerKey,
  reviewCase,
  rotation,
  uploadFacts,
  uploadSlot,
  usageCharge,
} from '../store-contract/samples.js';
import { KEY, memoryHeads } from './cassandra-under-test.js';

export const PARTNER = 'ptr_moved';
const PASSPHRASE = 'correct horse battery staple';
const AT = NOW + 100;

export interface Moved {
  readonly to: ImportTarget;
  /** The journal's entries that the import has made. */
  readonly journal: readonly string[];
  readonly gate: readonly string[];
  /** The ids whose unfinished files the import has deleted. */
  readonly deletedUnfinished: readonly string[];
  importAgain(over?: Partial<ImportTarget>): ReturnType<typeof importArchive>;
}

/**
 * Fills a store, exports it, and imports the archive into the target.
 * @param isCut true if an import of half of the archive comes before
 */
export async function move(t: Test, target: MoveTarget, isCut = true): Promise<Moved> {
  const directory = mkdtempSync(join(tmpdir(), 'takemark-move-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const archive = await exported(directory);
  await t.rejects(
    blocks('another passphrase!', archive).next(),
    new ArchiveError('the passphrase is not that of the export, or the export is damaged'),
  );
  const journal: string[] = [];
  const gate: string[] = [];
  const deletedUnfinished: string[] = [];
  const files = await openAssetDirectory({ directory: join(directory, 'new-assets') });
  const to: ImportTarget = {
    target,
    keys: await openKeyDirectory({ directory: join(directory, 'new-keys') }),
    files: { ...files, deleteUnfinished: async (proofId) => void deletedUnfinished.push(proofId) },
    journal: { record: async ({ proofId }) => void journal.push(proofId) },
  };
  const run = (
    over: Partial<ImportTarget> = {},
    open: (from: number) => ReturnType<typeof blocks> = (from) => blocks(PASSPHRASE, archive, from),
  ) =>
    importArchive({ ...to, ...over }, 'export-1', open, () => AT, {
      close: async () => void gate.push('close'),
      open: async () => void gate.push('open'),
    });
  if (isCut) {
    const cut = archive.subarray(0, Math.floor(archive.length / 2));
    await t.rejects(
      run({}, (from) => blocks(PASSPHRASE, cut, from)),
      /ended early/,
    );
    t.strictSame(gate, ['close'], 'an interrupted import leaves the cluster closed');
  }
  const imported = await run();
  t.strictSame(imported, { ...imported, exportId: 'export-1', wasComplete: false, erased: 1 });
  t.strictSame(gate, [...(isCut ? ['close'] : []), 'close', 'open']);
  return { to, journal, gate, deletedUnfinished, importAgain: (over) => run(over) };
}

async function* blocks(passphrase: string, archive: Uint8Array, from = 0) {
  yield* openArchive<ArchiveRow>(
    passphrase,
    (async function* () {
      for (let at = 0; at < archive.length; at += 10_000) yield archive.subarray(at, at + 10_000);
    })(),
    from,
  );
}

async function exported(directory: string): Promise<Buffer> {
  const stores = await openEmbeddedStore({
    directory: join(directory, 'store'),
    audit: { key: KEY, heads: memoryHeads() },
    authenticator,
  });
  const keys = await openKeyDirectory({ directory: join(directory, 'keys') });
  const files = await openAssetDirectory({ directory: join(directory, 'assets') });
  await stores.createPartner(partner(PARTNER), audit(PARTNER, 'partner_created', PARTNER));
  await stores.setSourceDetail(
    PARTNER,
    { consentVersion: 'consent-1', approvedAt: NOW },
    audit(PARTNER, 'source_detail_approved', PARTNER),
  );
  const key = partnerKey('key_moved-1', PARTNER);
  await stores.createKey(key, audit(PARTNER, 'key_created', key.keyId));
  await stores.rotateKey(
    rotation(key, 'key_moved-2', 1),
    partnerKey('key_moved-2', PARTNER),
    audit(PARTNER, 'key_rotated', key.keyId),
  );
  await stores.touchKeys([{ partnerId: PARTNER, keyId: key.keyId, at: NOW + 5 }]);
  for (const name of ['kept', 'erased', 'reserved']) {
    const proofId = `prf_moved-${name}`;
    await stores.reserveProof(proofId, PARTNER, NOW);
    await keys.obtain(proofId);
    const staged = await files.stage(proofId);
    // Larger than a piece of an archive.
    await staged.append(Buffer.alloc(200_000, name));
    await staged.publish();
    if (name === 'reserved') continue;
    await stores.issueProof(
      issuedProof(proofId, PARTNER),
      audit(PARTNER, 'proof_issued', proofId),
      issuingReplay(`replay-${name}`, proofId),
      [{ part: 'trace', body: Buffer.from('the trace') }],
    );
  }
  for (let i = 0; i < 30; i += 1)
    await stores.appendAudit({
      ...audit(PARTNER, 'review_evidence_opened', `rvw_${i}`),
      requestId: `rq_${i}`,
    });
  const review = reviewCase('rvw_moved', PARTNER, 'prf_moved-kept');
  await stores.createReview(review, NOW, audit(PARTNER, 'review_created', review.reviewId), {
    replay: { key: 'review-replay', requestSha256: 'be'.repeat(32), expiresAt: NOW + 86_400 },
  });
  const slot = { ...uploadSlot('upl_moved'), partnerId: PARTNER };
  await stores.createSlot(slot);
  await stores.putFacts(uploadFacts(slot, 'mark'));
  await stores.charge(usageCharge(PARTNER, 'once', { units: 3, request: 'cd'.repeat(32) }));
  await stores.charge(usageCharge(PARTNER, 'ended', { dedupeUntil: AT }));
  await stores.eraseProof('prf_moved-erased', PARTNER, NOW + 1, audit(PARTNER, 'proof_erased', 'x'));
  await stores.aggregateUsage(usageOf(await takeWaiting(stores), PARTNER));
  await stores.confirmErasure('prf_moved-erased', NOW + 2);
  await keys.destroy('prf_moved-erased');
  await files.delete('prf_moved-erased');
  const parts: Buffer[] = [];
  async function* rows(): AsyncGenerator<ArchiveRow> {
    yield { kind: 'installation', exportId: 'export-1', environment: 'test', exportedAt: AT, bundle: '{}' };
    yield* readForExport({ source: stores.moveSource, stores, keys, files }, AT);
  }
  for await (const part of sealArchive(PASSPHRASE, rows(), isApart)) parts.push(part);
  await stores.close();
  return Buffer.concat(parts);
}
