import { z } from 'zod';
import { SCOPES } from '../../domain/partner.js';
import { PLAN_EFFECTS } from '../../domain/plan-log.js';
import { identifierSchema, nameSchema, timestampSchema } from '../primitives.js';
import { keyEntrySchema } from './key-schemas.js';

export const createPartnerSchema = z
  .strictObject({
    name: nameSchema(200).meta({ description: "Name of the partner in the operator's lists." }),
    plan: nameSchema(64)
      .meta({ description: 'Plan of the partner. The default is `standard`.' })
      .exactOptional(),
  })
  .meta({
    id: 'CreatePartner',
    examples: [{ name: 'Nordlicht Distribution' }, { name: 'Nordlicht Distribution', plan: 'volume' }],
  });

export const partnerSchema = z
  .object({
    partnerId: identifierSchema.meta({ description: 'Id of the partner.' }),
    name: z.string().meta({ description: "Name in the operator's lists." }),
    plan: z.string().meta({ description: 'Current plan of the partner.' }),
    nextPlan: z
      .object({
        plan: z.string().meta({ description: 'Name of the plan.' }),
        from: timestampSchema.meta({ description: 'When the plan takes effect, in unix seconds.' }),
      })
      .meta({ description: 'The next plan and when it takes effect. Absent if no change is scheduled.' })
      .exactOptional(),
    createdAt: timestampSchema.meta({ description: 'Creation time, in unix seconds.' }),
    sourceDetail: z
      .object({
        consentVersion: identifierSchema.meta({ description: 'Version of the consent text.' }),
        approvedAt: timestampSchema.meta({ description: 'Time of the approval, in unix seconds.' }),
      })
      .meta({
        description:
          'The approval for source detail, for this version of the consent text only. Absent if the partner is not approved.',
      })
      .exactOptional(),
  })
  .meta({
    id: 'Partner',
    examples: [
      {
        partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        name: 'Nordlicht Distribution',
        plan: 'standard',
        createdAt: 1_767_225_600,
      },
    ],
  });

export const partnerParamsSchema = z
  .strictObject({ partnerId: identifierSchema.meta({ description: 'Id of the partner.' }) })
  .meta({ examples: [{ partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' }] });

export const createKeySchema = z
  .strictObject({
    name: nameSchema(200).meta({ description: 'Name of the key in lists.' }),
    scopes: z
      .array(z.enum(SCOPES))
      .min(1)
      .max(SCOPES.length)
      .meta({ description: 'What the key may do. The default is every scope.' })
      .exactOptional(),
    publicKey: z
      .string()
      .min(1)
      .max(1000)
      .meta({
        description: 'Ed25519 or P-256 public key in PEM. If present, calls with the API key must be signed.',
      })
      .exactOptional(),
  })
  .meta({ id: 'CreateKey', examples: [{ name: 'ingest' }, { name: 'screening', scopes: ['verify'] }] });

export const createdKeySchema = z
  .object({
    keyId: identifierSchema.meta({ description: 'Id of the key.' }),
    apiKey: z.string().min(1).meta({ description: 'The secret. Only this response contains it.' }),
    name: z.string().meta({ description: 'Name of the key in lists.' }),
  })
  .meta({
    id: 'CreatedKey',
    examples: [{ keyId: 'key_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', apiKey: '<API_KEY>', name: 'ingest' }],
  });

export const partnerListSchema = z
  .object({ partners: z.array(partnerSchema).meta({ description: 'All partners, by id.' }) })
  .meta({
    id: 'PartnerList',
    examples: [
      {
        partners: [
          {
            partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
            name: 'Nordlicht Distribution',
            plan: 'standard',
            createdAt: 1_767_225_600,
          },
        ],
      },
    ],
  });

const PLAN_NAME = nameSchema(64).regex(
  /^[a-z][a-z0-9-]*$/,
  'must be a lower-case letter, followed by lower-case letters, digits and hyphens',
);

/** The limits of a plan (rule 6.1). */
const planLimits = {
  monthlyQuota: z.int().min(0).max(1_000_000_000_000).meta({
    description:
      'Monthly quota, in units per UTC calendar month. `verify` and `identify` cost one unit for each 65 MiB begun of the file.',
  }),
  requestsPerSecond: z
    .int()
    .min(1)
    .max(1_000_000)
    .meta({ description: 'Sustained request rate, in requests per second (token refill rate).' }),
  burst: z.int().min(1).max(1_000_000).meta({
    description: 'Burst size: the maximum number of requests accepted at once after an idle period.',
  }),
  concurrentUploads: z
    .int()
    .min(1)
    .max(10_000)
    .meta({ description: 'Maximum number of uploads at the same time.' }),
  rotationsPerDay: z.int().min(1).max(10_000).meta({
    description:
      'Key rotations per 24 hours. It is the size of a token bucket, and the tokens refilled in 24 hours.',
  }),
};

const effectSchema = z
  .enum(PLAN_EFFECTS)
  .default('at_once')
  .meta({ description: 'When the change takes effect: at once, or at the start of the next UTC month.' });

const STANDARD_LIMITS = {
  monthlyQuota: 100_000,
  requestsPerSecond: 50,
  burst: 100,
  concurrentUploads: 8,
  rotationsPerDay: 5,
};

export const createPlanSchema = z
  .strictObject({
    name: PLAN_NAME.meta({ description: 'Name of the plan. It cannot be changed later.' }),
    ...planLimits,
  })
  .meta({ id: 'CreatePlan', examples: [{ name: 'label', ...STANDARD_LIMITS }] });

export const planParamsSchema = z
  .strictObject({ plan: PLAN_NAME.meta({ description: 'Name of the plan.' }) })
  .meta({ examples: [{ plan: 'label' }] });

export const setPlanSchema = z.strictObject({ ...planLimits, effect: effectSchema }).meta({
  id: 'SetPlan',
  examples: [
    { ...STANDARD_LIMITS, monthlyQuota: 200_000 },
    { ...STANDARD_LIMITS, effect: 'next_month' },
  ],
});

export const assignPlanSchema = z
  .strictObject({ plan: PLAN_NAME.meta({ description: 'Name of the plan.' }), effect: effectSchema })
  .meta({
    id: 'AssignPlan',
    examples: [{ plan: 'label' }, { plan: 'volume', effect: 'next_month' }],
  });

export const planSchema = z
  .object({
    name: z.string().meta({ description: 'Name of the plan.' }),
    ...planLimits,
    next: z
      .object({
        ...planLimits,
        from: timestampSchema.meta({ description: 'When these limits take effect, in unix seconds.' }),
      })
      .meta({ description: 'The next limits. Absent if no change is scheduled.' })
      .exactOptional(),
  })
  .meta({
    id: 'Plan',
    examples: [
      { name: 'standard', ...STANDARD_LIMITS },
      {
        name: 'standard',
        ...STANDARD_LIMITS,
        next: { ...STANDARD_LIMITS, monthlyQuota: 200_000, from: 1_769_904_000 },
      },
    ],
  });

export const planListSchema = z
  .object({ plans: z.array(planSchema).meta({ description: 'All plans. The built-in plans are first.' }) })
  .meta({ id: 'PlanList', examples: [{ plans: [{ name: 'standard', ...STANDARD_LIMITS }] }] });

export const partnerKeyParamsSchema = z
  .strictObject({
    partnerId: identifierSchema.meta({ description: 'Id of the partner.' }),
    keyId: identifierSchema.meta({ description: 'Id of the key.' }),
  })
  .meta({
    examples: [{ partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', keyId: 'key_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' }],
  });

export const keyListSchema = z
  .object({ keys: z.array(keyEntrySchema).meta({ description: 'Keys, oldest first.' }) })
  .meta({
    id: 'KeyList',
    examples: [
      {
        keys: [
          {
            keyId: 'key_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
            name: 'ingest',
            status: 'active',
            scopes: ['verify', 'usage'],
            plan: 'standard',
            createdAt: 1_767_225_600,
          },
        ],
      },
    ],
  });

export const approveSourceDetailSchema = z
  .strictObject({
    consentVersion: identifierSchema.meta({
      description:
        'Version of the consent text. Source detail is delivered only if the creator consented to exactly this version.',
    }),
  })
  .meta({ id: 'ApproveSourceDetail', examples: [{ consentVersion: '2026-01' }] });
