import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { wav } from '../../fixtures/wav.js';
import type { Attack } from './attack.js';
import { takemark } from './command-line.js';

/**
 * An attacker between a partner and the service. The partner reaches it over plain HTTP at an address outside
 * the loopback range.
 */
export const attack: Attack = {
  id: 'plain-http',
  title: 'a key and audio leave the machine over TLS alone',
  async run({ service, say }) {
    const { apiKey } = await service.partner('standard');
    const directory = await mkdtemp(join(tmpdir(), 'takemark-plain-'));
    const file = join(directory, 'song.wav');
    await writeFile(file, wav(10_000));
    const heard: string[] = [];
    const listener = createServer((request, response) => {
      heard.push(
        `${request.method} ${request.url} ${request.headers['x-api-key'] === undefined ? 'without a key' : 'with the key'}`,
      );
      request.resume();
      response
        .writeHead(503, { 'content-type': 'application/json' })
        .end('{"error":"x","code":"unavailable"}');
    });
    // The unspecified address reaches the machine and is outside the loopback range.
    listener.listen(0, '0.0.0.0');
    await once(listener, 'listening');
    const url = `http://0.0.0.0:${(listener.address() as AddressInfo).port}`;
    try {
      for (const words of [['verify', file], ['usage'], ['keys', 'list']]) {
        const { code } = await takemark({ TAKEMARK_URL: url, TAKEMARK_API_KEY: apiKey }, ...words);
        assert.notEqual(code, 0, words.join(' '));
      }
      assert.equal(heard.length, 0, heard.join(', '));
      assert.equal(
        (await takemark({ TAKEMARK_URL: service.partnerUrl, TAKEMARK_API_KEY: apiKey }, 'usage')).code,
        0,
        'over loopback the key is sent',
      );
      await takemark(
        { TAKEMARK_URL: url, TAKEMARK_API_KEY: apiKey, TAKEMARK_ALLOW_PLAIN_HTTP: '1' },
        'usage',
      );
      assert.ok(
        heard.length > 0 && heard.every((line) => line.endsWith('with the key')),
        'who says so may send it all the same',
      );
    } finally {
      listener.closeAllConnections();
      listener.close();
      await rm(directory, { recursive: true });
    }
    say('nothing was sent until the caller said so');
  },
};
