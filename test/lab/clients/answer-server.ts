/** A server that answers each operation with what is given, and below `/<status>` with an error of that status. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { OpenApiDocument } from '../../../src/service/contract/openapi.js';
import type { Answers } from './real-answers.js';

export interface AnswerServer {
  readonly url: string;
  readonly stop: () => void;
}

export async function serve(document: OpenApiDocument, answers: Answers): Promise<AnswerServer> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => ({
      operationId,
      method: method.toUpperCase(),
      pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    })),
  );
  const server = createServer((request, response) => {
    request.resume();
    const target = new URL(request.url!, 'http://server').pathname;
    const [, error, path] = /^(?:\/(\d{3}))?(\/.*)$/.exec(target)!;
    const operation = operations.find(
      ({ method, pattern }) => method === request.method && pattern.test(path!),
    );
    const name = [operation?.operationId, error].filter(Boolean).join(' ');
    const { status, body } = answers.get(name) ?? { status: 404, body: { error: `no answer to ${name}` } };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
