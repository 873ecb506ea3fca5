import { z } from 'zod';
import { AUDIT_ACTIONS } from '../../domain/audit.js';
import { FINDING_KINDS } from '../../domain/finding.js';
import {
  countSchema,
  identifierSchema,
  knownWords,
  queryInteger,
  sha256Schema,
  timestampSchema,
} from '../primitives.js';

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
