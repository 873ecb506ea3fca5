import { shownText } from '../../core/domain/display-name.js';

/** A text that is already HTML. All other values are escaped when they are inserted. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Piece = Markup | string | number | undefined | false | readonly (Markup | string | undefined | false)[];

/**
 * Builds HTML from a template. Values are escaped unless they are `Markup`. Lists are joined, absent values
 * are empty.
 */
export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Markup {
  let text = strings[0]!;
  for (const [at, piece] of pieces.entries()) text += written(piece) + strings[at + 1]!;
  return new Markup(text);
}

function written(piece: Piece): string {
  if (piece === undefined || piece === false) return '';
  if (piece instanceof Markup) return piece.text;
  if (typeof piece === 'object') return piece.map(written).join('');
  return escapeText(String(piece));
}

/** The most characters of one text of the report. Longer texts are cut. */
const TEXT_CHARACTERS = 2048;

/** Escapes text for an element or a quoted attribute. */
export function escapeText(text: string): string {
  const shown = shownText(text, TEXT_CHARACTERS);
  return (text.length > TEXT_CHARACTERS ? `${shown}…` : shown)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
