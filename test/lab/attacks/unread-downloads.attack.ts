import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { wav } from '../../fixtures/wav.js';
import type { Attack } from './attack.js';
import { assertServed } from './victim.js';

const FILE_BYTES = 30_000_000;
const DOWNLOADS = 1000;
/** The rate of the plan `standard`. */
const PER_SECOND = 50;
const ADDRESSES = 4;
/**
 * The most memory in MiB. It exceeds one partner's places by far, and is far less than 1,000 unbounded
 * downloads would hold.
 */
const MOST_MIB = 200;

export const attack: Attack = {
  id: 'unread-downloads',
  title: 'downloads of one key from four addresses, that are not read, take neither memory nor places',
  limitSeconds: 300,
  async run({ service, say }) {
    const { apiKey } = await service.partner('standard');
    const attacker = await service.partner('standard');
    const proofId = await service.issue(attacker.partnerId, wav(FILE_BYTES));
    const before = await service.rssMiB();
    const head = `GET /v1/proofs/${proofId}/asset HTTP/1.1\r\nHost: a\r\nx-api-key: ${attacker.apiKey}\r\n\r\n`;
    const sockets: Socket[] = [];
    const statuses = new Map<string, number>();
    for (let i = 0; i < DOWNLOADS && service.running(); i += 1) {
      const socket = connect({
        port: service.port,
        host: '127.0.0.1',
        localAddress: `127.0.0.${2 + (i % ADDRESSES)}`,
      }).on('error', () => undefined);
      sockets.push(socket);
      socket.write(head);
      // The client reads the status line and nothing after it.
      socket.once('data', (chunk: Buffer) => {
        socket.pause();
        const status = chunk.toString('latin1', 9, 12);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      });
      await delay(1000 / PER_SECOND);
    }
    try {
      assert.ok(service.running(), `the process lives after ${sockets.length} downloads`);
      say(await assertServed(service, apiKey));
      const grown = (await service.rssMiB()) - before;
      say(
        `${[...statuses].map(([status, count]) => `${count} x ${status}`).join(', ')}; ${grown.toFixed(0)} MiB more than before`,
      );
      assert.ok(grown < MOST_MIB, 'the downloads take little memory');
    } finally {
      for (const socket of sockets) socket.destroy();
    }
    assert.ok((statuses.get('429') ?? 0) > DOWNLOADS / 2, 'most downloads are refused');
    const honest = connect({ port: service.port, host: '127.0.0.1' });
    honest.write(head);
    const [first] = (await once(honest, 'data')) as [Buffer];
    honest.destroy();
    assert.equal(first.toString('latin1', 9, 12), '200', 'the places are free again');
  },
};
