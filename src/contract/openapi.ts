import { z } from 'zod';
import { defined } from '../domain/defined.js';
import { type ErrorStatus, errorSchema, STATUS_OF_ERROR } from './errors.js';
import { KNOWN_VALUES } from './primitives.js';
import { RESPONSE_HEADERS } from './response-headers.js';
import { ROUTE_GROUPS, type Route, type RouteBody } from './route.js';
import { headersOf } from './route-headers.js';
import { CONTRACT_VERSION, ROUTES } from './routes/routes.js';

/** A JSON Schema of draft 2020-12, as OpenAPI 3.1 has it. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
  readonly example?: unknown;
}

export interface MediaType {
  readonly schema?: JsonSchema;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

export interface Response {
  readonly description: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<Record<string, MediaType>>;
  /** Code of an error, and the reasons that this operation has for it today. */
  readonly 'x-code'?: string;
  readonly 'x-reasons'?: readonly string[];
}

export interface OperationObject {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: true;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, MediaType>>;
  };
  readonly responses: Readonly<Record<string, Response>>;
  /** The scope that the key must have. */
  readonly 'x-scope'?: string;
  /** Environments that have the operation; absent: all. */
  readonly 'x-environments'?: readonly string[];
}

export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly summary: string;
    readonly description: string;
  };
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly headers: Readonly<Record<string, unknown>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly securitySchemes: Readonly<Record<string, unknown>>;
  };
}

const MAX_INT32 = 2 ** 31 - 1;

const DESCRIPTION = `Verify credentialed audio, and read the record of its production.

\`valid\` says that the service signed the credential, that its registry holds the proof, and that the proof is bound to exactly these audio bytes: what stands behind it is the service's record of the editing that it saw. It says nothing on whether people or machines made the music.

**Authentication.** Every operation but the public ones needs the header \`x-api-key\`. The key is a server-side secret: never in browser code, never logged. Production and beta keys are different secrets and are never interchangeable. A missing or invalid key, or an action the key does not allow, is 403.

**Signed calls.** A key can be made with a public key (Ed25519 or P-256). Each call with it then carries \`Signature-Input\` and \`Signature\` (RFC 9421): one signature that covers \`@method\`, \`@path\`, \`@query\`, \`x-api-key\`, and \`content-digest\` (RFC 9530, \`sha-256\` or \`sha-512\`) where there is a body, with \`created\` (within 60 seconds), \`keyid\` (the id of the API key), a fresh \`nonce\` of 16 to 64 characters, and \`alg\` if it is given. \`@authority\`, \`content-type\` and \`idempotency-key\` may be covered too, nothing else. Without one the call is 403 \`signature_missing\`, otherwise \`signature_invalid\`. Posts to an upload slot are not signed.

**Conventions.** Bodies are JSON in UTF-8, names are camelCase, times are whole unix seconds. Requests are strict: an unknown member or query parameter is 400. Responses may grow: tolerate members that you do not know, in any order. Treat an unknown verdict as a failed verification, and an unknown \`code\` as the class of its status.

**Errors.** Every error has the body \`{ error, code, reason? }\`: \`code\` is one for each status, \`reason\` says precisely what happened. Every response carries \`X-Request-Id\`; quote it in problem reports. A path that does not exist is 404 with the reason \`unknown_route\`; a method that a path does not have is 405 with \`Allow\`. HEAD answers like GET.

**Order of checks.** HTTP grammar, path 404, method 405, key 403, rate 429, media type 415, size 413, body, query and path 400, existence 404, state 409.

**Limits.** Every response to a known key carries \`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\` and \`X-RateLimit-Reset\`: the monthly quota of the partner, exact to the unit. 429 adds \`Retry-After\`; refused calls cost nothing. Request rate and rotation have throttles of their own.

**Versions.** Additive changes ship at any time. Breaking changes are announced at least 6 months ahead (12 months for integrations in production on the old behaviour), with \`Deprecation\`, \`Sunset\` and \`Link\` on the responses they affect.`;

/** Version of the operator API; the one of the contract is the partners'. */
const OPERATOR_VERSION = '1.0.0';

const OPERATOR_DESCRIPTION = [
  [
    'The issuer and operator API of one service: partners, plans and keys, issuing, signing certificates, devices, audit and',
    'dead letters. It is for who runs the service; no partner reaches it.',
  ],
  [
    "**Authentication.** `Authorization: Bearer` with the operator's token, which the first start of a service writes to",
    "`operator-token` of its data directory. Metrics and probes need none, and answer to this machine's names and addresses",
    'alone. Before the token is sent over plain HTTP, `GET /operator/v1/challenge` shows whether whoever listens knows it.',
  ],
  [
    '**Conventions.** Bodies are JSON in UTF-8, names are camelCase, times are whole unix seconds. An unknown member or query',
    'parameter is 400. Responses may grow: tolerate members and words that you do not know. Every error has the body',
    '`{ error, code, reason? }`, every response `X-Request-Id`. No notice of changes is promised.',
  ],
]
  .map((lines) => lines.join(' '))
  .join('\n\n');

interface Described {
  readonly title: string;
  readonly version: string;
  readonly summary: string;
  readonly description: string;
  readonly server: string;
  readonly securitySchemes: Readonly<Record<string, unknown>>;
}

const DOCUMENTS: Readonly<Record<Route['listener'], Described>> = {
  partner: {
    title: 'Takemark partner API',
    version: CONTRACT_VERSION,
    summary: 'Audio verification and review',
    description: DESCRIPTION,
    server:
      'The environment that serves this document: production, or beta with keys, registry and data of its own',
    securitySchemes: {
      apiKey: {
        type: 'apiKey',
        in: 'header',
        name: 'x-api-key',
        description: 'The partner key, issued by the operator and shown once.',
      },
    },
  },
  operator: {
    title: 'Takemark operator API',
    version: OPERATOR_VERSION,
    summary: 'Issuing and operation of one service',
    description: OPERATOR_DESCRIPTION,
    server: 'The operator listener that serves this document',
    securitySchemes: {
      bearer: { type: 'http', scheme: 'bearer', description: "The operator's token." },
    },
  },
};

/**
 * The document of a listener's routes: the contract with partners, or what the operator's side has. Neither has a part
 * of the other.
 */
export function openApiDocument(
  routes: Readonly<Record<string, Route>> = ROUTES,
  listener: Route['listener'] = 'partner',
): OpenApiDocument {
  const { title, version, summary, description, server, securitySchemes } = DOCUMENTS[listener];
  const schemas = new Map<string, JsonSchema>();
  const paths: Record<string, Record<string, OperationObject>> = {};
  const error = schemaOf(errorSchema, schemas);
  for (const [id, route] of Object.entries(routes)) {
    if (route.listener !== listener) continue;
    paths[route.path] ??= {};
    paths[route.path]![route.method.toLowerCase()] = operation(id, route, error, schemas);
  }
  return {
    openapi: '3.1.1',
    info: { title, version, summary, description },
    servers: [{ url: '/', description: server }],
    tags: ROUTE_GROUPS.filter((group) =>
      Object.values(routes).some((route) => route.listener === listener && route.group === group),
    ).map((name) => ({ name })),
    paths,
    components: {
      schemas: Object.fromEntries([...schemas].sort(([a], [b]) => (a < b ? -1 : 1))),
      headers: headerComponents(),
      responses: {
        // The response to methods that a path does not have: no operation has it.
        MethodNotAllowed: {
          description: 'The path does not have that method.',
          headers: {
            'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' },
            Allow: { description: 'The methods it has.', schema: { type: 'string' } },
          },
          ...errorBody(error, 405, []),
        },
      },
      securitySchemes,
    },
  };
}

const SECURITY: Readonly<Record<Route['auth'], OperationObject['security']>> = {
  key: [{ apiKey: [] }],
  bearer: [{ bearer: [] }],
  form: [],
  public: [],
};

function operation(
  id: string,
  route: Route,
  error: JsonSchema,
  schemas: Map<string, JsonSchema>,
): OperationObject {
  const parameters = [
    ...parametersOf('path', route.params, schemas),
    ...parametersOf('query', route.query, schemas),
    ...parametersOf('header', route.headers, schemas),
  ];
  const responses = Object.entries(route.responses).map(
    ([status, { description, mediaTypes, schema }]): [string, Response] => [
      status,
      defined({
        description,
        headers: headerObjects(route, Number(status)),
        content:
          mediaTypes &&
          Object.fromEntries(
            mediaTypes.map((mediaType) => [
              mediaType,
              schema === undefined ? { schema: bytesOf(mediaType) } : jsonContent(schema, schemas),
            ]),
          ),
      }),
    ],
  );
  const errors = Object.entries(route.errors).map(([text, reasons]): [string, Response] => {
    const status = Number(text) as ErrorStatus;
    return [
      text,
      {
        description: STATUS_OF_ERROR[status].description,
        headers: headerObjects(route, status),
        ...errorBody(error, status, reasons),
      },
    ];
  });
  return defined({
    operationId: id,
    tags: [route.group],
    summary: route.summary,
    description: route.description,
    deprecated: route.deprecation && (true as const),
    security: SECURITY[route.auth],
    'x-scope': route.auth === 'key' && route.scope !== 'any' ? route.scope : undefined,
    'x-environments': route.environments,
    parameters: parameters.length === 0 ? undefined : parameters,
    requestBody: requestBody(route.body, schemas),
    responses: Object.fromEntries([...responses, ...errors].sort(([a], [b]) => Number(a) - Number(b))),
  });
}

function parametersOf(
  place: Parameter['in'],
  schema: z.ZodObject | undefined,
  schemas: Map<string, JsonSchema>,
): Parameter[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = inlineSchema(schema, schemas) as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  const examples = ((schema.meta() as { examples?: readonly Readonly<Record<string, unknown>>[] } | undefined)
    ?.examples ?? []) as readonly Readonly<Record<string, unknown>>[];
  return Object.entries(properties).map(([name, { description, ...rest }]) => {
    const example = examples.find((candidate) => candidate[name] !== undefined)?.[name];
    return defined({
      name: place === 'header' ? titleCase(name) : name,
      in: place,
      required: required.includes(name),
      description: typeof description === 'string' ? description : undefined,
      schema: rest,
      example,
    });
  });
}

function requestBody(
  body: RouteBody | undefined,
  schemas: Map<string, JsonSchema>,
): OperationObject['requestBody'] {
  switch (body?.kind) {
    case 'json':
      return {
        required: body.required,
        content: { 'application/json': jsonContent(body.schema, schemas) },
      };
    case 'form': {
      const properties = {
        policy: { type: 'string', description: 'As the slot has it.' },
        signature: { type: 'string', description: 'As the slot has it.' },
        file: {
          type: 'string',
          contentMediaType: 'application/octet-stream',
          description: 'The audio; the last part, with a file name.',
        },
      };
      const schema = {
        type: 'object',
        description: 'Every entry of the `fields` of the slot, then `file`.',
        properties,
        required: Object.keys(properties),
        additionalProperties: false,
      };
      return { required: true, content: { 'multipart/form-data': { schema } } };
    }
    case 'issuing': {
      const file = (description: string) => ({
        type: 'string',
        contentMediaType: 'application/octet-stream',
        description,
      });
      const fields = Object.entries(body.fields).map(([name, description]) => [
        name,
        { type: 'string', contentMediaType: 'application/json', description },
      ]);
      const schema = {
        type: 'object',
        description: 'Fields first, then `trace`, then `file`.',
        properties: {
          ...Object.fromEntries(fields),
          trace: file(`A capture trace of at most ${body.traceBytes} bytes, with a file name.`),
          file: file(`The audio, at most ${body.audioBytes} bytes; the last part, with a file name.`),
        },
        required: ['file'],
        additionalProperties: false,
      };
      return {
        required: true,
        content: { 'application/octet-stream': {}, 'multipart/form-data': { schema } },
      };
    }
    case 'none':
    case undefined:
      return undefined;
  }
}

/** Schema of a body that is no JSON. Generators of clients go by `format`: without it they drop the body. */
function bytesOf(mediaType: string): JsonSchema {
  return mediaType.startsWith('text/') ? { type: 'string' } : { type: 'string', format: 'binary' };
}

function jsonContent(schema: z.ZodType, schemas: Map<string, JsonSchema>): MediaType {
  const { examples = [] } = (schema.meta() ?? {}) as { examples?: readonly unknown[] };
  return defined({
    schema: schemaOf(schema, schemas),
    examples:
      examples.length === 0
        ? undefined
        : Object.fromEntries(examples.map((value, i) => [`example${i + 1}`, { value }])),
  });
}

/**
 * The error body of a status. The code and the reasons are beside it and not in a schema of their own: generators made
 * a class of each, or took part of it only.
 */
function errorBody(error: JsonSchema, status: ErrorStatus, reasons: readonly string[]) {
  return {
    content: { 'application/json': { schema: error } },
    'x-code': STATUS_OF_ERROR[status].code,
    ...(reasons.length > 0 && { 'x-reasons': reasons }),
  };
}

function headerObjects(route: Route, status: number): Record<string, unknown> {
  return Object.fromEntries(
    [...headersOf(route, status)].map(([name, when]) => [
      name,
      { $ref: `#/components/headers/${when === 'always' ? name : `${name}.optional`}` },
    ]),
  );
}

/** Each header twice: a reference cannot say whether it is there every time. */
function headerComponents(): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(RESPONSE_HEADERS).flatMap(([name, { description, type, pattern }]) => {
      const schema = type === 'integer' ? { type, minimum: 0 } : { type, pattern };
      return [
        [name, { description, required: true, schema }],
        [`${name}.optional`, { description, schema }],
      ];
    }),
  );
}

/** The schema, with the schemas that it refers to moved into the document's components. */
function schemaOf(schema: z.ZodType, schemas: Map<string, JsonSchema>): JsonSchema {
  // `input` is the form that may be sent. It also leaves responses open to later members (rule 2.4).
  const {
    $schema: _draft,
    $defs = {},
    ...root
  } = relocate(z.toJSONSchema(schema, { io: 'input', override: spellOut })) as Record<string, unknown>;
  for (const [name, definition] of Object.entries($defs as Record<string, JsonSchema>)) {
    const known = schemas.get(name);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(definition))
      throw new Error(`two schemas are called ${name}`);
    schemas.set(name, definition);
  }
  const { id, ...rest } = root;
  if (typeof id !== 'string') return rest;
  schemas.set(id, rest);
  return { $ref: `#/components/schemas/${id}` };
}

/**
 * Says what generators of clients do not assume: words and members may come (what the service sends is checked by the
 * table's own schema), and numbers need more than 32 bits.
 */
function spellOut({ jsonSchema }: { readonly jsonSchema: Record<string, unknown> }): void {
  if (jsonSchema[KNOWN_VALUES] !== undefined) delete jsonSchema['enum'];
  switch (jsonSchema['type']) {
    case 'object':
      jsonSchema['additionalProperties'] ??= true;
      break;
    case 'integer':
      if (Number(jsonSchema['maximum'] ?? Infinity) > MAX_INT32) jsonSchema['format'] = 'int64';
      break;
    case 'number':
      jsonSchema['format'] = 'double';
      break;
  }
}

/**
 * As schemaOf, but the schema itself and not a reference to it: parameters are listed one by one and no
 * component.
 */
function inlineSchema(schema: z.ZodObject, schemas: Map<string, JsonSchema>): JsonSchema {
  const { id: _id, ...meta } = (schema.meta() ?? {}) as Record<string, unknown>;
  return schemaOf(z.strictObject(schema.shape).meta(meta), schemas);
}

function relocate(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(relocate);
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(
    Object.entries(node).map(([name, value]) => [
      name,
      name === '$ref' && typeof value === 'string'
        ? value.replace('#/$defs/', '#/components/schemas/')
        : relocate(value),
    ]),
  );
}

function titleCase(name: string): string {
  return name.replaceAll(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
}
