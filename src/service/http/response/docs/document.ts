import type { JsonSchema, OpenApiDocument, OperationObject, Response } from '../../../contract/openapi.js';
import { KNOWN_VALUES, MEANINGS } from '../../../contract/primitives.js';
import { QUICK_STARTS } from './quick-start.js';
import { REFERENCE } from './reference.js';
import { type CodeSample, sampleCall, samplesOf } from './samples.js';

/** An operation as the documentation shows it. */
export interface ShownOperation extends OperationObject {
  readonly 'x-codeSamples': readonly CodeSample[];
}

interface ShownTag {
  readonly name: string;
  readonly 'x-displayName'?: string;
  readonly description?: string;
}

/** The OpenAPI document with the texts and samples that only readers need. */
export interface ShownDocument extends Omit<OpenApiDocument, 'paths' | 'tags'> {
  readonly paths: Readonly<Record<string, Readonly<Record<string, ShownOperation>>>>;
  readonly tags: readonly ShownTag[];
  readonly 'x-tagGroups': readonly { readonly name: string; readonly tags: readonly string[] }[];
}

/** The most values whose meanings are listed beside a member. Longer lists are chapters of their own. */
const MOST_MEANINGS = 16;

/** The quick start as Markdown. */
const QUICK_START = [
  'Set the environment variable `TAKEMARK_URL` to the address of this page without `/docs`, and `TAKEMARK_API_KEY` to your key. Each program below sends `song.wav` and prints its verdict.',
  '**Accept a file only if `verdict` is `valid` and `good` is true.** If `status` is `needs_review`, have a person review the file first. Treat every other verdict, including an unknown one, as a failed verification. After a 429 or 503, wait for the seconds in `Retry-After` and send the call again. Each verdict costs one unit. To repeat a call without a second charge, send it with an `Idempotency-Key`.',
  ...QUICK_STARTS.map(({ title, lang, code }) => `### ${title}\n\n\`\`\`${lang}\n${code}\`\`\``),
].join('\n\n');

/** Returns the document for readers: with samples, scopes, meanings of values, and the reference chapters. */
export function shownDocument(document: OpenApiDocument): ShownDocument {
  const slot = document.components.schemas['UploadSlot']!['examples'] as readonly {
    readonly fields: Readonly<Record<string, string>>;
  }[];
  const paths = Object.fromEntries(
    Object.entries(document.paths).map(([path, methods]) => [
      path,
      Object.fromEntries(
        Object.entries(methods).map(([method, operation]) => [
          method,
          shownOperation(method.toUpperCase(), path, operation, slot[0]!.fields),
        ]),
      ),
    ]),
  );
  const words = REFERENCE.map(({ title, sections }) => ({
    name: title,
    tags: sections.map(({ anchor, word, paragraphs }) => ({
      name: anchor,
      'x-displayName': word,
      description: paragraphs.join('\n\n'),
    })),
  }));
  // A bold word at the start of a paragraph becomes a heading, which is part of the navigation.
  const introduction = document.info.description.replaceAll(/^\*\*(.+?)\.\*\* /gm, '## $1\n\n');
  return withMeanings({
    ...document,
    info: { ...document.info, description: `${introduction}\n\n## Quick start\n\n${QUICK_START}` },
    // Without security schemes the page has no field for a key.
    components: { ...document.components, securitySchemes: {} },
    paths,
    tags: [...document.tags, ...words.flatMap(({ tags }) => tags)],
    'x-tagGroups': [
      { name: 'Operations', tags: document.tags.map(({ name }) => name) },
      ...words.map(({ name, tags }) => ({ name, tags: tags.map((tag) => tag.name) })),
    ],
  }) as ShownDocument;
}

function shownOperation(
  method: string,
  path: string,
  operation: OperationObject,
  slotFields: Readonly<Record<string, string>>,
): ShownOperation {
  const { security, description, responses } = operation;
  const scope = operation['x-scope'];
  const key =
    security.length === 0
      ? 'No key is needed.'
      : scope === undefined
        ? 'Any key may call it.'
        : `The key needs the scope \`${scope}\`.`;
  return {
    ...operation,
    description: description === undefined ? key : `${description}\n\n${key}`,
    security: [],
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [status, shownResponse(response)]),
    ),
    'x-codeSamples': samplesOf(sampleCall(method, path, operation, slotFields)),
  };
}

/** Returns the response with the code and reasons of its error, which link to their sections. */
function shownResponse(response: Response): Response {
  const { description, 'x-code': code, 'x-reasons': reasons = [] } = response;
  if (code === undefined) return response;
  const words = [code, ...reasons].map((word) => `[\`${word}\`](#error-${word})`);
  return { ...response, description: `${description} ${words.join(', ')}` };
}

/**
 * Returns a copy of a value of the document, in which each list of known values is part of its description. The
 * copy omits what the library cannot show: names of members, and codes, which are a chapter of their own.
 */
function withMeanings(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withMeanings);
  if (typeof value !== 'object' || value === null) return value;
  const { [MEANINGS]: meanings, 'x-codes': _codes, propertyNames: _names, ...rest } = value as JsonSchema;
  const copy = Object.fromEntries(Object.entries(rest).map(([name, member]) => [name, withMeanings(member)]));
  const words = copy[KNOWN_VALUES] as readonly string[] | undefined;
  if (words === undefined) return copy;
  const known = (meanings ?? {}) as Readonly<Record<string, string>>;
  const list =
    words.length > MOST_MEANINGS
      ? ''
      : words.map((word) => `\n- \`${word}\`${known[word] === undefined ? '' : `: ${known[word]}`}`).join('');
  const description = [
    copy['description'],
    `Later versions may add values.${list === '' ? '' : `\n${list}`}`,
  ];
  return { ...copy, description: description.filter((part) => typeof part === 'string').join(' ') };
}
