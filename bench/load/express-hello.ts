/** Child process, baseline: Express 5 as it comes, with one route that says hello. */

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { answerCalls } from '../service/child.js';

const HELLO = 'hello';

const app = express();
app.get('/', (_request, response) => void response.send(HELLO));

const methods = {
  listen: () =>
    new Promise<number>((resolve) => {
      const server: Server = app.listen(0, '127.0.0.1', () =>
        resolve((server.address() as AddressInfo).port),
      );
      // A connection that idles while the load waits for its turn is not to end under it.
      server.keepAliveTimeout = 0;
    }),
};
export type ExpressHello = typeof methods;

answerCalls(methods);
