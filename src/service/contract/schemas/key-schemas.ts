import { z } from 'zod';
import { SCOPES } from '../../domain/partner.js';
import { KEY_STATUS_MEANINGS } from '../../domain/reference/values.js';
import {
  countSchema,
  cursorSchema,
  describedWords,
  identifierSchema,
  knownWords,
  queryBoolean,
  queryInteger,
  timestampSchema,
} from '../primitives.js';

const KEY = {
  keyId: 'key_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
  name: 'ingest',
  status: 'active',
  scopes: ['verify', 'proofs', 'keys'],
  plan: 'standard',
  createdAt: 1_767_225_600,
};

/** The query of the list of keys (rule 4.14). */
export const listKeysQuerySchema = z
  .strictObject({
    limit: queryInteger(1, 100)
      .meta({
        format: 'int32',
        description:
          'Maximum number of entries per page. If `limit` and `cursor` are both absent, the response is the complete list.',
      })
      .exactOptional(),
    cursor: cursorSchema.meta({ description: '`nextCursor` of the previous page.' }).exactOptional(),
  })
  .meta({ id: 'ListKeysQuery', examples: [{}, { limit: 20 }] });

/** The metadata of a key, never a secret (rule 4.14). */
export const keyEntrySchema = z
  .object({
    keyId: identifierSchema.meta({ description: 'Id of the key. It is not secret.' }),
    name: z.string().meta({ description: 'Name of the key.' }),
    status: describedWords(KEY_STATUS_MEANINGS).meta({
      description: 'State of the key.',
    }),
    scopes: z.array(knownWords(SCOPES)).meta({
      description:
        'Scopes of the key. In the OpenAPI document, `x-scope` of an operation is the scope that the operation needs.',
    }),
    plan: z.string().meta({ description: "The partner's plan." }),
    createdAt: timestampSchema.meta({ description: 'Creation time, in unix seconds.' }),
    expiresAt: timestampSchema
      .meta({
        description: 'When the key stops working, in unix seconds. Absent if the key was not rotated.',
      })
      .exactOptional(),
    lastUsedAt: timestampSchema
      .meta({
        description:
          'Time of last use, in unix seconds, accurate to one minute. Absent if no use was recorded.',
      })
      .exactOptional(),
    signed: z.boolean().meta({ description: 'True if calls with the key must be signed.' }).exactOptional(),
    /** Rule 4.19. */
    revokedSuccessors: z
      .array(identifierSchema)
      .meta({
        description:
          'Ids of the revoked successors, oldest first. Present only in the response to a revocation with `successors=true`.',
      })
      .exactOptional(),
  })
  .meta({
    id: 'Key',
    examples: [KEY, { ...KEY, status: 'expiring', expiresAt: 1_767_484_800, lastUsedAt: 1_767_225_900 }],
  });

/** The query of a revocation (rule 4.19). */
export const revokeKeyQuerySchema = z
  .strictObject({
    successors: queryBoolean()
      .meta({
        description:
          'With `true`, every key that replaced this key is revoked as well: its successor, the successor of that key, and so on.',
      })
      .exactOptional(),
  })
  .meta({ id: 'RevokeKeyQuery', examples: [{}, { successors: true }] });

export const keyParamsSchema = z
  .object({ keyId: identifierSchema.meta({ description: 'Id of the key.' }) })
  .meta({ examples: [{ keyId: KEY.keyId }] });

export const keyPageSchema = z
  .object({
    keys: z.array(keyEntrySchema).meta({ description: 'Keys, oldest first.' }),
    nextCursor: cursorSchema
      .meta({ description: 'Cursor of the next page. Absent on the last page.' })
      .exactOptional(),
  })
  .meta({ id: 'KeyPage', examples: [{ keys: [KEY] }, { keys: [KEY], nextCursor: 'b3BhcXVl' }] });

/**
 * The Idempotency-Key of a rotation (rule 4.8). Only visible ASCII characters reach every reader of a header
 * unchanged.
 */
const idempotencyKeySchema = z
  .string()
  .min(16)
  .max(128)
  .regex(/^[\x21-\x7e]+$/, 'must be visible ASCII without spaces')
  .meta({
    description: '16 to 128 visible ASCII characters, for example a UUID.',
    examples: ['0b6f6c9e-9d0a-4b53-8f0e-0c5f0f3f1d2a'],
  });

export const requiredIdempotencySchema = z
  .object({ 'idempotency-key': idempotencyKeySchema })
  .meta({ examples: [{ 'idempotency-key': '0b6f6c9e-9d0a-4b53-8f0e-0c5f0f3f1d2a' }] });

export const idempotencyHeadersSchema = z
  .object({ 'idempotency-key': idempotencyKeySchema.exactOptional() })
  .meta({ examples: [{ 'idempotency-key': '0b6f6c9e-9d0a-4b53-8f0e-0c5f0f3f1d2a' }] });

export const rotatedKeySchema = z
  .object({
    apiKey: z
      .string()
      .min(1)
      .meta({ description: 'The new secret. Only this response and its idempotent replay contain it.' }),
    keyId: identifierSchema.meta({ description: 'Id of the new key.' }),
    name: z.string().meta({ description: 'Name of the new key. The calling key has the same name.' }),
    previousKeyExpiresAt: timestampSchema.meta({
      description: 'When the calling key stops working, in unix seconds: 72 hours after the rotation.',
    }),
  })
  .meta({
    id: 'RotatedKey',
    examples: [
      {
        apiKey: '<API_KEY>',
        keyId: 'key_01JZ7Q4W8YB2M6R9T3V5X7Z1A3',
        name: 'ingest',
        previousKeyExpiresAt: 1_767_484_800,
      },
    ],
  });

/** The query of the usage (rule 6.11). */
export const usageQuerySchema = z
  .strictObject({
    days: queryInteger(1, 92)
      .default(30)
      .meta({ description: 'Number of UTC days to report, including today.' }),
  })
  .meta({ id: 'UsageQuery', examples: [{ days: 1 }, {}] });

export const usageSchema = z
  .object({
    plan: z.string().meta({ description: "The partner's plan." }),
    period: z
      .object({
        start: timestampSchema.meta({ description: 'Start of the month, in unix seconds.' }),
        end: timestampSchema.meta({ description: 'Start of the next month, in unix seconds.' }),
      })
      .meta({ description: 'The UTC calendar month that the quota applies to.' }),
    limit: countSchema.meta({ description: 'Monthly quota, in units.' }),
    limits: z
      .object({
        requestsPerSecond: countSchema.meta({ description: 'Requests per second.' }),
        burst: countSchema.meta({ description: 'Requests that may follow at once after a pause.' }),
        concurrentUploads: countSchema.meta({ description: 'Uploads that may run at the same time.' }),
        rotationsPerDay: countSchema.meta({ description: 'Key rotations per day.' }),
      })
      .meta({ description: 'The other limits of the plan.' }),
    used: countSchema.meta({ description: 'Units used this month.' }),
    remaining: countSchema.meta({ description: 'Units left this month.' }),
    days: z
      .array(
        z.object({
          day: z
            .string()
            .regex(/^\d{4}-\d{2}-\d{2}$/)
            .meta({ description: 'UTC day, such as 2026-01-31.' }),
          units: countSchema.meta({ description: 'Units of the quota that were used on this day.' }),
          operations: z
            .record(z.string(), countSchema)
            .meta({ description: 'Units per billed operation, and number of calls per free operation.' }),
        }),
      )
      .meta({ description: 'One entry per UTC day, including days without calls. The last entry is today.' }),
  })
  .meta({
    id: 'Usage',
    examples: [
      {
        plan: 'standard',
        period: { start: 1_767_225_600, end: 1_769_904_000 },
        limit: 100_000,
        limits: { requestsPerSecond: 50, burst: 100, concurrentUploads: 8, rotationsPerDay: 5 },
        used: 2,
        remaining: 99_998,
        days: [{ day: '2026-01-01', units: 2, operations: { verify: 2, createUpload: 2 } }],
      },
    ],
  });
