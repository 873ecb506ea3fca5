/**
 * Pattern of names of services, devices and programs that are signed and shown: 1 to 64 visible characters
 * with single meaning in every font and terminal, so no control, format, private or separator characters but
 * the inner space.
 */
export const DISPLAY_NAME_PATTERN = /^(?! )(?:[^\p{C}\p{Z}]| ){1,64}(?<! )$/u;

/**
 * Text of strangers in a form fit to be shown: control and format characters are replaced, the rest is cut at
 * `limit`.
 */
export function shownText(text: string, limit = 256): string {
  return text.slice(0, limit).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '\ufffd');
}

/**
 * Name of the service, folded. No device may have it, and a stranger's credential with it says so in its
 * report.
 */
const SERVICE_NAME = 'takemark';

/**
 * Characters that are drawn like the letters of the service's name: Greek, Cyrillic, small capitals, digits.
 */
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
 * Tells whether a name is, or holds, the service's own: without regard to case, marks, spaces, punctuation
 * and look-alike letters.
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
