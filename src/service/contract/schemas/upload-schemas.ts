import { z } from 'zod';
import { isLarge, MAX_LARGE_BYTES, MAX_UPLOAD_BYTES, UPLOAD_PURPOSES } from '../../domain/upload.js';
import { identifierSchema, sha256Schema, timestampSchema } from '../primitives.js';

export const purposeSchema = z.enum(UPLOAD_PURPOSES).meta({ id: 'UploadPurpose', examples: ['verify'] });

/** The bound of `contentLength` follows `purpose`, in the words of JSON Schema. The query may have the purpose instead. */
const LENGTH_OF_PURPOSE = [
  {
    if: { properties: { purpose: { enum: ['verify', 'identify'] } }, required: ['purpose'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { properties: { contentLength: { maximum: MAX_UPLOAD_BYTES } } },
  },
  {
    if: { properties: { purpose: { enum: ['verify_large', 'identify_large'] } }, required: ['purpose'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { required: ['contentLength'] },
  },
];

/** The body of the request for a slot (rule 7.1). */
export const createUploadSchema = z
  .strictObject({
    purpose: purposeSchema
      .meta({
        description:
          'Purpose of the upload. The default is `verify`. `verify_large` and `identify_large` are for files above 65 MiB.',
      })
      .exactOptional(),
    contentLength: z
      .int()
      .min(1)
      .max(MAX_LARGE_BYTES)
      .meta({
        description:
          'Exact length of the file, in bytes. The slot refuses a file of any other length. At most 68157440. `verify_large` and `identify_large` need it, and allow 2 GiB unless the operator has set another limit.',
      })
      .exactOptional(),
  })
  .check(({ value: { purpose, contentLength: input }, issues }) => {
    const path = ['contentLength'];
    // Then the query may have the purpose, and `createUpload` checks the length.
    if (purpose === undefined) return;
    if (isLarge(purpose)) {
      if (input === undefined) issues.push({ code: 'invalid_type', expected: 'number', path, input });
    } else if (input !== undefined && input > MAX_UPLOAD_BYTES)
      issues.push({ code: 'too_big', origin: 'number', maximum: MAX_UPLOAD_BYTES, path, input });
  })
  .meta({
    id: 'CreateUpload',
    allOf: LENGTH_OF_PURPOSE,
    examples: [
      { purpose: 'verify' },
      { purpose: 'verify', contentLength: 48_000_044 },
      { purpose: 'verify_large', contentLength: 1_382_400_044 },
      {},
    ],
  });

export const createUploadQuerySchema = z
  .strictObject({
    purpose: purposeSchema
      .meta({ description: 'Purpose of the upload, if the body does not give it.' })
      .exactOptional(),
  })
  .meta({ id: 'CreateUploadQuery', examples: [{ purpose: 'verify' }] });

export const uploadSlotSchema = z
  .object({
    uploadId: identifierSchema.meta({ description: 'Id of the upload. Pass it to `verify` or `identify`.' }),
    url: z.string().min(1).meta({
      description: 'Presigned URL. Posting to it needs no key, so keep it secret until it expires.',
    }),
    fields: z
      .record(z.string(), z.string())
      .meta({ description: 'Signed form fields. Send each entry as a form field, before the file.' }),
    maxBytes: z.int().min(1).meta({ description: 'Largest accepted file, in bytes.' }),
    units: z.int().min(1).meta({
      description:
        'Units of quota that the verify or the identify of the file will cost: one for each 65 MiB begun.',
    }),
    expiresAt: timestampSchema.meta({
      description: 'When the slot expires if it is not used, in unix seconds.',
    }),
  })
  .meta({
    id: 'UploadSlot',
    description: 'A short-lived address to post one audio file to.',
    examples: [
      {
        uploadId: 'upl_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        url: 'https://api.example.com/uploads/upl_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        fields: { policy: 'eyJ1cGxvYWRJZCI6Li4ufQ==', signature: 'b2ZmZXJlZCBhcyBhbiBleGFtcGxl' },
        maxBytes: MAX_UPLOAD_BYTES,
        units: 1,
        expiresAt: 1_767_226_500,
      },
    ],
  });

export const uploadParamsSchema = z
  .strictObject({ uploadId: identifierSchema.meta({ description: 'Id of the slot.' }) })
  .meta({ examples: [{ uploadId: 'upl_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' }] });

/** The stored upload (rule 7.6). */
export const storedUploadSchema = z
  .object({
    uploadId: identifierSchema.meta({ description: 'Id of the slot.' }),
    bytes: z.int().min(0).meta({ description: 'Length of the received file, in bytes.' }),
    sha256: sha256Schema.meta({ description: 'SHA-256 of the received file.' }),
  })
  .meta({
    id: 'StoredUpload',
    examples: [
      {
        uploadId: 'upl_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        bytes: 48_000_044,
        sha256: '2492654781ec4412cf22d1f3a2aabe38e478a25bd5de0d9fb9a3912a7ba628f2',
      },
    ],
  });
