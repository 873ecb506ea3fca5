import { z } from 'zod';
import { LEGACY_LIMITS } from '../../domain/legacy-proof.js';
import {
  identifierSchema,
  knownWords,
  legacyTextSchema,
  sha256Schema,
  timestampSchema,
} from '../primitives.js';

const DIGEST = '2492654781ec4412cf22d1f3a2aabe38e478a25bd5de0d9fb9a3912a7ba628f2';
const MEANING =
  'Value that an imported proof had in its earlier registry, kept for compatibility. It does not state a share of authorship or work.';

/** The values that an imported proof keeps (rule 9.28). */
export const legacyMembers = {
  classification: z.string().meta({ description: MEANING }).exactOptional(),
  grade: z.string().meta({ description: MEANING }).exactOptional(),
  interpretation: z.string().meta({ description: MEANING }).exactOptional(),
};

/** The schema of a proof from an earlier registry (rule 9.28). */
export const importLegacySchema = z
  .strictObject({
    proofId: identifierSchema.meta({
      description: 'Id of the proof in the earlier registry. The proof keeps this id.',
    }),
    partnerId: identifierSchema.meta({ description: 'Id of the partner that will own the proof.' }),
    createdAt: timestampSchema.meta({ description: 'Issue time, in unix seconds.' }),
    kid: sha256Schema.meta({ description: "SHA-256 of the signer's certificate (DER)." }),
    carrier: z
      .enum(['embedded', 'sidecar'])
      .meta({ description: 'Where the credential is: in the file, or in a separate sidecar.' }),
    song: z
      .strictObject({ title: legacyTextSchema(500).meta({ description: 'Title of the song.' }) })
      .meta({ description: 'Song of the proof.' }),
    originalSha256: sha256Schema.meta({
      description: 'SHA-256 of the file before its credential was added.',
    }),
    boundAudioSha256: sha256Schema.meta({ description: 'SHA-256 of the audio that the proof is bound to.' }),
    credentialSha256: sha256Schema.meta({
      description: 'SHA-256 of the credential chunk including its header, or of the sidecar.',
    }),
    asset: z
      .strictObject({
        bytes: z.int().min(1).meta({ description: 'Size in bytes.' }),
        sha256: sha256Schema.meta({ description: 'SHA-256 of the file.' }),
        fileName: legacyTextSchema(255).meta({ description: 'Name of the file.' }),
        mediaType: z
          .string()
          .max(100)
          .regex(/^[a-z]+\/[a-z0-9][a-z0-9.+-]*$/, 'must be a media type')
          .meta({ description: 'Media type of the file.' }),
      })
      .meta({ description: 'Description of the delivered file. The file itself is not imported.' }),
    classification: legacyTextSchema(LEGACY_LIMITS.classification)
      .meta({ description: MEANING })
      .exactOptional(),
    grade: legacyTextSchema(LEGACY_LIMITS.grade).meta({ description: MEANING }).exactOptional(),
    interpretation: legacyTextSchema(LEGACY_LIMITS.interpretation)
      .meta({ description: MEANING })
      .exactOptional(),
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
  .object({
    proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
    outcome: knownWords(['imported', 'already_imported']).meta({
      description: '`imported`: this call imported the proof. `already_imported`: an earlier call did.',
    }),
  })
  .meta({ id: 'ImportedLegacy', examples: [{ proofId: 'tpf_2024-000117', outcome: 'imported' }] });
