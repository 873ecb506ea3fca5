import { z } from 'zod';
import { SCOPES } from '../domain/partner.js';
import { identifierSchema, nameSchema, sha256Schema, timestampSchema } from './identifier.js';

export const createPartnerSchema = z
  .strictObject({ name: nameSchema(200), plan: nameSchema(64).exactOptional() })
  .meta({ id: 'CreatePartner', examples: [{ name: 'Nordlicht Distribution' }, { name: 'Nordlicht Distribution', plan: 'volume' }] });

export const partnerSchema = z
  .object({ partnerId: identifierSchema, name: z.string(), plan: z.string(), createdAt: timestampSchema })
  .meta({
    id: 'Partner',
    examples: [{ partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', name: 'Nordlicht Distribution', plan: 'standard', createdAt: 1_767_225_600 }],
  });

export const partnerParamsSchema = z.strictObject({ partnerId: identifierSchema }).meta({ examples: [{ partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' }] });

export const createKeySchema = z
  .strictObject({
    name: nameSchema(200),
    scopes: z.array(z.enum(SCOPES)).min(1).max(SCOPES.length).exactOptional(),
  })
  .meta({ id: 'CreateKey', examples: [{ name: 'ingest' }, { name: 'screening', scopes: ['verify'] }] });

export const createdKeySchema = z
  .object({ keyId: identifierSchema, apiKey: z.string().min(1), name: z.string() })
  .meta({ id: 'CreatedKey', examples: [{ keyId: 'key_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', apiKey: '<API_KEY>', name: 'ingest' }] });

/** The audio is the body, so what belongs to it stands in the query: a header could not carry a title in every script. */
export const issueQuerySchema = z
  .strictObject({
    partnerId: identifierSchema,
    song: nameSchema(500),
    fileName: nameSchema(255),
    carrier: z.enum(['embedded', 'sidecar']).default('embedded'),
  })
  .meta({ id: 'IssueQuery', examples: [{ partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', song: 'Morgenröte', fileName: 'morgenröte.wav', carrier: 'embedded' }] });

/** "`Idempotency-Key` length 16 to 128 characters". */
export const idempotencyHeadersSchema = z
  .object({ 'idempotency-key': z.string().regex(/^[\x21-\x7e]{16,128}$/).exactOptional() })
  .meta({ examples: [{ 'idempotency-key': '0b6f6c9e-9d0a-4b53-8f0e-0c5f0f3f1d2a' }] });

export const issuedProofSchema = z
  .object({
    proofId: identifierSchema,
    issuedAt: timestampSchema,
    carrier: z.enum(['embedded', 'sidecar']),
    originalSha256: sha256Schema,
    boundAudioSha256: sha256Schema,
    asset: z.object({ bytes: z.int().min(0), sha256: sha256Schema, fileName: z.string(), mediaType: z.string() }),
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

export const proofParamsSchema = z.strictObject({ proofId: identifierSchema }).meta({ examples: [{ proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' }] });

export const assetQuerySchema = z
  .strictObject({ part: z.enum(['audio', 'sidecar']).default('audio') })
  .meta({ id: 'AssetQuery', examples: [{ part: 'sidecar' }, {}] });
