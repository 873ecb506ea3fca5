import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Attack } from './attack.js';
import { HealthPulse } from './health-pulse.js';

const CONNECTIONS = 20;
const PIPELINED = 1400;
const SECONDS = 8;
/** The most memory in MiB beyond the cost of twenty callers that wait for each answer. */
const MOST_MIB = 64;
const SLACK_MS = 50;

const line = (method: string, path: string): string => `${method} ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

export const attack: Attack = {
  id: 'pipelined-requests',
  title:
    'Requests for the largest answer, sent without waiting and left unread, delay no other call and hold no memory',
  limitSeconds: 180,
  async run({ service, say }) {
    const open = async (): Promise<Socket> => {
      const socket = connect(service.port, '127.0.0.1').on('error', () => undefined);
      await once(socket, 'connect');
      return socket;
    };
    const watched = async (name: string, work: () => Promise<void>) => {
      const before = await service.rssMiB();
      const pulse = new HealthPulse(service.partnerUrl);
      let most = before;
      let done = false;
      const watching = (async () => {
        while (!done && service.running()) {
          most = Math.max(most, await service.rssMiB());
          await delay(100);
        }
      })();
      await work();
      done = true;
      await watching;
      const { p50, p99, unanswered } = await pulse.stop();
      say(
        `${name}: health p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, ${unanswered} unanswered; ${before.toFixed(0)} to ${most.toFixed(0)} MiB`,
      );
      assert.ok(service.running(), `${name}: the process lives`);
      return { p99, unanswered, before, most };
    };

    // Each caller sends a request after it has read the last answer.
    const inOrder = (method: string) =>
      watched(`${CONNECTIONS} callers in order, ${method}`, async () => {
        const until = Date.now() + SECONDS * 1000;
        await Promise.all(
          Array.from({ length: CONNECTIONS }, async () => {
            while (Date.now() < until)
              await (await fetch(`${service.partnerUrl}/v1/openapi.json`, { method })).arrayBuffer();
          }),
        );
      });
    const pipelined = (name: string, connections: number, method: string, read: boolean) =>
      watched(name, async () => {
        const sockets = await Promise.all(Array.from({ length: connections }, open));
        const burst = line(method, '/v1/openapi.json').repeat(PIPELINED);
        const until = Date.now() + SECONDS * 1000;
        await Promise.all(
          sockets.map(async (socket) => {
            if (read) socket.resume();
            else socket.pause();
            while (Date.now() < until && socket.writable) {
              if (!socket.write(burst))
                await Promise.race([
                  once(socket, 'drain').catch(() => undefined),
                  delay(Math.max(0, until - Date.now())),
                ]);
              else await delay(1);
            }
          }),
        );
        for (const socket of sockets) socket.destroy();
      });

    const order = { GET: await inOrder('GET'), HEAD: await inOrder('HEAD') };
    for (const [name, connections, method, read] of [
      ['1 connection, unread', 1, 'GET', false],
      ['5 connections, unread', 5, 'GET', false],
      [`${CONNECTIONS} connections, unread`, CONNECTIONS, 'GET', false],
      [`${CONNECTIONS} connections, HEAD`, CONNECTIONS, 'HEAD', true],
      [`${CONNECTIONS} connections, read`, CONNECTIONS, 'GET', true],
    ] as const) {
      const { p99, unanswered, before, most } = await pipelined(name, connections, method, read);
      assert.equal(unanswered, 0, `${name}: health is answered`);
      assert.ok(
        p99 <= 2 * order[method].p99 + SLACK_MS,
        `${name}: health waits ${p99.toFixed(0)} ms, and ${order[method].p99.toFixed(0)} ms beside callers in order`,
      );
      // Compares with the higher of two values, because memory that was freed meanwhile may be used again.
      const grown = most - Math.max(before, order[method].most);
      assert.ok(grown <= MOST_MIB, `${name}: ${grown.toFixed(0)} MiB more`);
    }
  },
};
