import { DomainError } from '../../domain/errors.js';
import { DEFAULT_PLAN, type Partner, type Plan } from '../../domain/partner.js';
import type { PartnerStore } from '../../ports/stores.js';
import type { Clock, Ids } from '../../ports/system.js';

export interface CreatePartnerDeps {
  readonly stores: PartnerStore;
  readonly plans: ReadonlyMap<string, Plan>;
  readonly clock: Clock;
  readonly ids: Ids;
}

export async function createPartner(
  deps: CreatePartnerDeps,
  request: { readonly name: string; readonly plan?: string },
): Promise<Partner> {
  const plan = request.plan ?? DEFAULT_PLAN;
  if (!deps.plans.has(plan))
    throw new DomainError(
      'invalid_request',
      `There is no plan of that name; known: ${[...deps.plans.keys()].join(', ')}.`,
      { reason: 'plan_unknown' },
    );
  const partner: Partner = {
    partnerId: deps.ids.next('partner'),
    name: request.name,
    plan,
    createdAt: Math.floor(deps.clock.now() / 1000),
  };
  await deps.stores.createPartner(partner, {
    partnerId: partner.partnerId,
    action: 'partner_created',
    at: partner.createdAt,
    actor: 'operator',
    subjects: [partner.partnerId],
  });
  return partner;
}

export function listPartners({ stores }: Pick<CreatePartnerDeps, 'stores'>): Promise<readonly Partner[]> {
  return stores.listPartners();
}

export function listPlans({ plans }: Pick<CreatePartnerDeps, 'plans'>): readonly Plan[] {
  return [...plans.values()];
}
