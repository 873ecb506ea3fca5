import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import type { ResultOf } from '../../contract/results.js';
import { type Partner, PLAN_LIMITS, type Plan, type PlanLimits } from '../../domain/partner.js';
import {
  assignmentEntry,
  limitsEntry,
  MAX_PLANS,
  newPlanBook,
  PLANS_LOG,
  type PlanEffect,
  planEntry,
  type Scheduled,
  settled,
  takePlanEntry,
} from '../../domain/plan-log.js';
import { monthEnd } from '../../domain/usage-window.js';
import type { Observer } from '../../ports/observer.js';
import type { Secrets } from '../../ports/secrets.js';
import type { AuditStore, PartnerStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import { LogFollower, UnsoundLog } from '../system/log-follower.js';

/** A plan as the operator sees it, with the limits that will replace its own. */
type PlanView = ResultOf<'setPlan'>;
/** A partner with its current plan, and with the plan that will replace it. */
export type PartnerView = ResultOf<'assignPlan'>;

/**
 * The interval in milliseconds between two reads of the log without `refresh`. Changes made by other
 * processes are delayed by at most this time.
 */
const LOOK_MS = 1000;

/**
 * The plans and their assignment to partners. A process that cannot read the log continues with what it read
 * before. A process that finds a damaged entry continues with the entries before it. Plans are not a security
 * boundary, so a damaged row must not make the service refuse callers.
 */
export class Plans {
  readonly #log: LogFollower;
  readonly #clock: Clock;
  readonly #observer: Pick<Observer, 'fault'>;
  readonly #book = newPlanBook();
  /** The start of the last read in monotonic milliseconds, whether or not that read succeeded. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  #hasRead = false;
  #fails = false;

  constructor({
    stores,
    secrets,
    clock,
    observer,
  }: {
    readonly stores: AuditStore;
    readonly secrets: Secrets;
    readonly clock: Clock;
    readonly observer: Pick<Observer, 'fault'>;
  }) {
    this.#log = new LogFollower({ stores, secrets }, PLANS_LOG, (entry) => takePlanEntry(this.#book, entry));
    this.#clock = clock;
    this.#observer = observer;
  }

  /**
   * Returns a partner's current plan. The object stays the same until the plan or its limits change.
   * @throws DomainError `unavailable` / `store_unavailable` when the log was never read, or when the plan is
   * unknown and the log cannot be read
   */
  async of(partner: Partner): Promise<Plan | undefined> {
    await this.#keepUp();
    const plan = this.#known(partner);
    if (plan !== undefined) return plan;
    // Another process may have created the plan since the last read.
    await this.refresh();
    return this.#known(partner);
  }

  async view(partner: Partner): Promise<PartnerView> {
    await this.#keepUp();
    const { current = partner.plan, next } = this.#assigned(partner.partnerId, this.now());
    const nextPlan = next?.value === undefined ? undefined : { plan: next.value, from: next.from };
    return defined({ ...partner, plan: current, nextPlan });
  }

  /**
   * Checks that a plan exists.
   * @throws DomainError `invalid_request` / `plan_unknown`
   */
  async require(name: string): Promise<void> {
    if ((await this.find(name)) !== undefined) return;
    throw new DomainError(
      'invalid_request',
      `No plan has this name. Known plans: ${[...this.#book.plans.keys()].join(', ')}.`,
      { reason: 'plan_unknown' },
    );
  }

  /** Returns a plan after reading the log anew. */
  async find(name: string): Promise<Scheduled<Plan> | undefined> {
    await this.refresh();
    const plan = this.#book.plans.get(name);
    return plan && settled(plan, this.now());
  }

  /** Returns every plan, the built-in ones first. */
  list(): readonly Scheduled<Plan>[] {
    return [...this.#book.plans.values()].map((plan) => settled(plan, this.now()));
  }

  /** Reads the log at least up to its end at the time of the call. */
  async refresh(): Promise<void> {
    await this.#log.refresh();
    this.#hasRead = true;
  }

  /** Returns the current time in unix seconds. */
  now(): number {
    return Math.floor(this.#clock.now() / 1000);
  }

  #known({ partnerId, plan: first }: Partner): Plan | undefined {
    const now = this.now();
    const { current = first } = this.#assigned(partnerId, now);
    const plan = this.#book.plans.get(current);
    return plan && settled(plan, now).current;
  }

  #assigned(partnerId: string, now: number): Scheduled<string | undefined> {
    return settled(this.#book.assigned.get(partnerId) ?? { current: undefined }, now);
  }

  async #keepUp(): Promise<void> {
    const now = performance.now();
    if (this.#hasRead && now - this.#lookedAt <= LOOK_MS) return;
    this.#lookedAt = now;
    try {
      await this.#log.keepUp();
      this.#hasRead = true;
      this.#fails = false;
    } catch (error) {
      const isUnsound = error instanceof DomainError && error.cause instanceof UnsoundLog;
      if (!this.#hasRead && !isUnsound) throw error;
      this.#hasRead = true;
      // Reported once, not at each failing read.
      if (!this.#fails) this.#observer.fault('plans', error);
      this.#fails = true;
    }
  }
}

export interface PlansDeps {
  readonly stores: AuditStore & PartnerStore;
  readonly plans: Plans;
}

export async function listPlans({ plans }: Pick<PlansDeps, 'plans'>): Promise<readonly PlanView[]> {
  await plans.refresh();
  return plans.list().map(viewOf);
}

/**
 * Creates a plan. Repeating the call with the same limits changes nothing. When several calls create one name
 * at once, the first entry in the log wins.
 * @throws DomainError `conflict` / `plan_exists`: a plan of that name has other limits. `conflict` /
 * `plans_full`
 */
export async function createPlan(
  { stores, plans }: PlansDeps,
  plan: Plan,
): Promise<{ readonly plan: PlanView; readonly repeated: boolean }> {
  const known = await plans.find(plan.name);
  if (known !== undefined) return { plan: viewAsAsked(known, plan), repeated: true };
  if (plans.list().length >= MAX_PLANS)
    throw new DomainError('conflict', `An installation can have at most ${MAX_PLANS} plans.`, {
      reason: 'plans_full',
    });
  await stores.appendAudit(planEntry(plan, plans.now()));
  return { plan: viewAsAsked((await plans.find(plan.name))!, plan), repeated: false };
}

/**
 * Returns the view of an existing plan whose limits are the requested ones.
 * @throws DomainError `conflict` / `plan_exists` when the existing plan has other limits, or a change is
 * scheduled
 */
function viewAsAsked(standing: Scheduled<Plan>, asked: Plan): PlanView {
  if (standing.next !== undefined || !hasLimits(standing.current, asked))
    throw new DomainError('conflict', 'A plan with this name and different limits already exists.', {
      reason: 'plan_exists',
    });
  return viewOf(standing);
}

/**
 * Changes the limits of a plan for every partner that has it. The change replaces one that has not taken
 * effect yet.
 * @throws DomainError `not_found`
 */
export async function setPlan(
  { stores, plans }: PlansDeps,
  { plan: name, effect, ...limits }: PlanLimits & { readonly plan: string; readonly effect: PlanEffect },
): Promise<PlanView> {
  const known = await plans.find(name);
  if (known === undefined) throw new DomainError('not_found', 'There is no such plan.');
  const at = plans.now();
  const from = effectiveFrom(effect, at);
  const isSo = comesTo(known, from, (plan) => hasLimits(plan, limits));
  if (!isSo) await stores.appendAudit(limitsEntry({ ...limits, name }, from, at));
  return viewOf((await plans.find(name))!);
}

/**
 * Assigns a plan to a partner. The assignment replaces one that has not taken effect yet. With an immediate
 * effect, the units already used in this month count against the new plan.
 * @throws DomainError `not_found`, or `invalid_request` / `plan_unknown`
 */
export async function assignPlan(
  { stores, plans }: PlansDeps,
  {
    partnerId,
    plan,
    effect,
  }: { readonly partnerId: string; readonly plan: string; readonly effect: PlanEffect },
): Promise<PartnerView> {
  await plans.require(plan);
  const partner = await stores.getPartner(partnerId);
  if (partner === undefined) throw new DomainError('not_found', 'There is no such partner.');
  const { plan: current, nextPlan } = await plans.view(partner);
  const at = plans.now();
  const from = effectiveFrom(effect, at);
  const next = nextPlan && { value: nextPlan.plan, from: nextPlan.from };
  const isSo = comesTo(defined({ current, next }), from, (name) => name === plan);
  if (!isSo) await stores.appendAudit(assignmentEntry(partnerId, plan, from, at));
  await plans.refresh();
  return plans.view(partner);
}

function effectiveFrom(effect: PlanEffect, at: number): number {
  return effect === 'at_once' ? at : monthEnd(at);
}

/** Reports whether the value is already the requested one from that time on, with no later change known. */
function comesTo<Value>(
  { current, next }: Scheduled<Value>,
  from: number,
  isAsked: (value: Value) => boolean,
): boolean {
  return next === undefined ? isAsked(current) : next.from === from && isAsked(next.value);
}

function hasLimits(plan: PlanLimits, limits: PlanLimits): boolean {
  return PLAN_LIMITS.every((name) => plan[name] === limits[name]);
}

function viewOf({ current, next }: Scheduled<Plan>): PlanView {
  if (next === undefined) return current;
  const { name: _, ...limits } = next.value;
  return { ...current, next: { ...limits, from: next.from } };
}
