/**
 * The XML that Ardour writes: elements, attributes and text. A document type, or an entity other than the predefined
 * five, is refused. Namespaces are not resolved. `XML_LIMITS` has the bounds, with `bytes` as UTF-16 code units.
 */

export interface XmlElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  /** The character data directly inside the element, in one piece. */
  readonly text: string;
}

/** The greatest values of a document. A session of 480 regions has 3 MB and 60,000 elements. */
export const XML_LIMITS = {
  bytes: 134_217_728,
  depth: 64,
  elements: 4_000_000,
  attributes: 128,
  nameCharacters: 128,
} as const;

/** The error for text that is not a whole document of this kind, such as a file that is still being written. */
export class XmlError extends Error {
  constructor(reason: string, offset: number) {
    super(`XML: ${reason} at ${offset}`);
    this.name = 'XmlError';
  }
}

interface Open {
  readonly name: string;
  readonly attributes: Map<string, string>;
  readonly children: XmlElement[];
  text: string;
}

/** Returns the root of the document. @throws XmlError */
export function parseXml(
  source: string,
  limits: { readonly [Name in keyof typeof XML_LIMITS]: number } = XML_LIMITS,
): XmlElement {
  if (source.length > limits.bytes) throw new XmlError('too long', limits.bytes);
  const open: Open[] = [];
  let root: XmlElement | undefined;
  let elements = 0;
  let at = source.charCodeAt(0) === 0xfeff ? 1 : 0;

  while (at < source.length) {
    const tag = source.indexOf('<', at);
    const end = tag === -1 ? source.length : tag;
    if (end > at) characters(at, end);
    if (tag === -1) break;
    at = markup(tag);
  }
  if (open.length > 0) throw new XmlError('the document ends inside an element', source.length);
  if (root === undefined) throw new XmlError('no element', source.length);
  return root;

  function characters(from: number, to: number): void {
    const parent = open.at(-1);
    const text = source.slice(from, to);
    if (parent !== undefined) parent.text += decodeText(text, from);
    else if (/[^ \t\r\n]/.test(text)) throw new XmlError('text outside the root', from);
  }

  /** @returns the position after the markup */
  function markup(from: number): number {
    if (source.startsWith('<!--', from)) return behind('-->', from + 4);
    if (source.startsWith('<?', from)) return behind('?>', from + 2);
    if (source.startsWith('<!', from)) throw new XmlError('a declaration', from);
    return source.startsWith('</', from) ? endTag(from) : startTag(from);
  }

  function behind(mark: string, from: number): number {
    const end = source.indexOf(mark, from);
    if (end === -1) throw new XmlError(`no ${mark}`, from);
    return end + mark.length;
  }

  function endTag(from: number): number {
    const end = behind('>', from);
    const name = source.slice(from + 2, end - 1).trimEnd();
    const element = open.pop();
    if (element?.name !== name) throw new XmlError('an end tag without its start tag', from);
    close(element);
    return end;
  }

  function startTag(from: number): number {
    if (root !== undefined) throw new XmlError('a second root', from);
    elements += 1;
    if (elements > limits.elements) throw new XmlError('too many elements', from);
    if (open.length >= limits.depth) throw new XmlError('too deep', from);
    const [name, afterName] = readName(from + 1);
    const element: Open = { name, attributes: new Map(), children: [], text: '' };
    let place = afterName;
    for (;;) {
      const next = skipSpace(place);
      const character = source[next];
      if (character === '>') {
        open.push(element);
        return next + 1;
      }
      if (character === '/' && source[next + 1] === '>') {
        close(element);
        return next + 2;
      }
      if (next === place) throw new XmlError('a malformed tag', next);
      place = attribute(element, next);
    }
  }

  function attribute({ attributes }: Open, from: number): number {
    const [name, afterName] = readName(from);
    const quote = source[afterName + 1];
    if (source[afterName] !== '=' || (quote !== '"' && quote !== "'"))
      throw new XmlError('a malformed attribute', from);
    const start = afterName + 2;
    const end = source.indexOf(quote, start);
    if (end === -1) throw new XmlError('an attribute that does not end', from);
    const value = source.slice(start, end);
    if (value.includes('<')) throw new XmlError('a < in an attribute', from);
    if (attributes.has(name)) throw new XmlError('an attribute twice', from);
    if (attributes.size >= limits.attributes) throw new XmlError('too many attributes', from);
    attributes.set(name, decodeText(value, start));
    return end + 1;
  }

  function readName(from: number): [name: string, end: number] {
    NAME.lastIndex = from;
    const name = NAME.exec(source)?.[0];
    if (name === undefined || name.length > limits.nameCharacters)
      throw new XmlError('a malformed name', from);
    return [name, from + name.length];
  }

  function skipSpace(from: number): number {
    let place = from;
    while (SPACE.has(source.charCodeAt(place))) place += 1;
    return place;
  }

  function close(element: Open): void {
    const parent = open.at(-1);
    if (parent === undefined) root = element;
    else parent.children.push(element);
  }
}

const NAME = /[A-Za-z_][A-Za-z0-9_.:-]*/y;
const SPACE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' };

function decodeText(text: string, at: number): string {
  if (!text.includes('&')) return text;
  return text.replace(/&([^;&]{0,10})(;?)/g, (_match, name: string, mark: string) => {
    const character = mark === ';' ? (ENTITIES[name] ?? numbered(name)) : undefined;
    if (character === undefined) throw new XmlError('an unknown entity', at);
    return character;
  });
}

function numbered(name: string): string | undefined {
  const digits = /^#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}))$/.exec(name);
  if (digits === null) return undefined;
  const code = digits[1] === undefined ? Number(digits[2]) : Number.parseInt(digits[1], 16);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined;
}

/** Returns the first child with the given name. */
export function child(element: XmlElement | undefined, name: string): XmlElement | undefined {
  return element?.children.find((each) => each.name === name);
}

export function children(element: XmlElement | undefined, name: string): readonly XmlElement[] {
  return element?.children.filter((each) => each.name === name) ?? [];
}

/** Yields all elements with the given name below an element, in the order of the document. */
export function* descendants(element: XmlElement, name: string): Generator<XmlElement> {
  for (const each of element.children) {
    if (each.name === name) yield each;
    yield* descendants(each, name);
  }
}
