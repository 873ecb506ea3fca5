/** The samples at `/docs`: in each language, each program sends exactly the call that the document describes. */
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { openApiDocument } from '../../src/service/contract/openapi.js';
import { shownDocument } from '../../src/service/http/response/docs/document.js';
import { type SampleCall, sampleCall, samplesOf } from '../../src/service/http/response/docs/samples.js';
import { needs } from '../fixtures/tools.js';
import { compile } from './compile.js';
import { runProgram } from './run-program.js';

const KEY = 'tmk_beta_example';
const SOUND = 'bytes of a song';
const ANSWER = '{"answered":true}';
interface Language {
  readonly file: string;
  readonly command: readonly string[];
  /** The programs that a sample calls. */
  readonly programs: readonly string[];
}

const LANGUAGES: Readonly<Record<string, Language>> = {
  shell: { file: 'sample.sh', command: ['sh', 'sample.sh'], programs: ['curl'] },
  python: { file: 'sample.py', command: ['python3', 'sample.py'], programs: ['python3'] },
  typescript: { file: 'sample.mts', command: [process.execPath, 'sample.mjs'], programs: [] },
  go: { file: 'sample.go', command: ['go', 'run', 'sample.go'], programs: ['go'] },
  java: { file: 'Sample.java', command: ['java', 'Sample.java'], programs: ['javac'] },
};

const document = openApiDocument();
const [slot] = document.components.schemas['UploadSlot']!['examples'] as readonly {
  readonly fields: Readonly<Record<string, string>>;
}[];
const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    id: operation.operationId,
    form: operation.requestBody?.content['multipart/form-data']?.schema,
    call: sampleCall(method.toUpperCase(), path, operation, slot!.fields),
  })),
);

interface Received {
  readonly method: string | undefined;
  readonly target: string | undefined;
  readonly key: string | undefined;
  readonly mediaType: string | undefined;
  readonly body: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** Starts a server that keeps each request and answers it with a body and an address. */
async function listen(t: Test, status = 200) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const { method, url: target, headers } = request;
    received.push({
      method,
      target,
      key: headers['x-api-key'] as string | undefined,
      mediaType: headers['content-type']?.split(';')[0],
      body: await text(request),
      headers,
    });
    const isRedirect = target!.startsWith('/v1/download') || target === '/';
    response.writeHead(isRedirect ? 302 : status, isRedirect ? { location: '/elsewhere' } : {}).end(ANSWER);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close().closeAllConnections());
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Compares a request with the call that its sample makes. */
function checkRequest(t: Test, name: string, call: SampleCall, request: Received): void {
  t.strictSame(
    [request.method, request.target, request.key],
    [call.method, call.target, call.needsKey ? KEY : undefined],
    name,
  );
  for (const [header, value] of call.headers)
    t.equal(request.headers[header.toLowerCase()], value, `${name}: ${header}`);
  if (call.body?.kind === 'json') {
    t.equal(request.mediaType, 'application/json', name);
    t.strictSame(JSON.parse(request.body), call.body.value, name);
  } else if (call.body?.kind === 'form') {
    t.equal(request.mediaType, 'multipart/form-data', name);
    const places = [...call.body.fields.flat(), 'name="file"; filename="song.wav"', SOUND].map((part) =>
      request.body.indexOf(part),
    );
    t.strictSame(
      places,
      places.toSorted((a, b) => a - b),
      `${name}: the file is the last part`,
    );
    t.ok(
      places.every((place) => place >= 0),
      `${name}: the form is whole`,
    );
  } else t.equal(request.body, '', name);
}

t.test('every operation has a sample in each language, which names its path', (t) => {
  const { paths } = shownDocument(document);
  for (const [path, methods] of Object.entries(paths))
    for (const operation of Object.values(methods)) {
      const samples = operation['x-codeSamples'];
      t.strictSame(
        samples.map(({ lang }) => lang),
        Object.keys(LANGUAGES),
        operation.operationId,
      );
      for (const { source } of samples) t.ok(source.includes(path.split('{')[0]!), path);
    }
  t.end();
});

t.test('the sample of a form sends what the document requires, and nothing else', (t) => {
  const forms = calls.flatMap(({ id, form, call }) =>
    form === undefined || call.body?.kind !== 'form'
      ? []
      : [[id, [...call.body.fields.map(([name]) => name), 'file'], form['required']] as const],
  );
  t.strictSame(forms.map(([id]) => id).toSorted(), ['postUpload', 'verifyFile']);
  for (const [id, sent, required] of forms) t.strictSame(sent, required, id);
  t.end();
});

for (const [language, { file, command }] of Object.entries(LANGUAGES))
  t.test(
    `each ${language} sample sends the call of the document`,
    { skip: needs('go', 'javac', 'curl', 'python3') },
    async (t) => {
      const { received, url } = await listen(t);
      for (const { id, call } of calls) {
        const directory = t.testdir({ 'song.wav': SOUND });
        const source = samplesOf(call).find(({ lang }) => lang === language)!.source;
        await writeFile(join(directory, file), source);
        if (language === 'typescript') t.equal(compile(join(directory, file), { directory }), '', id);
        const ran = await runProgram('sh', ['-c', 'cd "$0" && exec "$@"', directory, ...command], {
          TAKEMARK_URL: url,
          TAKEMARK_API_KEY: KEY,
          no_proxy: '127.0.0.1',
        });
        t.equal(ran.code, 0, `${id}: ${ran.err}`);
        checkRequest(t, id, call, received.pop()!);
        t.equal(received.length, 0, `${id}: one request`);
        if (call.result === 'text') t.equal(ran.out.trim(), ANSWER, id);
        if (call.result === 'location') t.match(ran.out, /\/elsewhere\n$/, id);
        if (call.result === 'file')
          t.equal(await readFile(join(directory, 'response.bin'), 'utf8'), ANSWER, id);
      }
    },
  );

for (const [language, { file, command, programs }] of Object.entries(LANGUAGES))
  t.test(
    `a ${language} sample prints the body of a refusal, and fails`,
    { skip: needs(...programs) },
    async (t) => {
      const { url } = await listen(t, 403);
      const { call } = calls.find(({ id }) => id === 'readUsage')!;
      const directory = t.testdir();
      const source = samplesOf(call).find(({ lang }) => lang === language)!.source;
      await writeFile(join(directory, file), source);
      if (language === 'typescript') t.equal(compile(join(directory, file), { directory }), '');
      const run = (key: string) =>
        runProgram('sh', ['-c', 'cd "$0" && exec "$@"', directory, ...command], {
          TAKEMARK_URL: url,
          TAKEMARK_API_KEY: key,
          no_proxy: '127.0.0.1',
        });
      const { code, out, err } = await run(KEY);
      t.not(code, 0);
      t.match(out + err, ANSWER);
      const { out: other, err: error } = await run(`${KEY}\r`);
      t.notMatch(other + error, KEY, 'a key from a file with Windows line ends is not shown');
    },
  );
