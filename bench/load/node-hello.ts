/** Child process, baseline: a plain server of `node:http` that says hello, which is the least that a call can cost. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerCalls } from '../service/child.js';

const HELLO = 'hello';

const methods = {
  listen: () =>
    new Promise<number>((resolve) => {
      const server = createServer((_request, response) => {
        response.setHeader('Content-Length', HELLO.length);
        response.end(HELLO);
      });
      // A connection that idles while the load waits for its turn must not end.
      server.keepAliveTimeout = 0;
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
    }),
};
export type NodeHello = typeof methods;

answerCalls(methods);
