/** Content keys that are not in their place are noticed at the start, and not at the first failing call. */
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { recordDamaged } from '../../src/core/domain/errors.js';
import {
  ContentKeyWatch,
  type ContentKeyWatchParts,
} from '../../src/service/background/content-key-watch.js';
import type { AuditDraft, AuditEntry } from '../../src/service/domain/audit.js';
import type { Proof } from '../../src/service/domain/proof.js';
import { TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';

async function directories(t: Test) {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-keys-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const keys = join(directory, 'keys');
  return {
    keys,
    away: join(directory, 'away'),
    settings: { TAKEMARK_DATA_DIR: join(directory, 'data'), TAKEMARK_CONTENT_KEYS_DIR: keys },
  };
}

const linesOf = (service: TestService, event: string) =>
  service.log
    .map((line) => JSON.parse(line) as Record<string, string>)
    .filter((line) => line['event'] === event);

async function readiness({ operatorUrl }: TestService): Promise<readonly [number, unknown]> {
  const answer = await fetch(`${operatorUrl}/readyz`);
  return [answer.status, ((await answer.json()) as { readonly reason?: string }).reason];
}

t.test('a service whose content keys are not in their place is not ready, and serves no call', async (t) => {
  const { keys, away, settings } = await directories(t);
  let service = await TestService.start(settings);
  t.teardown(() => service.stop({ keep: true }));
  const restart = async (more: Readonly<Record<string, string>> = {}) => {
    await service.stop({ keep: true });
    service = await TestService.start({ ...settings, ...more });
  };
  const { partnerId, apiKey, caller } = await service.partner();
  const { proofId, file } = await service.issue(partnerId, wav(2000, {}, 1));
  t.strictSame(await readiness(service), [200, undefined]);
  t.equal(linesOf(service, 'content_keys_beside_store').length, 1, 'both are on one device');

  const call = async () => {
    const answer = await fetch(`${service.partnerUrl}/v1/proofs/${proofId}`, {
      headers: { 'x-api-key': apiKey },
    });
    return [answer.status, ((await answer.json()) as { readonly reason?: string }).reason];
  };
  await service.stop({ keep: true });
  await rename(keys, away);
  service = await TestService.start(settings);
  t.strictSame(await readiness(service), [503, 'content_keys_lost']);
  t.strictSame(await call(), [503, 'content_keys_lost']);
  const [line] = linesOf(service, 'content_keys_lost');
  const code = /TAKEMARK_ACCEPT_LOST_KEYS=([0-9a-f]{16})\.$/.exec(line?.['advice'] ?? '')?.[1];
  t.ok(code);

  await service.stop({ keep: true });
  await rm(keys, { recursive: true });
  await rename(away, keys);
  service = await TestService.start(settings);
  t.strictSame(await readiness(service), [200, undefined], 'the keys are back');
  t.match(await service.verify(caller, file), { verdict: 'valid' });

  // The keys are lost for good.
  await service.stop({ keep: true });
  await rm(keys, { recursive: true });
  await mkdir(keys);
  service = await TestService.start({ ...settings, TAKEMARK_ACCEPT_LOST_KEYS: 'f'.repeat(16) });
  t.strictSame(await readiness(service), [503, 'content_keys_lost'], 'another code accepts nothing');
  await restart({ TAKEMARK_ACCEPT_LOST_KEYS: code! });
  t.strictSame(await readiness(service), [200, undefined]);
  t.strictSame(await call(), [500, 'record_damaged']);
  const next = await service.issue(partnerId, wav(2000, {}, 2));
  await restart();
  t.strictSame(await readiness(service), [200, undefined], 'the new keys are those of the store');
  t.match(await service.verify(caller, next.file), { verdict: 'valid' });
});

/** Returns keys and a store in memory, as the watch sees them. */
function watched(proofs: Readonly<Record<string, Proof['state'] | 'unreadable'>>) {
  const keys = new Map<string, Uint8Array>();
  const entries: AuditEntry[] = [];
  const parts: ContentKeyWatchParts = {
    stores: {
      getProof: async (proofId) => {
        if (proofs[proofId] === 'unreadable') throw recordDamaged(new Error('no key'));
        return { proofId, state: proofs[proofId] } as Proof;
      },
      readAudit: async (_log, from, limit) => entries.slice(from - 1, from - 1 + limit),
      appendAudit: async (draft) =>
        void entries.push({ ...draft, sequence: entries.length + 1, mac: 'a'.repeat(64) }),
    },
    audited: { proofs: async () => ({ items: Object.keys(proofs) }) },
    keys: {
      obtain: async (id) => keys.get(id) ?? keys.set(id, Buffer.alloc(32, keys.size + 1)).get(id)!,
      read: async (id) => keys.get(id),
    },
    clock: { now: () => 1_780_000_000_000 },
  };
  return { keys, entries, parts, watch: () => new ContentKeyWatch(parts) };
}

t.test('a store without a canary gets one unless none of its proofs can be read', async (t) => {
  for (const proofs of [{}, { prf_1: 'issued' }, { prf_1: 'unreadable', prf_2: 'issued' }] as const) {
    const { keys, entries, watch } = watched(proofs);
    const first = watch();
    t.throws(() => first.assertPresent(), { code: 'unavailable', reason: 'restoring' }, 'not compared yet');
    await first.look();
    t.ok(first.isSettled);
    t.equal(first.lost, undefined);
    t.strictSame([keys.size, entries.length], [1, 1]);
    const second = watch();
    await second.look();
    t.equal(second.lost, undefined);
    t.equal(entries.length, 1, 'a canary is recorded once');
  }
  const { keys, entries, watch } = watched({ prf_1: 'erased', prf_2: 'unreadable', prf_3: 'unreadable' });
  const lost = watch();
  await lost.look();
  t.match(lost.lost, { code: /^[0-9a-f]{16}$/ });
  t.throws(() => lost.assertPresent(), { code: 'unavailable', reason: 'content_keys_lost' });
  t.strictSame([keys.size, entries.length], [0, 0], 'nothing is created');
});

t.test('processes that make the canary at the same time agree on it', async (t) => {
  const { keys, parts } = watched({});
  const entries: AuditEntry[] = [];
  const stores = (beforeEntry: () => Promise<void>) => ({
    ...parts.stores,
    readAudit: async (_log: string, from: number, limit: number) => entries.slice(from - 1, from - 1 + limit),
    appendAudit: async (draft: AuditDraft) => {
      await beforeEntry();
      entries.push({ ...draft, sequence: entries.length + 1, mac: 'a'.repeat(64) });
    },
  });
  let made = 0;
  // A bucket that ignores the condition of a write: each process overwrites the canary.
  const bucket = {
    ...parts.keys,
    obtain: async (id: string) => keys.set(id, Buffer.alloc(32, (made += 1))).get(id)!,
  };
  const second = new ContentKeyWatch({ ...parts, keys: bucket, stores: stores(async () => undefined) });
  let isFirst = true;
  const first = new ContentKeyWatch({
    ...parts,
    keys: bucket,
    // The second process makes its canary before the first one has recorded its own.
    stores: stores(async () => {
      if (isFirst) {
        isFirst = false;
        await second.look();
      }
    }),
  });
  await first.look();
  t.equal(made, 2);
  for (const watch of [first, second]) t.ok(watch.isSettled);
  const next = new ContentKeyWatch({ ...parts, keys: bucket, stores: stores(async () => undefined) });
  await next.look();
  t.equal(next.lost, undefined, 'a process that starts later finds the canary that remains');
  t.equal(made, 2);
});

t.test('keys that come back, or another canary, are noticed by the next look', async (t) => {
  const { keys, watch } = watched({});
  await watch().look();
  const [[id, canary]] = [...keys] as [[string, Uint8Array]];
  const seen = watch();
  keys.delete(id);
  await seen.look();
  t.ok(seen.lost);
  keys.set(id, Buffer.alloc(32, 9));
  await seen.look();
  t.ok(seen.lost, 'the keys of another store');
  keys.set(id, canary);
  await seen.look();
  t.equal(seen.lost, undefined);
  t.doesNotThrow(() => seen.assertPresent());
});
