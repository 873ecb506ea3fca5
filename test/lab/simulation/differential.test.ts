import { Client } from 'cassandra-driver';
import t from 'tap';
import { ADDRESSES, connection, DATA_CENTER, PATIENT } from '../../adapters/cassandra-under-test.js';
import { again } from '../../fixtures/again.js';
import { Database, type Request } from './database.js';
import { Random } from './random.js';

const STATEMENTS = 1500;
const KEYSPACE = connection.keyspace.replace('test', 'diff');
const TABLE = `CREATE TABLE IF NOT EXISTS thing (
  id text, part text, shared text static, state text, number int, body blob, notes map<text, text>, names set<text>,
  PRIMARY KEY (id, part)
)`;
const READ =
  'SELECT id, part, shared, state, number, body, notes, names, TTL(body) AS lives FROM thing WHERE id = ?';

/** Returns rows as text, without their class and without the order in which a refusal names its columns. */
function textOf(rows: readonly { keys(): string[] }[]): string {
  return JSON.stringify(
    rows.map((row) => {
      const columns = row as unknown as Readonly<Record<string, unknown>>;
      return (
        [...row.keys()]
          .sort()
          // The remaining seconds may differ between two reads.
          .map((name) => [name, name === 'lives' ? columns[name] !== null : (columns[name] ?? null)])
      );
    }),
  );
}

/** Returns a request of a form that the store uses, or several requests for a batch. */
function randomRequests(random: Random, step: number): readonly Request[] {
  const id = `id${random.below(3)}`;
  const part = `part${random.below(3)}`;
  const state = random.pick(['new', 'open', null]);
  const number = random.below(4);
  const body = random.pick([Buffer.from([random.below(3)]), null, undefined]);
  const insert = {
    query: 'INSERT INTO thing (id, part, state, number, body) VALUES (?, ?, ?, ?, ?)',
    params: [id, part, state, number, body],
  };
  const ifAbsent = { ...insert, query: `${insert.query} IF NOT EXISTS` };
  const head = {
    query: 'UPDATE thing SET state = ?, number = ? WHERE id = ? AND part = ? IF state = ? AND number = ?',
    params: ['open', number, id, part, state, random.below(4)],
  };
  const range = { query: 'DELETE FROM thing WHERE id = ? AND part > ?', params: [id, 'part0'] };
  const first = {
    query: "UPDATE thing SET state = ?, number = ? WHERE id = ? AND part = 'part0' IF state = ?",
    params: [random.pick(['new', 'open']), step, id, state],
  };
  return random.pick<readonly Request[]>([
    [ifAbsent],
    [ifAbsent],
    [head],
    [first],
    [
      {
        query: 'UPDATE thing SET notes = notes + ? WHERE id = ? AND part = ? IF number = ?',
        params: [{ [`k${random.below(2)}`]: `v${number}` }, id, part, number],
      },
    ],
    [
      {
        query: 'UPDATE thing SET notes = null, body = null WHERE id = ? AND part = ? IF EXISTS',
        params: [id, part],
      },
    ],
    [
      {
        query: 'UPDATE thing SET shared = ? WHERE id = ? IF shared = ?',
        params: [random.pick(['a', 'b']), id, random.pick(['a', 'b', null])],
      },
    ],
    [{ query: 'DELETE FROM thing WHERE id = ? AND part = ? IF state = ?', params: [id, part, state] }],
    [
      {
        query: 'DELETE body, number FROM thing WHERE id = ? AND part = ? IF state = ?',
        params: [id, part, state],
      },
    ],
    [first, range],
    [
      first,
      {
        query: 'UPDATE thing SET names = names + ? WHERE id = ? AND part = ?',
        params: [[`n${number}`], id, 'part0'],
      },
    ],
    [
      first,
      { query: "DELETE FROM thing WHERE id = ? AND part >= 'part1'", params: [id] },
      { ...ifAbsent, params: [id, 'act', ...ifAbsent.params.slice(2)] },
    ],
    [
      first,
      { query: `${ifAbsent.query} USING TTL ?`, params: [id, 'part1', ...ifAbsent.params.slice(2), 86_400] },
      { ...ifAbsent, params: [id, 'part2', ...ifAbsent.params.slice(2)] },
    ],
    [
      first,
      {
        query: 'UPDATE thing USING TTL ? SET body = ? WHERE id = ? AND part = ? IF number = ?',
        params: [86_400, Buffer.from([7]), id, 'part2', number],
      },
    ],
    [
      {
        query: 'SELECT part, state, names FROM thing WHERE id = ? AND part IN ?',
        params: [id, ['part0', 'part2']],
      },
    ],
    [first, range, { ...insert, query: insert.query, params: [id, 'part9', 'todo', 1, undefined] }],
    [first, { ...ifAbsent, params: [id, 'part1', ...ifAbsent.params.slice(2)] }],
  ]);
}

t.test(
  'random statements give the same on the fake and on the real database',
  { skip: ADDRESSES === undefined && 'TAKEMARK_CASSANDRA is not set' },
  async (t) => {
    const client = new Client({
      contactPoints: (ADDRESSES ?? '').split(','),
      localDataCenter: DATA_CENTER,
      encoding: { useUndefinedAsUnset: true },
      socketOptions: PATIENT,
    });
    await again(() => client.connect());
    t.teardown(async () => {
      await client.execute(`DROP KEYSPACE IF EXISTS ${KEYSPACE}`).catch(() => undefined);
      await client.shutdown();
    });
    await client.execute(
      `CREATE KEYSPACE ${KEYSPACE} WITH replication = {'class': 'NetworkTopologyStrategy', '${DATA_CENTER}': 1}`,
    );
    await client.execute(`USE ${KEYSPACE}`);
    await client.execute(TABLE);
    const database = new Database();
    database.execute({ query: TABLE, params: [] }, { nodeMs: Date.now() });
    const random = new Random(Number(process.env['TAKEMARK_SEED'] ?? 1));
    let compared = 0;
    for (let step = 0; step < STATEMENTS; step += 1) {
      const requests = randomRequests(random, step);
      const moment = { nodeMs: Date.now() };
      const [only] = requests;
      const faked =
        requests.length === 1 ? database.execute(only!, moment) : database.batch(requests, moment);
      const real =
        requests.length === 1
          ? await client.execute(only!.query, [...only!.params], { prepare: true })
          : await client.batch(
              requests.map(({ query, params }) => ({ query, params: [...params] })),
              { prepare: true },
            );
      const id = String(requests[0]!.params.find((value) => /^id\d$/.test(String(value))));
      const state = textOf(database.execute({ query: READ, params: [id] }, moment));
      const realState = textOf((await client.execute(READ, [id], { prepare: true })).rows);
      const isSame = textOf(faked) === textOf(real.rows) && state === realState;
      if (!isSame) {
        t.strictSame(
          { answer: textOf(faked), state },
          { answer: textOf(real.rows), state: realState },
          `step ${step}: ${requests.map(({ query, params }) => `${query} ${JSON.stringify(params)}`).join('; ')}`,
        );
        return;
      }
      compared += 1;
    }
    t.equal(compared, STATEMENTS);
  },
);
