import { z } from 'zod';
import { IDENTIFIER_PATTERN } from '../domain/identifiers.js';

/** "Identifier format [...]: string matching `^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`, length 1 to 128." */
export const identifierSchema = z
  .string()
  .regex(IDENTIFIER_PATTERN)
  .meta({
    id: 'Identifier',
    description: 'Opaque. Malformed ones are 400; every other one that is not there is 404.',
    examples: ['upl_01JZ7Q4W8YB2M6R9T3V5X7Z1A2'],
  });

/** "Opaque `nextCursor` from the previous response"; any changed character is refused. */
export const cursorSchema = z
  .string()
  .min(1)
  .max(1024)
  .meta({
    id: 'Cursor',
    description: 'Opaque; bound to the partner, the list and its filter.',
    examples: ['b3BhcXVl'],
  });

/** "Every timestamp returned is an integer count of unix epoch seconds." */
export const timestampSchema = z
  .int()
  .min(0)
  .meta({ id: 'Timestamp', description: 'Unix epoch seconds.', examples: [1_767_225_600] });

/** Lower-case hex of SHA-256. */
export const sha256Schema = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .meta({
    id: 'Sha256',
    description: 'Lower-case hex.',
    examples: ['e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
  });

/** A short text for people: no control characters, no half of a surrogate pair. */
export function nameSchema(maxLength: number) {
  return z
    .string()
    .min(1)
    .max(maxLength)
    .regex(/^[^\p{Cc}\p{Cs}]+$/u);
}
