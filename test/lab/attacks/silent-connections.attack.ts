import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Attack } from './attack.js';
import { HealthPulse } from './health-pulse.js';

const TABLE = 512;
const CONNECTIONS = 600;
const SECONDS = 10;

export const attack: Attack = {
  id: 'silent-connections',
  title: 'Connections that say nothing, or never end a head, fill no table',
  settings: { TAKEMARK_MAX_CONNECTIONS: String(TABLE) },
  async run({ service, say }) {
    for (const [name, first] of [
      ['silent', ''],
      ['trickling', 'GET /v1/health HTTP/1.1\r\nX: '],
    ] as const) {
      const sockets = new Set<Socket>();
      let opened = 0;
      const open = (): void => {
        const socket = connect(service.port, '127.0.0.1').on('error', () => undefined);
        opened += 1;
        sockets.add(socket);
        socket
          .resume()
          .on('close', () => sockets.delete(socket))
          .on('end', () => socket.destroy());
        if (first !== '') socket.write(first);
      };
      const until = Date.now() + SECONDS * 1000;
      for (let i = 0; i < CONNECTIONS; i += 1) open();
      const pulse = new HealthPulse(service.partnerUrl, { timeoutMs: 3000 });
      // New connections replace the closed ones.
      while (Date.now() < until) {
        for (let i = sockets.size; i < CONNECTIONS; i += 1) open();
        if (first !== '') for (const socket of sockets) socket.write('x');
        await delay(250);
      }
      let fresh = 0;
      for (let i = 0; i < 5; i += 1)
        if (
          (
            await fetch(`${service.partnerUrl}/v1/health`, {
              headers: { connection: 'close' },
              signal: AbortSignal.timeout(3000),
            }).catch(() => undefined)
          )?.status === 200
        )
          fresh += 1;
      const { times, unanswered, p99 } = await pulse.stop();
      for (const socket of sockets) socket.destroy();
      say(
        `${name}: ${opened} connections in ${SECONDS} s for a table of ${TABLE}: ${times.length} health calls, ${unanswered} unanswered, p99 ${p99.toFixed(0)} ms; ${fresh} of 5 newcomers served`,
      );
      assert.equal(fresh, 5, `${name}: a newcomer is served`);
      assert.ok(unanswered * 50 <= times.length, `${name}: health is served`);
    }
  },
};
