import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Attack } from './attack.js';
import { takemark } from './command-line.js';

/**
 * Another user of the machine listens on the operator's port while the service is down, and waits for the
 * operator's call.
 */
export const attack: Attack = {
  id: 'impostor-operator',
  title: "the operator's token is sent only to a listener that knows it",
  async run({ service, say }) {
    const port = service.operatorPort;
    const settings = {
      TAKEMARK_OPERATOR_URL: `http://127.0.0.1:${port}`,
      TAKEMARK_DATA_DIR: service.dataDirectory,
    };
    assert.equal(
      (await takemark(settings, 'operator', 'plan', 'list')).code,
      0,
      'the service itself is given the token',
    );
    await service.stop();
    const received: string[] = [];
    const impostor = createServer((request, response) => {
      received.push(`${request.method} ${request.url} ${request.headers.authorization ?? 'without a token'}`);
      request.resume();
      response.end(
        '{"partnerId":"ptr_1","name":"n","plan":"p","createdAt":1,"plans":[],"port":1,"answers":[]}',
      );
    });
    impostor.listen(port, '127.0.0.1');
    await once(impostor, 'listening');
    try {
      for (const words of [['plan', 'list'], ['partner', 'create', 'Name'], ['authority']]) {
        const { code } = await takemark(settings, 'operator', ...words);
        assert.notEqual(code, 0);
      }
    } finally {
      impostor.closeAllConnections();
      impostor.close();
      await service.restart();
    }
    for (const line of received) assert.match(line, /without a token$/);
    say(`${received.length} requests received, none with a token`);
  },
};
