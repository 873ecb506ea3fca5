import { DEFAULT_PLAN, type Partner } from '../../domain/partner.js';
import type { PartnerStore } from '../../ports/stores.js';
import type { Clock, Ids } from '../../ports/system.js';
import type { PartnerView, Plans } from './plans.js';

export interface CreatePartnerDeps {
  readonly stores: PartnerStore;
  readonly plans: Plans;
  readonly clock: Clock;
  readonly ids: Ids;
}

/**
 * Creates a partner with the given plan, or with the default plan.
 * @throws DomainError `invalid_request` / `plan_unknown`
 */
export async function createPartner(
  deps: CreatePartnerDeps,
  request: { readonly name: string; readonly plan?: string },
): Promise<PartnerView> {
  const plan = request.plan ?? DEFAULT_PLAN;
  await deps.plans.require(plan);
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

export async function listPartners({
  stores,
  plans,
}: Pick<CreatePartnerDeps, 'stores' | 'plans'>): Promise<readonly PartnerView[]> {
  return Promise.all((await stores.listPartners()).map((partner) => plans.view(partner)));
}
