import { z } from 'zod';
import { identifierSchema } from '../identifier.js';

export const identifySchema = z
  .strictObject({ uploadId: identifierSchema })
  .meta({ id: 'Identify', examples: [{ uploadId: 'upl_01JZ7Q4W8YB2M6R9T3V5X7Z1A2' }] });

/** `{ uploadId }` -> `{ matches: [{ proofId, type, confidence }] }`. */
export const identificationSchema = z
  .object({
    matches: z.array(
      z.object({
        proofId: identifierSchema,
        type: z.enum(['exact_file', 'bound_audio', 'original_file']).meta({
          description:
            'What is the same: the file that was delivered, the audio that is bound, or the file as it came to be issued. Others may be added.',
        }),
        confidence: z.number().min(0).max(1),
      }),
    ),
  })
  .meta({
    id: 'Identification',
    examples: [
      { matches: [{ proofId: 'prf_01JZ7Q4W8YB2M6R9T3V5X7Z1A2', type: 'exact_file', confidence: 1 }] },
      { matches: [] },
    ],
  });
