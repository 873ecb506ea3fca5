import { isUtf8 } from 'node:buffer';
import { DomainError } from '../../domain/errors.js';

/** Greatest depth of arrays and objects within one another; the contract's own requests use three levels. */
export const MAX_DEPTH = 32;

/**
 * Greatest number of arrays, objects, members and elements together; the contract's own requests use some
 * hundreds.
 */
export const MAX_PARTS = 8192;
/** Greatest number of characters outside strings, white space included. */
const MAX_BARE = 65_536;
/** Greatest length of a member's name, as it is spelled. */
const MAX_NAME = 256;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;

/**
 * Reads a JSON text. Stricter than JSON.parse in three things that other readers of the same bytes may see
 * differently: the text must be UTF-8, a member may not come twice, and nesting has a bound. The number of
 * parts and the length outside strings have bounds too: a long text is a long string, such as a sidecar,
 * which costs little for its length.
 * @throws DomainError `invalid_request` / `malformed_json`
 */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw malformedJson('The body is not UTF-8.');
  const text = bytes.toString('utf8');
  checkStructure(text);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The parser's own message quotes the body, so the message goes nowhere.
    throw malformedJson('The body is not valid JSON.');
  }
}

/**
 * A pass over the structure, before anything is built from it. Text that is not JSON at all is left to the
 * parser.
 */
function checkStructure(text: string): void {
  /** Members seen so far of each open level, or undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  let atName = false;
  let parts = 0;
  let bare = 0;
  for (let i = 0; i < text.length; i += 1) {
    bare += 1;
    if (bare > MAX_BARE) throw malformedJson('The body holds too much outside its strings.');
    switch (text.charCodeAt(i)) {
      case OPEN_BRACE:
      case OPEN_BRACKET: {
        const object = text.charCodeAt(i) === OPEN_BRACE;
        parts += 1;
        if (open.length === MAX_DEPTH) throw malformedJson('The body is nested too deeply.');
        open.push(object ? new Set() : undefined);
        atName = object;
        break;
      }
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        open.pop();
        atName = false;
        break;
      case COMMA:
        parts += 1;
        if (parts > MAX_PARTS) throw malformedJson('The body has too many members or elements.');
        atName = open.at(-1) !== undefined;
        break;
      case COLON:
        atName = false;
        break;
      case QUOTE: {
        const end = endOfString(text, i + 1);
        if (end < 0) return;
        const members = open.at(-1);
        if (atName && members !== undefined) {
          if (end - i > MAX_NAME) throw malformedJson('The name of a member is too long.');
          const name = nameOf(text.slice(i, end + 1));
          if (members.has(name)) throw malformedJson('A member is given more than once.');
          members.add(name);
        }
        i = end;
        break;
      }
    }
  }
}

/** Index of the closing quote; indexOf, because a sidecar is one string of up to 1.4 million characters. */
function endOfString(text: string, from: number): number {
  for (let end = text.indexOf('"', from); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (end - 1 - slashes >= from && text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end;
  }
  return -1;
}

/** Two spellings of one name are one name. */
function nameOf(literal: string): string {
  if (!literal.includes('\\')) return literal;
  try {
    return JSON.stringify(JSON.parse(literal));
  } catch {
    return literal;
  }
}

function malformedJson(message: string): DomainError {
  return new DomainError('invalid_request', message, { reason: 'malformed_json' });
}
