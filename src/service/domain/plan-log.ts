/**
 * The plans and their assignments to partners, as set by the operator. They are an append-only log on top of
 * the built-in plans and the plans that partners were created with.
 */
import type { AuditDraft, AuditEntry } from './audit.js';
import { PLAN_LIMITS, type Plan, type PlanLimits, SHIPPED_PLANS } from './partner.js';

/** The name of the audit log of plans. It cannot be a partner's id. */
export const PLANS_LOG = 'plans';

/** The most plans of an installation. Every process keeps all of them in memory. */
export const MAX_PLANS = 1000;

/**
 * When a change takes effect: at once, or at the start of the next UTC month with the first unit of the new
 * quota.
 */
export const PLAN_EFFECTS = ['at_once', 'next_month'] as const;
export type PlanEffect = (typeof PLAN_EFFECTS)[number];

/** A current value, and its scheduled change. */
export interface Scheduled<Value> {
  readonly current: Value;
  /** The next value. It takes effect at `from`, in unix seconds. */
  readonly next?: { readonly value: Value; readonly from: number };
}

/** The state that results from all entries of the log so far. */
export interface PlanBook {
  /** The plans by name. A plan is never removed, because partners may have it. */
  readonly plans: Map<string, Scheduled<Plan>>;
  /** The plan name by partner id. `undefined` means the plan that the partner was created with. */
  readonly assigned: Map<string, Scheduled<string | undefined>>;
}

export function newPlanBook(): PlanBook {
  return {
    plans: new Map(SHIPPED_PLANS.map((plan) => [plan.name, { current: plan }])),
    assigned: new Map(),
  };
}

/** Returns the value after any change that is due. @param now unix seconds */
export function settled<Value>(value: Scheduled<Value>, now: number): Scheduled<Value> {
  const { next } = value;
  return next !== undefined && next.from <= now ? { current: next.value } : value;
}

export function planEntry(plan: Plan, at: number): AuditDraft {
  return draft('plan_created', [plan.name, ...limitWords(plan)], at);
}

/** @param from when the limits take effect, in unix seconds */
export function limitsEntry(plan: Plan, from: number, at: number): AuditDraft {
  return draft('plan_changed', [plan.name, ...limitWords(plan), String(from)], at);
}

/** @param from when the partner gets the plan, in unix seconds */
export function assignmentEntry(partnerId: string, plan: string, from: number, at: number): AuditDraft {
  return draft('plan_assigned', [partnerId, plan, String(from)], at);
}

function draft(
  action: 'plan_created' | 'plan_changed' | 'plan_assigned',
  subjects: string[],
  at: number,
): AuditDraft {
  return { partnerId: PLANS_LOG, action, at, actor: 'operator', subjects };
}

function limitWords(limits: PlanLimits): string[] {
  return PLAN_LIMITS.map((name) => String(limits[name]));
}

/**
 * Applies an entry of the log of plans. The first creation of a name wins. The newest change wins, and
 * replaces a scheduled change that is not due yet.
 */
export function takePlanEntry(
  { plans, assigned }: PlanBook,
  { action, subjects, at }: Pick<AuditEntry, 'action' | 'subjects' | 'at'>,
): void {
  const [name = '', ...words] = subjects;
  const known = plans.get(name);
  if (action === 'plan_created' && known === undefined) plans.set(name, { current: planOf(name, words) });
  if (action === 'plan_changed' && known !== undefined)
    plans.set(name, changed(known, planOf(name, words), Number(words[PLAN_LIMITS.length]), at));
  const [plan, from] = words;
  if (action === 'plan_assigned' && plan !== undefined)
    assigned.set(name, changed(assigned.get(name) ?? { current: undefined }, plan, Number(from), at));
}

function planOf(name: string, words: readonly string[]): Plan {
  const limits = Object.fromEntries(PLAN_LIMITS.map((limit, index) => [limit, Number(words[index])]));
  return { name, ...(limits as Record<keyof PlanLimits, number>) };
}

function changed<Value>(value: Scheduled<Value>, to: Value, from: number, at: number): Scheduled<Value> {
  const { current } = settled(value, at);
  return from <= at ? { current: to } : { current, next: { value: to, from } };
}
