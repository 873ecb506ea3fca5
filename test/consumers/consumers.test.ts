import t from 'tap';
import { DomainError, recordDamaged } from '../../src/core/domain/errors.js';
import { remindDue } from '../../src/service/background/remind.js';
import { erasureConsumer } from '../../src/service/consumers/erasure.js';
import { listen, undamaged } from '../../src/service/consumers/listen.js';
import { retentionConsumer } from '../../src/service/consumers/retention.js';
import { usageConsumer } from '../../src/service/consumers/usage.js';
import { PoisonError } from '../../src/service/domain/batch-delivery.js';
import {
  EXPIRY_NOTICE_SECONDS,
  proofErased,
  type RetentionEvent,
  type ReviewReminder,
  reminderDue,
  remindersOf,
  reviewCreated,
  type ServiceEvent,
  type UsageEvent,
  unitsCounted,
} from '../../src/service/domain/events.js';
import type { Proof } from '../../src/service/domain/proof.js';
import type { EventHandler } from '../../src/service/ports/bus.js';
import type { ErasureJournal } from '../../src/service/ports/journals.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { stillClock } from '../operations/doubles.js';

const NOW = 1_700_000_000;
const clock = stillClock(NOW * 1000);
const erased = proofErased({ proofId: 'prf_1', partnerId: 'ptr_1', erasedAt: NOW - 60 });
const created = reviewCreated({
  reviewId: 'rev_1',
  partnerId: 'ptr_1',
  proofId: 'prf_1',
  createdAt: NOW,
  expiresAt: NOW + 180 * 86_400,
});
const counted = (from: number, to: number, units = to - from) =>
  unitsCounted(
    {
      partnerId: 'ptr_1',
      source: 'billed/2023-11',
      from,
      to,
      counts: [{ day: '2023-11-14', operation: 'verify', units }],
    },
    NOW,
  );

/** Proofs and deliverables as far as an erasure touches them. */
class MemoryProofs {
  readonly steps: string[] = [];
  readonly assets = new Set(['prf_1']);
  stuck = false;
  constructor(public proof: Partial<Proof> | undefined) {}

  readonly stores = {
    getProof: async () => this.proof as Proof,
    eraseProof: async (proofId: string, partnerId: string, at: number, audit: object) => {
      this.steps.push('erased');
      if (this.proof?.partnerId !== partnerId) return 'not_found' as const;
      t.match(audit, { actor: 'operator', action: 'proof_erased', at, subjects: [proofId] });
      const proof = { state: 'erased' as const, proofId, partnerId, erasedAt: at };
      this.proof = proof;
      return { outcome: 'erased' as const, proof };
    },
    confirmErasure: async () => {
      this.steps.push(`confirmed, deliverable ${this.assets.size === 0 ? 'gone' : 'there'}`);
      return 'confirmed' as const;
    },
  };
  readonly deliverables = {
    delete: async (proofId: string) => (this.stuck ? false : this.assets.delete(proofId)),
    size: async (proofId: string) => (this.assets.has(proofId) ? 1 : undefined),
  };
  readonly journal = {
    record: async ({ proofId, partnerId, erasedAt }: Parameters<ErasureJournal['record']>[0]) =>
      void this.steps.push(`noted ${proofId} of ${partnerId}, ${NOW - erasedAt}`),
  };
  consume = (event: ServiceEvent = erased) =>
    erasureConsumer({ stores: this.stores, assets: this.deliverables, journal: this.journal, clock })([
      event,
    ]);
}

t.test('an erasure is confirmed once the deliverable is proved gone', async (t) => {
  const proofs = new MemoryProofs({ state: 'erased', partnerId: 'ptr_1', erasedAt: NOW - 60 });
  await proofs.consume();
  await proofs.consume();
  t.strictSame(proofs.steps, [
    'noted prf_1 of ptr_1, 60',
    'confirmed, deliverable gone',
    'noted prf_1 of ptr_1, 60',
    'confirmed, deliverable gone',
  ]);

  const stuck = new MemoryProofs({ state: 'erased', partnerId: 'ptr_1', erasedAt: NOW - 60 });
  stuck.stuck = true;
  await t.rejects(stuck.consume(), /still exists/);
  t.strictSame(stuck.steps, ['noted prf_1 of ptr_1, 60'], 'never confirmed over a deliverable');
  t.notOk(await stuck.consume().catch((error: unknown) => error instanceof PoisonError), 'it comes again');
});

t.test('an event whose tombstone is not found any more comes again', async (t) => {
  const proofs = new MemoryProofs({ state: 'erased', partnerId: 'ptr_1', erasedAt: NOW - 60 });
  const stores = { ...proofs.stores, confirmErasure: async () => 'not_erased' as const };
  await t.rejects(
    erasureConsumer({ stores, assets: proofs.deliverables, journal: proofs.journal, clock })([erased]),
    { code: 'unavailable' },
  );
});

t.test('a proof that a backup brought back is erased again, at the time of the first erasure', async (t) => {
  const proofs = new MemoryProofs({ state: 'issued', proofId: 'prf_1', partnerId: 'ptr_1' });
  await proofs.consume();
  t.match(proofs.proof, { state: 'erased', erasedAt: NOW - 60 });
  t.strictSame(proofs.steps, ['erased', 'noted prf_1 of ptr_1, 60', 'confirmed, deliverable gone']);
  const foreign = new MemoryProofs({ state: 'issued', proofId: 'prf_1', partnerId: 'ptr_2' });
  await t.rejects(foreign.consume(), { name: 'PoisonError' });
  t.ok(foreign.assets.has('prf_1'), "another partner's deliverable is not touched");
});

t.test("16 proofs are erased at once, and each one's events one after another", async (t) => {
  const proofs = 40;
  let underWay = 0;
  let most = 0;
  const confirmed = new Map<string, number>();
  const stores = {
    getProof: async (proofId: string) => {
      underWay += 1;
      most = Math.max(most, underWay);
      await new Promise((resolve) => setImmediate(resolve));
      return { state: 'erased', proofId } as Proof;
    },
    eraseProof: async () => t.fail('it is erased') as never,
    confirmErasure: async (proofId: string) => {
      underWay -= 1;
      confirmed.set(proofId, (confirmed.get(proofId) ?? 0) + 1);
      return 'confirmed' as const;
    },
  };
  const assets = { delete: async () => true, size: async () => undefined };
  const journal = { record: async () => undefined };
  const consume = erasureConsumer({ stores, assets, journal, clock });
  const event = (n: number) => proofErased({ proofId: `prf_${n}`, partnerId: 'ptr_1', erasedAt: NOW });
  const events = Array.from({ length: proofs }, (_, n) => event(n));
  await consume([...events, ...events]);
  t.equal(most, 16);
  t.strictSame(
    [...confirmed.values()],
    Array.from({ length: proofs }, () => 2),
  );
  most = 0;
  await consume([event(1), event(1), event(1)]);
  t.equal(most, 1);
  const poison: ServiceEvent = { ...created, key: 'prf_7' };
  await t.rejects(consume([poison, ...events]), { name: 'PoisonError' });
  t.equal(confirmed.get('prf_39'), 3, 'poison holds up no other proof');
  const away = { ...stores, confirmErasure: async () => Promise.reject(new Error('away')) };
  await t.rejects(
    erasureConsumer({ stores: away, assets, journal, clock })([poison, ...events]),
    { message: 'away' },
    'a failure of the store is reported before poison',
  );
});

t.test('a proof that the store does not know, or has only reserved, is left alone', async (t) => {
  for (const proof of [undefined, { state: 'pending' as const }]) {
    const proofs = new MemoryProofs(proof);
    await proofs.consume();
    t.strictSame([proofs.steps, proofs.assets.size], [[], 1]);
  }
  await t.rejects(new MemoryProofs(undefined).consume(created), { name: 'PoisonError' });
});

t.test('usage: whole batches to the store; what cannot be a count is poison', async (t) => {
  const folded: UsageEvent[] = [];
  const consume = usageConsumer({
    stores: { aggregateUsage: async (events) => void folded.push(...events) },
  });
  await consume([counted(0, 3), counted(3, 4)]);
  t.strictSame(folded, [counted(0, 3), counted(3, 4)]);
  for (const event of [counted(4, 4), counted(5, 4), counted(4, 6, 3), erased])
    await t.rejects(consume([counted(0, 3), event]), { name: 'PoisonError' });
  t.equal(folded.length, 2, 'nothing of a poisoned batch');
  await consume([
    unitsCounted(
      {
        partnerId: 'ptr_1',
        source: 'free/a',
        from: 0,
        to: 1,
        counts: [{ day: '2023-11-14', operation: 'list', units: 40 }],
      },
      NOW,
    ),
  ]);
  t.equal(folded.length, 3, 'free numbers are events, not units');
});

t.test('retention: a new case schedules its notices, and they are announced when they are due', async (t) => {
  const scheduled: ReviewReminder[] = [];
  const settled: (RetentionEvent | undefined)[] = [];
  const states = new Map([['prf_1', 'issued']]);
  const stores = {
    scheduleReminders: async (notices: readonly ReviewReminder[]) => void scheduled.push(...notices),
    dueReminders: async (now: number, limit: number) =>
      scheduled.filter(({ dueAt }) => dueAt <= now).slice(0, limit),
    completeReminder: async (notice: ReviewReminder, event: ServiceEvent | undefined) => {
      scheduled.splice(
        scheduled.findIndex(({ kind, reviewId }) => kind === notice.kind && reviewId === notice.reviewId),
        1,
      );
      settled.push(event as RetentionEvent | undefined);
    },
    getProof: async (proofId: string) =>
      states.has(proofId) ? ({ state: states.get(proofId) } as Proof) : undefined,
  };
  const time = stillClock(NOW * 1000);
  const consume = retentionConsumer({ stores, clock: time });
  const notice = reminderDue(remindersOf(created)[0]!);
  await consume([created, notice]);
  t.strictSame(
    scheduled.map(({ kind, dueAt }) => [kind, dueAt - created.data.expiresAt]),
    [
      ['review_expiring', -EXPIRY_NOTICE_SECONDS],
      ['review_expired', 0],
    ],
    'a notice schedules nothing itself',
  );
  t.equal(await remindDue({ stores, clock: time }), 0);
  time.advanceMs(173 * 86_400_000);
  t.equal(await remindDue({ stores, clock: time }), 1);
  t.match(settled, [{ kind: 'review_expiring', id: 'review_expiring/rev_1', key: 'rev_1' }]);
  t.equal(await remindDue({ stores, clock: time }), 0);
  states.set('prf_1', 'erased');
  time.advanceMs(7 * 86_400_000);
  t.equal(await remindDue({ stores, clock: time }), 1);
  t.equal(settled[1], undefined, 'nothing is said of a case that went with its proof');

  await consume([created]);
  t.equal(scheduled.length, 0, 'nor is anything of it scheduled');

  states.set('prf_1', 'issued');
  for (let i = 0; i < 250; i += 1)
    await consume([reviewCreated({ ...created.data, reviewId: `rev_${i}`, createdAt: NOW })]);
  time.advanceMs(0);
  t.equal(await remindDue({ stores, clock: time }), 500, 'more than one look');
  await t.rejects(consume([erased]), { name: 'PoisonError' });
});

t.test('reminders after many of a damaged proof are announced', async (t) => {
  const review = (proofId: string, number: number) =>
    remindersOf(reviewCreated({ ...created.data, proofId, reviewId: `rev_${number}`, createdAt: NOW }));
  const waiting = [
    ...Array.from({ length: 260 }, (_, i) => review('prf_damaged', i)[0]!),
    ...Array.from({ length: 130 }, (_, i) => review('prf_1', 1000 + i)[0]!),
  ];
  let reads = 0;
  const stores = {
    scheduleReminders: async () => undefined,
    dueReminders: async (_now: number, limit: number) => waiting.slice(0, limit),
    completeReminder: async (notice: ReviewReminder) =>
      void waiting.splice(
        waiting.findIndex(({ reviewId }) => reviewId === notice.reviewId),
        1,
      ),
    getProof: async (proofId: string) => {
      reads += 1;
      if (proofId === 'prf_damaged') throw recordDamaged(new Error('x'));
      return { state: 'issued' } as Proof;
    },
  };
  await t.rejects(
    remindDue({ stores, clock }),
    { code: 'internal', reason: 'record_damaged' },
    'the damage is reported',
  );
  t.strictSame(
    [waiting.length, new Set(waiting.map(({ proofId }) => proofId))],
    [260, new Set(['prf_damaged'])],
    'and stays',
  );
  t.equal(reads, 390, 'each is looked at once');
});

t.test('what a process took is counted', async (t) => {
  const handlers = new Map<string, EventHandler>();
  const counts: string[] = [];
  const stores = { aggregateUsage: async () => undefined } as unknown as Stores;
  listen(
    { handle: (topic, handler) => void handlers.set(topic, handler) },
    {
      stores,
      assets: undefined as never,
      journal: undefined as never,
      clock,
      observer: { events: (...count) => void counts.push(count.join(' ')) },
    },
  );
  t.strictSame([...handlers.keys()], ['erasure', 'usage', 'retention']);
  const usage = handlers.get('usage')!;
  await usage([counted(0, 1), counted(1, 2)]);
  await t.rejects(usage([counted(2, 3), counted(3, 3)]), { name: 'PoisonError' });
  await t.rejects(usage([counted(3, 3)]), { name: 'PoisonError' });
  t.strictSame(counts, ['usage handled 2']);
});

t.test(
  'an event at which its consumer fails goes to the dead letters; one that meets no server comes again',
  async (t) => {
    const failingWith = (error: unknown) => undamaged(() => Promise.reject(error));
    const dead = { name: 'PoisonError' };
    await t.rejects(failingWith(recordDamaged(new Error('x')))([erased]), {
      ...dead,
      message: 'a record that the event needs is damaged',
    });
    await t.rejects(failingWith(new TypeError('Cannot read prf_1'))([erased]), {
      ...dead,
      message: 'its consumer failed: TypeError',
    });
    await t.rejects(failingWith(new DomainError('conflict', 'x'))([erased]), dead);
    await t.rejects(failingWith(new PoisonError('not this one'))([erased]), {
      ...dead,
      message: 'not this one',
    });
    const away = new DomainError('unavailable', 'x', { reason: 'store_unavailable' });
    await t.rejects(failingWith(away)([erased]), { code: 'unavailable' });
  },
);
