/** Child process, baseline: node:http and busboy; the file's bytes are counted and thrown away. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import busboy from 'busboy';
import { answerCalls } from '../service/child.js';
import { probe } from '../service/process-use.js';

const server = createServer((request, response) => {
  let bytes = 0;
  const parser = busboy({ headers: request.headers });
  parser.on('file', (_name, stream) => stream.on('data', (chunk: Buffer) => (bytes += chunk.length)));
  parser.on('close', () => {
    const body = JSON.stringify({ bytes });
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
  });
  request.pipe(parser);
});
// A connection that idles while the load waits for its turn is not to end under it.
server.keepAliveTimeout = 0;

const methods = {
  ...probe,
  listen: () =>
    new Promise<number>((resolve) =>
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
    ),
};
export type BusboySink = typeof methods;

answerCalls(methods);
