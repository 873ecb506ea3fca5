import { z } from 'zod';
import { meaningsOf } from '../../../core/domain/reference/entry.js';
import {
  DECISION_REASON_MEANINGS,
  REPORT_REASON_MEANINGS,
  SAMPLES_REASON_MEANINGS,
} from '../../../core/domain/reference/reasons.js';
import {
  ACTION_REFERENCE,
  STATUS_REFERENCE,
  VERDICT_REFERENCE,
} from '../../../core/domain/reference/verdicts.js';
import {
  CONTAINER_MEANINGS,
  COVERAGE_MEANINGS,
  CREDENTIAL_CARRIER_MEANINGS,
  INTEGRITY_MEANINGS,
  MATCH_MEANINGS,
  TRUST_MEANINGS,
} from '../../domain/reference/values.js';
import { MAX_SIDECAR_BYTES } from '../../domain/upload.js';
import {
  describedWords,
  identifierSchema,
  knownWords,
  sha256Schema,
  timestampSchema,
} from '../primitives.js';
import { evidenceCountsSchema, evidenceReportSchema } from './evidence-schemas.js';
import { legacyMembers } from './legacy-schemas.js';

/**
 * The length of the largest sidecar in padded base64, in characters. Even with its slashes escaped, the largest
 * one fits into a body (rule 2.10).
 */
const MAX_SIDECAR_BASE64 = 4 * Math.ceil(MAX_SIDECAR_BYTES / 3);

/** The body of a verification (rules 8.3 and 8.4). */
export const verifySchema = z
  .strictObject({
    uploadId: identifierSchema.meta({
      description: 'Upload to verify. Its purpose must be `verify` or `verify_large`.',
    }),
    sidecar: z
      .string()
      .max(MAX_SIDECAR_BASE64)
      .meta({
        description:
          'Legacy sidecar file in padded base64 (RFC 4648, section 4). Omit it for a WAV file that contains its credential.',
        contentEncoding: 'base64',
      })
      .exactOptional(),
  })
  .meta({
    id: 'Verify',
    examples: [
      { uploadId: 'upl_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' },
      { uploadId: 'upl_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', sidecar: 'hKFh' },
    ],
  });

const decisionReasonSchema = describedWords(DECISION_REASON_MEANINGS).meta({
  id: 'DecisionReason',
  description: 'Stable slug. If you do not know a reason, act on the verdict.',
});

const reportReasonSchema = describedWords(REPORT_REASON_MEANINGS).meta({
  id: 'CredentialReason',
  description: 'Stable slug that states what failed, or what was not checked, in a credential.',
});

const decisionSchema = z
  .object({
    status: describedWords(meaningsOf(STATUS_REFERENCE)).meta({
      description:
        'Outcome of the decision. `needs_review` is not a failure of the credential: the evidence report needs a human decision.',
    }),
    reasons: z
      .array(decisionReasonSchema)
      .meta({ description: 'Reasons for the verdict. The first reason decided it.' }),
    recommendedAction: describedWords(meaningsOf(ACTION_REFERENCE)).meta({
      description: 'What an automated caller should do.',
    }),
    credentialCarrier: describedWords(CREDENTIAL_CARRIER_MEANINGS).meta({
      description: 'Where the service found the credential.',
    }),
    sourceDetailCoverage: describedWords(COVERAGE_MEANINGS).meta({
      description: 'How much of the source detail the evidence report contains.',
    }),
    counts: evidenceCountsSchema,
  })
  .meta({
    id: 'Decision',
    description: 'The decision. It is policy-neutral and never labels a track human or AI.',
  });

const audioSummarySchema = z
  .object({
    container: describedWords(CONTAINER_MEANINGS).meta({
      description: 'Container format, detected from the first bytes of the file.',
    }),
    sampleRate: z.int().meta({ description: 'Sample rate, in Hz.' }).exactOptional(),
    channels: z.int().meta({ description: 'Number of channels.' }).exactOptional(),
    bitsPerSample: z.int().meta({ description: 'Number of bits per sample.' }).exactOptional(),
    frames: z.int().meta({ description: 'Number of samples per channel.' }).exactOptional(),
    durationSeconds: z.number().meta({ description: 'Length of the audio, in seconds.' }).exactOptional(),
    bytes: z.int().min(0).meta({ description: 'Length of the file, in bytes.' }),
    sha256: sha256Schema.meta({ description: 'SHA-256 of the whole file.' }),
  })
  .meta({
    id: 'AudioSummary',
    description:
      'Measurements of the uploaded file. Sample rate, channels, bits, frames and duration are absent if the file is not WAV or BWF.',
  });

const credentialReportSchema = z
  .object({
    format: knownWords(['c2pa']).meta({ description: 'Format of the credential.' }),
    issuer: z
      .string()
      .meta({ description: 'Organisation named in the signing certificate.' })
      .exactOptional(),
    device: z
      .string()
      .meta({
        description:
          'Name that the device gave itself, if a device sealed the file. The name is not verified.',
      })
      .exactOptional(),
    generator: z
      .string()
      .meta({ description: 'Name that the program which made the claim gave itself.' })
      .exactOptional(),
    algorithm: z.string().meta({ description: 'Algorithm of the signature.' }).exactOptional(),
    claimVersion: z.int().meta({ description: 'Version of the C2PA claim.' }).exactOptional(),
    manifestLabel: z.string().meta({ description: 'Label of the active manifest.' }).exactOptional(),
    integrity: describedWords(INTEGRITY_MEANINGS).meta({
      description: 'Result of checking the signature and the hashes.',
    }),
    trust: describedWords(TRUST_MEANINGS).meta({ description: 'Who signed the credential.' }),
    reasons: z
      .array(reportReasonSchema)
      .meta({ description: 'Reasons why a check failed, or was not made. Empty if every check passed.' }),
  })
  .meta({
    id: 'EmbeddedCredential',
    description:
      'Report on a Content Credential in the uploaded file. `integrity` and `trust` are independent results.',
  });

export const verificationSchema = z
  .object({
    verdict: describedWords(meaningsOf(VERDICT_REFERENCE)).meta({
      description:
        'Verdict on the file. Accept the file only if the verdict is `valid` and `good` is true. Treat a verdict that you do not know as a failed verification.',
    }),
    good: z.boolean().meta({ description: 'True only if the verdict is `valid`.' }),
    decision: decisionSchema.meta({
      description: 'Reasons for the verdict, and the action that is recommended to the caller.',
    }),
    issuedAt: timestampSchema
      .meta({
        description: 'When the proof was issued, in unix seconds. Present only if the verdict is `valid`.',
      })
      .exactOptional(),
    proofId: identifierSchema
      .meta({
        description:
          'Id of the proof. Present if the judged credential is intact and was made by this service.',
      })
      .exactOptional(),
    verifiedAt: timestampSchema.meta({ description: 'Time of the verification, in unix seconds.' }),
    audio: audioSummarySchema.meta({ description: 'Properties of the uploaded audio file.' }),
    evidenceReport: evidenceReportSchema
      .meta({ description: 'Record of the production. It never changes the verdict.' })
      .exactOptional(),
    ...legacyMembers,
    embeddedCredential: credentialReportSchema
      .meta({ description: 'Report on the Content Credential found in the file.' })
      .exactOptional(),
  })
  .meta({
    id: 'Verification',
    examples: [
      {
        verdict: 'valid',
        good: true,
        issuedAt: 1_767_225_600,
        proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        verifiedAt: 1_767_229_200,
        decision: {
          status: 'verified_binding',
          reasons: ['credential_verified'],
          recommendedAction: 'accept_credential',
          credentialCarrier: 'embedded',
          sourceDetailCoverage: 'none',
          counts: { declarations: 0, conflicts: 0, unverifiable: 0 },
        },
        audio: {
          container: 'riff',
          sampleRate: 48_000,
          channels: 2,
          bitsPerSample: 24,
          frames: 480_000,
          durationSeconds: 10,
          bytes: 2_884_096,
          sha256: '2492654781ec4412cf22d1f3a2aabe38e478a25bd5de0d9fb9a3912a7ba628f2',
        },
      },
    ],
  });

/** The most digests of one call (rule 13.6). */
const MAX_DIGESTS = 1000;
const DIGEST = '2492654781ec4412cf22d1f3a2aabe38e478a25bd5de0d9fb9a3912a7ba628f2';

export const identifyUploadSchema = z
  .strictObject({
    uploadId: identifierSchema.meta({
      description: 'Upload to identify. Its purpose must be `identify` or `identify_large`.',
    }),
  })
  .meta({ id: 'Identify', examples: [{ uploadId: 'upl_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' }] });

export const identifyDigestsSchema = z
  .strictObject({
    digests: z
      .array(
        z.strictObject({
          sha256: sha256Schema.meta({ description: 'SHA-256 digest to look for, in lower-case hex.' }),
          of: z
            .enum(['file', 'bound', 'samples'])
            .meta({
              description:
                'What the digest was computed of: the whole `file`, what a proof of it is `bound` to, or its `samples`. Without it, the digest may be any of them.',
            })
            .exactOptional(),
        }),
      )
      .min(1)
      .max(MAX_DIGESTS)
      .meta({ description: 'Digests of files that you do not send. A digest may occur several times.' }),
  })
  .meta({ id: 'IdentifyDigests', examples: [{ digests: [{ sha256: DIGEST, of: 'file' }] }] });

/**
 * The body of an identify (rules 13.1 and 13.6). The document has `anyOf` for it: a Go client that openapi-generator
 * makes refuses every value of a `oneOf` whose forms have patterns with a comma.
 */
export const identifySchema = z
  .union([identifyUploadSchema, identifyDigestsSchema])
  .meta({ examples: [...examplesOf(identifyUploadSchema), ...examplesOf(identifyDigestsSchema)] });

const matchSchema = z.object({
  proofId: identifierSchema.meta({ description: 'Id of the matching proof.' }),
  type: describedWords(MATCH_MEANINGS).meta({ description: 'What matches.' }),
  confidence: z
    .number()
    .min(0)
    .max(1)
    .meta({ description: 'Confidence from 0 to 1. If the digests are equal, it is 1.' }),
});
const MATCHES = { description: 'At most 100 matches, strongest first. Empty if there are none.' };
const matchesSchema = z.array(matchSchema).meta(MATCHES);
const uploadMatchesSchema = z
  .array(
    matchSchema.extend({
      unreadableBecause: z
        .array(decisionReasonSchema)
        .meta({
          description:
            'Reasons for which a verify of the upload is `unreadable`. Present only for the owner of a proof with the match `same_samples`: something outside the samples changed.',
        })
        .exactOptional(),
    }),
  )
  .meta(MATCHES);

const uploadIdentificationSchema = z
  .object({
    matches: uploadMatchesSchema,
    samples: sha256Schema
      .nullable()
      .meta({ description: 'Samples digest of the upload. It is null if the file has none.' })
      .exactOptional(),
    samplesReason: describedWords(SAMPLES_REASON_MEANINGS)
      .meta({ description: 'Why the file has no samples digest. Present only if `samples` is null.' })
      .exactOptional(),
  })
  .meta({
    id: 'Identification',
    examples: [
      {
        matches: [{ proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', type: 'exact_file', confidence: 1 }],
        samples: DIGEST,
      },
      { matches: [], samples: null, samplesReason: 'encoding_unsupported' },
    ],
  });

const digestsIdentificationSchema = z
  .object({
    results: z
      .array(
        z.object({
          sha256: sha256Schema.meta({ description: 'Digest that was looked for.' }),
          matches: matchesSchema,
        }),
      )
      .meta({ description: 'One result for each digest, in the order of the request.' }),
  })
  .meta({
    id: 'DigestsIdentification',
    examples: [
      {
        results: [
          {
            sha256: DIGEST,
            matches: [{ proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', type: 'exact_file', confidence: 1 }],
          },
        ],
      },
    ],
  });

/** The response has the form of the request: for an upload, or for digests. */
export const identificationSchema = z.union([uploadIdentificationSchema, digestsIdentificationSchema]).meta({
  examples: [...examplesOf(uploadIdentificationSchema), ...examplesOf(digestsIdentificationSchema)],
});

function examplesOf(schema: z.ZodType): readonly unknown[] {
  return (schema.meta() as { readonly examples: readonly unknown[] }).examples;
}
