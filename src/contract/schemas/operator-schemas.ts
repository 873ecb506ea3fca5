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
  knownWords,
  nameSchema,
  queryInteger,
  sha256Schema,
  timestampSchema,
} from '../primitives.js';
import { keyEntrySchema } from './key-schemas.js';

export const createPartnerSchema = z
  .strictObject({
    name: nameSchema(200).meta({ description: "Name of the partner, for the operator's lists." }),
    plan: nameSchema(64)
      .meta({ description: 'Plan of the partner; `standard` where it is absent.' })
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
    plan: z.string().meta({ description: 'Plan that the partner has now.' }),
    nextPlan: z
      .object({
        plan: z.string().meta({ description: 'Name of the plan.' }),
        from: timestampSchema.meta({ description: 'Unix seconds from which the partner has it.' }),
      })
      .meta({ description: 'Plan that takes its place, and when; absent where none does.' })
      .exactOptional(),
    createdAt: timestampSchema.meta({ description: 'Time of its creation, in unix seconds.' }),
    sourceDetail: z
      .object({
        consentVersion: identifierSchema.meta({ description: 'Version of the consent text.' }),
        approvedAt: timestampSchema.meta({ description: 'Time of the approval, in unix seconds.' }),
      })
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
  .strictObject({
    nonce: z
      .string()
      .regex(/^[A-Za-z0-9_-]{43}$/, 'must be 32 bytes in base64url')
      .meta({ description: 'Random bytes of the caller, 32 of them in base64url.' }),
  })
  .meta({ examples: [{ nonce: 'nqRjyWgxC8R1yGHnYWGhr-EJgfG0RRDgHAuFa8KYVpE' }] });

/** A response to the challenge for each token that is accepted. */
export const challengeSchema = z
  .object({
    port: z.int().min(0).meta({ description: 'Port that the listener is bound to.' }),
    answers: z.array(z.string()).meta({ description: 'MAC over nonce and port, one for each token.' }),
  })
  .meta({
    id: 'OperatorChallenge',
    examples: [{ port: 8081, answers: ['8R5yq1tYqYB2s6pKzG3Ff4oVwXJm7QnD0cL9hTbE2uA'] }],
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
      .meta({ description: 'What the key may do; all of them where it is absent.' })
      .exactOptional(),
    publicKey: z
      .string()
      .min(1)
      .max(1000)
      .meta({ description: 'PEM of an Ed25519 or P-256 key: calls with the key must be signed.' })
      .exactOptional(),
  })
  .meta({ id: 'CreateKey', examples: [{ name: 'ingest' }, { name: 'screening', scopes: ['verify'] }] });

export const createdKeySchema = z
  .object({
    keyId: identifierSchema.meta({ description: 'Id of the key.' }),
    apiKey: z.string().min(1).meta({ description: 'The secret, in this answer and nowhere else.' }),
    name: z.string().meta({ description: 'Name of the key in lists.' }),
  })
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
    partnerId: identifierSchema.meta({ description: 'Partner that the proof is issued for.' }),
    song: nameSchema(500).meta({ description: 'Title of the song.' }),
    fileName: nameSchema(255).meta({ description: 'Name of the file.' }),
    carrier: z
      .enum(['embedded', 'sidecar'])
      .default('embedded')
      .meta({ description: 'Place of the credential: in the file, or in a sidecar beside it.' }),
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
    proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
    issuedAt: timestampSchema.meta({ description: 'Time of issuing, in unix seconds.' }),
    carrier: knownWords(['embedded', 'sidecar']).meta({ description: 'Place of the credential.' }),
    originalSha256: sha256Schema.meta({ description: 'Digest of the file as it came.' }),
    boundAudioSha256: sha256Schema.meta({ description: 'Digest of the audio that the proof is bound to.' }),
    asset: z
      .object({
        bytes: z.int().min(0).meta({ description: 'Size in bytes.' }),
        sha256: sha256Schema.meta({ description: 'Digest of the file.' }),
        fileName: z.string().meta({ description: 'Name of the file.' }),
        mediaType: z.string().meta({ description: 'Media type of the file.' }),
      })
      .meta({ description: 'File that is delivered: with the credential in it, or the audio of a pair.' }),
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
  .strictObject({ name: PLAN_NAME.meta({ description: 'Name of the plan, for good.' }), ...planLimits })
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
  .object({ plans: z.array(planSchema).meta({ description: 'All plans, the shipped ones first.' }) })
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

export const erasureStatusSchema = z
  .object({
    proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
    state: knownWords(['pending', 'issued', 'erased']).meta({ description: 'Where the proof stands.' }),
    erasedAt: timestampSchema.meta({ description: 'Time of the erasure, in unix seconds.' }).exactOptional(),
    confirmedAt: timestampSchema
      .meta({ description: 'Time at which a consumer confirmed the erasure; absent until then.' })
      .exactOptional(),
    assetPresent: z.boolean().meta({ description: 'True while the deliverable is there.' }),
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
  .strictObject({
    topic: z.enum(TOPICS).meta({ description: 'Dead letters of this topic alone.' }).exactOptional(),
    limit: queryInteger(1, 1000).default(100).meta({ description: 'Entries at most.' }),
  })
  .meta({ id: 'DeadLettersQuery', examples: [{}, { topic: 'usage', limit: 20 }] });

/**
 * Dead letters. `reason` holds nothing of the event; `eventId` and `kind` are there where the event could be
 * read.
 */
export const deadLettersSchema = z
  .object({
    deadLetters: z
      .array(
        z.object({
          topic: knownWords(TOPICS).meta({ description: 'Topic that the event came from.' }),
          position: z.string().meta({ description: 'Place in the topic of dead letters.' }),
          reason: z
            .string()
            .meta({ description: 'Why no consumer could take it; holds nothing of the event.' }),
          at: timestampSchema.meta({ description: 'Time at which it was given up, in unix seconds.' }),
          eventId: z
            .string()
            .meta({ description: 'Id of the event, where it could be read.' })
            .exactOptional(),
          kind: z
            .string()
            .meta({ description: 'Kind of the event, where it could be read.' })
            .exactOptional(),
        }),
      )
      .meta({ description: 'Events that no consumer could take, oldest first.' }),
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
  .strictObject({
    topic: z.enum(TOPICS).meta({ description: 'Topic that they go back into.' }),
    limit: z.int().min(1).max(10_000).default(1000).meta({ description: 'Events at most, oldest first.' }),
  })
  .meta({ id: 'ReplayDeadLetters', examples: [{ topic: 'usage' }, { topic: 'usage', limit: 10 }] });

export const replayedDeadLettersSchema = z
  .object({ replayed: countSchema.meta({ description: 'Events that were put into the topic again.' }) })
  .meta({ id: 'ReplayedDeadLetters', examples: [{ replayed: 3 }] });

/** A range of a log, whose entries count from 1. */
export const auditQuerySchema = z
  .strictObject({
    from: queryInteger(1, 9_999_999_999).default(1).meta({ description: 'Number of the first entry.' }),
    limit: queryInteger(1, 1000).default(100).meta({ description: 'Entries at most.' }),
  })
  .meta({ id: 'AuditQuery', examples: [{}, { from: 101, limit: 100 }] });

export const auditSchema = z
  .object({
    entries: z
      .array(
        z.object({
          partnerId: identifierSchema.meta({
            description: 'Partner whose log it is, or `signers`, `devices` or `plans`.',
          }),
          sequence: z.int().min(1).meta({ description: 'Number of the entry, from 1 without gaps.' }),
          action: knownWords(AUDIT_ACTIONS).meta({ description: 'What was done.' }),
          at: timestampSchema.meta({ description: 'Time of the action, in unix seconds.' }),
          actor: z.string().meta({ description: 'Id of the key that acted, or `operator`.' }),
          subjects: z.array(z.string()).meta({ description: 'Ids and closed words of what it was done to.' }),
          mac: sha256Schema.meta({ description: 'HMAC over the entry and the one before it.' }),
        }),
      )
      .meta({ description: 'Entries, oldest first.' }),
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
    limit: queryInteger(1, 500).default(200).meta({ description: 'Looks of the step at most.' }),
  })
  .meta({ id: 'AuditStoresQuery', examples: [{}, { from: 'objects', limit: 100 }] });

/** Findings of one step: each was seen twice. */
export const auditStepSchema = z
  .object({
    findings: z
      .array(
        z.object({
          kind: knownWords(FINDING_KINDS).meta({ description: 'Kind of the finding.' }),
          subject: z.string().meta({ description: 'Id of what it is about.' }),
          detail: z.string().meta({ description: 'What was seen, in words.' }),
        }),
      )
      .meta({ description: 'What was found, each seen twice.' }),
    looked: countSchema.meta({ description: 'Looks that the step made.' }),
    next: z
      .string()
      .meta({ description: 'Place of the next step; absent at the end of a pass.' })
      .exactOptional(),
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
    ok: z.boolean().meta({ description: 'True where the whole log is sound.' }),
    entries: countSchema.meta({ description: 'Entries that were read.' }),
    head: countSchema
      .meta({ description: 'Number in the head that is kept apart; absent where there is none.' })
      .exactOptional(),
    fault: z
      .object({
        sequence: countSchema.meta({ description: 'Number of the entry.' }),
        reason: knownWords(['sequence_broken', 'mac_mismatch', 'truncated', 'head_mismatch']).meta({
          description: 'What does not fit.',
        }),
      })
      .meta({ description: 'First entry that does not fit; absent where all do.' })
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

export const signerParamsSchema = z
  .strictObject({ kid: sha256Schema.meta({ description: 'SHA-256 of the certificate (DER).' }) })
  .meta({ examples: [{ kid: KID }] });

export const approveSourceDetailSchema = z
  .strictObject({
    consentVersion: identifierSchema.meta({
      description: 'Version of the consent text that a creator must have agreed to; no other one will do.',
    }),
  })
  .meta({ id: 'ApproveSourceDetail', examples: [{ consentVersion: '2026-01' }] });

/** A creator's consent to the delivery of a proof's source detail. */
export const grantConsentSchema = z
  .strictObject({
    consentVersion: identifierSchema.meta({ description: 'Version of the consent text that was agreed to.' }),
    grantedAt: timestampSchema.meta({ description: 'Time of the consent, in unix seconds.' }),
  })
  .meta({
    id: 'GrantConsent',
    examples: [{ consentVersion: '2026-01', grantedAt: 1_767_225_600 }],
  });

export const consentStateSchema = z
  .object({
    proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
    consent: z
      .object({
        consentVersion: identifierSchema.meta({ description: 'Version of the consent text.' }),
        grantedAt: timestampSchema.meta({ description: 'Time of the consent, in unix seconds.' }),
      })
      .meta({ description: 'Consent that holds; absent where there is none.' })
      .exactOptional(),
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
  .strictObject({ deviceId: sha256Schema.meta({ description: "SHA-256 of the device's public key." }) })
  .meta({ examples: [{ deviceId: DEVICE_ID }] });

/** A capture device: the digest of its public key, and no name. */
export const enrolDeviceSchema = z
  .strictObject({
    deviceId: sha256Schema.meta({ description: "SHA-256 of the device's public key (SPKI in DER)." }),
    algorithm: z.enum(DEVICE_ALGORITHMS).meta({ description: 'Algorithm of the key.' }).exactOptional(),
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
    deviceId: sha256Schema.meta({ description: "SHA-256 of the device's public key." }),
    algorithm: z.string().meta({ description: 'Algorithm of the key, where it was named.' }).exactOptional(),
    enrolledAt: timestampSchema.meta({ description: 'Time of its enrolment, in unix seconds.' }),
    revocation: z
      .object({
        from: timestampSchema.meta({ description: 'Unix seconds from which it is not believed.' }),
        at: timestampSchema.meta({ description: 'Time at which the operator said so.' }),
      })
      .meta({ description: 'Present where the device was revoked, for good.' })
      .exactOptional(),
  })
  .meta({
    id: 'Device',
    examples: [{ deviceId: DEVICE_ID, algorithm: 'Ed25519', enrolledAt: 1_767_225_600 }],
  });

/** A range of the devices, which count from 1 in the order of enrolment. */
export const devicesQuerySchema = z
  .strictObject({
    from: queryInteger(1, 1_000_000).default(1).meta({ description: 'Number of the first device.' }),
    limit: queryInteger(1, 1000).default(100).meta({ description: 'Devices at most.' }),
  })
  .meta({ id: 'DevicesQuery', examples: [{}, { from: 101, limit: 100 }] });

export const deviceListSchema = z
  .object({
    devices: z.array(deviceSchema).meta({ description: 'Devices in the order of enrolment.' }),
    deviceCount: countSchema.meta({ description: 'Count of all devices.' }),
  })
  .meta({
    id: 'DeviceList',
    examples: [
      {
        devices: [{ deviceId: DEVICE_ID, algorithm: 'Ed25519', enrolledAt: 1_767_225_600 }],
        deviceCount: 1,
      },
    ],
  });

export const revokeSignerSchema = z
  .strictObject({
    from: timestampSchema.meta({ description: 'Unix seconds from which what it signed does not count.' }),
    reason: z.enum(REVOCATION_REASONS).meta({ description: 'Why it is revoked.' }),
  })
  .meta({ id: 'RevokeSigner', examples: [{ from: 1_767_225_600, reason: 'key_compromise' }] });

/** A leaf of the service; `signs` is true for the one that new proofs are signed with. */
export const signerSchema = z
  .object({
    kid: sha256Schema.meta({ description: 'SHA-256 of the certificate (DER).' }),
    algorithm: z.string().meta({ description: 'Signature algorithm.' }),
    issuer: z.string().meta({ description: 'Name of the authority.' }),
    notBefore: timestampSchema.meta({ description: 'Beginning of its validity, in unix seconds.' }),
    notAfter: timestampSchema.meta({ description: 'End of its validity, in unix seconds.' }),
    signs: z.boolean().meta({ description: 'True for the one that new proofs are signed with.' }),
    revocation: z
      .object({
        from: timestampSchema.meta({ description: 'Unix seconds from which what it signed does not count.' }),
        reason: knownWords(REVOCATION_REASONS).meta({ description: 'Why it was revoked.' }),
        at: timestampSchema.meta({ description: 'Time at which the operator said so.' }),
      })
      .meta({ description: 'Present where the certificate is revoked.' })
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

export const signerListSchema = z
  .object({ signers: z.array(signerSchema).meta({ description: 'Certificates, the one that signs first.' }) })
  .meta({
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
