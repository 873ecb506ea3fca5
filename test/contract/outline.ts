import { readFileSync } from 'node:fs';
import type { JsonSchema, OpenApiDocument, OperationObject } from '../../src/service/contract/openapi.js';

/** Names of the documents in `deploy/openapi/`. */
export const DOCUMENTS = ['takemark', 'operator'] as const;

/**
 * The structure of an OpenAPI document without its words, as facts by subject. A subject is an operation, a
 * response, a member or a list of values. Facts are names, types and values that a caller may rely on.
 */
export type Outline = ReadonlyMap<string, readonly string[]>;

/** The end of a subject that lists the required inputs of an operation. A new one breaks callers. */
const REQUIRES = ' requires';

/** Returns the path of the outline of the last release. */
export function releasedFile(name: string): string {
  return `test/contract/released/${name}.txt`;
}

export function readDocument(name: string): OpenApiDocument {
  return JSON.parse(readFileSync(`deploy/openapi/${name}.json`, 'utf8'));
}

export function outlineOf({ paths, components }: OpenApiDocument): Outline {
  const outline = new Map<string, string[]>();
  for (const [path, methods] of Object.entries(paths))
    for (const [method, operation] of Object.entries(methods))
      addOperation(outline, `${method.toUpperCase()} ${path}`, operation, components.schemas);
  for (const [name, schema] of Object.entries(components.schemas)) addSchema(outline, name, schema);
  return outline;
}

function addOperation(
  outline: Map<string, string[]>,
  subject: string,
  operation: OperationObject,
  schemas: Readonly<Record<string, JsonSchema>>,
): void {
  const { operationId, security, parameters = [], requestBody, responses } = operation;
  const keys = security.flatMap(Object.keys);
  add(outline, subject, operationId, ...(keys.length > 0 ? keys : ['public']));
  const required: string[] = [];
  for (const { in: place, name, required: isRequired, schema } of parameters) {
    addSchema(outline, `${subject} ${place} ${name}`, schema);
    if (isRequired) required.push(`${place} ${name}`);
  }
  for (const [mediaType, { schema = {} }] of Object.entries(requestBody?.content ?? {})) {
    addSchema(outline, `${subject} body ${mediaType}`, schema);
    if (requestBody!.required) required.push(`body ${mediaType}`);
    required.push(...requiredMembers(schema, `body ${mediaType}`, schemas));
  }
  add(outline, `${subject}${REQUIRES}`, ...required);
  for (const [status, response] of Object.entries(responses)) {
    const { headers, content = {}, 'x-code': code, 'x-reasons': reasons = [] } = response;
    add(outline, `${subject} ${status}`, ...(code === undefined ? [] : [code]), ...reasons);
    add(outline, `${subject} headers`, ...Object.keys(headers));
    for (const [mediaType, { schema = {} }] of Object.entries(content))
      addSchema(outline, `${subject} ${status} ${mediaType}`, schema);
  }
}

/** Adds the type and the values of a schema and of each inline schema in it. */
function addSchema(
  outline: Map<string, string[]>,
  subject: string,
  schema: JsonSchema,
  required?: boolean,
): void {
  add(
    outline,
    subject,
    ...typesOf(schema),
    ...(required === undefined ? [] : [required ? 'required' : 'optional']),
  );
  for (const one of [schema, ...alternatives(schema)]) {
    const values = valuesOf(one);
    if (values.length > 0) add(outline, `${subject} values`, ...values);
    for (const [name, member] of membersOf(one))
      addSchema(outline, `${subject}.${name}`, member, isRequired(one, name));
    for (const [mark, inner] of innerOf(one)) addSchema(outline, `${subject}${mark}`, inner);
  }
}

function add(outline: Map<string, string[]>, subject: string, ...facts: readonly string[]): void {
  const known = outline.get(subject) ?? [];
  outline.set(subject, [...known, ...facts.filter((fact) => !known.includes(fact))]);
}

/** Returns the type of a schema, or the type of each form of a body that has several. A new form breaks no caller. */
function typesOf(schema: JsonSchema): readonly string[] {
  return (formsOf(schema) ?? [schema]).map(typeOf);
}

/** Returns the forms of a body: the alternatives of a schema, if each of them is a named object. */
function formsOf(schema: JsonSchema): readonly JsonSchema[] | undefined {
  const found = alternatives(schema);
  return found.length > 0 && found.every((form) => form['$ref'] !== undefined) ? found : undefined;
}

function typeOf(schema: JsonSchema): string {
  if (schema['$ref'] !== undefined) return lastSegment(schema);
  const types = alternatives(schema).map(typeOf);
  if (types.length > 0) return types.sort().join(' | ');
  return [[schema['type'] ?? 'any'].flat().join(' | '), schema['format'] ?? []].flat().join(' ');
}

function alternatives(schema: JsonSchema): readonly JsonSchema[] {
  return (schema['anyOf'] ?? []) as readonly JsonSchema[];
}

function valuesOf(schema: JsonSchema): readonly string[] {
  const codes = (schema['x-codes'] ?? []) as readonly { readonly code: string }[];
  const listed = (schema['enum'] ?? schema['x-extensible-enum'] ?? []) as readonly unknown[];
  const constant = 'const' in schema ? [schema['const']] : [];
  return [...listed, ...constant, ...codes.map(({ code }) => code)].map(String);
}

function membersOf(schema: JsonSchema): readonly (readonly [name: string, member: JsonSchema])[] {
  return Object.entries((schema['properties'] ?? {}) as Readonly<Record<string, JsonSchema>>);
}

/** Returns the schemas of array items and of members whose names the document leaves open. */
function innerOf(schema: JsonSchema): readonly (readonly [mark: string, inner: JsonSchema])[] {
  const isSchema = (inner: unknown): inner is JsonSchema => typeof inner === 'object';
  const { items, additionalProperties: others } = schema;
  return [
    ...(isSchema(items) ? [['[]', items] as const] : []),
    ...(isSchema(others) ? [['{}', others] as const] : []),
  ];
}

function isRequired(schema: JsonSchema, name: string): boolean {
  return ((schema['required'] ?? []) as readonly string[]).includes(name);
}

function lastSegment(reference: JsonSchema): string {
  return String(reference['$ref']).split('/').at(-1)!;
}

/**
 * Returns the paths of the required members of a request body, including the members of optional objects. Of a body
 * with several forms, a member is required if all forms require it.
 */
function requiredMembers(
  schema: JsonSchema,
  at: string,
  schemas: Readonly<Record<string, JsonSchema>>,
): readonly string[] {
  const resolved = schema['$ref'] === undefined ? schema : schemas[lastSegment(schema)]!;
  const forms = formsOf(resolved);
  if (forms !== undefined) {
    const [first = [], ...others] = forms.map((one) => requiredMembers(one, at, schemas));
    return first.filter((member) => others.every((other) => other.includes(member)));
  }
  return [resolved, ...alternatives(resolved)].flatMap((one) => [
    ...membersOf(one).flatMap(([name, member]) => [
      ...(isRequired(one, name) ? [`${at}.${name}`] : []),
      ...requiredMembers(member, `${at}.${name}`, schemas),
    ]),
    ...innerOf(one).flatMap(([mark, inner]) => requiredMembers(inner, `${at}${mark}`, schemas)),
  ]);
}

/** Returns the changes that may break a caller. Additions to responses break no caller. */
export function breaks(released: Outline, current: Outline): readonly string[] {
  return [...released].flatMap(([subject, facts]) => {
    const now = current.get(subject);
    if (now === undefined) return [`${subject} was removed`];
    return subject.endsWith(REQUIRES)
      ? without(now, facts).map((fact) => `${subject} ${fact}, which is new`)
      : without(facts, now).map((fact) => `${subject}: ${fact} was removed`);
  });
}

function without(facts: readonly string[], others: readonly string[]): readonly string[] {
  return facts.filter((fact) => !others.includes(fact));
}

/** Returns a line for each subject with its facts. */
export function printOutline(outline: Outline): string {
  return [...outline]
    .map(([subject, facts]) => `${subject}: ${facts.join(', ')}\n`.replace(' \n', '\n'))
    .join('');
}

export function parseOutline(text: string): Outline {
  return new Map(
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const [, subject, facts] = /^(.*?):(?: (.*))?$/.exec(line)!;
        return [subject!, facts?.split(', ') ?? []];
      }),
  );
}
