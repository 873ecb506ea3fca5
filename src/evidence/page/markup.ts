import { shownText } from '../../domain/display-name.js';

/** Text of a page that is markup already. Everything else is escaped where it is put in. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Piece = Markup | string | number | undefined | false | readonly (Markup | string | undefined | false)[];

/** A template whose values are escaped, but for markup; lists are joined, and what is absent leaves nothing. */
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

/** Most characters of one text of the report: what is longer is cut. */
const TEXT_CHARACTERS = 2048;

/** Text as it may stand in an element or in a quoted attribute. */
export function escapeText(text: string): string {
  const shown = shownText(text, TEXT_CHARACTERS);
  return (text.length > TEXT_CHARACTERS ? `${shown}…` : shown)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
