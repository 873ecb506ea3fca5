import { z } from 'zod';
import { IDENTIFIER_PATTERN } from '../../core/domain/identifiers.js';

/** The schema of an identifier (rule 2.5). */
export const identifierSchema = z
  .string()
  .regex(
    IDENTIFIER_PATTERN,
    'must be an identifier: 1 to 128 letters, digits, dots, underscores, colons and hyphens, starting with a letter or digit',
  )
  .meta({
    id: 'Identifier',
    description:
      'Opaque identifier. The response to a malformed identifier is 400, and to an unknown identifier 404.',
    examples: ['upl_01JZ7Q4W8YB2M6R9T3V5X7Z1A2'],
  });

/** The schema of a page's cursor (rule 2.7). */
export const cursorSchema = z
  .string()
  .min(1)
  .max(1024)
  .meta({
    id: 'Cursor',
    description: 'Opaque cursor. It is valid only for the same partner, list and filter.',
    examples: ['b3BhcXVl'],
  });

/** The schema member that lists the values known today (rule 2.9). An `enum` would close the list. */
export const KNOWN_VALUES = 'x-extensible-enum';

/**
 * Returns the schema of a word in a response. The service sends one of `words`. The document leaves the list
 * open, so that a generated client accepts words that are added later.
 */
export function knownWords<const Words extends readonly [string, ...string[]]>(words: Words) {
  return z.enum(words).meta({ [KNOWN_VALUES]: words });
}

/** The schema member that gives the meaning of each value known today. */
export const MEANINGS = 'x-meanings';

/** Returns a schema like `knownWords`, with the meaning of each word from the registry. */
export function describedWords<Word extends string>(meanings: Readonly<Record<Word, string>>) {
  const words = Object.keys(meanings) as [Word, ...Word[]];
  return z.enum(words).meta({ [KNOWN_VALUES]: words, [MEANINGS]: meanings });
}

/** The schema of a count. */
export const countSchema = z.int().min(0);

/** The schema of a time (rule 2.3). */
export const timestampSchema = z
  .int()
  .min(0)
  .meta({ id: 'Timestamp', description: 'Time in unix seconds.', examples: [1_767_225_600] });

/** The schema of a SHA-256 digest in lower-case hex. */
export const sha256Schema = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in lower-case hex')
  .meta({
    id: 'Sha256',
    description: 'SHA-256 digest in lower-case hex.',
    examples: ['2492654781ec4412cf22d1f3a2aabe38e478a25bd5de0d9fb9a3912a7ba628f2'],
  });

/** Returns the schema of a text of an earlier registry, which may be blank. */
export function legacyTextSchema(maxLength: number) {
  return z
    .string()
    .min(1)
    .max(maxLength)
    .regex(/^[^\p{Cc}\p{Cs}]+$/u, 'must not contain control characters or unpaired surrogates');
}

/**
 * Returns the schema of a display name or title (rule 2.16). It has at least one visible character: not a
 * space, and not a character that fonts show as nothing, such as U+200B, U+3164 or U+2800.
 */
export function nameSchema(maxLength: number) {
  return z.string().min(1).max(maxLength).regex(NAME, NAME_ERROR);
}

// The blank characters before the first visible one, that one, and the rest. The first two sets have no
// character in common, so that matching takes linear time.
const NAME =
  /^[\p{Z}\p{Cf}\p{Co}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800]*[^\p{Cc}\p{Cs}\p{Z}\p{Cf}\p{Co}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800][^\p{Cc}\p{Cs}]*$/u;
const NAME_ERROR = 'must have a visible character, and no control characters or unpaired surrogates';

/**
 * Returns the schema of a whole number in a query: plain decimal, so that each number has one spelling (rule
 * 2.15).
 */
export function queryInteger(min: number, max: number) {
  return z.preprocess(
    (text) => (typeof text === 'string' && /^(0|[1-9]\d{0,9})$/.test(text) ? Number(text) : text),
    z.int().min(min).max(max),
  );
}

/** The largest time in unix seconds that has ten digits. */
const LAST_SECOND = 9_999_999_999;
const DATE_TIME = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

/**
 * Returns the schema of a time in a query: unix seconds, or a date and time of RFC 3339. The document declares
 * only the number, so that generated clients keep their types.
 * @param round where a fraction of a second is rounded to
 */
export function queryTime(round: 'up' | 'down') {
  const error = 'must be unix seconds, or a time such as 2026-01-31T12:00:00Z (send + as %2B)';
  return z.preprocess(
    (text) => {
      if (typeof text !== 'string') return text;
      return /^(0|[1-9]\d{0,9})$/.test(text) ? Number(text) : (secondsOf(text, round) ?? text);
    },
    z.int({ error }).min(0, { error }).max(LAST_SECOND, { error }),
  );
}

function secondsOf(text: string, round: 'up' | 'down'): number | undefined {
  const [, day, time, fraction, offset] = DATE_TIME.exec(text.toUpperCase()) ?? [];
  const milliseconds = Date.parse(`${day}T${time}${offset}`);
  // Date.parse accepts a day that the month does not have.
  if (Number.isNaN(milliseconds) || !new Date(`${day}T00:00:00Z`).toISOString().startsWith(day!))
    return undefined;
  return milliseconds / 1000 + (round === 'up' && Number(fraction ?? 0) > 0 ? 1 : 0);
}

/** Returns the schema of a yes or no in a query: `true` or `false`. */
export function queryBoolean() {
  return z.preprocess((text) => (text === 'true' ? true : text === 'false' ? false : text), z.boolean());
}
