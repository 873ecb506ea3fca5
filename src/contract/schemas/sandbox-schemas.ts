import { z } from 'zod';
import { countSchema, identifierSchema, knownWords, sha256Schema } from '../primitives.js';
import { verificationSchema } from './verify-schemas.js';

/** Path of a fixture's file (rule 19.6). */
export const fixtureParamsSchema = z
  .strictObject({
    name: identifierSchema.meta({ description: 'Name of the fixture.' }),
    part: identifierSchema.meta({ description: '`audio`, or of a pair `sidecar`.' }),
  })
  .meta({ examples: [{ name: 'valid', part: 'audio' }] });

const { verdict, good, decision } = verificationSchema.shape;

/** The list of fixtures (rule 19.5). */
export const fixturesSchema = z
  .object({
    fixtures: z
      .array(
        z.object({
          name: z
            .string()
            .meta({ description: 'Name of the fixture, of lower-case letters, digits and `_`.' }),
          verdict,
          good,
          decision: decision
            .pick({ status: true, reasons: true, recommendedAction: true, credentialCarrier: true })
            .meta({ description: 'Members of the decision that verify gives, whenever it is asked.' }),
          files: z
            .array(
              z.object({
                part: knownWords(['audio', 'sidecar']).meta({ description: 'Part of the fixture.' }),
                fileName: z.string().meta({ description: 'A safe name for the file.' }),
                mediaType: z.string().meta({ description: 'Media type of the file.' }),
                bytes: countSchema.meta({ description: 'Length of the file.' }),
                sha256: sha256Schema.meta({ description: 'Digest of the file; its ETag too.' }),
                href: z.string().meta({ description: 'Path from which the file is downloaded, with a key.' }),
              }),
            )
            .meta({ description: 'The audio, and of a pair the sidecar.' }),
        }),
      )
      .meta({ description: 'Every fixture.' }),
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
                sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
                href: '/v1/sandbox/fixtures/credential_missing/audio',
              },
            ],
          },
        ],
      },
    ],
  });
