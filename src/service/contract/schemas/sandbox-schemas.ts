import { z } from 'zod';
import { MATCH_MEANINGS } from '../../domain/reference/values.js';
import { countSchema, describedWords, identifierSchema, knownWords, sha256Schema } from '../primitives.js';
import { verificationSchema } from './verify-schemas.js';

/** The path parameters of a fixture's file (rule 19.6). */
export const fixtureParamsSchema = z
  .strictObject({
    name: identifierSchema.meta({ description: 'Name of the fixture.' }),
    part: identifierSchema.meta({
      description: 'Which file of the fixture: `audio`, or `sidecar` if the fixture has a sidecar.',
    }),
  })
  .meta({ examples: [{ name: 'valid', part: 'audio' }] });

const { verdict, good, decision } = verificationSchema.shape;

/** The list of fixtures (rule 19.5). */
export const fixturesSchema = z
  .object({
    fixtures: z
      .array(
        z.object({
          name: z.string().meta({ description: 'Name of the fixture: lower-case letters, digits and `_`.' }),
          verdict,
          good,
          decision: decision
            .pick({ status: true, reasons: true, recommendedAction: true, credentialCarrier: true })
            .meta({
              description:
                'The members of the decision that are the same each time that this fixture is verified.',
            }),
          match: describedWords(MATCH_MEANINGS)
            .meta({
              description:
                'Strongest match of an identify of the audio. Absent if the fixture does not show one.',
            })
            .exactOptional(),
          files: z
            .array(
              z.object({
                part: knownWords(['audio', 'sidecar']).meta({
                  description: 'Which file of the fixture this is.',
                }),
                fileName: z.string().meta({ description: 'File name that is safe on every file system.' }),
                mediaType: z.string().meta({ description: 'Media type of the file.' }),
                bytes: countSchema.meta({ description: 'Length of the file, in bytes.' }),
                sha256: sha256Schema.meta({ description: 'SHA-256 of the file. It is also the ETag.' }),
                href: z
                  .string()
                  .meta({ description: 'Path to download the file from. The download needs a key.' }),
              }),
            )
            .meta({ description: 'The audio file, and the sidecar if the fixture has one.' }),
        }),
      )
      .meta({ description: 'All fixtures.' }),
  })
  .meta({
    id: 'Fixtures',
    examples: [
      {
        fixtures: [
          {
            name: 'credential_missing',
            verdict: 'unreadable',
            good: false,
            decision: {
              status: 'invalid_proof',
              reasons: ['credential_missing'],
              recommendedAction: 'confirm_file',
              credentialCarrier: 'none',
            },
            files: [
              {
                part: 'audio',
                fileName: 'credential_missing.wav',
                mediaType: 'audio/wav',
                bytes: 44_144,
                sha256: '2492654781ec4412cf22d1f3a2aabe38e478a25bd5de0d9fb9a3912a7ba628f2',
                href: '/v1/sandbox/fixtures/credential_missing/audio',
              },
            ],
          },
        ],
      },
    ],
  });
