/**
 * Plans and whose they are, as the operator sets them: an append-only log over the plans that are shipped and the ones
 * that partners were created with.
 */
import type { AuditDraft, AuditEntry } from './audit.js';
import { PLAN_LIMITS, type Plan, type PlanLimits, SHIPPED_PLANS } from './partner.js';

/** Name of the audit log of plans: no partner's id looks like it. */
export const PLANS_LOG = 'plans';

/** Most plans of an installation. Every process holds them all. */
export const MAX_PLANS = 1000;

/** Moment from which a change holds: this one, or the beginning of the next UTC month, with a new quota's first unit. */
export const PLAN_EFFECTS = ['at_once', 'next_month'] as const;
export type PlanEffect = (typeof PLAN_EFFECTS)[number];

/** A value that holds, and the change of it that is to come. */
export interface Scheduled<Value> {
  readonly current: Value;
  /** Change from a time on, in unix seconds. */
  readonly next?: { readonly value: Value; readonly from: number };
}

/** All that the log says so far. */
export interface PlanBook {
  /** By name. A plan is never removed: partners may have it. */
  readonly plans: Map<string, Scheduled<Plan>>;
  /** Name of a partner's plan by partner id; undefined stands for the plan that the partner was created with. */
  readonly assigned: Map<string, Scheduled<string | undefined>>;
}

export function newPlanBook(): PlanBook {
  return {
    plans: new Map(SHIPPED_PLANS.map((plan) => [plan.name, { current: plan }])),
    assigned: new Map(),
  };
}

/** The value with the change that has come by then. @param now unix seconds */
export function settled<Value>(value: Scheduled<Value>, now: number): Scheduled<Value> {
  const { next } = value;
  return next !== undefined && next.from <= now ? { current: next.value } : value;
}

export function planEntry(plan: Plan, at: number): AuditDraft {
  return draft('plan_created', [plan.name, ...limitWords(plan)], at);
}

/** @param from unix seconds from which the limits hold */
export function limitsEntry(plan: Plan, from: number, at: number): AuditDraft {
  return draft('plan_changed', [plan.name, ...limitWords(plan), String(from)], at);
}

/** @param from unix seconds from which the partner has the plan */
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
 * Takes an entry of the log of plans. The first creation of a name holds; of changes the newest does, in place of one
 * that had not come yet.
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
