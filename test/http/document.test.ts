import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { z } from 'zod';
import { ERROR_CODES, ERROR_REASONS } from '../../src/core/domain/errors.js';
import { DECISION_REASON_MEANINGS } from '../../src/core/domain/reference/reasons.js';
import { DECISION_STATUSES, RECOMMENDED_ACTIONS, VERDICTS } from '../../src/core/domain/verdicts.js';
import { type Deprecation, deprecated, noticeProblem } from '../../src/service/contract/deprecation.js';
import {
  type JsonSchema,
  type OpenApiDocument,
  openApiDocument,
} from '../../src/service/contract/openapi.js';
import { KNOWN_VALUES, MEANINGS } from '../../src/service/contract/primitives.js';
import type { OpenRoute, Route } from '../../src/service/contract/route.js';
import { ROUTES } from '../../src/service/contract/routes/routes.js';
import { DEFAULT_LIMITS } from '../../src/service/http/exchange.js';
import { json } from '../../src/service/http/response/response.js';
import { createListener } from '../../src/service/http/server/listener.js';
import { EVIDENCE_CODES } from '../../src/witness/domain/evidence-codes.js';
import { ContractCheck } from '../fixtures/contract-check.js';
import { ids, MemoryReports, startOperator, startPartner, TOKEN } from './doubles.js';
import { ask, jsonOf, request } from './raw-client.js';

function operationsOf({ paths }: OpenApiDocument) {
  return Object.values(paths).flatMap((methods) => Object.values(methods));
}

/** Checks that references lead to something, and that operations have summaries and responses ids. */
function checkParts(t: Test, document: OpenApiDocument, text: string): void {
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g))
    t.ok(document.components.schemas[name!], `${name} is there`);
  for (const [, name] of text.matchAll(/"#\/components\/headers\/([\w.-]+)"/g))
    if (!document.components.headers[name!]) t.fail(`the header ${name} is missing`);
  for (const { operationId, responses, summary } of operationsOf(document)) {
    t.ok(/^[A-Z].*[^.]$/.test(summary), `${operationId}: has a summary`);
    for (const [status, { headers }] of Object.entries(responses))
      if (headers['X-Request-Id'] === undefined) t.fail(`${operationId} ${status}: no request id`);
  }
}

t.test('the document that is checked in is derived from the path table', async (t) => {
  const document = openApiDocument();
  const checkedIn = readFileSync('deploy/openapi/takemark.json', 'utf8');
  t.ok(
    checkedIn === `${JSON.stringify(document, null, 2)}\n`,
    'the one that is checked in is derived from the table; after a change: npm run build:openapi',
  );
  const rows = Object.values<Route>(ROUTES).filter(({ listener }) => listener === 'partner');
  for (const { method, path } of rows)
    t.ok(document.paths[path]?.[method.toLowerCase()], `${method} ${path}`);
  t.equal(Object.values(document.paths).flatMap(Object.keys).length, rows.length, 'and nothing else');
  t.notMatch(checkedIn, /operator\/v1|livez|bearer/, "nothing of the operators'");
  checkParts(t, document, checkedIn);
  for (const { operationId, responses, security } of operationsOf(document))
    if (security.length > 0)
      for (const status of ['403', '429', '503']) t.ok(responses[status], `${operationId}: may be ${status}`);

  const { port, listener } = await startPartner({}, {}, 'beta');
  t.teardown(() => listener.close(100));
  const served = await ask(port, request('GET', '/v1/openapi.json'));
  t.strictSame(jsonOf(served), JSON.parse(checkedIn), 'is what beta serves');
  const page = await ask(port, request('GET', '/docs'));
  const html = page!.body.toString();
  t.equal(page!.headers.get('content-type'), 'text/html; charset=utf-8');
  t.strictSame(
    [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, address]) => address!.replace(/-[0-9a-f]{16}/, '')),
    ['/docs.md', '/docs/reference.js', '/docs/start.js'],
    'the page names nothing else',
  );
  t.notMatch(page!.headers.get('content-security-policy'), /unsafe-eval|https?:/, 'its policy');
  const text = (await ask(port, request('GET', '/docs.md')))!.body.toString();
  const targets = new Set([...text.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id));
  for (const { path } of rows) t.ok(text.includes(path), `${path} is in the text`);
  for (const [anchor, words] of [
    ['verdict', VERDICTS],
    ['status', DECISION_STATUSES],
    ['action', RECOMMENDED_ACTIONS],
    ['reason', Object.keys(DECISION_REASON_MEANINGS)],
    ['error', [...ERROR_CODES, ...ERROR_REASONS]],
  ] as const)
    for (const word of words) t.ok(targets.has(`${anchor}-${word}`), `${anchor} ${word} is on the page`);
  for (const { code } of EVIDENCE_CODES) t.ok(targets.has(`code-${code}`), `${code} is on the page`);
});

t.test('the document and the page in production omit the operations of the sandbox', async (t) => {
  const { port, listener } = await startPartner();
  t.teardown(() => listener.close(100));
  const served = jsonOf(await ask(port, request('GET', '/v1/openapi.json'))) as unknown as OpenApiDocument;
  const whole = openApiDocument();
  const omitted = Object.keys(whole.paths).filter((path) => served.paths[path] === undefined);
  t.strictSame(omitted, ['/v1/sandbox/fixtures', '/v1/sandbox/fixtures/{name}/{part}']);
  t.strictSame(
    whole.tags.filter(({ name }) => !served.tags.some((tag) => tag.name === name)),
    [{ name: 'Sandbox' }],
  );
  const schemas = Object.keys(whole.components.schemas).filter((name) => !served.components.schemas[name]);
  t.strictSame(schemas, ['Fixtures'], 'and the schemas that only they use');
  checkParts(t, served, JSON.stringify(served));
  for (const path of omitted)
    t.equal((await ask(port, request('GET', path.replaceAll(/[{}]/g, ''))))!.status, 404, path);
  t.notMatch((await ask(port, request('GET', '/docs')))!.body.toString(), /sandbox\/fixtures/);
});

t.test('every file in a body is declared as bytes, so that client generators send a file', async (t) => {
  const files = (['partner', 'operator'] as const).flatMap((listener) =>
    operationsOf(openApiDocument(ROUTES, listener)).flatMap(({ operationId, requestBody }) =>
      Object.entries(requestBody?.content ?? {}).flatMap(([mediaType, { schema = {} }]) => {
        const members = (schema['properties'] ?? {}) as Readonly<Record<string, JsonSchema>>;
        if (mediaType === 'application/octet-stream')
          return [`${operationId}: ${schema['type']} ${schema['format']}`];
        return Object.entries(mediaType === 'multipart/form-data' ? members : {})
          .filter(([, member]) => member['contentMediaType'] === 'application/octet-stream')
          .map(([name, member]) => `${operationId}.${name}: ${member['type']} ${member['format']}`);
      }),
    ),
  );
  t.strictSame(files, [
    'postUpload.file: string binary',
    'verifyFile.sidecar: string binary',
    'verifyFile.file: string binary',
    'issueProof: string binary',
    'issueProof.trace: string binary',
    'issueProof.file: string binary',
  ]);
});

t.test('a link has its body as JSON in a string, as client generators need', async (t) => {
  const bodies = operationsOf(openApiDocument())
    .flatMap(({ responses }) => Object.values(responses))
    .flatMap(({ links = {} }) => Object.values(links) as readonly { readonly requestBody?: unknown }[])
    .flatMap(({ requestBody = [] }) => requestBody);
  t.strictSame(
    [...new Set(bodies)]
      .map(String)
      .sort()
      .map((body) => JSON.parse(body)),
    [{ proofId: '{$response.body#/proofId}' }, { uploadId: '{$response.body#/uploadId}' }],
  );
});

t.test("the operator's document has the operator's routes, and is served to the operator", async (t) => {
  const document = openApiDocument(ROUTES, 'operator');
  const checkedIn = readFileSync('deploy/openapi/operator.json', 'utf8');
  t.ok(checkedIn === `${JSON.stringify(document, null, 2)}\n`, 'after a change: npm run build:openapi');
  const rows = Object.values<Route>(ROUTES).filter(({ listener }) => listener === 'operator');
  for (const { method, path, auth } of rows)
    t.strictSame(
      document.paths[path]?.[method.toLowerCase()]?.security,
      auth === 'bearer' ? [{ bearer: [] }] : [],
      `${method} ${path}`,
    );
  t.equal(Object.values(document.paths).flatMap(Object.keys).length, rows.length, 'and nothing else');
  checkParts(t, document, checkedIn);
  for (const { operationId, responses, security } of operationsOf(document))
    if (security.length > 0)
      for (const status of ['403', '503']) t.ok(responses[status], `${operationId}: may be ${status}`);
  t.notMatch(checkedIn, /x-api-key|"apiKey": \[\]|\/v1\/partner\//, 'nothing of the partners');

  const { port, listener } = await startOperator();
  t.teardown(() => listener.close(100));
  const path = '/operator/v1/openapi.json';
  const served = await ask(port, request('GET', path, { Authorization: `Bearer ${TOKEN}` }));
  t.strictSame(jsonOf(served), JSON.parse(checkedIn));
  t.equal((await ask(port, request('GET', path)))!.status, 403, 'not without the token');
  const partner = await startPartner();
  t.teardown(() => partner.listener.close(100));
  t.equal((await ask(partner.port, request('GET', path)))!.status, 404);
});

t.test('no schema is a oneOf, which generated Go clients refuse if a pattern has a comma', (t) => {
  for (const listener of ['partner', 'operator'] as const)
    t.notMatch(JSON.stringify(openApiDocument(ROUTES, listener)), '"oneOf"', listener);
  t.end();
});

for (const listener of ['partner', 'operator'] as const)
  t.test(`every member and parameter of ${listener} routes is described, and a received one is open`, (t) => {
    const { paths, components } = openApiDocument(ROUTES, listener);
    let members = 0;
    const each = (
      schema: JsonSchema,
      where: string,
      look: (schema: JsonSchema, where: string) => void,
    ): void => {
      look(schema, where);
      const properties = (schema['properties'] ?? {}) as Readonly<Record<string, JsonSchema>>;
      for (const [name, member] of Object.entries(properties)) each(member, `${where}.${name}`, look);
      for (const inner of [schema['items'], schema['additionalProperties']])
        if (typeof inner === 'object') each(inner as JsonSchema, `${where}[]`, look);
      for (const part of ['allOf', 'anyOf'])
        for (const inner of (schema[part] ?? []) as readonly JsonSchema[]) each(inner, where, look);
    };
    const described = (schema: JsonSchema, where: string): void => {
      for (const [name, member] of Object.entries(
        (schema['properties'] ?? {}) as Record<string, JsonSchema>,
      )) {
        members += 1;
        if (typeof member['description'] !== 'string') t.fail(`${where}.${name} has no description`);
      }
    };
    for (const [name, schema] of Object.entries(components.schemas)) each(schema, name, described);
    t.ok(members > 200);

    const seen = new Set<string>();
    const meant = new Set<string>();
    const open = (schema: JsonSchema, where: string): void => {
      if (schema['enum'] !== undefined) t.fail(`${where} is a closed list`);
      if (schema['const'] !== undefined) t.fail(`${where} is one value`);
      if (schema['type'] === 'object' && (schema['additionalProperties'] ?? false) === false)
        t.fail(`${where}: generators cannot see that members may be added`);
      if (schema['type'] === 'integer' && (schema['maximum'] as number) >= 2 ** 31)
        t.equal(schema['format'], 'int64', `${where}: generators would take 32 bits`);
      if (schema['type'] === 'number') t.equal(schema['format'], 'double', where);
      const meanings = schema[MEANINGS] as Readonly<Record<string, string>> | undefined;
      if (meanings !== undefined) {
        meant.add(where.split('.').at(-1)!);
        t.strictSame(Object.keys(meanings), schema[KNOWN_VALUES], `${where}: each value has its meaning`);
        for (const meaning of Object.values(meanings)) t.match(meaning, /^[A-Z].*\.$/, where);
      }
      const name = String(schema['$ref'] ?? '').replace('#/components/schemas/', '');
      if (name === '' || seen.has(name)) return;
      seen.add(name);
      each(components.schemas[name]!, name, open);
    };
    for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods))) {
      for (const { name, description, schema } of operation.parameters ?? [])
        t.ok(description ?? schema['description'], `${operation.operationId}: ${name}`);
      for (const [status, response] of Object.entries(operation.responses)) {
        const { content = {} } = response;
        if (Number(status) >= 400) {
          t.strictSame(
            content,
            { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
            `${operation.operationId} ${status}: errors are one class`,
          );
          t.ok(ERROR_CODES.some((code) => code === response['x-code']));
          for (const reason of response['x-reasons'] ?? [])
            if (!ERROR_REASONS.some((known) => known === reason)) t.fail(`${reason} is not a reason`);
        }
        for (const { schema } of Object.values(content)) {
          if (schema === undefined) t.fail(`${operation.operationId} ${status}: a body without a schema`);
          else each(schema, `${operation.operationId} ${status}`, open);
        }
      }
    }
    if (listener === 'operator') return t.end();
    t.ok(seen.has('Verification') && seen.has('EvidenceFact'));
    for (const name of [
      'verdict',
      'status',
      'recommendedAction',
      'carrier',
      'credentialCarrier',
      'container',
      'integrity',
      'trust',
      'type',
      'contentClass',
      'outcome',
      'kind',
      'code',
    ])
      t.ok(meant.has(name), `the values of ${name} have meanings`);
    t.end();
  });

t.test('a deprecation is announced as early as the contract asks', async (t) => {
  const at = (text: string) => Date.parse(`${text}T00:00:00Z`) / 1000;
  const notice = (since: string, sunset: string, inProduction = false): Deprecation => ({
    since: at(since),
    sunset: at(sunset),
    guide: 'https://docs.example.com/move',
    inProduction,
  });
  t.equal(noticeProblem(notice('2026-01-31', '2026-07-31')), undefined);
  t.match(
    noticeProblem({ ...notice('2026-01-31', '2026-07-31'), sunset: at('2026-07-31') - 1 }),
    /6 months/,
    'a second less',
  );
  t.equal(
    noticeProblem(notice('2026-08-31', '2027-02-28')),
    undefined,
    'a month without that day ends with its last',
  );
  t.match(noticeProblem(notice('2026-01-01', '2026-12-31', true)), /12 months/, 'in production');
  t.equal(noticeProblem(notice('2026-01-01', '2027-01-01', true)), undefined);
  t.match(noticeProblem({ ...notice('2026-01-01', '2027-01-01'), guide: '/move' }), /https/);

  const base = {
    listener: 'partner',
    group: 'System',
    summary: 'A row',
    auth: 'public',
    noStore: false,
    errors: { 400: ['malformed_http'], 500: [] },
  } as const;
  const old = deprecated(z.string(), notice('2026-03-01', '2026-10-01'));
  const responses = (schema: z.ZodType) =>
    ({ 200: { description: 'A response', mediaTypes: ['application/json'], schema } }) as const;
  const routes: Record<string, OpenRoute> = {
    plain: { ...base, method: 'GET', path: '/plain', responses: responses(z.object({ a: z.string() })) },
    row: {
      ...base,
      method: 'GET',
      path: '/row',
      responses: responses(z.object({ a: z.string() })),
      deprecation: notice('2026-02-01', '2026-12-01'),
    },
    field: {
      ...base,
      method: 'GET',
      path: '/field',
      responses: responses(z.object({ list: z.array(z.object({ a: old.exactOptional() })) })),
    },
    query: {
      ...base,
      method: 'GET',
      path: '/query',
      query: z.strictObject({ a: old.exactOptional() }),
      responses: responses(z.object({})),
      deprecation: notice('2026-02-01', '2026-12-01'),
    },
  };
  const reports = new MemoryReports();
  const endpoints = Object.entries(routes).map(([id, route]) => ({
    id,
    auth: 'public' as const,
    route,
    run: () => json(200, id === 'field' ? { list: [{ a: 'x' }] } : id === 'query' ? {} : { a: 'x' }),
  }));
  const listener = createListener('partner', endpoints, DEFAULT_LIMITS, {
    ids,
    requestLog: reports,
    observer: reports,
  });
  const { port } = await listener.listen(0, '127.0.0.1');
  t.teardown(() => listener.close(100));
  const check = new ContractCheck({ routes });
  const headersOf = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    t.strictSame(
      check.problems(
        { method: 'GET', target: path },
        {
          status: answer.status,
          headers: new Map(answer.headers),
          body: Buffer.from(await answer.arrayBuffer()),
        },
      ),
      [],
      path,
    );
    return ['deprecation', 'sunset', 'link'].map((name) => answer.headers.get(name));
  };
  const link = '<https://docs.example.com/move>; rel="deprecation"';
  t.strictSame(await headersOf('/plain'), [null, null, null]);
  t.strictSame(await headersOf('/row'), [`@${at('2026-02-01')}`, 'Tue, 01 Dec 2026 00:00:00 GMT', link]);
  t.strictSame(
    await headersOf('/field'),
    [`@${at('2026-03-01')}`, 'Thu, 01 Oct 2026 00:00:00 GMT', link],
    'of a field deep in the answer',
  );
  t.strictSame(
    await headersOf('/query'),
    [`@${at('2026-02-01')}`, 'Thu, 01 Oct 2026 00:00:00 GMT', link],
    'the earliest of each, the guide once',
  );
  const { paths } = openApiDocument(routes);
  t.equal(paths['/row']!['get']!.deprecated, true);
  t.match(JSON.stringify(paths['/field']), /"deprecated":true/);
});
