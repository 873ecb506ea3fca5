/**
 * The pattern for names of services, devices and programs that are signed and shown: 1 to 64 visible
 * characters. Control, format, private and separator characters are excluded, except inner spaces, because
 * fonts and terminals show them differently.
 */
export const DISPLAY_NAME_PATTERN = /^(?! )(?:[^\p{C}\p{Z}]| ){1,64}(?<! )$/u;

/**
 * Makes untrusted text safe to show: replaces control and format characters and cuts the text at `limit`
 * UTF-16 code units.
 */
export function shownText(text: string, limit = 256): string {
  return text.slice(0, limit).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '\ufffd');
}

/**
 * Returns a name that a caller chose, marked as code for a message (rule 5.12): at most 64 UTF-16 code units,
 * made safe to show.
 */
export function shownName(name: string): string {
  return `\`${shownText(name, 64)}\``;
}

/**
 * The folded name of the service. A device must not use this name. If a credential of an unknown signer uses
 * it, the report says so.
 */
const SERVICE_NAME = 'takemark';

/** Characters that look like the letters of the service's name: Greek, Cyrillic, small capitals, digits. */
const LOOKALIKES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    t: '\u03c4\u0442\u1d1b7\u0163',
    a: '\u03b1\u0430\u1d00\u02514@',
    k: '\u03ba\u043a\u1d0b\u049b',
    e: '\u03b5\u0435\u1d07\u042d3',
    m: '\u03bc\u043c\u1d0d',
    r: '\u0433\u0280\u1d26',
  }).flatMap(([letter, drawn]) => [...drawn].map((character) => [character, letter])),
);

/**
 * Returns whether a name contains the service's name, ignoring case, marks, spaces, punctuation and
 * look-alikes.
 */
export function holdsServiceName(name: string): boolean {
  const letters = [...name.normalize('NFKD').toLowerCase()].map(
    (character) => LOOKALIKES.get(character) ?? character,
  );
  return letters
    .filter((character) => /[\p{L}\p{N}]/u.test(character))
    .join('')
    .replaceAll('rn', 'm')
    .includes(SERVICE_NAME);
}
