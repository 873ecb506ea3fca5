import { z } from 'zod';
import { CARRIER_MEANINGS } from '../../domain/reference/values.js';
import {
  cursorSchema,
  describedWords,
  identifierSchema,
  knownWords,
  queryInteger,
  queryTime,
  sha256Schema,
  timestampSchema,
} from '../primitives.js';
import { evidenceReportSchema, evidenceSummarySchema } from './evidence-schemas.js';
import { legacyMembers } from './legacy-schemas.js';

const DIGEST = '2492654781ec4412cf22d1f3a2aabe38e478a25bd5de0d9fb9a3912a7ba628f2';
const ENTRY = {
  proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
  issuedAt: 1_767_225_600,
  song: { title: 'Morgenröte' },
  carrier: 'embedded',
  boundAudioSha256: DIGEST,
};

const DECLARED_SONG = { artist: 'Ada Beispiel', release: 'Frühe Züge', isrc: 'DEA122600001' };
const DELIVERY = {
  carrier: 'embedded',
  bytes: 2_884_096,
  sha256: DIGEST,
  mediaType: 'audio/wav',
  fileName: 'morgenröte.wav',
};

export const proofParamsSchema = z
  .strictObject({ proofId: identifierSchema.meta({ description: 'Id of the proof.' }) })
  .meta({ examples: [{ proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' }] });

/** The query of the list of proofs (rule 11.4). */
export const listProofsQuerySchema = z
  .strictObject({
    limit: queryInteger(1, 100).meta({ description: 'Maximum number of entries per page.' }).exactOptional(),
    cursor: cursorSchema.meta({ description: '`nextCursor` of the previous page.' }).exactOptional(),
    issuedAfter: queryTime('up')
      .meta({
        description:
          'Earliest issue time to include: unix seconds, or a date and time of RFC 3339 such as `2026-01-31T12:00:00Z`.',
      })
      .exactOptional(),
    issuedBefore: queryTime('down')
      .meta({
        description: 'Latest issue time to include: unix seconds, or a date and time of RFC 3339.',
      })
      .exactOptional(),
    include: z
      .enum(['evidenceReport'])
      .meta({
        description:
          'Adds the whole report to each entry. A page then has at most 20 entries, and fewer if the reports are large.',
      })
      .exactOptional(),
  })
  .meta({
    id: 'ListProofsQuery',
    examples: [{}, { limit: 20, issuedAfter: 1_767_225_600 }, { include: 'evidenceReport' }],
  });

const songTitle = { title: z.string().meta({ description: 'Title of the song.' }) };
const listedSongSchema = z
  .object(songTitle)
  .meta({ description: 'The song, as named when the proof was issued.' });
const songSchema = z
  .object({
    ...songTitle,
    declared: z
      .object({
        artist: z.string().meta({ description: 'Artist of the song.' }).exactOptional(),
        release: z.string().meta({ description: 'Release that contains the song.' }).exactOptional(),
        isrc: z
          .string()
          .meta({ description: 'International Standard Recording Code, without hyphens.' })
          .exactOptional(),
      })
      .meta({
        description:
          'What the issuing side declared about the song. The service did not check it. Absent if nothing was declared.',
      })
      .exactOptional(),
  })
  .meta({ description: 'The song, as named when the proof was issued.' });

const issuerSchema = z
  .string()
  .meta({
    description:
      'Name of the service when it issued the proof. Absent for proofs of versions that stored no name.',
  })
  .exactOptional();

/** The schema of rule 10.21. */
export const uploadPurposeSchema = knownWords(['verify_large'])
  .meta({
    description:
      '`verify_large` if the file exceeds 65 MiB: verifying it needs an upload slot of this purpose. Otherwise absent.',
  })
  .exactOptional();

const deliverySchema = z
  .object({
    carrier: describedWords(CARRIER_MEANINGS).meta({ description: 'Where the credential is stored.' }),
    bytes: z.int().min(0).meta({ description: 'Length of the delivered audio file, in bytes.' }),
    sha256: sha256Schema.meta({ description: 'SHA-256 of the delivered audio file.' }),
    mediaType: z.string().meta({ description: 'Media type of the delivered audio file.' }),
    fileName: z.string().meta({ description: 'File name that is safe on every file system.' }),
    uploadPurpose: uploadPurposeSchema,
  })
  .meta({ description: 'The delivered audio file, and where its credential is stored.' });

/** The schema of the mark of rule 10.18. */
export const unknownContainerSchema = z
  .boolean()
  .meta({
    description:
      'True if the service does not know the container format of the audio, and otherwise absent. The operator who issued the proof stated that the file is audio.',
  })
  .exactOptional();

const proofEntry = {
  proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
  issuedAt: timestampSchema.meta({ description: 'Time of issue, in unix seconds.' }),
  song: listedSongSchema,
  carrier: describedWords(CARRIER_MEANINGS).meta({ description: 'Where the credential is stored.' }),
  boundAudioSha256: sha256Schema.meta({
    description:
      'SHA-256 of the bound audio. For an embedded credential this is the digest in the hard binding. For a credential in a sidecar this is the digest of the whole audio file.',
  }),
  unknownContainer: unknownContainerSchema,
};

/** The schema of a process note (rule 9.17). */
export const processNoteSchema = z
  .object({
    policyVersion: z
      .string()
      .meta({
        description: 'Version of the wording policy. The same report and policy always give the same note.',
      })
      .exactOptional(),
    lines: z
      .array(
        z.object({
          code: z.string().meta({ description: 'Stable slug for the topic of the line.' }),
          text: z.string().meta({ description: 'Text of the line: one or more sentences.' }),
        }),
      )
      .meta({
        description:
          'Lines of the note. The note is for information only. It also states what was not monitored.',
      })
      .exactOptional(),
  })
  .meta({
    id: 'ProcessNote',
    examples: [
      {
        policyVersion: '2',
        lines: [{ code: 'no_session', text: 'No session was witnessed for this recording.' }],
      },
    ],
  });

const reports = {
  evidenceReport: evidenceReportSchema
    .meta({ description: 'Record of the production. It never changes the verdict.' })
    .exactOptional(),
  processNote: processNoteSchema.meta({ description: 'Summary of the report in sentences.' }).exactOptional(),
};

export const proofEntrySchema = z
  .object({
    ...proofEntry,
    evidenceSummary: evidenceSummarySchema
      .meta({ description: 'Short form of the report. Absent if the proof has no report.' })
      .exactOptional(),
    evidenceReport: evidenceReportSchema
      .meta({ description: 'The whole report. Present only if the call has `include=evidenceReport`.' })
      .exactOptional(),
  })
  .meta({ id: 'ProofEntry', examples: [ENTRY] });

export const proofPageSchema = z
  .object({
    proofs: z.array(proofEntrySchema).meta({ description: 'Entries of the page, newest first.' }),
    nextCursor: cursorSchema
      .meta({ description: 'Cursor of the next page. Absent on the last page.' })
      .exactOptional(),
  })
  .meta({ id: 'ProofPage', examples: [{ proofs: [ENTRY] }, { proofs: [ENTRY], nextCursor: 'b3BhcXVl' }] });

/** The schema of a proof (rule 11.5). `issuedAt` equals `createdAt` (rule 8.17). */
export const proofDocumentSchema = z
  .object({
    ...proofEntry,
    song: songSchema,
    issuer: issuerSchema,
    createdAt: timestampSchema.meta({ description: 'The same as `issuedAt`.' }),
    originalSha256: sha256Schema.meta({
      description: 'SHA-256 of the file before its credential was added.',
    }),
    delivery: deliverySchema,
    ...reports,
    ...legacyMembers,
  })
  .meta({
    id: 'ProofDocument',
    examples: [
      {
        ...ENTRY,
        song: { ...ENTRY.song, declared: DECLARED_SONG },
        issuer: 'Takemark',
        createdAt: ENTRY.issuedAt,
        originalSha256: DIGEST,
        delivery: DELIVERY,
      },
    ],
  });

export const erasureSchema = z
  .object({
    proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
    outcome: knownWords(['erased', 'already_erased']).meta({
      description: '`erased`: this call erased the proof. `already_erased`: an earlier call did.',
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

/** The schema of the record of a proof (rule 11.6). */
export const proofRecordSchema = z
  .object({
    proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
    song: songSchema,
    issuer: issuerSchema,
    issuedAt: timestampSchema.meta({ description: 'Time of issue, in unix seconds.' }),
    boundAudioSha256: sha256Schema.meta({ description: 'SHA-256 of the audio that the proof is bound to.' }),
    unknownContainer: unknownContainerSchema,
    ...reports,
    delivery: deliverySchema,
  })
  .meta({
    id: 'ProofRecord',
    description: 'The registered record of a proof. It does not state that any file matches.',
    examples: [
      {
        proofId: ENTRY.proofId,
        song: ENTRY.song,
        issuedAt: ENTRY.issuedAt,
        boundAudioSha256: DIGEST,
        delivery: DELIVERY,
      },
    ],
  });

export const assetQuerySchema = z
  .strictObject({
    part: z.enum(['audio', 'sidecar']).default('audio').meta({
      description: 'Which file to return. `sidecar` exists only if the credential is in a sidecar.',
    }),
  })
  .meta({ id: 'AssetQuery', examples: [{ part: 'sidecar' }, {}] });

/**
 * The request headers of an asset. The schema demands no format: the service ignores a precondition or range
 * that it does not understand (RFC 9110).
 */
export const assetHeadersSchema = z
  .object({
    range: z
      .string()
      .meta({ description: 'One byte range. A request for several ranges returns the whole file.' })
      .exactOptional(),
    'if-range': z
      .string()
      .meta({
        description:
          'An ETag. The range applies only if it is the current ETag. Otherwise the response is the whole file.',
      })
      .exactOptional(),
    'if-match': z
      .string()
      .meta({ description: 'List of ETags. The response is 412 if the current ETag is not in the list.' })
      .exactOptional(),
    'if-none-match': z
      .string()
      .meta({ description: 'List of ETags. The response is 304 if the current ETag is in the list.' })
      .exactOptional(),
  })
  .meta({ examples: [{}, { range: 'bytes=0-1023' }] });
