/**
 * Tests that the Postman collection matches the document, and that the service accepts each of its requests.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { openApiDocument } from '../../src/service/contract/openapi.js';
import { TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import { ROOT } from './pages.js';

interface Setting {
  readonly key: string;
  readonly value: string;
  readonly disabled?: true;
}

interface Request {
  readonly method: string;
  readonly auth?: { readonly type: 'noauth' };
  readonly header: readonly Setting[];
  readonly url: {
    readonly raw: string;
    readonly host: readonly string[];
    readonly path?: readonly string[];
    readonly query?: readonly Setting[];
  };
  readonly body?:
    | { readonly mode: 'raw'; readonly raw: string }
    | {
        readonly mode: 'formdata';
        readonly formdata: readonly (Setting & { readonly type: 'text' | 'file' })[];
      };
}

interface Item {
  readonly name: string;
  readonly item?: readonly Item[];
  readonly request?: Request;
  readonly event?: readonly {
    readonly listen: 'test';
    readonly script: { readonly exec: readonly string[] };
  }[];
}

interface Collection {
  readonly info: { readonly name: string; readonly schema: string };
  readonly auth: { readonly type: string; readonly apikey: readonly Setting[] };
  readonly variable: readonly Setting[];
  readonly item: readonly Item[];
}

const requestsOf = (items: readonly Item[]): readonly Item[] =>
  items.flatMap((entry) => (entry.item === undefined ? [entry] : requestsOf(entry.item)));

async function collection(): Promise<Collection> {
  return JSON.parse(
    await readFile(join(ROOT, 'docs/takemark.postman_collection.json'), 'utf8'),
  ) as Collection;
}

t.test('the collection is that of the OpenAPI document', async (t) => {
  const script = new URL('../../../deploy/openapi/postman-collection.mjs', import.meta.url);
  const { postmanCollection } = (await import(script.href)) as {
    postmanCollection(document: object): Collection;
  };
  const document = openApiDocument();
  const written = await collection();
  t.strictSame(written, JSON.parse(JSON.stringify(postmanCollection(document))), 'npm run build:openapi');
  t.equal(written.info.schema, 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json');
  const asked = requestsOf(written.item);
  const summaries = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods ?? {}).map(({ summary }) => summary),
  );
  const names = new Set(asked.map(({ name }) => name));
  t.strictSame(
    summaries.filter((summary) => !names.has(summary)),
    ['Read a script of the page `/docs`'],
    'each operation is there, except the one that only a browser calls',
  );
  const variables = new Map(written.variable.map(({ key, value }) => [key, value]));
  t.equal(variables.get('apiKey'), '', 'no secret');
  const used = [...JSON.stringify(written).matchAll(/\{\{([^$}]+)\}\}/g)].map(([, name]) => name!);
  t.strictSame(
    used.filter((name) => !variables.has(name)),
    [],
    'each variable is declared',
  );
});

t.test('the service takes each request, from upload to verdict and on', async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  const { operator } = service.service.operations;
  const { partnerId, apiKey } = await service.partner();
  const { file } = await service.issue(partnerId, wav(96_000));
  const { item, variable, auth } = await collection();
  const variables = new Map(variable.map(({ key, value }) => [key, value]));
  variables.set('baseUrl', service.partnerUrl).set('apiKey', apiKey);
  variables.set('keyId', (await operator.createKey({ partnerId, name: 'second' })).keyId);
  const filled = (text: string): string =>
    text
      .replaceAll('{{$guid}}', () => randomUUID())
      .replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => variables.get(name) ?? `no ${name}`);
  const enabled = (settings: readonly Setting[] = []) =>
    settings
      .filter(({ disabled }) => disabled !== true)
      .map(({ key, value }) => [key, filled(value)] as [string, string]);

  const send = async ({ method, auth: own, header, url, body }: Request): Promise<Response> => {
    const headers = new Headers(enabled(header));
    if (own === undefined) {
      const { key, value } = Object.fromEntries(auth.apikey.map((entry) => [entry.key, entry.value]));
      headers.set(key!, filled(value!));
    }
    const query = new URLSearchParams(enabled(url.query)).toString();
    const address = [...url.host, ...(url.path ?? [])].map(filled).join('/');
    t.equal(
      filled(url.raw),
      `${address}${query === '' ? '' : `?${query}`}`,
      'the raw address is the one in parts',
    );
    const form = new FormData();
    if (body?.mode === 'formdata')
      for (const { key, value, type } of body.formdata.filter(({ disabled }) => disabled !== true))
        if (type === 'file') form.set(key, new Blob([Uint8Array.from(file)]), 'audio');
        else form.set(key, filled(value));
    return fetch(filled(url.raw), {
      method,
      headers,
      redirect: 'manual',
      ...(body === undefined ? {} : { body: body.mode === 'raw' ? filled(body.raw) : form }),
    });
  };

  for (const { name, request, event } of requestsOf(item)) {
    const response = await send(request!);
    const text = await response.text();
    // A new service has nothing to download.
    if (request!.url.raw.includes('/v1/download')) t.match(text, 'not_found', name);
    else {
      const pm = {
        test: (_: string, check: () => void) => check(),
        response: {
          json: () => JSON.parse(text),
          to: { have: { status: (status: number) => t.equal(response.status, status, `${name}: ${text}`) } },
        },
        collectionVariables: { set: (key: string, value: string) => variables.set(key, value) },
      };
      runInNewContext(event![0]!.script.exec.join('\n'), { pm });
    }
    // The remaining requests no longer find an erased proof or a resolved case.
    if (request!.method === 'DELETE')
      variables.set('proofId', (await service.issue(partnerId, wav(96_000))).proofId);
  }
});
