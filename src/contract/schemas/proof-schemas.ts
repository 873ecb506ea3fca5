import { z } from 'zod';
import { CARRIER_MEANINGS } from '../../domain/reference/values.js';
import {
  cursorSchema,
  describedWords,
  identifierSchema,
  knownWords,
  queryInteger,
  sha256Schema,
  timestampSchema,
} from '../primitives.js';
import { evidenceReportSchema, evidenceSummarySchema } from './evidence-schemas.js';
import { legacyMembers } from './legacy-schemas.js';

/** The last second that ten digits can write. */
const LAST_SECOND = 9_999_999_999;
const DIGEST = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const ENTRY = {
  proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
  issuedAt: 1_767_225_600,
  song: { title: 'Morgenröte' },
  carrier: 'embedded',
  boundAudioSha256: DIGEST,
};

export const proofParamsSchema = z
  .strictObject({ proofId: identifierSchema.meta({ description: 'Id of the proof.' }) })
  .meta({ examples: [{ proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' }] });

/** Query of the list of proofs (rule 11.4). */
export const listProofsQuerySchema = z
  .strictObject({
    limit: queryInteger(1, 100).meta({ description: 'Entries a page holds at most.' }).exactOptional(),
    cursor: cursorSchema.meta({ description: '`nextCursor` of the page before.' }).exactOptional(),
    issuedAfter: queryInteger(0, LAST_SECOND)
      .meta({ description: 'Unix seconds, inclusive.' })
      .exactOptional(),
    issuedBefore: queryInteger(0, LAST_SECOND)
      .meta({ description: 'Unix seconds, inclusive.' })
      .exactOptional(),
    include: z
      .enum(['evidenceReport'])
      .meta({
        description:
          'Adds the whole report to each entry. Pages are shorter then: 20 entries at most, fewer where reports are large.',
      })
      .exactOptional(),
  })
  .meta({
    id: 'ListProofsQuery',
    examples: [{}, { limit: 20, issuedAfter: 1_767_225_600 }, { include: 'evidenceReport' }],
  });

const songSchema = z
  .object({ title: z.string().meta({ description: 'Title as it was issued.' }) })
  .meta({ description: 'The song, as the issuing side named it.' });

const proofEntry = {
  proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
  issuedAt: timestampSchema.meta({ description: 'Time of issue, in unix seconds.' }),
  song: songSchema,
  carrier: describedWords(CARRIER_MEANINGS).meta({ description: 'Carrier of the credential.' }),
  boundAudioSha256: sha256Schema.meta({
    description: 'Hard-binding digest of an embedded credential; digest of the whole file of a pair.',
  }),
};

/** A process note (rule 9.17). */
export const processNoteSchema = z
  .object({
    policyVersion: z
      .string()
      .meta({ description: 'Fixed policy of presentation: one report and one policy give one note.' })
      .exactOptional(),
    lines: z
      .array(
        z.object({
          code: z.string().meta({ description: 'Stable slug of what the line is about.' }),
          text: z.string().meta({ description: 'A sentence.' }),
        }),
      )
      .meta({ description: 'Report-only; what was not watched is named as that.' })
      .exactOptional(),
  })
  .meta({
    id: 'ProcessNote',
    examples: [
      {
        policyVersion: '1',
        lines: [{ code: 'no_session', text: 'No session was witnessed for this recording.' }],
      },
    ],
  });

const reports = {
  evidenceReport: evidenceReportSchema
    .meta({ description: 'Record of the production; it changes no verdict.' })
    .exactOptional(),
  processNote: processNoteSchema.meta({ description: 'Summary of the report in sentences.' }).exactOptional(),
};

export const proofEntrySchema = z
  .object({
    ...proofEntry,
    evidenceSummary: evidenceSummarySchema
      .meta({ description: 'Short form of the report; absent where there is no report.' })
      .exactOptional(),
    evidenceReport: evidenceReportSchema
      .meta({ description: 'Where the call asks for it with `include=evidenceReport`.' })
      .exactOptional(),
  })
  .meta({ id: 'ProofEntry', examples: [ENTRY] });

export const proofPageSchema = z
  .object({
    proofs: z.array(proofEntrySchema).meta({ description: 'Entries of the page, newest first.' }),
    nextCursor: cursorSchema
      .meta({ description: 'Cursor of the next page; absent on the last one.' })
      .exactOptional(),
  })
  .meta({ id: 'ProofPage', examples: [{ proofs: [ENTRY] }, { proofs: [ENTRY], nextCursor: 'b3BhcXVl' }] });

/** A proof (rule 11.5); `issuedAt` equals `createdAt` (rule 8.17). */
export const proofDocumentSchema = z
  .object({
    ...proofEntry,
    createdAt: timestampSchema.meta({ description: 'The same as `issuedAt`.' }),
    originalSha256: sha256Schema.meta({ description: 'SHA-256 of the file as it came to be issued.' }),
    ...reports,
    ...legacyMembers,
  })
  .meta({ id: 'ProofDocument', examples: [{ ...ENTRY, createdAt: ENTRY.issuedAt, originalSha256: DIGEST }] });

export const erasureSchema = z
  .object({
    proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
    outcome: knownWords(['erased', 'already_erased']).meta({
      description: '`already_erased`: by an earlier call.',
    }),
    erasedAt: timestampSchema.meta({ description: 'Time of the first erasure, in unix seconds.' }),
  })
  .meta({
    id: 'Erasure',
    examples: [
      { proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', outcome: 'erased', erasedAt: 1_767_312_000 },
      { proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', outcome: 'already_erased', erasedAt: 1_767_312_000 },
    ],
  });

/** The record of a proof (rule 11.6). */
export const proofRecordSchema = z
  .object({
    proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
    song: songSchema,
    issuedAt: timestampSchema.meta({ description: 'Time of issue, in unix seconds.' }),
    boundAudioSha256: sha256Schema.meta({ description: 'Digest of the audio that the proof is bound to.' }),
    ...reports,
    delivery: z
      .object({
        carrier: describedWords(CARRIER_MEANINGS).meta({ description: 'Carrier of the credential.' }),
        bytes: z.int().min(0).meta({ description: 'Length of the delivered audio file.' }),
        sha256: sha256Schema.meta({ description: 'SHA-256 of the delivered audio file.' }),
        mediaType: z.string().meta({ description: 'Its media type.' }),
        fileName: z.string().meta({ description: 'A safe name for it.' }),
      })
      .meta({ description: 'Delivery of the credentialed file.' }),
  })
  .meta({
    id: 'ProofRecord',
    description: 'Registered record behind a proof. It does not say that any file matches.',
    examples: [
      {
        proofId: ENTRY.proofId,
        song: ENTRY.song,
        issuedAt: ENTRY.issuedAt,
        boundAudioSha256: DIGEST,
        delivery: {
          carrier: 'embedded',
          bytes: 2_884_096,
          sha256: DIGEST,
          mediaType: 'audio/wav',
          fileName: 'morgenröte.wav',
        },
      },
    ],
  });

export const assetQuerySchema = z
  .strictObject({
    part: z.enum(['audio', 'sidecar']).default('audio').meta({ description: 'Which file of a pair.' }),
  })
  .meta({ id: 'AssetQuery', examples: [{ part: 'sidecar' }, {}] });

/**
 * Request headers of an asset. A precondition or range that is not understood is ignored (RFC 9110), so no
 * shape is demanded.
 */
export const assetHeadersSchema = z
  .object({
    range: z
      .string()
      .meta({ description: 'A range of bytes; several are answered with the whole file.' })
      .exactOptional(),
    'if-range': z
      .string()
      .meta({ description: 'The range counts only while this is the ETag.' })
      .exactOptional(),
    'if-match': z.string().meta({ description: '412 where it does not hold the ETag.' }).exactOptional(),
    'if-none-match': z.string().meta({ description: '304 where it holds the ETag.' }).exactOptional(),
  })
  .meta({ examples: [{}, { range: 'bytes=0-1023' }] });
