import { z } from 'zod';
import { AUDIT_ACTIONS } from '../../domain/audit.js';
import { TOPICS } from '../../domain/events.js';
import { FINDING_KINDS } from '../../domain/finding.js';
import { SCOPES } from '../../domain/partner.js';
import { PLAN_EFFECTS } from '../../domain/plan-log.js';
import { REVOCATION_REASONS } from '../../domain/signer-revocation.js';
import { DEVICE_ALGORITHMS } from '../../domain/trace.js';
import {
  countSchema,
  identifierSchema,
  nameSchema,
  queryInteger,
  sha256Schema,
  timestampSchema,
} from '../primitives.js';
import { keyEntrySchema } from './key-schemas.js';

export const createPartnerSchema = z
  .strictObject({ name: nameSchema(200), plan: nameSchema(64).exactOptional() })
  .meta({
    id: 'CreatePartner',
    examples: [{ name: 'Nordlicht Distribution' }, { name: 'Nordlicht Distribution', plan: 'volume' }],
  });

export const partnerSchema = z
  .object({
    partnerId: identifierSchema,
    name: z.string(),
    plan: z.string().meta({ description: 'Plan that the partner has now.' }),
    nextPlan: z
      .object({ plan: z.string(), from: timestampSchema })
      .meta({ description: 'Plan that takes its place, and when; absent where none does.' })
      .exactOptional(),
    createdAt: timestampSchema,
    sourceDetail: z
      .object({ consentVersion: identifierSchema, approvedAt: timestampSchema })
      .meta({
        description: 'Present where the partner may be given source detail, under this version alone.',
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

/** A nonce: 32 random bytes in base64url. */
export const challengeQuerySchema = z
  .strictObject({ nonce: z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'must be 32 bytes in base64url') })
  .meta({ examples: [{ nonce: 'nqRjyWgxC8R1yGHnYWGhr-EJgfG0RRDgHAuFa8KYVpE' }] });

/** A response to the challenge for each token that is accepted. */
export const challengeSchema = z.object({ port: z.number().int(), answers: z.array(z.string()) }).meta({
  id: 'OperatorChallenge',
  examples: [{ port: 8081, answers: ['8R5yq1tYqYB2s6pKzG3Ff4oVwXJm7QnD0cL9hTbE2uA'] }],
});

export const partnerParamsSchema = z
  .strictObject({ partnerId: identifierSchema })
  .meta({ examples: [{ partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' }] });

export const createKeySchema = z
  .strictObject({
    name: nameSchema(200),
    scopes: z.array(z.enum(SCOPES)).min(1).max(SCOPES.length).exactOptional(),
    publicKey: z
      .string()
      .min(1)
      .max(1000)
      .meta({ description: 'PEM of an Ed25519 or P-256 key: calls with the key must be signed.' })
      .exactOptional(),
  })
  .meta({ id: 'CreateKey', examples: [{ name: 'ingest' }, { name: 'screening', scopes: ['verify'] }] });

export const createdKeySchema = z
  .object({ keyId: identifierSchema, apiKey: z.string().min(1), name: z.string() })
  .meta({
    id: 'CreatedKey',
    examples: [{ keyId: 'key_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', apiKey: '<API_KEY>', name: 'ingest' }],
  });

/**
 * Facts of the audio, in the query because the audio is the body: a header could not carry a title in every
 * script.
 */
export const issueQuerySchema = z
  .strictObject({
    partnerId: identifierSchema,
    song: nameSchema(500),
    fileName: nameSchema(255),
    carrier: z.enum(['embedded', 'sidecar']).default('embedded'),
  })
  .meta({
    id: 'IssueQuery',
    examples: [
      {
        partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        song: 'Morgenröte',
        fileName: 'morgenröte.wav',
        carrier: 'embedded',
      },
    ],
  });

export const issuedProofSchema = z
  .object({
    proofId: identifierSchema,
    issuedAt: timestampSchema,
    carrier: z.enum(['embedded', 'sidecar']),
    originalSha256: sha256Schema,
    boundAudioSha256: sha256Schema,
    asset: z.object({
      bytes: z.int().min(0),
      sha256: sha256Schema,
      fileName: z.string(),
      mediaType: z.string(),
    }),
  })
  .meta({
    id: 'IssuedProof',
    examples: [
      {
        proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        issuedAt: 1_767_225_600,
        carrier: 'embedded',
        originalSha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
        boundAudioSha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
        asset: {
          bytes: 2_884_096,
          sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
          fileName: 'morgenröte.wav',
          mediaType: 'audio/wav',
        },
      },
    ],
  });

export const partnerListSchema = z.object({ partners: z.array(partnerSchema) }).meta({
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
  'must be a small letter, then small letters, digits and hyphens',
);

/** Limits of a plan (rule 6.1). */
const planLimits = {
  monthlyQuota: z
    .int()
    .min(0)
    .max(1_000_000_000_000)
    .meta({ description: 'Units of a UTC calendar month; verify and identify cost one each.' }),
  requestsPerSecond: z
    .int()
    .min(1)
    .max(1_000_000)
    .meta({ description: 'Requests that come back each second.' }),
  burst: z.int().min(1).max(1_000_000).meta({ description: 'Requests at once, after a pause.' }),
  concurrentUploads: z.int().min(1).max(10_000).meta({ description: 'Uploads at a time.' }),
  rotationsPerDay: z.int().min(1).max(10_000).meta({ description: 'Key rotations of 24 hours.' }),
};

const effectSchema = z
  .enum(PLAN_EFFECTS)
  .default('at_once')
  .meta({ description: 'Moment from which it holds: this one, or the beginning of the next UTC month.' });

const STANDARD_LIMITS = {
  monthlyQuota: 100_000,
  requestsPerSecond: 50,
  burst: 100,
  concurrentUploads: 8,
  rotationsPerDay: 5,
};

export const createPlanSchema = z
  .strictObject({ name: PLAN_NAME, ...planLimits })
  .meta({ id: 'CreatePlan', examples: [{ name: 'label', ...STANDARD_LIMITS }] });

export const planParamsSchema = z.strictObject({ plan: PLAN_NAME }).meta({ examples: [{ plan: 'label' }] });

export const setPlanSchema = z.strictObject({ ...planLimits, effect: effectSchema }).meta({
  id: 'SetPlan',
  examples: [
    { ...STANDARD_LIMITS, monthlyQuota: 200_000 },
    { ...STANDARD_LIMITS, effect: 'next_month' },
  ],
});

export const assignPlanSchema = z.strictObject({ plan: PLAN_NAME, effect: effectSchema }).meta({
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
        from: timestampSchema.meta({ description: 'Unix seconds from which these limits hold.' }),
      })
      .meta({ description: 'Limits that take the place of the present ones; absent where none do.' })
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
  .object({ plans: z.array(planSchema) })
  .meta({ id: 'PlanList', examples: [{ plans: [{ name: 'standard', ...STANDARD_LIMITS }] }] });

export const partnerKeyParamsSchema = z
  .strictObject({ partnerId: identifierSchema, keyId: identifierSchema })
  .meta({
    examples: [{ partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', keyId: 'key_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' }],
  });

export const keyListSchema = z.object({ keys: z.array(keyEntrySchema) }).meta({
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

export const erasureStatusSchema = z
  .object({
    proofId: identifierSchema,
    state: z.enum(['pending', 'issued', 'erased']),
    erasedAt: timestampSchema.exactOptional(),
    confirmedAt: timestampSchema.exactOptional(),
    assetPresent: z.boolean(),
  })
  .meta({
    id: 'ErasureStatus',
    examples: [
      {
        proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        state: 'erased',
        erasedAt: 1_767_312_000,
        confirmedAt: 1_767_312_001,
        assetPresent: false,
      },
    ],
  });

export const deadLettersQuerySchema = z
  .strictObject({ topic: z.enum(TOPICS).exactOptional(), limit: queryInteger(1, 1000).default(100) })
  .meta({ id: 'DeadLettersQuery', examples: [{}, { topic: 'usage', limit: 20 }] });

/**
 * Dead letters. `reason` holds nothing of the event; `eventId` and `kind` are there where the event could be
 * read.
 */
export const deadLettersSchema = z
  .object({
    deadLetters: z.array(
      z.object({
        topic: z.enum(TOPICS),
        position: z.string(),
        reason: z.string(),
        at: timestampSchema,
        eventId: z.string().exactOptional(),
        kind: z.string().exactOptional(),
      }),
    ),
  })
  .meta({
    id: 'DeadLetters',
    examples: [
      {
        deadLetters: [
          {
            topic: 'usage',
            position: '0/17',
            reason: 'the span is empty',
            at: 1_767_312_000,
            eventId: 'units_counted/ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2/billed/2026-01/41',
            kind: 'units_counted',
          },
        ],
      },
    ],
  });

export const replayDeadLettersSchema = z
  .strictObject({ topic: z.enum(TOPICS), limit: z.int().min(1).max(10_000).default(1000) })
  .meta({ id: 'ReplayDeadLetters', examples: [{ topic: 'usage' }, { topic: 'usage', limit: 10 }] });

export const replayedDeadLettersSchema = z
  .object({ replayed: countSchema })
  .meta({ id: 'ReplayedDeadLetters', examples: [{ replayed: 3 }] });

/** A range of a log, whose entries count from 1. */
export const auditQuerySchema = z
  .strictObject({
    from: queryInteger(1, 9_999_999_999).default(1),
    limit: queryInteger(1, 1000).default(100),
  })
  .meta({ id: 'AuditQuery', examples: [{}, { from: 101, limit: 100 }] });

export const auditSchema = z
  .object({
    entries: z.array(
      z.object({
        partnerId: identifierSchema,
        sequence: z.int().min(1),
        action: z.enum(AUDIT_ACTIONS),
        at: timestampSchema,
        actor: z.string(),
        subjects: z.array(z.string()),
        mac: sha256Schema,
      }),
    ),
  })
  .meta({
    id: 'Audit',
    examples: [
      {
        entries: [
          {
            partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
            sequence: 1,
            action: 'partner_created',
            at: 1_767_225_600,
            actor: 'operator',
            subjects: ['ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2'],
            mac: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
          },
        ],
      },
    ],
  });

/** Place and size of one step over the stores. */
export const auditStoresQuerySchema = z
  .strictObject({
    from: z
      .string()
      .regex(/^[\x21-\x7e]{1,1500}$/, 'must be 1 to 1500 visible ASCII characters')
      .meta({ description: 'The `next` of the step before; absent at the beginning of a pass.' })
      .exactOptional(),
    limit: queryInteger(1, 500).default(200),
  })
  .meta({ id: 'AuditStoresQuery', examples: [{}, { from: 'objects', limit: 100 }] });

/** Findings of one step: each was seen twice. */
export const auditStepSchema = z
  .object({
    findings: z.array(
      z.object({
        kind: z.enum(FINDING_KINDS),
        subject: z.string(),
        detail: z.string(),
      }),
    ),
    looked: countSchema,
    next: z.string().exactOptional(),
  })
  .meta({
    id: 'AuditStep',
    examples: [
      {
        findings: [
          {
            kind: 'object_missing',
            subject: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
            detail: 'the deliverable is not there',
          },
        ],
        looked: 200,
        next: 'objects',
      },
      { findings: [], looked: 0 },
    ],
  });

export const auditVerificationSchema = z
  .object({
    ok: z.boolean(),
    entries: countSchema,
    head: countSchema.exactOptional(),
    fault: z
      .object({
        sequence: countSchema,
        reason: z.enum(['sequence_broken', 'mac_mismatch', 'truncated', 'head_mismatch']),
      })
      .exactOptional(),
  })
  .meta({
    id: 'AuditVerification',
    examples: [
      { ok: true, entries: 12, head: 12 },
      { ok: false, entries: 7, fault: { sequence: 7, reason: 'mac_mismatch' } },
    ],
  });

const KID = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

export const signerParamsSchema = z.strictObject({ kid: sha256Schema }).meta({ examples: [{ kid: KID }] });

export const approveSourceDetailSchema = z
  .strictObject({
    consentVersion: identifierSchema.meta({
      description: 'Version of the consent text that a creator must have agreed to; no other one will do.',
    }),
  })
  .meta({ id: 'ApproveSourceDetail', examples: [{ consentVersion: '2026-01' }] });

/** A creator's consent to the delivery of a proof's source detail. */
export const grantConsentSchema = z
  .strictObject({ consentVersion: identifierSchema, grantedAt: timestampSchema })
  .meta({
    id: 'GrantConsent',
    examples: [{ consentVersion: '2026-01', grantedAt: 1_767_225_600 }],
  });

export const consentStateSchema = z
  .object({
    proofId: identifierSchema,
    consent: z.object({ consentVersion: identifierSchema, grantedAt: timestampSchema }).exactOptional(),
  })
  .meta({
    id: 'ConsentState',
    examples: [
      {
        proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        consent: { consentVersion: '2026-01', grantedAt: 1_767_225_600 },
      },
      { proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' },
    ],
  });

const DEVICE_ID = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

export const deviceParamsSchema = z
  .strictObject({ deviceId: sha256Schema })
  .meta({ examples: [{ deviceId: DEVICE_ID }] });

/** A capture device: the digest of its public key, and no name. */
export const enrolDeviceSchema = z
  .strictObject({
    deviceId: sha256Schema.meta({ description: "SHA-256 of the device's public key (SPKI in DER)." }),
    algorithm: z.enum(DEVICE_ALGORITHMS).exactOptional(),
  })
  .meta({ id: 'EnrolDevice', examples: [{ deviceId: DEVICE_ID, algorithm: 'Ed25519' }] });

export const revokeDeviceSchema = z
  .strictObject({
    from: timestampSchema
      .meta({ description: 'Time from which the device is not believed; now by default.' })
      .exactOptional(),
  })
  .meta({ id: 'RevokeDevice', examples: [{}, { from: 1_767_225_600 }] });

export const deviceSchema = z
  .object({
    deviceId: sha256Schema,
    algorithm: z.string().exactOptional(),
    enrolledAt: timestampSchema,
    revocation: z.object({ from: timestampSchema, at: timestampSchema }).exactOptional(),
  })
  .meta({
    id: 'Device',
    examples: [{ deviceId: DEVICE_ID, algorithm: 'Ed25519', enrolledAt: 1_767_225_600 }],
  });

/** A range of the devices, which count from 1 in the order of enrolment. */
export const devicesQuerySchema = z
  .strictObject({ from: queryInteger(1, 1_000_000).default(1), limit: queryInteger(1, 1000).default(100) })
  .meta({ id: 'DevicesQuery', examples: [{}, { from: 101, limit: 100 }] });

export const deviceListSchema = z.object({ devices: z.array(deviceSchema), deviceCount: countSchema }).meta({
  id: 'DeviceList',
  examples: [
    {
      devices: [{ deviceId: DEVICE_ID, algorithm: 'Ed25519', enrolledAt: 1_767_225_600 }],
      deviceCount: 1,
    },
  ],
});

export const revokeSignerSchema = z
  .strictObject({ from: timestampSchema, reason: z.enum(REVOCATION_REASONS) })
  .meta({ id: 'RevokeSigner', examples: [{ from: 1_767_225_600, reason: 'key_compromise' }] });

/** A leaf of the service; `signs` is true for the one that new proofs are signed with. */
export const signerSchema = z
  .object({
    kid: sha256Schema,
    algorithm: z.string(),
    issuer: z.string(),
    notBefore: timestampSchema,
    notAfter: timestampSchema,
    signs: z.boolean(),
    revocation: z
      .object({ from: timestampSchema, reason: z.enum(REVOCATION_REASONS), at: timestampSchema })
      .exactOptional(),
  })
  .meta({
    id: 'Signer',
    examples: [
      {
        kid: KID,
        algorithm: 'Ed25519',
        issuer: 'Takemark',
        notBefore: 1_767_139_200,
        notAfter: 2_398_291_200,
        signs: true,
      },
    ],
  });

export const signerListSchema = z.object({ signers: z.array(signerSchema) }).meta({
  id: 'SignerList',
  examples: [
    {
      signers: [
        {
          kid: KID,
          algorithm: 'Ed25519',
          issuer: 'Takemark',
          notBefore: 1_767_139_200,
          notAfter: 2_398_291_200,
          signs: true,
        },
      ],
    },
  ],
});
