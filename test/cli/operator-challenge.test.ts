import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { run } from '../../src/cli/program.js';
import { Terminal } from '../../src/cli/terminal.js';
import { defined } from '../../src/core/domain/defined.js';
import { TestService } from '../fixtures/service.js';
import { setUp } from './bench.js';

/** Starts another program in the operator's place. It answers as it likes, and keeps every header that it is sent. */
async function impostor(
  t: Test,
  answer: (request: IncomingMessage) => Promise<{ readonly status?: number; readonly body: string }>,
) {
  const received: string[] = [];
  const server = createServer((request, response) => {
    received.push(...request.rawHeaders);
    request.resume();
    void answer(request).then(({ status = 200, body }) =>
      response.writeHead(status, { 'content-length': Buffer.byteLength(body) }).end(body),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { received, port, url: `http://127.0.0.1:${port}` };
}

t.test('the token is not sent to a stranger that listens at the port', async (t) => {
  const { operator } = await setUp(t);
  const relayed = async (request: IncomingMessage) => ({
    body: await (await fetch(new URL(request.url!, operator.url))).text(),
  });
  const impostors: [string, Parameters<typeof impostor>[1]][] = [
    ['nothing it knows', async () => ({ body: '{"partners":[],"plans":[]}' })],
    [
      'no such route',
      async () => ({ status: 404, body: '{"error":"There is nothing.","code":"not_found"}' }),
    ],
    ['a refusal', async () => ({ status: 403, body: '{}' })],
    ['a guess', async () => ({ body: JSON.stringify({ port: 8081, answers: ['A'.repeat(43)] }) })],
    ['no JSON', async () => ({ body: 'ok' })],
    ['what it asks the service at another port', relayed],
    [
      'that under its own port',
      async (request) => ({
        body: JSON.stringify({
          ...(JSON.parse((await relayed(request)).body) as object),
          port: Number(/:(\d+)$/.exec(request.headers.host ?? '')?.[1]),
        }),
      }),
    ],
  ];
  for (const [what, answer] of impostors) {
    const { received, url } = await impostor(t, answer);
    const { takemark } = await setUp(t, { operatorUrl: url });
    for (const words of [['plan', 'list'], ['partner', 'create', 'Name'], ['authority']]) {
      const { code, out } = await takemark('operator', ...words);
      t.match({ code, out }, { code: 3, out: '' }, `${what}: ${words.join(' ')}`);
    }
    t.ok(received.length > 0);
    t.notMatch(received.join('\n'), /authorization|operator-token/i, `${what}: no token`);
  }
  t.equal(operator.calls.length, 0);
});

t.test('a forwarded port is another one, which the operator has to vouch for', async (t) => {
  const { operator } = await setUp(t);
  const tunnel = await impostor(t, async (request) => {
    const { authorization } = request.headers;
    const response = await fetch(
      new URL(request.url!, operator.url),
      authorization === undefined ? {} : { headers: { authorization } },
    );
    return { status: response.status, body: await response.text() };
  });
  const { takemark } = await setUp(t, { operatorUrl: tunnel.url });
  t.match(await takemark('operator', 'plan', 'list'), {
    code: 3,
    err: new RegExp(
      `listens on port \\d+, but 127\\.0\\.0\\.1:${tunnel.port} is another port\\..* --allow-plain-http`,
    ),
  });
  t.match(await takemark('operator', 'partner', 'list', '--allow-plain-http'), { code: 0 });
});

t.test('the service knows its token, whether it was given or made', async (t) => {
  for (const settings of [{}, { TAKEMARK_OPERATOR_TOKEN: 'a-token-of-the-environment' }]) {
    const service = await TestService.start(settings);
    t.teardown(() => service.stop());
    const list = async (operatorToken: string | undefined) => {
      const written = { out: '', err: '' };
      const output = (to: 'out' | 'err') => ({ write: (chunk: string) => ((written[to] += chunk), true) });
      const config = defined({
        url: service.partnerUrl,
        operatorUrl: service.operatorUrl,
        operatorToken,
        dataDirectory: service.directory,
        profilesFile: join(service.directory, 'profiles.json'),
        allowPlainHttp: false,
        dataDirectoryNamed: false,
      });
      const unused = undefined as never;
      const code = await run(['operator', 'plan', 'list', '--json'], {
        terminal: new Terminal(output('out'), output('err')),
        config,
        version: '0',
        signal: new AbortController().signal,
        openSealer: unused,
        openFileKit: unused,
        readSecret: unused,
        cluster: unused,
      });
      return { code, ...written };
    };
    t.match(await list(settings.TAKEMARK_OPERATOR_TOKEN), { code: 0, out: /"standard"/, err: '' });
    t.match(await list('another-token-altogether'), {
      code: 3,
      out: '',
      err: /does not know the operator token/,
    });
    const requests = service.log
      .map(
        (line) =>
          JSON.parse(line) as { readonly event: string; readonly route?: string; readonly status?: number },
      )
      .filter(({ event }) => event === 'request');
    t.equal(requests.filter(({ status }) => status === 403).length, 0, 'a wrong token is not even sent');
  }
});
