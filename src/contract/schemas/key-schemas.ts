import { z } from 'zod';
import { SCOPES } from '../../domain/partner.js';
import { KEY_STATUS_MEANINGS } from '../../domain/reference/values.js';
import {
  countSchema,
  cursorSchema,
  describedWords,
  identifierSchema,
  knownWords,
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

/** Query of the list of keys (rule 4.14). */
export const listKeysQuerySchema = z
  .strictObject({
    limit: queryInteger(1, 100)
      .meta({
        format: 'int32',
        description: 'Entries a page holds at most. Without it and `cursor` the list is complete.',
      })
      .exactOptional(),
    cursor: cursorSchema.meta({ description: '`nextCursor` of the page before.' }).exactOptional(),
  })
  .meta({ id: 'ListKeysQuery', examples: [{}, { limit: 20 }] });

/** Metadata of a key, never a secret (rule 4.14). */
export const keyEntrySchema = z
  .object({
    keyId: identifierSchema.meta({ description: 'Id of the key; no secret.' }),
    name: z.string().meta({ description: 'Name that it was given.' }),
    status: describedWords(KEY_STATUS_MEANINGS).meta({
      description: 'State of the key.',
    }),
    scopes: z
      .array(knownWords(SCOPES))
      .meta({ description: 'Scopes of the key; an operation says in `x-scope` which one it needs.' }),
    plan: z.string().meta({ description: "The partner's plan." }),
    createdAt: timestampSchema.meta({ description: 'Time of its creation, in unix seconds.' }),
    expiresAt: timestampSchema
      .meta({ description: 'End of a key that was rotated, in unix seconds.' })
      .exactOptional(),
    lastUsedAt: timestampSchema
      .meta({ description: 'Time of its last use, in unix seconds, exact to a minute.' })
      .exactOptional(),
    signed: z
      .boolean()
      .meta({ description: 'True where calls with the key must be signed.' })
      .exactOptional(),
  })
  .meta({
    id: 'Key',
    examples: [KEY, { ...KEY, status: 'expiring', expiresAt: 1_767_484_800, lastUsedAt: 1_767_225_900 }],
  });

export const keyParamsSchema = z
  .object({ keyId: identifierSchema.meta({ description: 'Id of the key.' }) })
  .meta({ examples: [{ keyId: KEY.keyId }] });

export const keyPageSchema = z
  .object({
    keys: z.array(keyEntrySchema).meta({ description: 'Keys, oldest first.' }),
    nextCursor: cursorSchema
      .meta({ description: 'Cursor of the next page; absent on the last one.' })
      .exactOptional(),
  })
  .meta({ id: 'KeyPage', examples: [{ keys: [KEY] }, { keys: [KEY], nextCursor: 'b3BhcXVl' }] });

/**
 * The key of a rotation (rule 4.8): visible ASCII, the only characters that reach every reader of a header
 * unchanged.
 */
const idempotencyKeySchema = z
  .string()
  .min(16)
  .max(128)
  .regex(/^[\x21-\x7e]+$/, 'must be visible ASCII without spaces')
  .meta({
    description: '16 to 128 visible ASCII characters; a UUID is suggested.',
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
      .meta({ description: 'The new secret, visible only in this response and its idempotent replay.' }),
    keyId: identifierSchema.meta({ description: 'Id of the new key.' }),
    name: z.string().meta({ description: 'Name, as of the calling key.' }),
    previousKeyExpiresAt: timestampSchema.meta({
      description: 'When the calling key stops working: 72 hours after rotation.',
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

/** Query of the usage (rule 6.11). */
export const usageQuerySchema = z
  .strictObject({
    days: queryInteger(1, 92).default(30).meta({ description: 'How many UTC days back, today included.' }),
  })
  .meta({ id: 'UsageQuery', examples: [{ days: 1 }, {}] });

export const usageSchema = z
  .object({
    plan: z.string().meta({ description: "The partner's plan." }),
    period: z
      .object({
        start: timestampSchema.meta({ description: 'First second, unix.' }),
        end: timestampSchema.meta({ description: 'First second of the next one, unix.' }),
      })
      .meta({ description: 'The UTC calendar month that the quota holds for.' }),
    limit: countSchema.meta({ description: 'Units of the month.' }),
    used: countSchema.meta({ description: 'Units that are spent.' }),
    remaining: countSchema.meta({ description: 'Units that are left.' }),
    days: z
      .array(
        z.object({
          day: z
            .string()
            .regex(/^\d{4}-\d{2}-\d{2}$/)
            .meta({ description: 'Day in UTC, as 2026-01-31.' }),
          units: countSchema.meta({ description: 'Units that counted against the quota.' }),
          operations: z
            .record(z.string(), countSchema)
            .meta({ description: 'Calls by operation, free ones included.' }),
        }),
      )
      .meta({ description: 'Days, today last; without use they are zeros.' }),
  })
  .meta({
    id: 'Usage',
    examples: [
      {
        plan: 'standard',
        period: { start: 1_767_225_600, end: 1_769_904_000 },
        limit: 100_000,
        used: 2,
        remaining: 99_998,
        days: [{ day: '2026-01-01', units: 2, operations: { verify: 2, createUpload: 2 } }],
      },
    ],
  });
