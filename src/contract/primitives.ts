import { z } from 'zod';
import { IDENTIFIER_PATTERN } from '../domain/identifiers.js';

/** An identifier (rule 2.5). */
export const identifierSchema = z
  .string()
  .regex(
    IDENTIFIER_PATTERN,
    'must be an identifier: 1 to 128 letters, digits, dots, underscores, colons and hyphens, the first a letter or digit',
  )
  .meta({
    id: 'Identifier',
    description: 'Opaque. Malformed ones are 400; every other one that is not there is 404.',
    examples: ['upl_01JZ7Q4W8YB2M6R9T3V5X7Z1A2'],
  });

/** A page's cursor (rule 2.7). */
export const cursorSchema = z
  .string()
  .min(1)
  .max(1024)
  .meta({
    id: 'Cursor',
    description: 'Opaque; bound to the partner, the list and its filter.',
    examples: ['b3BhcXVl'],
  });

/** Member of a schema that lists the values known today (rule 2.9), where `enum` would close the list. */
export const KNOWN_VALUES = 'x-extensible-enum';

/**
 * A word of a response. The service sends one of `words`; the document names them without closing the list, so that
 * a generated reader bears the words that come later.
 */
export function knownWords<const Words extends readonly [string, ...string[]]>(words: Words) {
  return z.enum(words).meta({ [KNOWN_VALUES]: words });
}

/** Member of a schema that gives the meaning of each value that is known today. */
export const MEANINGS = 'x-meanings';

/** A word as `knownWords` has it, with the meaning of each from the registry. */
export function describedWords<Word extends string>(meanings: Readonly<Record<Word, string>>) {
  const words = Object.keys(meanings) as [Word, ...Word[]];
  return z.enum(words).meta({ [KNOWN_VALUES]: words, [MEANINGS]: meanings });
}

/** A number of things. */
export const countSchema = z.int().min(0);

/** A time (rule 2.3). */
export const timestampSchema = z
  .int()
  .min(0)
  .meta({ id: 'Timestamp', description: 'Unix epoch seconds.', examples: [1_767_225_600] });

/** Lower-case hex of SHA-256. */
export const sha256Schema = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in lower-case hex')
  .meta({
    id: 'Sha256',
    description: 'Lower-case hex.',
    examples: ['e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
  });

/** A short text for people (rule 2.16). */
export function nameSchema(maxLength: number) {
  return z
    .string()
    .min(1)
    .max(maxLength)
    .regex(/^[^\p{Cc}\p{Cs}]+$/u, 'must be without control characters and halves of surrogate pairs');
}

/** A whole number in a query: plain decimal, so that one number has one spelling (rule 2.15). */
export function queryInteger(min: number, max: number) {
  return z.preprocess(
    (text) => (typeof text === 'string' && /^(0|[1-9]\d{0,9})$/.test(text) ? Number(text) : text),
    z.int().min(min).max(max),
  );
}
