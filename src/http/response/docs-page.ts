import { createHash } from 'node:crypto';
import type {
  JsonSchema,
  MediaType,
  OpenApiDocument,
  OperationObject,
  Parameter,
  Response,
} from '../../contract/openapi.js';
import { KNOWN_VALUES, MEANINGS } from '../../contract/primitives.js';
import { EVIDENCE_CODES, type EvidenceCode } from '../../domain/evidence-codes.js';
import type { ReferenceEntry } from '../../domain/reference/entry.js';
import { ERROR_CODE_REFERENCE, ERROR_REASON_REFERENCE } from '../../domain/reference/errors.js';
import { DECISION_REASONS, PROFILE_FAULTS, UNCHECKED_PARTS } from '../../domain/reference/reasons.js';
import { ACTION_REFERENCE, STATUS_REFERENCE, VERDICT_REFERENCE } from '../../domain/reference/verdicts.js';
import { BuiltPage } from './built-page.js';
import { DOCS_STYLE } from './docs-style.js';
import { QUICK_STARTS } from './quick-start.js';

/**
 * Renders the contract's OpenAPI document as one page. The page has no script, loads nothing and links only
 * to this listener.
 */
export function buildDocs(document: OpenApiDocument): BuiltPage {
  const style = createHash('sha256').update(DOCS_STYLE).digest('base64');
  return new BuiltPage('text/html; charset=utf-8', docsPage(document), {
    'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  });
}

function docsPage(document: OpenApiDocument): string {
  const { info, tags, paths, components } = document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const groups = tags.map(({ name }) => ({
    name,
    rows: operations.filter(({ operation }) => operation.tags.includes(name)),
  }));
  const navigation = groups
    .map(
      ({ name, rows }) =>
        `<h2>${text(name)}</h2><ul>${rows.map(({ method, path, operation }) => `<li><a href="#${operation.operationId}">${badge(method)}<span>${pathText(path)}</span></a></li>`).join('')}</ul>`,
    )
    .join('');
  const chapters = groups
    .map(
      ({ name, rows }) =>
        `<section><h2 class="group">${text(name)}</h2>${rows.map(({ method, path, operation }) => operationHtml(method, path, operation)).join('')}</section>`,
    )
    .join('');
  const schemas = Object.entries(components.schemas)
    .map(
      ([name, schema]) =>
        `<article class="schema" id="schema-${text(name)}"><h3>${text(name)}</h3>${paragraph(schema['description'])}${schemaHtml(schema)}${examplesHtml((schema['examples'] as readonly unknown[] | undefined) ?? [])}</article>`,
    )
    .join('');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(info.title)} ${text(info.version)}</title>
<style>${DOCS_STYLE}</style>
</head>
<body>
<a class="skip" href="#top">Skip to content</a>
<nav aria-label="Operations"><p class="brand"><a href="#top">${text(info.title)}</a> <small>${text(info.version)}</small></p><h2><a href="#quick-start">Quick start</a></h2>${navigation}<h2><a href="#verdicts">Verdicts and decisions</a></h2><h2><a href="#evidence-codes">Evidence codes</a></h2><h2><a href="#errors">Errors</a></h2><h2><a href="#schemas">Schemas</a></h2></nav>
<main id="top" tabindex="-1">
<header><h1>${text(info.title)} <small>${text(info.version)}</small></h1>${markdown(info.description)}<p>This page is generated from <a href="/v1/openapi.json">openapi.json</a>.</p></header>
<section id="quick-start"><h2 class="group">Quick start</h2>${quickStartHtml()}</section>
${chapters}
<section id="verdicts"><h2 class="group">Verdicts and decisions</h2>${verdictsHtml()}</section>
<section id="evidence-codes"><h2 class="group">Evidence codes</h2>${codesHtml(EVIDENCE_CODES)}</section>
<section id="errors"><h2 class="group">Errors</h2>${errorReferenceHtml()}</section>
<section id="schemas"><h2 class="group">Schemas</h2>${schemas}</section>
</main>
</body>
</html>
`;
}

/** Renders the quick start: a first verification with its settings, in three languages. */
function quickStartHtml(): string {
  const articles = QUICK_STARTS.map(
    ({ id, title, code }) =>
      `<article id="quick-start-${id}"><h3>${text(title)}</h3><pre><code>${text(code)}</code></pre></article>`,
  );
  return `${markdown(
    'Set the environment variable `TAKEMARK_URL` to the address of this page without `/docs`, and `TAKEMARK_API_KEY` to your key. Each program below uploads `song.wav`, verifies it and prints the verdict.\n\n**Accept a file only if `verdict` is `valid` and `good` is true.** If `status` is `needs_review`, have a person review the file first. Treat every other verdict, including an unknown one, as a failed verification. After a 429 or 503, wait for the seconds in `Retry-After` and send the call again. Verifying the same upload again is billed once.',
  )}${articles.join('')}`;
}

/**
 * Renders verdicts, decision statuses, recommended actions and reasons from their registry. Each value has an
 * anchor.
 */
function verdictsHtml(): string {
  const parts: readonly (readonly [string, string, readonly (readonly [string, ReferenceEntry])[]])[] = [
    ['Verdicts', 'verdict', Object.entries(VERDICT_REFERENCE)],
    ['Decision statuses', 'status', Object.entries(STATUS_REFERENCE)],
    ['Recommended actions', 'action', Object.entries(ACTION_REFERENCE)],
    ...Object.entries(DECISION_REASONS).map(
      ([verdict, reasons]) =>
        [`Reasons for <code>${text(verdict)}</code>`, 'reason', Object.entries(reasons)] as const,
    ),
  ];
  const tables = parts.map(([title, anchor, entries]) => {
    const rows = entries.map(
      ([word, { meaning, caller, artist }]) =>
        `<tr id="${anchor}-${text(word)}"><td><code>${text(word)}</code></td><td>${inline(meaning)}</td><td>${inline(caller)}</td><td>${text(artist)}</td></tr>`,
    );
    return `<article><h3>${title}</h3>${table(['Value', 'Meaning', 'What to do', 'Text for the artist'], rows)}</article>`;
  });
  const ofReport = (
    [
      ['failed', 'profile', PROFILE_FAULTS],
      ['not_checked', 'unchecked', UNCHECKED_PARTS],
    ] as const
  ).map(([integrity, anchor, meanings]) => {
    const rows = Object.entries(meanings).map(
      ([word, meaning]) =>
        `<tr id="${anchor}-${text(word)}"><td><code>${text(word)}</code></td><td>${inline(meaning)}</td></tr>`,
    );
    return `<article><h3>Reasons for <code>${integrity}</code> in a credential report</h3>${table(['Value', 'Meaning'], rows)}</article>`;
  });
  return `<p>Treat an unknown verdict as a failed verification.</p>${tables.join('')}${ofReport.join('')}`;
}

/** Renders error codes and reasons from their registry. Each has an anchor. */
function errorReferenceHtml(): string {
  const parts = [
    ['Codes', Object.entries(ERROR_CODE_REFERENCE)],
    ['Reasons', Object.entries(ERROR_REASON_REFERENCE)],
  ] as const;
  const tables = parts.map(([title, entries]) => {
    const rows = entries.map(
      ([word, { meaning, caller }]) =>
        `<tr id="error-${text(word)}"><td><code>${text(word)}</code></td><td>${inline(meaning)}</td><td>${inline(caller)}</td></tr>`,
    );
    return `<article><h3>${title}</h3>${table(['Value', 'Meaning', 'What to do'], rows)}</article>`;
  });
  return `<p>Treat an unknown code by the class of its status, 4xx or 5xx.</p>${tables.join('')}`;
}

/** Renders the codes of evidence reports from their registry. */
function codesHtml(codes: readonly EvidenceCode[]): string {
  const classes = [...new Set(codes.map(({ contentClass }) => contentClass))];
  const tables = classes.map((contentClass) => {
    const rows = codes
      .filter((entry) => entry.contentClass === contentClass)
      .map(
        ({ code, meaning, sentence, since }) =>
          `<tr id="code-${text(code)}"><td><code>${text(code)}</code><small>since ${text(since)}</small></td><td>${inline(meaning)}</td><td>${text(sentence)}</td></tr>`,
      );
    return `<article><h3><code>${text(contentClass)}</code></h3>${table(['Code', 'Meaning', 'Text for a reader'], rows)}</article>`;
  });
  return `<p>Each fact of an evidence report has one of these codes. Show an unknown code as it is.</p>${tables.join('')}`;
}

function operationHtml(method: string, path: string, operation: OperationObject): string {
  const {
    operationId,
    summary,
    description,
    security,
    parameters = [],
    requestBody,
    responses,
    deprecated,
  } = operation;
  const scope = operation['x-scope'];
  const auth =
    security.length === 0
      ? 'No key needed'
      : scope === undefined
        ? 'Any key'
        : `Key with the scope <code>${text(scope)}</code>`;
  const successes = Object.entries(responses).filter(([status]) => Number(status) < 400);
  const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400);
  return `<article id="${operationId}">
<h3>${badge(method)}<code class="path">${pathText(path)}</code>${deprecated === true ? '<b class="deprecated">deprecated</b>' : ''}</h3>
<p class="summary">${text(summary)}<span class="auth">${auth}</span></p>
${description === undefined ? '' : markdown(description)}
${parameters.length === 0 ? '' : `<h4>Parameters</h4>${parametersHtml(parameters)}`}
${requestBody === undefined ? '' : `<h4>Request body${requestBody.required ? '' : ' <small>optional</small>'}</h4>${contentHtml(requestBody.content)}`}
${successes.map(([status, response]) => responseHtml(status, response)).join('')}
<details><summary>Errors: ${errors.map(([status]) => `<code>${status}</code>`).join(' ')}</summary>${errorsHtml(errors)}</details>
</article>`;
}

function parametersHtml(parameters: readonly Parameter[]): string {
  const rows = parameters.map(
    ({ name, in: place, required, description, schema, example }) =>
      `<tr><td><code>${text(name)}</code><small>${place}${required ? ', required' : ''}</small></td><td>${typeHtml(schema)}</td><td>${description === undefined ? '' : inline(description)}${example === undefined ? '' : ` <small>e.g. <code>${text(String(example))}</code></small>`}</td></tr>`,
  );
  return table(['Name', 'Type', 'Meaning'], rows);
}

function contentHtml(content: Readonly<Record<string, MediaType>>): string {
  return Object.entries(content)
    .map(([mediaType, { schema, examples }]) => {
      const shape =
        schema === undefined ? '' : isReference(schema) ? ` ${typeHtml(schema)}` : schemaHtml(schema);
      return `<p class="media"><code>${text(mediaType)}</code>${shape}</p>${examplesHtml(Object.values(examples ?? {}).map(({ value }) => value))}`;
    })
    .join('');
}

function responseHtml(status: string, { description, headers, content }: Response): string {
  const own = Object.keys(headers).filter((name) => !EVERYWHERE.has(name));
  return `<h4><code class="ok">${status}</code> ${text(description)}</h4>${own.length === 0 ? '' : `<p class="headers">Headers ${own.map((name) => `<code>${text(name)}</code>`).join(' ')}</p>`}${contentHtml(content ?? {})}`;
}

/** Headers that the page's introduction describes once for all calls. */
const EVERYWHERE: ReadonlySet<string> = new Set([
  'X-Request-Id',
  'X-Content-Type-Options',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit-Policy',
  'RateLimit',
  'Cache-Control',
]);

/**
 * The most values that are listed with their meanings beside a member. Longer lists have tables of their own.
 */
const MOST_MEANINGS = 16;

function errorsHtml(errors: readonly (readonly [string, Response])[]): string {
  const words = (list: readonly string[]) => list.map((slug) => `<code>${text(slug)}</code>`).join(' ');
  const rows = errors.map(
    ([status, { description, 'x-code': code, 'x-reasons': reasons = [] }]) =>
      `<tr><td><code>${status}</code> ${words([code!])}</td><td>${text(description)}</td><td class="reasons">${words(reasons)}</td></tr>`,
  );
  return table(['Status, code', 'Meaning', 'Reasons'], rows);
}

function schemaHtml(schema: JsonSchema): string {
  const properties = schema['properties'] as Readonly<Record<string, JsonSchema>> | undefined;
  if (properties === undefined) return `<p>${typeHtml(schema)}</p>`;
  const required = (schema['required'] as readonly string[] | undefined) ?? [];
  const rows = Object.entries(properties).map(([name, member]) => {
    const nested = nestedObject(member);
    return `<tr><td><code>${text(name)}</code>${required.includes(name) ? '' : '<small>optional</small>'}</td><td>${typeHtml(member)}</td><td>${typeof member['description'] === 'string' ? inline(member['description']) : ''}${meaningsHtml(member)}${nested === undefined ? '' : schemaHtml(nested)}</td></tr>`;
  });
  return rows.length === 0
    ? '<p><small>An object. Later versions may add members.</small></p>'
    : table(['Member', 'Type', 'Meaning'], rows);
}

/** Renders the values of a member with their meanings, if there are few. Reasons have tables of their own. */
function meaningsHtml(schema: JsonSchema): string {
  const entries = Object.entries((schema[MEANINGS] ?? {}) as Readonly<Record<string, string>>);
  if (entries.length === 0 || entries.length > MOST_MEANINGS) return '';
  const items = entries.map(([word, meaning]) => `<li><code>${text(word)}</code> ${inline(meaning)}</li>`);
  return `<ul class="values">${items.join('')}</ul>`;
}

function nestedObject(schema: JsonSchema): JsonSchema | undefined {
  const inner = schema['type'] === 'array' ? (schema['items'] as JsonSchema) : schema;
  return inner['properties'] === undefined ? undefined : inner;
}

function typeHtml(schema: JsonSchema): string {
  if (isReference(schema)) {
    const name = String(schema['$ref']).split('/').at(-1)!;
    return `<a href="#schema-${text(name)}">${text(name)}</a>`;
  }
  if (schema['enum'] !== undefined)
    return (
      (schema['enum'] as readonly unknown[])
        .map((value) => `<code>${text(String(value))}</code>`)
        .join('<wbr> | ') + defaultText(schema)
    );
  if (schema[KNOWN_VALUES] !== undefined)
    return `${(schema[KNOWN_VALUES] as readonly string[]).map((word) => `<code>${text(word)}</code>`).join('<wbr> | ')} <small>or values added later</small>`;
  if (schema['const'] !== undefined) return `<code>${text(JSON.stringify(schema['const']))}</code>`;
  const kinds = schema['anyOf'] as readonly JsonSchema[] | undefined;
  if (kinds !== undefined) return kinds.map(typeHtml).join(' or ');
  if (schema['type'] === 'array') return `list of ${typeHtml(schema['items'] as JsonSchema)}`;
  if (
    schema['type'] === 'object' &&
    schema['additionalProperties'] !== undefined &&
    typeof schema['additionalProperties'] === 'object'
  )
    return `object of ${typeHtml(schema['additionalProperties'] as JsonSchema)}`;
  return `${text(String(schema['type'] ?? 'any'))}${boundsText(schema)}`;
}

function boundsText(schema: JsonSchema): string {
  const bound = (name: string) =>
    typeof schema[name] === 'number' && Math.abs(schema[name]) < Number.MAX_SAFE_INTEGER
      ? schema[name]
      : undefined;
  const from = bound('minimum') ?? bound('minLength');
  const to = bound('maximum') ?? bound('maxLength');
  const unit = schema['type'] === 'string' ? ' characters' : '';
  const range =
    from !== undefined && to !== undefined
      ? `${from} to ${to}${unit}`
      : from !== undefined && from !== 0
        ? `from ${from}${unit}`
        : to !== undefined
          ? `up to ${to}${unit}`
          : '';
  const pattern =
    typeof schema['pattern'] === 'string' ? ` <code class="pattern">${text(schema['pattern'])}</code>` : '';
  return `${range === '' ? '' : ` <small>${range}</small>`}${pattern}${defaultText(schema)}`;
}

function defaultText(schema: JsonSchema): string {
  return schema['default'] === undefined ? '' : ` <small>default ${text(String(schema['default']))}</small>`;
}

function examplesHtml(examples: readonly unknown[]): string {
  return examples
    .filter((example) => typeof example === 'object')
    .map((example) => `<pre><code>${text(JSON.stringify(example, null, 2))}</code></pre>`)
    .join('');
}

function isReference(schema: JsonSchema): boolean {
  return schema['$ref'] !== undefined;
}

function table(heads: readonly string[], rows: readonly string[]): string {
  return `<div class="wide"><table><thead><tr>${heads.map((head) => `<th>${head}</th>`).join('')}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`;
}

function badge(method: string): string {
  return `<b class="method ${method.toLowerCase()}">${method}</b>`;
}

/** Allows a line break before each segment of a path. */
function pathText(path: string): string {
  return text(path).replaceAll('/', '<wbr>/');
}

function paragraph(value: unknown): string {
  return typeof value === 'string' ? markdown(value) : '';
}

/** Renders the subset of CommonMark that the document's descriptions use: paragraphs, bold and code. */
function markdown(source: string): string {
  return source
    .split('\n\n')
    .map((block) => `<p>${inline(block)}</p>`)
    .join('');
}

function inline(source: string): string {
  return text(source)
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>');
}

function text(source: string): string {
  return source
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
