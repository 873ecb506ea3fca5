/** Finds the prose of a file: comments, strings, alerts and paragraphs. */

import { createRequire } from 'node:module';

// `import` would first search the nine megabytes of the compiler for the names of its exports.
const ts = createRequire(import.meta.url)('typescript');

/**
 * A piece of prose and its place in the file. The text has the length of the source that it was read from, so
 * an index in the text is also a place in the file. Blanks replace the marks of the syntax, and the letter x
 * replaces code.
 *
 * @typedef {{ readonly start: number, readonly text: string }} Text
 */

const CODE = /\.[cm]?[tj]s$/;
const HASH_COMMENTS = /\.(sh|ya?ml|properties)$/;
const SHELL_SCRIPT = /^#!.*sh\n/;
const ALERTS = /^deploy\/prometheus\/.*\.yml$/;

/**
 * Returns the texts of a file. Strings are read in `src/` alone, because only those reach users.
 *
 * @returns {Text[]}
 */
export function proseOf(file, source) {
  if (file.endsWith('.md')) return paragraphs(source);
  if (CODE.test(file)) return codeTexts(source, file.startsWith('src/'));
  if (ALERTS.test(file)) return yamlEntries(source);
  if (HASH_COMMENTS.test(file) || SHELL_SCRIPT.test(source)) return hashComments(source);
  return [];
}

function codeTexts(source, withStrings) {
  const tree = ts.createSourceFile('code.ts', source, {
    languageVersion: ts.ScriptTarget.Latest,
    jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
  });
  const literals = [];
  const strings = [];
  const visit = (node, isOperand) => {
    if (isLiteral(node)) literals.push([node.getStart(tree), node.end]);
    if (isString(node) && !isOperand) strings.push(node);
    ts.forEachChild(node, (child) => visit(child, isSum(node)));
  };
  visit(tree, false);
  return [
    ...comments(source, literals),
    ...(withStrings ? strings.map((node) => stringText(source, tree, node)).filter(isSentence) : []),
  ];
}

function isLiteral({ kind }) {
  return (
    kind === ts.SyntaxKind.StringLiteral ||
    kind === ts.SyntaxKind.RegularExpressionLiteral ||
    (kind >= ts.SyntaxKind.FirstTemplateToken && kind <= ts.SyntaxKind.LastTemplateToken)
  );
}

/** Returns whether a node is one text: a literal, a template, or a sum with a text on one side. */
function isString(node) {
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node) || isSum(node);
}

function isSum(node) {
  return (
    ts.isBinaryExpression(node) &&
    node.operatorToken.kind === ts.SyntaxKind.PlusToken &&
    (isString(node.left) || isString(node.right))
  );
}

/** Returns whether a string has two words or more, one of them in lower case, as no id or format has. */
function isSentence({ text }) {
  return /\S\s+\S/.test(text) && /(?<![\w-])[a-z]{2,}(?![\w-])/.test(text);
}

/** Returns the comments between the literals. Outside a literal, `//` always opens a comment. */
function comments(source, literals) {
  const ends = [...literals, [source.length, source.length]].sort(([a], [b]) => a - b);
  const found = [];
  let from = 0;
  for (const [start, end] of ends) {
    for (const { 0: text, index } of source.slice(from, start).matchAll(/\/\/.*|\/\*[\s\S]*?\*\//g))
      found.push([from + index, from + index + text.length]);
    from = end;
  }
  return joinLines(source, found).map(([start, end]) => ({
    start,
    text: withoutCode(source.slice(start, end).replaceAll(/^[ \t]*(\/\/+|\/\*+|\*(?!\/))|\*+\/$/gm, blank)),
  }));
}

/** Joins line comments on consecutive lines, because a sentence may continue on the next line. */
function joinLines(source, ranges) {
  const joined = [];
  for (const [start, end] of ranges) {
    const last = joined.at(-1);
    if (
      last !== undefined &&
      source[start + 1] !== '*' &&
      /^[ \t]*\r?\n[ \t]*$/.test(source.slice(last[1], start))
    )
      last[1] = end;
    else joined.push([start, end]);
  }
  return joined;
}

/** Returns a string, a template or a sum as one text. */
function stringText(source, tree, root) {
  const start = root.getStart(tree);
  const text = Array(root.end - start).fill(' ');
  const put = (from, to, of) => {
    for (let i = from; i < to; i += 1) text[i - start] = of(source[i]);
  };
  const literal = (node, closing) => {
    const from = node.getStart(tree) + 1;
    put(from, node.end - closing, (character) => character);
    for (const { 0: escaped, index } of source
      .slice(from, node.end - closing)
      .matchAll(/\\(u[\da-f]{4}|[\s\S])/gi))
      put(from + index, from + index + escaped.length, () => ' ');
  };
  const write = (node) => {
    if (isSum(node)) {
      write(node.left);
      write(node.right);
    } else if (ts.isStringLiteralLike(node)) literal(node, 1);
    else if (ts.isTemplateExpression(node)) {
      literal(node.head, 2);
      let from = node.head.end - 2;
      for (const { literal: part } of node.templateSpans) {
        put(from, part.getStart(tree) + 1, () => 'x');
        const closing = part.kind === ts.SyntaxKind.TemplateTail ? 1 : 2;
        literal(part, closing);
        from = part.end - closing;
      }
    } else put(node.getStart(tree), node.end, () => 'x');
  };
  write(root);
  return { start, text: withoutCode(text.join('')) };
}

/** Returns the comments that `#` opens at the start of a line, or after a blank outside quotes. */
function hashComments(source) {
  const found = [];
  for (const { 0: line, index } of source.matchAll(/.+/g)) {
    const at = [...line.matchAll(/(?<!\S)#(?!!)/g)]
      .map((mark) => mark.index)
      .find((mark) => ["'", '"'].every((quote) => line.slice(0, mark).split(quote).length % 2 === 1));
    if (at !== undefined) found.push([index + at, index + line.length]);
  }
  return joinLines(source, found).map(([start, end]) => ({
    start,
    text: withoutCode(source.slice(start, end).replaceAll(/^[ \t]*#+/gm, blank)),
  }));
}

/** Returns each entry of a YAML file with its continuation lines. People read the names of alerts too. */
function yamlEntries(source) {
  const entries = source.split(/^(?=[ \t]*(?:- )?[\w-]+:)/m);
  let start = 0;
  return entries.map((entry) => {
    const text = { start, text: withoutCode(entry.replaceAll(/["'#]/g, ' ')) };
    start += entry.length;
    return text;
  });
}

/** Returns the paragraphs, list items and table rows of a Markdown page, without fenced code. */
function paragraphs(source) {
  const text = source
    .replaceAll(/^([ \t]*)(`{3,}|~{3,})[\s\S]*?(?:^[ \t]*\2[`~]*[ \t]*$|$(?![\s\S]))/gm, blank)
    .replaceAll(/\]\([^)\s]*\)/g, (link) => `]${'x'.repeat(link.length - 1)}`);
  return [...text.matchAll(/\S.*(?:\n(?![ \t]*(?:\n|[|#>]|[-*] |\d+\. )).*)*/g)].map(
    ({ 0: part, index }) => ({
      start: index,
      text: withoutCode(part),
    }),
  );
}

function withoutCode(text) {
  return text.replaceAll(/(`+)[^`]+\1/g, (part) => part.replaceAll(/\S/g, 'x'));
}

function blank(part) {
  return part.replaceAll(/[^\n]/g, ' ');
}
