import { z } from 'zod';
import { FINDING_KINDS } from '../../../core/domain/finding.js';
import { AUDIT_ACTIONS } from '../../domain/audit.js';
import {
  countSchema,
  identifierSchema,
  knownWords,
  queryInteger,
  sha256Schema,
  timestampSchema,
} from '../primitives.js';

/** A range of a log. Entries are numbered from 1. */
export const auditQuerySchema = z
  .strictObject({
    from: queryInteger(1, 9_999_999_999).default(1).meta({
      description: 'Number of the first entry to return. The oldest entry of a log has the number 1.',
    }),
    limit: queryInteger(1, 1000).default(100).meta({ description: 'Maximum number of entries to return.' }),
  })
  .meta({ id: 'AuditQuery', examples: [{}, { from: 101, limit: 100 }] });

export const auditSchema = z
  .object({
    entries: z
      .array(
        z.object({
          partnerId: identifierSchema.meta({
            description:
              'Id of the partner whose log has the entry, or the name of another log: `signers`, `devices` or `plans`.',
          }),
          sequence: z
            .int()
            .min(1)
            .meta({ description: 'Number of the entry. The first entry is 1, and no number is skipped.' }),
          action: knownWords(AUDIT_ACTIONS).meta({ description: 'Action that the entry records.' }),
          at: timestampSchema.meta({ description: 'Time of the action, in unix seconds.' }),
          actor: z.string().meta({
            description:
              "Id of the key that made the change, `operator`, or `operator:` and the name of the operator's token.",
          }),
          subjects: z
            .array(z.string())
            .meta({ description: 'Ids and fixed words that identify what the action changed.' }),
          requestId: identifierSchema.optional().meta({
            description:
              'Id of the request that made the change, as in `X-Request-Id` and in the log of the service.',
          }),
          mac: sha256Schema.meta({ description: 'HMAC over this entry and the HMAC of the previous entry.' }),
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
            requestId: 'rq_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
            mac: '348a629f5ceed032c3e8706ec47d9bfafb00fb4250b018dd965435ca50cb836e',
          },
        ],
      },
    ],
  });

/** The start and size of one step of a pass over the stores. */
export const auditStoresQuerySchema = z
  .strictObject({
    from: z
      .string()
      .regex(/^[\x21-\x7e]{1,1500}$/, 'must be 1 to 1500 visible ASCII characters')
      .meta({ description: '`next` of the previous step. Omit it to start a pass.' })
      .exactOptional(),
    limit: queryInteger(1, 500).default(200).meta({
      description:
        'Maximum number of items that this step checks. An item is a proof, a file, a review or a month of usage.',
    }),
  })
  .meta({ id: 'AuditStoresQuery', examples: [{}, { from: 'objects', limit: 100 }] });

/** The findings of one step. Each was confirmed by a second look. */
export const auditStepSchema = z
  .object({
    findings: z
      .array(
        z.object({
          kind: knownWords(FINDING_KINDS).meta({ description: 'Kind of problem that was found.' }),
          subject: z.string().meta({
            description:
              'What the finding is about: the id of a proof or review, or a partner id and a month.',
          }),
          detail: z.string().meta({ description: 'Description of the problem, for people.' }),
        }),
      )
      .meta({ description: 'Findings of this step. A second check confirmed each finding.' }),
    looked: countSchema.meta({ description: 'Number of items that this step checked.' }),
    next: z
      .string()
      .meta({ description: 'Send this as `from` of the next step. Absent at the end of the pass.' })
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
            detail: 'the deliverable is missing',
          },
        ],
        looked: 200,
        next: 'objects',
      },
      { findings: [], looked: 0 },
    ],
  });

export const fillSamplesQuerySchema = z
  .strictObject({
    from: z
      .string()
      .regex(/^[\x21-\x7e]{1,1500}$/, 'must be 1 to 1500 visible ASCII characters')
      .meta({ description: '`next` of the previous step. Omit it to start a pass.' })
      .exactOptional(),
  })
  .meta({ id: 'FillSamplesQuery', examples: [{}] });

/** One step of a pass that computes samples digests. */
export const fillStepSchema = z
  .object({
    looked: countSchema.meta({ description: 'Number of records that this step read.' }),
    filled: countSchema.meta({ description: 'Number of proofs that got a samples digest.' }),
    without: countSchema.meta({ description: 'Number of proofs whose audio has no samples digest.' }),
    failed: z
      .array(identifierSchema)
      .meta({ description: 'Ids of the proofs whose file is missing or damaged.' }),
    next: z
      .string()
      .meta({ description: 'Send this as `from` of the next step. Absent at the end of the pass.' })
      .exactOptional(),
  })
  .meta({
    id: 'FillStep',
    examples: [{ looked: 200, filled: 12, without: 1, failed: [], next: '12:prf_1' }],
  });

export const auditVerificationSchema = z
  .object({
    ok: z.boolean().meta({ description: 'True if the whole log is intact.' }),
    entries: countSchema.meta({ description: 'Number of entries of the log that were read.' }),
    head: countSchema
      .meta({
        description:
          'Number of the last entry according to the head of the log, which is stored separately. Absent if there is no head.',
      })
      .exactOptional(),
    fault: z
      .object({
        sequence: countSchema.meta({ description: 'Number of the entry.' }),
        reason: knownWords(['sequence_broken', 'mac_mismatch', 'truncated', 'head_mismatch']).meta({
          description: 'What is wrong with the entry.',
        }),
      })
      .meta({ description: 'The first faulty entry. Absent if the log is intact.' })
      .exactOptional(),
  })
  .meta({
    id: 'AuditVerification',
    examples: [
      { ok: true, entries: 12, head: 12 },
      { ok: false, entries: 7, fault: { sequence: 7, reason: 'mac_mismatch' } },
    ],
  });
