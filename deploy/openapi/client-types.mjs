/** Derives the types of the client, `src/client/api-types.ts`, from the OpenAPI document. */
import { execFileSync } from 'node:child_process';

const WIDTH = 100;

/** Names under which partners know a schema, where the document has another. */
const NAMES = {
  Decision: 'DecisionEnvelope',
  Declaration: 'CreatorDeclaration',
  EmbeddedCredential: 'CredentialReport',
  Erasure: 'ErasedProof',
  Key: 'KeyEntry',
  ProofDocument: 'ProofDetail',
  Usage: 'UsageReport',
  Verification: 'VerificationResponse',
};

/** Values that have a name of their own, by the member that they are found at. */
const NAMED_VALUES = {
  KnownVerdict: ['Verification', 'verdict'],
  EvidenceKind: ['OpenEvidence', 'kind'],
  ReviewOutcome: ['ResolveReview', 'outcome'],
};

/** Errors reach a caller as `TakemarkError`, and the client never reads the document itself. */
const LEFT_OUT = new Set(['Error', 'OpenApiDocument']);

const HEAD = `/**
 * Shapes of requests and responses. Derived from deploy/openapi/takemark.json by
 * \`npm run build:openapi\`: not to be edited. Members this version does not know are tolerated and kept.
 */

/** A string of a known set that may grow: completion for the known ones, room for the rest. */
export type Growing<Known extends string> = Known | (string & Record<never, never>);
`;

/**
 * @param {{ components: { schemas: Record<string, object> } }} document
 * @returns {string} the text of the file, formatted as the rest of the code
 */
export function clientTypes(document) {
  const { schemas } = document.components;
  const named = new Map(
    Object.entries(NAMED_VALUES).map(([name, [schema, member]]) => [
      JSON.stringify(wordsOf(schemas[schema].properties[member])),
      name,
    ]),
  );
  const values = [...named].map(([list, name]) => `export type ${name} = ${union(JSON.parse(list))};\n`);
  const types = Object.entries(schemas)
    .filter(([name]) => !LEFT_OUT.has(name))
    .map(([name, schema]) => declaration(NAMES[name] ?? name, schema, named));
  const text = [HEAD, ...values, ...types].join('\n');
  return execFileSync('npx', ['biome', 'format', '--stdin-file-path=src/client/api-types.ts'], {
    input: text,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'ignore'],
  });
}

function declaration(name, schema, named) {
  const type = typeOf(schema, named, schema.enum !== undefined);
  const body = type.startsWith('{') ? `export interface ${name} ${type}` : `export type ${name} = ${type};`;
  return `${comment(schema.description)}${body}\n`;
}

/**
 * @param closed whether it is sent by the client: it knows all values then, while the service may add some
 */
function typeOf(schema, named, closed) {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1);
    return NAMES[name] ?? name;
  }
  const words = wordsOf(schema);
  if (words !== undefined) {
    const known = named.get(JSON.stringify(words)) ?? union(words);
    return closed && schema.enum !== undefined ? known : `Growing<${known}>`;
  }
  if (typeof schema.const === 'string')
    return closed ? union([schema.const]) : `Growing<${union([schema.const])}>`;
  if (schema.const === true) return 'true';
  if (Array.isArray(schema.type))
    return schema.type.map((type) => typeOf({ type }, named, closed)).join(' | ');
  const alternatives = schema.anyOf;
  if (alternatives !== undefined) return alternatives.map((part) => typeOf(part, named, closed)).join(' | ');
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return `readonly ${element(typeOf(schema.items, named, closed))}[]`;
    case 'object':
      return objectType(schema, named, closed || schema.additionalProperties === false);
    default:
      throw new Error(`no type for ${JSON.stringify(schema)}`);
  }
}

/** Words of a schema: all that are taken, or those of a response that are known today. */
function wordsOf(schema) {
  return schema.enum ?? schema['x-extensible-enum'];
}

function objectType({ properties = {}, required = [], additionalProperties }, named, closed) {
  const members = Object.entries(properties).map(
    ([name, schema]) =>
      `${comment(schema.description)}readonly ${name}${required.includes(name) ? '' : '?'}: ${typeOf(schema, named, closed)};`,
  );
  const others = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  if (others !== undefined) {
    const type = Object.keys(others).length === 0 ? 'unknown' : typeOf(others, named, closed);
    if (members.length === 0) return `Readonly<Record<string, ${type}>>`;
    members.push(`readonly [member: string]: ${type};`);
  }
  return `{\n${members.join('\n')}\n}`;
}

function element(type) {
  return /^\w+$|^\{/.test(type) ? type : `(${type})`;
}

function union(values) {
  return values.map((value) => `'${value}'`).join(' | ');
}

/** A docstring, in lines that fit. */
function comment(text) {
  if (text === undefined) return '';
  const lines = [''];
  for (const word of text.split(' ')) {
    if (`${lines.at(-1)} ${word}`.length > WIDTH) lines.push('');
    lines.push(`${lines.pop()} ${word}`.trimStart());
  }
  return lines.length === 1
    ? `/** ${lines[0]} */\n`
    : `/**\n${lines.map((line) => ` * ${line}`).join('\n')}\n */\n`;
}
