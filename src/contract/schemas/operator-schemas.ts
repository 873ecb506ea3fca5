import { z } from 'zod';
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

/** A nonce: 32 random bytes in base64url. */
export const challengeQuerySchema = z
  .strictObject({
    nonce: z
      .string()
      .regex(/^[A-Za-z0-9_-]{43}$/, 'must be 32 bytes in base64url')
      .meta({ description: 'Random bytes of the caller, 32 of them in base64url.' }),
  })
  .meta({ examples: [{ nonce: 'nqRjyWgxC8R1yGHnYWGhr-EJgfG0RRDgHAuFa8KYVpE' }] });

/** A response to the challenge for each token that is accepted. */
export const challengeSchema = z
  .object({
    port: z.int().min(0).meta({ description: 'Port that the listener is bound to.' }),
    answers: z.array(z.string()).meta({ description: 'MAC over nonce and port, one for each token.' }),
  })
  .meta({
    id: 'OperatorChallenge',
    examples: [{ port: 8081, answers: ['8R5yq1tYqYB2s6pKzG3Ff4oVwXJm7QnD0cL9hTbE2uA'] }],
  });

/**
 * Facts of the audio, in the query because the audio is the body: a header could not carry a title in every
 * script.
 */
export const issueQuerySchema = z
  .strictObject({
    partnerId: identifierSchema.meta({ description: 'Partner that the proof is issued for.' }),
    song: nameSchema(500).meta({ description: 'Title of the song.' }),
    fileName: nameSchema(255).meta({ description: 'Name of the file.' }),
    carrier: z
      .enum(['embedded', 'sidecar'])
      .default('embedded')
      .meta({ description: 'Place of the credential: in the file, or in a sidecar beside it.' }),
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
    carrier: knownWords(['embedded', 'sidecar']).meta({ description: 'Place of the credential.' }),
    originalSha256: sha256Schema.meta({ description: 'Digest of the file as it came.' }),
    boundAudioSha256: sha256Schema.meta({ description: 'Digest of the audio that the proof is bound to.' }),
    asset: z
      .object({
        bytes: z.int().min(0).meta({ description: 'Size in bytes.' }),
        sha256: sha256Schema.meta({ description: 'Digest of the file.' }),
        fileName: z.string().meta({ description: 'Name of the file.' }),
        mediaType: z.string().meta({ description: 'Media type of the file.' }),
      })
      .meta({ description: 'File that is delivered: with the credential in it, or the audio of a pair.' }),
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

export const erasureStatusSchema = z
  .object({
    proofId: identifierSchema.meta({ description: 'Id of the proof.' }),
    state: knownWords(['pending', 'issued', 'erased']).meta({ description: 'Where the proof stands.' }),
    erasedAt: timestampSchema.meta({ description: 'Time of the erasure, in unix seconds.' }).exactOptional(),
    confirmedAt: timestampSchema
      .meta({ description: 'Time at which a consumer confirmed the erasure; absent until then.' })
      .exactOptional(),
    assetPresent: z.boolean().meta({ description: 'True while the deliverable is there.' }),
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
    topic: z.enum(TOPICS).meta({ description: 'Dead letters of this topic alone.' }).exactOptional(),
    limit: queryInteger(1, 1000).default(100).meta({ description: 'Entries at most.' }),
  })
  .meta({ id: 'DeadLettersQuery', examples: [{}, { topic: 'usage', limit: 20 }] });

/**
 * Dead letters. `reason` holds nothing of the event; `eventId` and `kind` are there where the event could be
 * read.
 */
export const deadLettersSchema = z
  .object({
    deadLetters: z
      .array(
        z.object({
          topic: knownWords(TOPICS).meta({ description: 'Topic that the event came from.' }),
          position: z.string().meta({ description: 'Place in the topic of dead letters.' }),
          reason: z
            .string()
            .meta({ description: 'Why no consumer could take it; holds nothing of the event.' }),
          at: timestampSchema.meta({ description: 'Time at which it was given up, in unix seconds.' }),
          eventId: z
            .string()
            .meta({ description: 'Id of the event, where it could be read.' })
            .exactOptional(),
          kind: z
            .string()
            .meta({ description: 'Kind of the event, where it could be read.' })
            .exactOptional(),
        }),
      )
      .meta({ description: 'Events that no consumer could take, oldest first.' }),
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
    topic: z.enum(TOPICS).meta({ description: 'Topic that they go back into.' }),
    limit: z.int().min(1).max(10_000).default(1000).meta({ description: 'Events at most, oldest first.' }),
  })
  .meta({ id: 'ReplayDeadLetters', examples: [{ topic: 'usage' }, { topic: 'usage', limit: 10 }] });

export const replayedDeadLettersSchema = z
  .object({ replayed: countSchema.meta({ description: 'Events that were put into the topic again.' }) })
  .meta({ id: 'ReplayedDeadLetters', examples: [{ replayed: 3 }] });

/** A creator's consent to the delivery of a proof's source detail. */
export const grantConsentSchema = z
  .strictObject({
    consentVersion: identifierSchema.meta({ description: 'Version of the consent text that was agreed to.' }),
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
      .meta({ description: 'Consent that holds; absent where there is none.' })
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
