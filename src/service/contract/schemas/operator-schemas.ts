import { z } from 'zod';
import { HARMLESS_FINDINGS } from '../../../core/domain/findings.js';
import { TOPICS } from '../../domain/events.js';
import {
  countSchema,
  identifierSchema,
  knownWords,
  nameSchema,
  queryInteger,
  sha256Schema,
  timestampSchema,
} from '../primitives.js';
import { unknownContainerSchema, uploadPurposeSchema } from './proof-schemas.js';

/** The query of a challenge: a nonce of 32 random bytes in base64url. */
export const challengeQuerySchema = z
  .strictObject({
    nonce: z
      .string()
      .regex(/^[A-Za-z0-9_-]{43}$/, 'must be 32 bytes in base64url')
      .meta({ description: '32 random bytes chosen by the caller, in base64url.' }),
  })
  .meta({ examples: [{ nonce: 'nqRjyWgxC8R1yGHnYWGhr-EJgfG0RRDgHAuFa8KYVpE' }] });

/** The response to a challenge, with one answer for each accepted token. */
export const challengeSchema = z
  .object({
    port: z.int().min(0).meta({ description: 'Port that the listener uses.' }),
    answers: z.array(z.string()).meta({
      description: 'One message authentication code (MAC) over nonce and port for each accepted token.',
    }),
  })
  .meta({
    id: 'OperatorChallenge',
    examples: [{ port: 8081, answers: ['8R5yq1tYqYB2s6pKzG3Ff4oVwXJm7QnD0cL9hTbE2uA'] }],
  });

/**
 * The facts about the audio. They are in the query because the body is the audio, and because a header cannot
 * carry a title in every script.
 */
export const issueQuerySchema = z
  .strictObject({
    partnerId: identifierSchema.meta({ description: 'Partner that the proof is issued for.' }),
    song: nameSchema(500).meta({ description: 'Title of the song.' }),
    artist: nameSchema(255)
      .meta({ description: 'Artist of the song. It is reported as declared, and not checked.' })
      .exactOptional(),
    release: nameSchema(255)
      .meta({ description: 'Release that contains the song. It is reported as declared, and not checked.' })
      .exactOptional(),
    isrc: z
      .string()
      .regex(/^[A-Z]{2}[A-Z0-9]{3}[0-9]{7}$/, 'must be an ISRC without hyphens, such as DEA122600001')
      .meta({
        description:
          'International Standard Recording Code without hyphens. It is reported as declared, and not checked.',
      })
      .exactOptional(),
    fileName: nameSchema(255).meta({ description: 'Name of the file.' }),
    carrier: z
      .enum(['embedded', 'sidecar'])
      .default('embedded')
      .meta({ description: 'Where to put the credential: into the file, or into a separate sidecar.' }),
    mend: z.enum(['true', 'false']).default('false').meta({
      description:
        'Repair a WAV file whose break has exactly one repair: a missing pad byte at its end, a RIFF size that is wrong by one, a byte rate of 0. Only for the carrier `embedded`.',
    }),
    large: z.enum(['true', 'false']).default('false').meta({
      description:
        'Accept a file above 65 MiB, up to the limit of large files. Verifying the result needs an upload slot of the purpose `verify_large`.',
    }),
    unknownContainer: z.enum(['refuse', 'allow']).default('refuse').meta({
      description:
        'What to do if the service does not know the container format of the file. `allow` needs the carrier `sidecar`, and marks the proof.',
    }),
  })
  .meta({
    id: 'IssueQuery',
    examples: [
      {
        partnerId: 'ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        song: 'Morgenröte',
        fileName: 'morgenröte.wav',
        carrier: 'embedded',
      },
    ],
  });

export const issuedProofSchema = z
  .object({
    proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
    issuedAt: timestampSchema.meta({ description: 'Time of issuing, in unix seconds.' }),
    carrier: knownWords(['embedded', 'sidecar']).meta({
      description: 'Where the credential is: in the file, or in a separate sidecar.',
    }),
    originalSha256: sha256Schema.meta({
      description:
        'SHA-256 of the file before the credential: as it was sent, or with `mended` as it was mended.',
    }),
    boundAudioSha256: sha256Schema.meta({ description: 'SHA-256 of the audio that the proof is bound to.' }),
    asset: z
      .object({
        bytes: z.int().min(0).meta({ description: 'Size in bytes.' }),
        sha256: sha256Schema.meta({ description: 'SHA-256 of the file.' }),
        fileName: z.string().meta({ description: 'Name of the file.' }),
        mediaType: z.string().meta({ description: 'Media type of the file.' }),
        uploadPurpose: uploadPurposeSchema,
      })
      .meta({
        description: 'The delivered audio file. It contains the credential unless the carrier is `sidecar`.',
      }),
    warnings: z
      .array(
        z.object({
          code: knownWords(HARMLESS_FINDINGS).meta({ description: 'What deviates from the file format.' }),
          offset: z
            .int()
            .min(0)
            .meta({ description: 'Offset of its first occurrence in the file, in bytes.' }),
        }),
      )
      .meta({
        description:
          'Deviations of the WAV file that are hashed like all other bytes and change no verdict. Absent if there are none.',
      })
      .exactOptional(),
    mended: z
      .object({
        sentSha256: sha256Schema.meta({ description: 'SHA-256 of the file as it was sent.' }),
        changes: z
          .array(
            z.object({
              offset: z.int().min(0).meta({ description: 'Offset of the byte in the file.' }),
              from: z
                .int()
                .min(0)
                .max(255)
                .meta({ description: 'The byte that was sent. Absent for an appended byte.' })
                .exactOptional(),
              to: z.int().min(0).max(255).meta({ description: 'The byte in the mended file.' }),
            }),
          )
          .meta({ description: 'Every byte that the repair changed, in file order.' }),
      })
      .meta({ description: 'The repair. Absent unless `mend` was requested and the file was mended.' })
      .exactOptional(),
    unknownContainer: unknownContainerSchema,
  })
  .meta({
    id: 'IssuedProof',
    examples: [
      {
        proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        issuedAt: 1_767_225_600,
        carrier: 'embedded',
        originalSha256: '47b40ddea3cd0084961d752c82290f1ed224182f3ababea02d1cf6dfca6d04e1',
        boundAudioSha256: '46a9dea3a2858d792729afd2a5b9846f9572c381d37c29769d495ef993ad85ce',
        asset: {
          bytes: 2_884_096,
          sha256: '2492654781ec4412cf22d1f3a2aabe38e478a25bd5de0d9fb9a3912a7ba628f2',
          fileName: 'morgenröte.wav',
          mediaType: 'audio/wav',
        },
        warnings: [{ code: 'list_pad_nonzero', offset: 88 }],
        mended: {
          sentSha256: '01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b',
          changes: [
            { offset: 4, from: 35, to: 36 },
            { offset: 2_878_411, to: 0 },
          ],
        },
      },
    ],
  });

export const erasureStatusSchema = z
  .object({
    proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
    state: knownWords(['pending', 'issued', 'erased']).meta({ description: 'State of the proof.' }),
    erasedAt: timestampSchema.meta({ description: 'Time of the erasure, in unix seconds.' }).exactOptional(),
    confirmedAt: timestampSchema
      .meta({
        description:
          'When a consumer of the events confirmed the erasure, in unix seconds. Absent if none has confirmed it yet.',
      })
      .exactOptional(),
    assetPresent: z.boolean().meta({ description: 'True while the delivered file exists.' }),
  })
  .meta({
    id: 'ErasureStatus',
    examples: [
      {
        proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        state: 'erased',
        erasedAt: 1_767_312_000,
        confirmedAt: 1_767_312_001,
        assetPresent: false,
      },
    ],
  });

export const deadLettersQuerySchema = z
  .strictObject({
    topic: z.enum(TOPICS).meta({ description: 'Return only dead letters of this topic.' }).exactOptional(),
    limit: queryInteger(1, 1000).default(100).meta({ description: 'Maximum number of entries to return.' }),
  })
  .meta({ id: 'DeadLettersQuery', examples: [{}, { topic: 'usage', limit: 20 }] });

/**
 * The dead letters. `reason` contains nothing from the event. `eventId` and `kind` are present if the event
 * could be read.
 */
export const deadLettersSchema = z
  .object({
    deadLetters: z
      .array(
        z.object({
          topic: knownWords(TOPICS).meta({ description: 'Topic of the event.' }),
          position: z.string().meta({ description: 'Position of the dead letter in the dead-letter topic.' }),
          reason: z.string().meta({
            description: 'Why no consumer could process the event. Contains nothing from the event.',
          }),
          at: timestampSchema.meta({ description: 'When the event became a dead letter, in unix seconds.' }),
          eventId: z
            .string()
            .meta({ description: 'Id of the event. Absent if the event could not be read.' })
            .exactOptional(),
          kind: z
            .string()
            .meta({ description: 'Kind of the event. Absent if the event could not be read.' })
            .exactOptional(),
        }),
      )
      .meta({ description: 'Events that no consumer could process, oldest first.' }),
  })
  .meta({
    id: 'DeadLetters',
    examples: [
      {
        deadLetters: [
          {
            topic: 'usage',
            position: '0/17',
            reason: 'the span is empty',
            at: 1_767_312_000,
            eventId: 'units_counted/ptr_01JZ7Q4W8YB2M6R9T3V5X7Z1A2/billed/2026-01/41',
            kind: 'units_counted',
          },
        ],
      },
    ],
  });

export const replayDeadLettersSchema = z
  .strictObject({
    topic: z.enum(TOPICS).meta({ description: 'Topic whose dead letters are published again.' }),
    limit: z
      .int()
      .min(1)
      .max(10_000)
      .default(1000)
      .meta({ description: 'Maximum number of events to publish again. The oldest are published first.' }),
  })
  .meta({ id: 'ReplayDeadLetters', examples: [{ topic: 'usage' }, { topic: 'usage', limit: 10 }] });

export const discardDeadLettersSchema = z
  .strictObject({
    topic: z.enum(TOPICS).meta({ description: 'Topic whose dead letters are discarded.' }),
    limit: z
      .int()
      .min(1)
      .max(1000)
      .default(1)
      .meta({ description: 'Maximum number of events to discard. The oldest are discarded first.' }),
  })
  .meta({ id: 'DiscardDeadLetters', examples: [{ topic: 'usage' }, { topic: 'usage', limit: 10 }] });

export const replayedDeadLettersSchema = z
  .object({ replayed: countSchema.meta({ description: 'Number of events published again.' }) })
  .meta({ id: 'ReplayedDeadLetters', examples: [{ replayed: 3 }] });

/** A creator's consent to the delivery of a proof's source detail. */
export const grantConsentSchema = z
  .strictObject({
    consentVersion: identifierSchema.meta({
      description: 'Version of the consent text that the creator agreed to.',
    }),
    grantedAt: timestampSchema.meta({ description: 'Time of the consent, in unix seconds.' }),
  })
  .meta({
    id: 'GrantConsent',
    examples: [{ consentVersion: '2026-01', grantedAt: 1_767_225_600 }],
  });

export const consentStateSchema = z
  .object({
    proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
    consent: z
      .object({
        consentVersion: identifierSchema.meta({ description: 'Version of the consent text.' }),
        grantedAt: timestampSchema.meta({ description: 'Time of the consent, in unix seconds.' }),
      })
      .meta({ description: 'The current consent. Absent if there is none.' })
      .exactOptional(),
  })
  .meta({
    id: 'ConsentState',
    examples: [
      {
        proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2',
        consent: { consentVersion: '2026-01', grantedAt: 1_767_225_600 },
      },
      { proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' },
    ],
  });
