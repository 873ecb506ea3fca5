/** Derives the types and the JSON operations of the Python package from the OpenAPI document. */

const WIDTH = 100;

/** Errors are raised as `TakemarkError`, and the client does not read the document itself. */
const LEFT_OUT = new Set(['Error', 'OpenApiDocument']);

/** Members that the client adds to a response, by schema. */
const ADDED = {
  Verification: {
    accepted: {
      type: 'boolean',
      description:
        'True only if `good` is true and the verdict is `valid`. The client computes it, so an unknown verdict is not accepted.',
    },
  },
};

/** Operations that are written by hand, because the client does more than one call. */
const BY_HAND = new Set(['rotateKey']);

/** Operations that are safe to repeat although nothing in the document says so. */
const REPEATABLE = new Set(['createUpload', 'verify']);

const GENERATED = 'Derived from deploy/openapi/takemark.json by `npm run build:openapi`. Do not edit.';

/**
 * Returns the generated modules of the package.
 *
 * @param {{ paths: object, components: { schemas: Record<string, object> } }} document
 * @returns {Record<string, string>} the text of each module, by file name
 */
export function pythonModules(document) {
  return {
    'operations.py': operationsModule(document),
    'types.py': typesModule(document.components.schemas),
  };
}

function typesModule(schemas) {
  const types = new Types(schemas);
  for (const name of Object.keys(schemas)) if (!LEFT_OUT.has(name)) types.named(name);
  return `"""Shapes of requests and responses.

${GENERATED} A response can have
members and values that this version does not know. Unknown members are kept.
"""

from typing import Literal, NotRequired, TypedDict

${types.definitions.join('\n')}`;
}

/** Writes a definition for each schema, after the definitions that it refers to. */
class Types {
  definitions = [];
  #schemas;
  /** The expression of each schema that has been visited. */
  #visited = new Map();

  constructor(schemas) {
    this.#schemas = schemas;
  }

  /** Returns the expression for a schema of the document. */
  named(name) {
    if (!this.#visited.has(name)) {
      this.#visited.set(name, `"${name}"`);
      this.#visited.set(name, this.#defined(name, this.#schemas[name], false));
    }
    return this.#visited.get(name);
  }

  #defined(name, schema, closed) {
    const words = wordsOf(schema);
    if (words !== undefined) return this.#alias(name, schema, closed || schema.enum !== undefined);
    if (schema.properties !== undefined) return this.#dictionary(name, schema, closed);
    return this.#typeOf(schema, name, closed);
  }

  /** @param closed whether the client sends the value: it knows all values then, while the service may add some */
  #typeOf(schema, name, closed) {
    if (schema.$ref !== undefined) return this.named(schema.$ref.split('/').at(-1));
    if (wordsOf(schema) !== undefined || schema.properties !== undefined)
      return this.#defined(name, schema, closed);
    const choice = schema.anyOf;
    if (choice !== undefined)
      return choice
        .map((part, i) => this.#typeOf(part, i === 0 ? name : `${name}${i + 1}`, closed))
        .join(' | ');
    switch (schema.type) {
      case 'string':
        return 'str';
      case 'null':
        return 'None';
      case 'boolean':
        return 'bool';
      case 'integer':
        return 'int';
      case 'number':
        return 'float';
      case 'array':
        return `list[${this.#typeOf(schema.items, `${name}Item`, closed)}]`;
      case 'object':
        return Object.keys(schema.additionalProperties ?? {}).length === 0
          ? 'dict[str, object]'
          : `dict[str, ${this.#typeOf(schema.additionalProperties, `${name}Value`, closed)}]`;
      default:
        throw new Error(`no type for ${JSON.stringify(schema)}`);
    }
  }

  #alias(name, schema, closed) {
    const words = wordsOf(schema).map((word) => `    "${word}",\n`);
    this.definitions.push(
      `\n${name} = Literal[\n${words.join('')}]${closed ? '' : ' | str'}\n${docstring(schema.description, '')}`,
    );
    return name;
  }

  #dictionary(name, schema, closed) {
    const { properties, required = [], description, additionalProperties } = schema;
    const added = ADDED[name] ?? {};
    const members = Object.entries({ ...properties, ...added }).map(([member, inner]) => {
      if (!/^[A-Za-z]\w*$/.test(member) || KEYWORDS.has(member))
        throw new Error(`${name}: no Python name for ${member}`);
      const type = this.#typeOf(inner, name + capital(member), closed || additionalProperties === false);
      const always = required.includes(member) || member in added;
      return `    ${member}: ${always ? type : `NotRequired[${type}]`}\n${docstring(inner.description, '    ')}`;
    });
    const text = docstring(description, '    ');
    this.definitions.push(
      `\nclass ${name}(TypedDict):\n${text === '' ? '' : `${text}\n`}${members.join('') || '    pass\n'}`,
    );
    return name;
  }
}

function operationsModule({ paths, components: { schemas } }) {
  const used = new Set();
  const methods = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, operation]) => sendsAndReturnsJson(operation))
      .map(([method, operation]) => methodsOf({ path, method, operation, schemas, used })),
  );
  return `"""The calls that send and return JSON.

${GENERATED}
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from .pages import entries
from .types import (
${[...used]
  .sort()
  .map((name) => `    ${name},\n`)
  .join('')})


class Operations(ABC):
    """One method for each call. Their descriptions are those of \`/docs\`."""

    @abstractmethod
    def _json(
        self,
        operation: str,
        method: str,
        path: tuple[str, ...],
        *,
        query: Mapping[str, str | int | None] | None = None,
        body: object = None,
        idempotency_key: str | None = None,
        repeatable: bool = False,
        public: bool = False,
    ) -> Any:
        """Sends a call and returns the JSON object of its response."""

${methods.join('\n')}`;
}

/** Returns whether the client can send an operation without a form, and gets an object of a known type. */
function sendsAndReturnsJson({ operationId, requestBody, responses }) {
  if (BY_HAND.has(operationId)) return false;
  const sent = requestBody === undefined || requestBody.content['application/json'] !== undefined;
  const [name] = namesOf(successOf(responses)?.content?.['application/json']?.schema);
  return sent && name !== undefined && !LEFT_OUT.has(name);
}

/** Returns the names of a schema: one, or one for each choice. */
function namesOf(schema) {
  return (schema?.anyOf ?? [schema ?? {}]).flatMap(({ $ref }) =>
    $ref === undefined ? [] : [$ref.split('/').at(-1)],
  );
}

function successOf(responses) {
  return Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1];
}

/** Returns the method of an operation, or one for each choice of its body, whose response is the choice of its place. */
function methodsOf(given) {
  const { requestBody, responses, operationId } = given.operation;
  const sent = namesOf(requestBody?.content['application/json'].schema);
  return namesOf(successOf(responses).content['application/json'].schema)
    .map((result, i) =>
      methodOf({
        ...given,
        result,
        sent: sent[i],
        name: i === 0 ? snake(operationId) : snake(sent[i]).slice(1),
        isFirst: i === 0,
      }),
    )
    .join('\n');
}

function methodOf({ path, method, operation, schemas, used, result, sent, name, isFirst }) {
  const { operationId, requestBody, parameters = [], security = [] } = operation;
  used.add(result);
  if (sent !== undefined) used.add(sent);

  const key = parameters.find(({ name }) => name === 'Idempotency-Key');
  // A parameter that the body can have too is sent in the body.
  const query = parameters.filter(
    (parameter) => parameter.in === 'query' && schemas[sent]?.properties[parameter.name] === undefined,
  );
  // A choice other than the first is charged at each call.
  const repeatable = method === 'get' || method === 'delete' || (isFirst && REPEATABLE.has(operationId));
  const parts = path
    .slice(1)
    .split('/')
    .map((part) => (part.startsWith('{') ? snake(part.slice(1, -1)) : `"${part}"`));
  const positional = [
    ...parts.filter((part) => !part.startsWith('"')).map((part) => `${part}: str`),
    ...(sent === undefined ? [] : [requestBody.required ? `body: ${sent}` : `body: ${sent} | None = None`]),
  ];
  const optional = (parameter) => `${snake(parameter.name)}: ${queryType(parameter.schema)} | None = None`;
  const keyed = key === undefined ? [] : [`idempotency_key: ${key.required ? 'str' : 'str | None = None'}`];
  const call = [
    `"${operationId}"`,
    `"${method.toUpperCase()}"`,
    `(${parts.join(', ')})`,
    ...(query.length === 0
      ? []
      : ['query={', ...query.map(({ name }) => `    "${name}": ${snake(name)},`), '}']),
    ...(sent === undefined ? [] : [requestBody.required ? 'body=body' : 'body=body or {}']),
    ...(key === undefined ? [] : ['idempotency_key=idempotency_key']),
    ...(repeatable ? ['repeatable=True'] : []),
    ...(security.length === 0 ? ['public=True'] : []),
  ];
  const page = query.some(({ name }) => name === 'cursor');
  const read = definition({
    name: page ? `${name}_page` : name,
    parameters: [...positional, ...named([...keyed, ...query.map(optional)])],
    result,
    operation,
    body: [
      `return cast(`,
      `    ${result},`,
      `    self._json(`,
      ...call.map((line) => `        ${line}${/[,{]$/.test(line) ? '' : ','}`),
      `    ),`,
      `)`,
    ],
  });
  if (!page) return read;

  const [list, { items }] = Object.entries(schemas[result].properties).find(
    ([, { type }]) => type === 'array',
  );
  const entry = items.$ref.split('/').at(-1);
  used.add(entry);
  const filters = query.filter((parameter) => parameter.name !== 'cursor' && parameter.name !== 'limit');
  const passed = ['cursor', ...filters.map((each) => snake(each.name))].map((each) => `${each}=${each}`);
  const all = definition({
    name,
    parameters: named(filters.map(optional)),
    result: `Iterator[${entry}]`,
    operation: { summary: operation.summary, description: 'Reads page after page, and yields every entry.' },
    body: [
      `return entries(`,
      `    lambda cursor: self.${name}_page(`,
      ...[`limit=${PAGE_ENTRIES}`, ...passed].map((each) => `        ${each},`),
      `    ),`,
      `    "${list}",`,
      `)`,
    ],
  });
  return `${all}\n${read}`;
}

/** The largest page, so that a long list needs the fewest calls. */
const PAGE_ENTRIES = 100;

function named(parameters) {
  return parameters.length === 0 ? [] : ['*', ...parameters];
}

function definition({ name, parameters, result, operation, body }) {
  const text = [
    `${operation.summary}.`,
    ...(operation.description === undefined ? [] : [operation.description]),
  ];
  return `    def ${name}(
        self,
${parameters.map((parameter) => `        ${parameter},\n`).join('')}    ) -> ${result}:
${docstring(text.join('\n\n'), '        ')}${body.map((line) => `        ${line}\n`).join('')}`;
}

function queryType({ $ref, enum: words, type }) {
  if (words !== undefined) return `Literal[${words.map((word) => `"${word}"`).join(', ')}]`;
  return $ref === undefined && type === 'integer' ? 'int' : 'str';
}

/** Words of a schema: all that are accepted, or those of a response that are known today. */
function wordsOf(schema) {
  return schema.enum ?? schema['x-extensible-enum'];
}

/** Returns a docstring with its lines wrapped, or nothing without a text. */
function docstring(text, indent) {
  if (text === undefined) return '';
  if (text.includes('"""') || text.endsWith('"')) throw new Error(`no docstring: ${text}`);
  const lines = `"""${text.replaceAll('\\', '\\\\')}"""`
    .split('\n')
    .flatMap((line) => wrapped(line, WIDTH - indent.length));
  if (lines.length > 1) {
    lines[lines.length - 1] = lines.at(-1).slice(0, -3);
    lines.push('"""');
  }
  return lines.map((line) => (line === '' ? '\n' : `${indent}${line}\n`)).join('');
}

function wrapped(text, width) {
  const lines = [''];
  for (const word of text.split(' ')) {
    if (`${lines.at(-1)} ${word}`.length > width) lines.push('');
    lines.push(`${lines.pop()} ${word}`.trimStart());
  }
  return lines;
}

function capital(name) {
  return name[0].toUpperCase() + name.slice(1);
}

function snake(name) {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const KEYWORDS = new Set(
  'and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield None True False'.split(
    ' ',
  ),
);
