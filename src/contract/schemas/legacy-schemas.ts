import { z } from 'zod';
import { LEGACY_LIMITS } from '../../domain/legacy-proof.js';
import { identifierSchema, knownWords, nameSchema, sha256Schema, timestampSchema } from '../primitives.js';

const DIGEST = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const MEANING = 'Compatibility data of an older proof, and no share of authorship or work.';

/** Values of proofs that were imported (rule 9.28). */
export const legacyMembers = {
  classification: z.string().meta({ description: MEANING }).exactOptional(),
  grade: z.string().meta({ description: MEANING }).exactOptional(),
  interpretation: z.string().meta({ description: MEANING }).exactOptional(),
};

/** A proof of an earlier registry (rule 9.28). */
export const importLegacySchema = z
  .strictObject({
    proofId: identifierSchema,
    partnerId: identifierSchema,
    createdAt: timestampSchema,
    kid: sha256Schema.meta({ description: "SHA-256 of the signer's certificate." }),
    carrier: z.enum(['embedded', 'sidecar']),
    song: z.strictObject({ title: nameSchema(500) }),
    originalSha256: sha256Schema,
    boundAudioSha256: sha256Schema,
    credentialSha256: sha256Schema.meta({
      description: 'Digest of the credential chunk with its header, or of the sidecar.',
    }),
    asset: z
      .strictObject({
        bytes: z.int().min(1),
        sha256: sha256Schema,
        fileName: nameSchema(255),
        mediaType: z
          .string()
          .max(100)
          .regex(/^[a-z]+\/[a-z0-9][a-z0-9.+-]*$/, 'must be a media type'),
      })
      .meta({ description: 'What was delivered. The file itself is not imported.' }),
    classification: nameSchema(LEGACY_LIMITS.classification).exactOptional(),
    grade: nameSchema(LEGACY_LIMITS.grade).exactOptional(),
    interpretation: nameSchema(LEGACY_LIMITS.interpretation).exactOptional(),
  })
  .meta({
    id: 'ImportLegacy',
    examples: [
      {
        proofId: 'tpf_2024-000117',
        partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        createdAt: 1_718_000_000,
        kid: DIGEST,
        carrier: 'embedded',
        song: { title: 'Morgenröte' },
        originalSha256: DIGEST,
        boundAudioSha256: DIGEST,
        credentialSha256: DIGEST,
        asset: { bytes: 2_884_096, sha256: DIGEST, fileName: 'morgenröte.wav', mediaType: 'audio/wav' },
        classification: 'studio',
        grade: 'B',
      },
    ],
  });

export const importedLegacySchema = z
  .object({ proofId: identifierSchema, outcome: knownWords(['imported', 'already_imported']) })
  .meta({ id: 'ImportedLegacy', examples: [{ proofId: 'tpf_2024-000117', outcome: 'imported' }] });
