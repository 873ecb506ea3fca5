import { z } from 'zod';
import { ERROR_CODES, ERROR_REASONS } from '../../domain/errors.js';

/**
 * "Every error response, whether produced by a handler or by the gateway, has the JSON shape" `error`,
 * `code`; `reason` is additive.
 */
export const errorSchema = z
  .object({
    error: z.string().min(1),
    code: z.enum(ERROR_CODES),
    reason: z.enum(ERROR_REASONS).exactOptional(),
  })
  .meta({
    id: 'Error',
    examples: [
      { error: 'The key is missing or not valid for this action.', code: 'forbidden' },
      { error: 'No file has been uploaded to this slot yet.', code: 'conflict', reason: 'upload_incomplete' },
    ],
  });
