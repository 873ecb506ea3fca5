/** Tests plans that are made, changed and assigned, at once and at the turn of a month, in every process. */
import t from 'tap';
import { type Partner, SHIPPED_PLANS } from '../../src/service/domain/partner.js';
import { MAX_PLANS, PLANS_LOG, planEntry } from '../../src/service/domain/plan-log.js';
import {
  assignPlan,
  createPlan,
  listPlans,
  Plans,
  setPlan,
} from '../../src/service/operations/partners/plans.js';
import { createRateLimits } from '../../src/service/operations/usage/rate-limits.js';
import type { AuditStore, PartnerStore } from '../../src/service/ports/stores.js';
import { AUDIT_SECRETS, MemoryLog } from './memory-log.js';
import { notFound, RestartedService } from './restarted-service.js';

/** The present time in Unix seconds: 20 January 2026, 12:00 UTC. */
const NOW = Date.UTC(2026, 0, 20, 12) / 1000;
const FEBRUARY = Date.UTC(2026, 1, 1) / 1000;
const MARCH = Date.UTC(2026, 2, 1) / 1000;
const PARTNER: Partner = { partnerId: 'ptr_1', name: 'Nordlicht', plan: 'standard', createdAt: NOW };
const LIMITS = {
  monthlyQuota: 7000,
  requestsPerSecond: 9,
  burst: 20,
  concurrentUploads: 3,
  rotationsPerDay: 5,
};
const LABEL = { name: 'label', ...LIMITS };
const [TRIAL, STANDARD, VOLUME] = SHIPPED_PLANS;
const AWAY = { code: 'unavailable', reason: 'store_unavailable' };

function setUp(log = new MemoryLog(PLANS_LOG)) {
  const clock = {
    at: NOW,
    now(): number {
      return this.at * 1000;
    },
  };
  const faults: unknown[] = [];
  const observer = { fault: (where: string, error: unknown) => void faults.push([where, error]) };
  const getPartner = async (partnerId: string) => (partnerId === PARTNER.partnerId ? PARTNER : undefined);
  const stores = { ...log.stores, getPartner } as AuditStore & PartnerStore;
  const plans = new Plans({ stores, secrets: AUDIT_SECRETS, clock, observer });
  return { log, clock, faults, plans, deps: { stores, plans } };
}

t.test('a plan is made once, and its limits change at once or at the turn of the month', async (t) => {
  const { log, clock, deps } = setUp();
  t.strictSame(await listPlans(deps), SHIPPED_PLANS);
  t.strictSame(await createPlan(deps, LABEL), { plan: LABEL, repeated: false });
  t.strictSame(await createPlan(deps, LABEL), { plan: LABEL, repeated: true });
  const exists = { code: 'conflict', reason: 'plan_exists' };
  await t.rejects(createPlan(deps, { ...LABEL, burst: 21 }), exists);
  await t.rejects(createPlan(deps, { ...LIMITS, name: 'trial' }), exists, 'a shipped name is taken');
  t.strictSame(await createPlan(deps, TRIAL!), { plan: TRIAL, repeated: true });

  await t.rejects(setPlan(deps, { plan: 'none', effect: 'at_once', ...LIMITS }), notFound);
  const set = (limits: object, effect: 'at_once' | 'next_month') =>
    setPlan(deps, { plan: 'label', ...LIMITS, ...limits, effect });
  t.strictSame(await set({ burst: 30 }, 'at_once'), { ...LABEL, burst: 30 });
  t.strictSame(await set({ burst: 40 }, 'next_month'), {
    ...LABEL,
    burst: 30,
    next: { ...LIMITS, burst: 40, from: FEBRUARY },
  });
  const before = log.entries.length;
  await set({ burst: 40 }, 'next_month');
  t.equal(log.entries.length, before, 'the same again is not written');
  await t.rejects(createPlan(deps, { ...LABEL, burst: 30 }), exists, 'it will have other limits');
  t.match(
    await set({ burst: 50 }, 'next_month'),
    { burst: 30, next: { burst: 50 } },
    'the newest word holds',
  );
  clock.at = FEBRUARY - 1;
  t.match((await listPlans(deps)).at(-1), { burst: 30 });
  clock.at = FEBRUARY;
  t.strictSame((await listPlans(deps)).at(-1), { ...LABEL, burst: 50 });
  t.match(await set({ burst: 60 }, 'next_month'), { burst: 50, next: { burst: 60, from: MARCH } });
  t.strictSame(
    await set({ burst: 50 }, 'at_once'),
    { ...LABEL, burst: 50 },
    'what was to come is taken back',
  );
  clock.at = MARCH;
  t.match((await listPlans(deps)).at(-1), { burst: 50 });
  t.strictSame(await set({}, 'at_once'), LABEL);
});

t.test('one of two concurrent creations of a plan gets a conflict', async (t) => {
  const log = new MemoryLog(PLANS_LOG);
  const [here, there] = [setUp(log), setUp(log)];
  const other = { ...LABEL, monthlyQuota: 8000 };
  const made = await Promise.allSettled([createPlan(here.deps, LABEL), createPlan(there.deps, other)]);
  t.equal(log.entries.length, 2, 'neither knew of the other');
  t.match(made, [
    { status: 'fulfilled', value: { plan: LABEL, repeated: false } },
    { status: 'rejected', reason: { code: 'conflict', reason: 'plan_exists' } },
  ]);
  for (const { deps } of [here, there]) t.strictSame((await listPlans(deps)).at(-1), LABEL);
  const label2 = { ...LABEL, name: 'label-2' };
  for (const { plan } of await Promise.all([createPlan(here.deps, label2), createPlan(there.deps, label2)]))
    t.strictSame(plan, label2, 'the same limits are no conflict');
});

t.test('a partner gets another plan at once or at the turn of the month, to the second', async (t) => {
  const { log, clock, plans, deps } = setUp();
  const assign = (plan: string, effect: 'at_once' | 'next_month' = 'at_once') =>
    assignPlan(deps, { partnerId: 'ptr_1', plan, effect });
  t.equal(await plans.of(PARTNER), STANDARD, 'the one it was created with');
  await t.rejects(assign('none'), {
    reason: 'plan_unknown',
    message: /Known plans: trial, standard, volume\.$/,
  });
  await t.rejects(assignPlan(deps, { partnerId: 'ptr_2', plan: 'trial', effect: 'at_once' }), notFound);
  t.strictSame(await assign('standard'), PARTNER);
  t.equal(log.entries.length, 0, 'it has that plan');

  t.strictSame(await assign('volume', 'next_month'), {
    ...PARTNER,
    nextPlan: { plan: 'volume', from: FEBRUARY },
  });
  await assign('volume', 'next_month');
  t.equal(log.entries.length, 1, 'the same again is not written');
  clock.at = FEBRUARY - 1;
  t.equal(await plans.of(PARTNER), STANDARD);
  clock.at = FEBRUARY;
  t.equal(await plans.of(PARTNER), VOLUME);
  t.equal(await plans.of(PARTNER), await plans.of(PARTNER), 'one object as long as nothing changes');
  t.strictSame(await plans.view(PARTNER), { ...PARTNER, plan: 'volume' });

  await assign('trial', 'next_month');
  t.strictSame(await assign('volume'), { ...PARTNER, plan: 'volume' }, 'what was to come is taken back');
  clock.at = MARCH;
  t.equal(await plans.of(PARTNER), VOLUME);
  await createPlan(deps, LABEL);
  t.strictSame(await assign('label'), { ...PARTNER, plan: 'label' });
  await setPlan(deps, { plan: 'label', ...LIMITS, burst: 21, effect: 'at_once' });
  t.strictSame(await plans.of(PARTNER), { ...LABEL, burst: 21 }, 'changed limits are those of its partners');
  t.equal(await plans.of({ ...PARTNER, partnerId: 'ptr_2' }), STANDARD, 'another partner keeps its own');
  t.strictSame(
    log.entries.map(({ action, subjects }) => [action, ...subjects]),
    [
      ['plan_assigned', 'ptr_1', 'volume', String(FEBRUARY)],
      ['plan_assigned', 'ptr_1', 'trial', String(MARCH)],
      ['plan_assigned', 'ptr_1', 'volume', String(FEBRUARY)],
      ['plan_created', 'label', '7000', '9', '20', '3', '5'],
      ['plan_assigned', 'ptr_1', 'label', String(MARCH)],
      ['plan_changed', 'label', '7000', '9', '21', '3', '5', String(MARCH)],
    ],
  );
});

t.test(
  'another process learns of a change, and an unreadable log refuses calls only for a short time',
  async (t) => {
    const log = new MemoryLog(PLANS_LOG);
    const here = setUp(log);
    const there = setUp(log);
    log.isAway = true;
    await t.rejects(there.plans.of(PARTNER), AWAY, 'what was never read is not guessed');
    log.isAway = false;
    t.equal(await there.plans.of(PARTNER), STANDARD);
    const { reads } = log;
    for (let i = 0; i < 100; i += 1) await there.plans.of(PARTNER);
    t.ok(log.reads - reads <= 20, 'calls do not read the log each');
    await assignPlan(here.deps, { partnerId: 'ptr_1', plan: 'trial', effect: 'at_once' });
    let later = performance.now() + 2000;
    t.intercept(performance, 'now', { value: () => later });
    t.equal(await there.plans.of(PARTNER), TRIAL, 'a call after a second looks');

    log.isAway = true;
    for (let looks = 0; looks < 3; looks += 1) {
      later += 2000;
      t.equal(await there.plans.of(PARTNER), TRIAL, 'what was read before holds');
    }
    t.match(there.faults, [['plans', AWAY]]);
    t.equal(there.faults.length, 1, 'reported once');
    await t.rejects(createPlan(there.deps, LABEL), AWAY, 'nothing is changed meanwhile');
  },
);

t.test('a partner with a plan that another process has just made is known everywhere at once', async (t) => {
  const log = new MemoryLog(PLANS_LOG);
  const here = setUp(log);
  const there = setUp(log);
  const now = performance.now();
  t.intercept(performance, 'now', { value: () => now });
  t.equal(await there.plans.of(PARTNER), STANDARD);
  await createPlan(here.deps, LABEL);
  const partner = { ...PARTNER, partnerId: 'ptr_2', plan: 'label' };
  log.isAway = true;
  await t.rejects(there.plans.of(partner), AWAY, 'an unknown plan is not taken for none');
  log.isAway = false;
  t.strictSame(await there.plans.of(partner), LABEL);
  const { reads } = log;
  await there.plans.of(partner);
  t.equal(log.reads, reads, 'once known, it is not asked for');
});

t.test('an unsound log counts as far as it is sound', async (t) => {
  const { log, deps } = setUp();
  await assignPlan(deps, { partnerId: 'ptr_1', plan: 'trial', effect: 'at_once' });
  await assignPlan(deps, { partnerId: 'ptr_1', plan: 'volume', effect: 'at_once' });
  log.entries[1] = { ...log.entries[1]!, subjects: ['ptr_1', 'standard', String(NOW)] };
  const { plans, faults, deps: others } = setUp(log);
  t.equal(await plans.of(PARTNER), TRIAL);
  t.match(faults, [['plans', AWAY]]);
  await t.rejects(assignPlan(others, { partnerId: 'ptr_1', plan: 'volume', effect: 'at_once' }), AWAY);
});

t.test('a log with a damaged row applies up to that row, also after a restart', async (t) => {
  const { log, deps } = setUp();
  for (const plan of ['volume', 'trial', 'volume'])
    await assignPlan(deps, { partnerId: 'ptr_1', plan, effect: 'at_once' });
  log.damagedSequence = 3;
  const { plans, faults, deps: others } = setUp(log);
  t.equal(await plans.of(PARTNER), TRIAL);
  t.match(faults, [['plans', { ...AWAY, cause: { name: 'UnsoundLog' } }]]);
  await t.rejects(assignPlan(others, { partnerId: 'ptr_1', plan: 'volume', effect: 'at_once' }), AWAY);
});

t.test('an installation has a bound of plans, and the first of one name holds', async (t) => {
  const log = new MemoryLog(PLANS_LOG);
  await log.stores.appendAudit(planEntry(LABEL, NOW));
  await log.stores.appendAudit(planEntry({ ...LABEL, burst: 1 }, NOW));
  for (let i = SHIPPED_PLANS.length + 2; i < MAX_PLANS; i += 1)
    await log.stores.appendAudit(planEntry({ ...LIMITS, name: `plan-${i}` }, NOW));
  const { deps, plans } = setUp(log);
  await createPlan(deps, { ...LIMITS, name: 'last' });
  await t.rejects(createPlan(deps, { ...LIMITS, name: 'more' }), { code: 'conflict', reason: 'plans_full' });
  t.equal((await listPlans(deps)).length, MAX_PLANS);
  t.match((await plans.find('label'))?.current, LABEL);
});

t.test('a changed plan begins with a full bucket, and the rates follow its limits', (t) => {
  const clock = { now: () => NOW * 1000 };
  const limits = createRateLimits(clock);
  const spend = (plan: typeof LABEL) => {
    let calls = 0;
    try {
      for (; ; calls += 1) limits.spend('ptr_1', plan, 'standard');
    } catch (error) {
      t.match(error, { reason: 'rate_exceeded' });
    }
    return calls;
  };
  t.equal(spend(LABEL), 20);
  t.equal(spend(LABEL), 0);
  t.equal(spend({ ...LABEL, burst: 33 }), 33);
  t.equal(limits.size, 1, 'the bucket of before is not kept');
  t.end();
});

t.test('a partner of a running service is bound by the plan it is given', async (t) => {
  const house = await RestartedService.start();
  t.teardown(() => house.stop());
  const { partnerId, apiKey } = await house.service.partner('standard');
  const caller = () => house.partner.authenticate(apiKey);
  t.equal((await caller()).plan.name, 'standard');
  await house.operator.createPlan({ ...LABEL, monthlyQuota: 1 });
  await house.operator.assignPlan({ partnerId, plan: 'label', effect: 'at_once' });
  const small = await caller();
  t.match(small.plan, { name: 'label', monthlyQuota: 1 });
  t.match(await house.partner.quota(small), { limit: 1, remaining: 1 });
  t.match(await house.partner.listKeys(small, {}), { keys: [{ plan: 'label' }] });
  t.match(await house.operator.listPartnerKeys(partnerId), [{ plan: 'label' }]);
  t.match(await house.partner.readUsage(small, { days: 1 }), { plan: 'label', limit: 1 });
  await house.operator.assignPlan({ partnerId, plan: 'volume', effect: 'next_month' });
  await house.restart();
  t.match(await house.operator.listPartners(), [{ partnerId, plan: 'label', nextPlan: { plan: 'volume' } }]);
  t.equal((await caller()).plan.name, 'label', 'a restart reads it from the log');
  const next = (await house.operator.listPartners())[0]!.nextPlan!.from;
  house.clock.moveTo(next - 1);
  t.equal((await caller()).plan.name, 'label');
  house.clock.moveTo(next);
  t.equal((await caller()).plan.name, 'volume');
  t.match(await house.operator.approveSourceDetail({ partnerId, consentVersion: 'v1' }), { plan: 'volume' });
  t.match(await house.operator.readAudit({ partnerId: PLANS_LOG, fromSequence: 1, limit: 10 }), [
    { action: 'plan_created' },
    { action: 'plan_assigned' },
    { action: 'plan_assigned' },
  ]);
  t.match(await house.operator.verifyAudit({ partnerId: PLANS_LOG }), { ok: true, entries: 3 });
});
