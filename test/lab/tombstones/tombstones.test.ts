/** Tests a short life of every table, and a restart. `npm run lab -- tombstones` is the long one. */
import t from 'tap';
import { ADDRESSES, connection, dropKeyspace } from '../../adapters/cassandra-under-test.js';
import { liveAndRestart } from './life.js';

/** The most tombstones that one read may pass over in a life of two and a half seconds. */
const LIMIT = 500;
const life = { ...connection, keyspace: `${connection.keyspace}_life` };
const silently = (): void => undefined;

if (ADDRESSES === undefined) {
  void t.test(
    'tombstones of the Cassandra store',
    { skip: 'TAKEMARK_CASSANDRA is not set: npm run services:up starts a server and prints it' },
    () => undefined,
  );
} else {
  void t.test('a starting process serves, and no read passes over many tombstones', async (t) => {
    const { passed, failed } = await liveAndRestart({
      connection: life,
      size: { issued: 750, erased: 20, units: 1500, writers: 5, minutes: 30, reminders: 600 },
      say: silently,
    });
    t.strictSame(failed, []);
    t.ok((passed.get('pointer') ?? 0) > 0, 'the counters cover this life');
    t.strictSame(
      [...passed].filter(([, most]) => most > LIMIT),
      [],
    );
  });

  void t.test('the same life fails when all pointers have one partition', async (t) => {
    const keyspace = `${connection.keyspace}_planted`;
    t.teardown(() => dropKeyspace(keyspace));
    const { passed } = await liveAndRestart({
      connection: { ...connection, keyspace },
      size: { issued: 750, erased: 0, units: 1, writers: 0, minutes: 0, reminders: 0 },
      planted: 'one-partition',
      say: silently,
    });
    t.ok((passed.get('pointer') ?? 0) > LIMIT);
  });

  t.teardown(() => dropKeyspace(life.keyspace));
}
