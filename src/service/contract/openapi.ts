import { z } from 'zod';
import { defined } from '../../core/domain/defined.js';
import { type ErrorStatus, errorSchema, STATUS_OF_ERROR } from './errors.js';
import { KNOWN_VALUES } from './primitives.js';
import { RESPONSE_HEADERS } from './response-headers.js';
import { isRouteOf, type NextCall, ROUTE_GROUPS, type Route, type RouteBody } from './route.js';
import { headersOf } from './route-headers.js';
import { CONTRACT_VERSION, ROUTES } from './routes/routes.js';

/** A JSON Schema of draft 2020-12, as OpenAPI 3.1 uses it. */
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
  readonly links?: Readonly<Record<string, unknown>>;
  /** The code of an error, and the known reasons of this operation. */
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
  /** The environments that have the operation. Absent: all of them. */
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

\`valid\` means three things: the service signed the credential, its registry holds the proof, and the proof is bound to exactly these audio bytes. The proof rests on the service's record of the editing session. It does not say whether people or machines made the music.

**Authentication.** Every operation except the public ones needs the header \`x-api-key\`. The key is a server-side secret: keep it out of browser code and logs. Production and beta keys are different secrets, and neither works in the other environment. A missing or invalid key, or an action that the key does not allow, is 403.

**Signed calls.** A key can be created with a public key (Ed25519 or P-256). Every call with this key must then carry \`Signature-Input\` and \`Signature\` (RFC 9421). The signature covers \`@method\`, \`@path\`, \`@query\`, \`x-api-key\` and, if there is a body, \`content-digest\` (RFC 9530, \`sha-256\` or \`sha-512\`). It may also cover \`@authority\`, \`content-type\` and \`idempotency-key\`, and nothing else. Its parameters are \`created\` (within 60 seconds), \`keyid\` (the id of the API key), a fresh \`nonce\` of 16 to 64 characters and, optionally, \`alg\`. A call without a signature is 403 \`signature_missing\`. A call with a wrong signature is 403 \`signature_invalid\`. Posts to an upload slot are not signed.

**Conventions.** Bodies are JSON in UTF-8, names are camelCase, times are whole unix seconds. Requests are strict: an unknown member or query parameter is 400. Only public paths and addresses of slots ignore the query. Responses may gain members: ignore members that you do not know, and expect any order. Treat an unknown verdict as a failed verification. Handle an unknown \`code\` by the class of the status (4xx or 5xx).

**Errors.** Every error has the body \`{ error, code, reason? }\`. Each status has one \`code\`, and \`reason\` is the exact cause. Every response carries \`X-Request-Id\`: quote it in problem reports. An unknown path is 404 with the reason \`unknown_route\`. A method that the path does not support is 405 with \`Allow\`. HEAD works like GET.

**Order of checks.** The service checks a request in this order: HTTP grammar (400), path (404), method (405), key (403), rate (429), media type (415), size (413), content of body, query and path (400), existence of the resource (404), state of the resource (409).

**Limits.** Every response to a known key carries \`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\` and \`X-RateLimit-Reset\`. They state the monthly quota of the partner, exact to the unit. If the counter cannot be read, \`X-RateLimit-Remaining\` is absent. A 429 response adds \`Retry-After\`, and \`limit\` names the limit. Refused calls are free. Request rate and key rotation have separate throttles. \`RateLimit-Policy\` and \`RateLimit\` state the request rate and the quota, and \`GET /v1/partner/usage\` has every limit of the plan.

**Versions.** Additive changes ship at any time. Breaking changes are announced at least 6 months ahead, or 12 months ahead if integrations in production use the old behaviour. The affected responses then carry \`Deprecation\`, \`Sunset\` and \`Link\`.`;

/** The version of the operator API. The contract has a version of its own. */
const OPERATOR_VERSION = '1.0.0';

const OPERATOR_DESCRIPTION = [
  [
    'The issuer and operator API of one service: partners, plans and keys, issuing, signing certificates, devices, audit and',
    'dead letters. It is for the operator of the service. Partners cannot reach it.',
  ],
  [
    "**Authentication.** Send `Authorization: Bearer` with the operator's token. The first start of a service writes the token",
    'to the file `operator-token` in its data directory. Metrics and probes need no token. They answer only requests that',
    'address this machine by its own names and addresses. Before you send the token over plain HTTP, use',
    '`GET /operator/v1/challenge` to check that the listener knows the token.',
  ],
  [
    '**Conventions.** Bodies are JSON in UTF-8, names are camelCase, times are whole unix seconds. An unknown member or query',
    'parameter is 400. Responses may gain members and words: ignore what you do not know. Every error has the body',
    '`{ error, code, reason? }`. Every response carries `X-Request-Id`. This API may change without notice.',
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
      'The environment that serves this document: production, or beta with separate keys, registry and data',
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
 * Returns the document of a listener's routes: the partners' contract or the operator API, which share no
 * route.
 * @param environment routes of other environments are omitted. Absent: the document of all environments.
 */
export function openApiDocument(
  routes: Readonly<Record<string, Route>> = ROUTES,
  listener: Route['listener'] = 'partner',
  environment?: string,
): OpenApiDocument {
  const { title, version, summary, description, server, securitySchemes } = DOCUMENTS[listener];
  const schemas = new Map<string, JsonSchema>();
  const paths: Record<string, Record<string, OperationObject>> = {};
  const error = schemaOf(errorSchema, schemas);
  const listed = Object.entries(routes).filter(
    ([, route]) => route.listener === listener && isRouteOf(environment, route),
  );
  for (const [id, route] of listed) {
    paths[route.path] ??= {};
    paths[route.path]![route.method.toLowerCase()] = operation(id, route, error, schemas);
  }
  return {
    openapi: '3.1.1',
    info: { title, version, summary, description },
    servers: [{ url: '/', description: server }],
    tags: ROUTE_GROUPS.filter((group) => listed.some(([, route]) => route.group === group)).map((name) => ({
      name,
    })),
    paths,
    components: {
      schemas: Object.fromEntries([...schemas].sort(([a], [b]) => (a < b ? -1 : 1))),
      headers: headerComponents(),
      responses: {
        // The response to a method that the path does not support. No operation lists it.
        MethodNotAllowed: {
          description: 'The path does not support this method.',
          headers: {
            'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' },
            Allow: { description: 'The methods that the path supports.', schema: { type: 'string' } },
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
    ([status, { description, mediaTypes, schema, next }]): [string, Response] => [
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
        links: next && linksOf(next),
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

/**
 * Returns the links of a response. The body of the next call is a string with embedded expressions, because
 * openapi-generator refuses a document in which this body is an object.
 */
function linksOf(next: Readonly<Record<string, NextCall>>): Response['links'] {
  return Object.fromEntries(
    Object.entries(next).map(([operationId, { parameters, body }]) => [
      operationId,
      defined({
        operationId,
        parameters,
        requestBody:
          body &&
          JSON.stringify(
            Object.fromEntries(Object.entries(body).map(([name, expression]) => [name, `{${expression}}`])),
          ),
      }),
    ]),
  );
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
    case 'form':
    case 'slot': {
      const file = {
        ...FILE,
        description: 'The audio file. It must be the last part and have a file name.',
      };
      const slotFields = {
        policy: { type: 'string', description: '`policy` from the `fields` of the slot, unchanged.' },
        signature: { type: 'string', description: '`signature` from the `fields` of the slot, unchanged.' },
      };
      const schema = {
        type: 'object',
        ...(body.kind === 'slot'
          ? {
              description: 'All entries of `fields` of the slot, then `file`.',
              properties: { ...slotFields, file },
              required: [...Object.keys(slotFields), 'file'],
            }
          : {
              description: 'The optional `sidecar`, then `file`.',
              properties: {
                sidecar: {
                  ...FILE,
                  description: `The sidecar of a pair, of at most ${body.sidecarBytes} bytes. It must have a file name.`,
                },
                file,
              },
              required: ['file'],
            }),
        additionalProperties: false,
      };
      return { required: true, content: { 'multipart/form-data': { schema } } };
    }
    case 'issuing': {
      const file = (description: string) => ({ ...FILE, description });
      const fields = Object.entries(body.fields).map(([name, description]) => [
        name,
        { type: 'string', contentMediaType: 'application/json', description },
      ]);
      const schema = {
        type: 'object',
        description: 'The text fields, then `trace`, then `file`.',
        properties: {
          ...Object.fromEntries(fields),
          trace: file(`A capture trace of at most ${body.traceBytes} bytes. It must have a file name.`),
          file: file(
            `The audio file, at most ${body.audioBytes} bytes. It must be the last part and have a file name.`,
          ),
        },
        required: ['file'],
        additionalProperties: false,
      };
      return {
        required: true,
        content: { 'application/octet-stream': { schema: BYTES }, 'multipart/form-data': { schema } },
      };
    }
    case 'none':
    case undefined:
      return undefined;
  }
}

/**
 * The schema of bytes. Client generators need `format`: without it they drop a body, and send a file of a form
 * as text without a file name.
 */
const BYTES: JsonSchema = { type: 'string', format: 'binary' };
const FILE: JsonSchema = { ...BYTES, contentMediaType: 'application/octet-stream' };

/** Returns the schema of a body other than JSON. */
function bytesOf(mediaType: string): JsonSchema {
  return mediaType.startsWith('text/') ? { type: 'string' } : BYTES;
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
 * Returns the error body of a status. The code and the reasons have no schema of their own, because client
 * generators made a class of each schema or read only a part of it.
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

/**
 * Returns each header twice, as required and as optional: a reference cannot state whether a header is
 * required.
 */
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

/** Returns the schema, and moves the schemas that it refers to into the document's components. */
function schemaOf(schema: z.ZodType, schemas: Map<string, JsonSchema>): JsonSchema {
  // `input` is the form that a caller may send. It also allows later members in responses (rule 2.4).
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
 * States what client generators do not assume: words and members may be added, and numbers need more than 32
 * bits. The table's own schema still checks what the service sends.
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
 * Returns the schema itself where `schemaOf` returns a reference: parameters are listed one by one and are
 * not components.
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
