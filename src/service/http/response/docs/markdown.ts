import type { JsonSchema, MediaType } from '../../../contract/openapi.js';
import { BuiltPage } from '../built-page.js';
import type { ShownDocument, ShownOperation } from './document.js';
import { REFERENCE } from './reference.js';

/** Returns the documentation as Markdown, for readers without scripts and for programs. */
export function docsText(document: ShownDocument): BuiltPage {
  return BuiltPage.of('text/markdown; charset=utf-8', textOf(document));
}

/** Returns the index of the documentation in the format of llmstxt.org. */
export function docsIndex(document: ShownDocument): BuiltPage {
  const { info } = document;
  const operations = operationsOf(document).map(
    ({ method, path, operation }) =>
      `- [${method} ${path}](/docs.md#${operation.operationId}): ${operation.summary}`,
  );
  return BuiltPage.of(
    'text/plain; charset=utf-8',
    `# ${info.title}

> ${info.summary}. Version ${info.version} of the contract.

Accept a file only if \`verdict\` is \`valid\` and \`good\` is true. Send the key in the header \`x-api-key\`.

## Documentation

- [Everything as Markdown](/docs.md): the conventions, every operation with samples, every verdict, reason and error
- [OpenAPI document](/v1/openapi.json): for programs and generators of clients

## Operations

${operations.join('\n')}
`,
  );
}

function operationsOf({ paths }: ShownDocument) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

function textOf(document: ShownDocument): string {
  const { info, components } = document;
  const operations = operationsOf(document);
  const groups = document['x-tagGroups'][0]!.tags.map((group) =>
    [
      `## ${group}`,
      ...operations
        .filter(({ operation }) => operation.tags.includes(group))
        .map(({ method, path, operation }) => operationText(method, path, operation)),
    ].join('\n\n'),
  );
  const schemas = Object.entries(components.schemas).map(([name, schema]) =>
    [
      anchored(`schema-${name}`, '###', name),
      ...(typeof schema['description'] === 'string' ? [schema['description']] : []),
      ...membersText(schema),
      ...examplesText((schema['examples'] as readonly unknown[] | undefined) ?? []),
    ].join('\n\n'),
  );
  const chapters = REFERENCE.map(({ title, introduction, sections }) =>
    [
      `## ${title}`,
      introduction,
      ...sections.map(({ anchor, word, paragraphs }) =>
        [anchored(anchor, '###', `\`${word}\``), ...paragraphs].join('\n\n'),
      ),
    ].join('\n\n'),
  );
  return `${[`# ${info.title} ${info.version}`, info.description, ...groups, ...chapters, '## Schemas', ...schemas].join('\n\n')}\n`;
}

function operationText(method: string, path: string, operation: ShownOperation): string {
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  const rows = parameters.map(
    ({ name, in: place, required, description = '', schema }) =>
      `- \`${name}\` (${place}, ${typeText(schema)}${required ? ', required' : ''}): ${description}`,
  );
  return [
    anchored(operationId, '###', summary),
    `\`${method} ${path}\``,
    ...(description === undefined ? [] : [description]),
    ...(rows.length === 0 ? [] : ['**Parameters**', rows.join('\n')]),
    ...(requestBody === undefined
      ? []
      : [
          `**Request body**${requestBody.required ? '' : ' (optional)'}`,
          ...contentText(requestBody.content),
        ]),
    ...Object.entries(responses).flatMap(([status, { description, content = {} }]) =>
      Number(status) >= 400
        ? [`**${status}** ${description}`]
        : [`**${status}** ${description}`, ...contentText(content)],
    ),
    ...operation['x-codeSamples'].map(
      ({ lang, label, source }) => `**${label}**\n\n\`\`\`${lang}\n${source}\`\`\``,
    ),
  ].join('\n\n');
}

function contentText(content: Readonly<Record<string, MediaType>>): readonly string[] {
  return Object.entries(content).flatMap(([mediaType, { schema, examples = {} }]) => [
    `\`${mediaType}\`${schema === undefined ? '' : `: ${typeText(schema)}`}`,
    ...(schema === undefined ? [] : membersText(schema)),
    ...examplesText(Object.values(examples).map(({ value }) => value)),
  ]);
}

function membersText(schema: JsonSchema, depth = 0): readonly string[] {
  const lines = memberLines(schema, depth);
  return lines.length === 0 ? [] : [lines.join('\n')];
}

function memberLines(schema: JsonSchema, depth: number): readonly string[] {
  const required = (schema['required'] as readonly string[] | undefined) ?? [];
  const properties = (schema['properties'] ?? {}) as Readonly<Record<string, JsonSchema>>;
  const indent = '  '.repeat(depth);
  return Object.entries(properties).flatMap(([name, member]) => {
    const description = String(member['description'] ?? '').replaceAll(/\n+/g, `\n${indent}  `);
    const inner = (member['type'] === 'array' ? member['items'] : member) as JsonSchema;
    return [
      `${indent}- \`${name}\` (${typeText(member)}${required.includes(name) ? '' : ', optional'}): ${description}`,
      ...memberLines(inner, depth + 1),
    ];
  });
}

function typeText(schema: JsonSchema): string {
  if (typeof schema['$ref'] === 'string') {
    const name = schema['$ref'].split('/').at(-1)!;
    return `[${name}](#schema-${name})`;
  }
  if (Array.isArray(schema['enum'])) return schema['enum'].map((word) => `\`${word}\``).join(', ');
  if (Array.isArray(schema['anyOf'])) return schema['anyOf'].map(typeText).join(' or ');
  if (schema['type'] === 'array') return `list of ${typeText(schema['items'] as JsonSchema)}`;
  return String(schema['type'] ?? 'any');
}

function examplesText(examples: readonly unknown[]): readonly string[] {
  return examples
    .filter((example) => typeof example === 'object')
    .map((example) => `\`\`\`json\n${JSON.stringify(example, null, 2)}\n\`\`\``);
}

function anchored(anchor: string, marks: string, title: string): string {
  return `<a id="${anchor}"></a>\n\n${marks} ${title}`;
}
