/**
 * A server that answers each operation with what is given, and below `/<status>` with an error of that status, and
 * below `/digests` with the answer to digests. It answers a form with 400 unless the form is the one that the service
 * accepts, with the file that was given.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { OpenApiDocument } from '../../../src/service/contract/openapi.js';
import type { Answers } from './real-answers.js';

export interface AnswerServer {
  readonly url: string;
  readonly stop: () => void;
}

/** The text fields of each form. The programs send one value for all of them. */
const FORM_FIELDS: Readonly<Record<string, readonly string[]>> = {
  postUpload: ['policy', 'signature'],
  verifyFile: [],
};
const FIELD_VALUE = 'given';

/** @param file the bytes of the file that the programs send */
export async function serve(
  document: OpenApiDocument,
  answers: Answers,
  file: Buffer,
): Promise<AnswerServer> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => ({
      operationId,
      method: method.toUpperCase(),
      pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    })),
  );
  const server = createServer(async (request, response) => {
    const target = new URL(request.url!, 'http://server').pathname;
    const [, form, path] = /^(?:\/(\d{3}|digests))?(\/.*)$/.exec(target)!;
    const operation = operations.find(
      ({ method, pattern }) => method === request.method && pattern.test(path!),
    )?.operationId;
    const body = await buffer(request);
    const fault = await formFault(operation ?? '', String(request.headers['content-type']), body, file);
    const name = [operation, form].filter(Boolean).join(' ');
    const answer = answers.get(name) ?? { status: 404, body: { error: `no answer to ${name}` } };
    const { status, body: sent } = fault === undefined ? answer : { status: 400, body: { error: fault } };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(sent));
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

/** Returns what is wrong with the form of an operation. The service needs the fields first, and the file last. */
async function formFault(
  operation: string,
  type: string,
  body: Buffer,
  file: Buffer,
): Promise<string | undefined> {
  const fields = FORM_FIELDS[operation];
  if (fields === undefined) return undefined;
  const parts = await new Response(body, { headers: { 'content-type': type } })
    .formData()
    .then((form) => [...form])
    .catch(() => []);
  const [name, value] = parts.at(-1) ?? [];
  if (name !== 'file' || typeof value !== 'object') return 'the last part is not the file';
  if (!Buffer.from(await value.arrayBuffer()).equals(file)) return 'the file has other bytes';
  const before = parts.slice(0, -1);
  return before.length === fields.length &&
    before.every(([field, given]) => fields.includes(field) && given === FIELD_VALUE)
    ? undefined
    : `the fields are ${before.map(([field]) => field).join(', ')}`;
}
