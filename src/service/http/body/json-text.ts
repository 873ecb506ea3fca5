import { isUtf8 } from 'node:buffer';
import { shownName } from '../../../core/domain/display-name.js';
import { DomainError } from '../../../core/domain/errors.js';

/** The maximum nesting depth of arrays and objects. The contract's own requests use three levels. */
export const MAX_DEPTH = 32;

/**
 * The maximum number of arrays, objects, members and elements together. The contract's own requests use a few
 * hundred.
 */
export const MAX_PARTS = 8192;
/** The maximum number of characters outside strings, including white space. */
const MAX_BARE = 65_536;
/** The maximum length of a member's name as written, in characters. */
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
 * Parses a JSON text. Rejects three things that other parsers may read differently: text that is not UTF-8,
 * repeated members and deep nesting. Limits the number of parts and the length outside strings too. A long
 * valid text is a long string, such as a sidecar, which is cheap for its length.
 * @throws DomainError `invalid_request` / `malformed_json`
 */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw malformedJson('The body is not UTF-8.');
  const text = bytes.toString('utf8');
  checkStructure(text);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The parser's own message quotes the body, so it must not be passed on.
    throw malformedJson('The body is not valid JSON.');
  }
}

/** Checks the structure before any value is built. Leaves text that is not JSON to the parser. */
function checkStructure(text: string): void {
  /** The members seen so far on each open level. Undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  let atName = false;
  let parts = 0;
  let bare = 0;
  for (let i = 0; i < text.length; i += 1) {
    bare += 1;
    if (bare > MAX_BARE) throw malformedJson('The body has too many characters outside its strings.');
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
          if (end - i > MAX_NAME) throw malformedJson('A member name is too long.');
          const name = nameOf(text.slice(i, end + 1));
          if (members.has(name))
            throw malformedJson(`The member ${shownName(name.slice(1, -1))} is repeated.`);
          members.add(name);
        }
        i = end;
        break;
      }
    }
  }
}

/**
 * Returns the index of the closing quote, or -1. Uses indexOf, because a sidecar is one string of up to 1.4
 * million characters.
 */
function endOfString(text: string, from: number): number {
  for (let end = text.indexOf('"', from); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (end - 1 - slashes >= from && text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end;
  }
  return -1;
}

/** Returns one canonical form for all spellings of a name. */
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
