import { z } from 'zod';
import { meaningsOf } from '../../domain/reference/entry.js';
import { DECISION_REASON_MEANINGS, REPORT_REASON_MEANINGS } from '../../domain/reference/reasons.js';
import {
  CONTAINER_MEANINGS,
  COVERAGE_MEANINGS,
  CREDENTIAL_CARRIER_MEANINGS,
  INTEGRITY_MEANINGS,
  MATCH_MEANINGS,
  TRUST_MEANINGS,
} from '../../domain/reference/values.js';
import { ACTION_REFERENCE, STATUS_REFERENCE, VERDICT_REFERENCE } from '../../domain/reference/verdicts.js';
import {
  describedWords,
  identifierSchema,
  knownWords,
  sha256Schema,
  timestampSchema,
} from '../primitives.js';
import { evidenceCountsSchema, evidenceReportSchema } from './evidence-schemas.js';
import { legacyMembers } from './legacy-schemas.js';

/** Length in padded base64 of the largest sidecar, 1 MiB. */
export const MAX_SIDECAR_BASE64 = 4 * Math.ceil(1_048_576 / 3);

/** Body of a verification (rules 8.3 and 8.4). */
export const verifySchema = z
  .strictObject({
    uploadId: identifierSchema.meta({ description: 'Upload to verify, of the purpose `verify`.' }),
    sidecar: z
      .string()
      .max(MAX_SIDECAR_BASE64)
      .meta({
        description:
          'Legacy sidecar file in padded base64 (RFC 4648, section 4); omit for a one-file credentialed WAV.',
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
  description: 'Stable slug. Treat one that you do not know as its verdict says.',
});

const reportReasonSchema = describedWords(REPORT_REASON_MEANINGS).meta({
  id: 'CredentialReason',
  description: 'Stable slug of what failed in a credential, or of what is not checked in it.',
});

const decisionSchema = z
  .object({
    status: describedWords(meaningsOf(STATUS_REFERENCE)).meta({
      description:
        '`needs_review` is no failure of the credential: the evidence report asks for a human decision.',
    }),
    reasons: z
      .array(decisionReasonSchema)
      .meta({ description: 'Grounds of the verdict; the first one decided.' }),
    recommendedAction: describedWords(meaningsOf(ACTION_REFERENCE)).meta({
      description: 'Hint for automation.',
    }),
    credentialCarrier: describedWords(CREDENTIAL_CARRIER_MEANINGS).meta({
      description: 'What held the credential.',
    }),
    sourceDetailCoverage: describedWords(COVERAGE_MEANINGS).meta({
      description: 'How far source detail is delivered.',
    }),
    counts: evidenceCountsSchema,
  })
  .meta({ id: 'Decision', description: 'Policy-neutral: it never labels a track human or AI.' });

const audioSummarySchema = z
  .object({
    container: describedWords(CONTAINER_MEANINGS).meta({
      description: 'Container that the first bytes of the file announce.',
    }),
    sampleRate: z.int().meta({ description: 'Samples a second of each channel.' }).exactOptional(),
    channels: z.int().meta({ description: 'Channels.' }).exactOptional(),
    bitsPerSample: z.int().meta({ description: 'Bits of a sample.' }).exactOptional(),
    frames: z.int().meta({ description: 'Samples of one channel.' }).exactOptional(),
    durationSeconds: z.number().meta({ description: 'Length of the audio.' }).exactOptional(),
    bytes: z.int().min(0).meta({ description: 'Length of the file.' }),
    sha256: sha256Schema.meta({ description: 'SHA-256 of the whole file.' }),
  })
  .meta({
    id: 'AudioSummary',
    description:
      'Measurements of the uploaded file. Members of the format are absent where the file is no WAV or BWF.',
  });

const credentialReportSchema = z
  .object({
    format: knownWords(['c2pa']).meta({ description: 'Format of the credential.' }),
    issuer: z
      .string()
      .meta({ description: 'Organisation that the signing certificate names.' })
      .exactOptional(),
    device: z
      .string()
      .meta({ description: 'Name that the device of a local seal gives itself; nobody vouches for it.' })
      .exactOptional(),
    generator: z
      .string()
      .meta({ description: 'Program that made the claim, as it calls itself.' })
      .exactOptional(),
    algorithm: z.string().meta({ description: 'Algorithm of the signature.' }).exactOptional(),
    claimVersion: z.int().meta({ description: 'Version of the C2PA claim.' }).exactOptional(),
    manifestLabel: z.string().meta({ description: 'Label of the active manifest.' }).exactOptional(),
    integrity: describedWords(INTEGRITY_MEANINGS).meta({
      description: 'Outcome of checking signature and hashes.',
    }),
    trust: describedWords(TRUST_MEANINGS).meta({ description: 'Signer.' }),
    reasons: z
      .array(reportReasonSchema)
      .meta({ description: 'Slugs of what was found; empty where nothing was.' }),
  })
  .meta({
    id: 'EmbeddedCredential',
    description: 'Report of an embedded Content Credential: integrity and trust apart.',
  });

export const verificationSchema = z
  .object({
    verdict: describedWords(meaningsOf(VERDICT_REFERENCE)).meta({
      description:
        'Accept only when this is `valid` and `good` is true. A value you do not know is a failed verification.',
    }),
    good: z.boolean().meta({ description: 'True for an accepted result alone.' }),
    decision: decisionSchema.meta({ description: 'Grounds of the verdict, and what to do.' }),
    issuedAt: timestampSchema.meta({ description: 'Present with `valid` alone.' }).exactOptional(),
    proofId: identifierSchema
      .meta({ description: 'Present whenever a signature of the service was verified.' })
      .exactOptional(),
    verifiedAt: timestampSchema.meta({ description: 'Time of the judgement, in unix seconds.' }),
    audio: audioSummarySchema.meta({ description: 'Measurements of the uploaded file.' }),
    evidenceReport: evidenceReportSchema
      .meta({ description: 'Record of the production; it changes no verdict.' })
      .exactOptional(),
    ...legacyMembers,
    embeddedCredential: credentialReportSchema
      .meta({ description: 'The Content Credential that was found in the file.' })
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
          sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
        },
      },
    ],
  });

export const identifySchema = z
  .strictObject({
    uploadId: identifierSchema.meta({ description: 'Upload to identify, of the purpose `identify`.' }),
  })
  .meta({ id: 'Identify', examples: [{ uploadId: 'upl_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' }] });

export const identificationSchema = z
  .object({
    matches: z
      .array(
        z.object({
          proofId: identifierSchema.meta({ description: 'Proof that the file belongs to.' }),
          type: describedWords(MATCH_MEANINGS).meta({ description: 'Bytes that are the same.' }),
          confidence: z.number().min(0).max(1).meta({ description: 'From 0 to 1; 1 for a match by digest.' }),
        }),
      )
      .meta({ description: 'Matches, the surest first; empty where there is none.' }),
  })
  .meta({
    id: 'Identification',
    examples: [
      { matches: [{ proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', type: 'exact_file', confidence: 1 }] },
      { matches: [] },
    ],
  });
