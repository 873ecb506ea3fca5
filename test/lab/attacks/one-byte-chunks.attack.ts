import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Attack } from './attack.js';
import { HealthPulse } from './health-pulse.js';

const CONNECTIONS = 140;
const CRUMBS = '1\r\nx\r\n'.repeat(10_000);
const SECONDS = 10;
/**
 * The most that a process at rest may grow. Its heap grew by 92 to 132 MiB under the first of the attacks, with the
 * number of connections and not with the bytes sent, and by 10 to 30 MiB more under the others. Chunks that the
 * process kept would exceed the container's 512 MiB within seconds.
 */
const MOST_MIB = 192;

export const attack: Attack = {
  id: 'one-byte-chunks',
  title: 'Bodies in chunks of one byte cost what they are, without a key and with a trial key',
  limitSeconds: 180,
  async run({ service, say }) {
    const { apiKey } = await service.partner('trial');
    const chunked = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
    const heads: readonly (readonly [name: string, head: string])[] = [
      [
        'a form without fields',
        `POST /uploads/upl_0 HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=X\r\nTransfer-Encoding: chunked\r\n\r\n${chunked('--X\r\nContent-Disposition: form-data; name="a"\r\n\r\n')}`,
      ],
      [
        'a body with a wrong key',
        'POST /v1/verify HTTP/1.1\r\nHost: a\r\nx-api-key: none\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
      ],
      [
        'a body of a trial key',
        `POST /v1/verify HTTP/1.1\r\nHost: a\r\nx-api-key: ${apiKey}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunked('{"sidecar":"')}`,
      ],
    ];
    for (const [name, head] of heads) {
      const before = await service.rssMiB();
      const pulse = new HealthPulse(service.partnerUrl);
      const until = Date.now() + SECONDS * 1000;
      let most = before;
      let sent = 0;
      let cut = 0;
      const attackers = Array.from({ length: CONNECTIONS }, async () => {
        while (Date.now() < until && service.running()) {
          const socket = connect(service.port, '127.0.0.1').on('error', () => undefined);
          socket.setMaxListeners(0);
          socket.resume();
          await Promise.race([once(socket, 'connect').catch(() => undefined), delay(5000)]);
          socket.write(head);
          while (Date.now() < until && socket.writable && !socket.readableEnded) {
            sent += CRUMBS.length;
            if (!socket.write(CRUMBS))
              await Promise.race([once(socket, 'drain').catch(() => undefined), delay(500)]);
            await delay(5);
          }
          if (Date.now() < until) cut += 1;
          socket.destroy();
          await delay(100);
        }
      });
      while (Date.now() < until && service.running()) {
        most = Math.max(most, await service.rssMiB());
        await delay(100);
      }
      await Promise.all(attackers);
      const { p50, p99, unanswered } = await pulse.stop();
      say(
        `${name}: ${(sent / 1e6).toFixed(1)} MB offered, ${cut} connections cut; ${before.toFixed(0)} to ${most.toFixed(0)} MiB; health p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`,
      );
      assert.ok(service.running(), `${name}: the process lives`);
      assert.equal(unanswered, 0, `${name}: health is answered`);
      assert.ok(cut > 0, `${name}: no connection was cut`);
      assert.ok(most - before <= MOST_MIB, `${name}: ${(most - before).toFixed(0)} MiB more`);
    }
  },
};
