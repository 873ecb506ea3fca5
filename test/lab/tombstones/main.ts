/**
 * `npm run lab -- tombstones`: simulates ten minutes of 300 issuings a second, with all related writes, and a
 * restart. Fails if a read passes over more than 10,000 tombstones, or if a call after the restart fails.
 */
import { parseArgs } from 'node:util';
import { connection, dropKeyspace } from '../../adapters/cassandra-under-test.js';
import { FORMER_SHAPES, type FormerShape, liveAndRestart } from './life.js';

const USAGE = `node dist/test/lab/tombstones/main.js [options]
  --issued <n>     proofs issued, 300 a second by a clock that is given (180000)
  --limit <n>      tombstones that one read may pass over (10000)
  --plant <shape>  a layout of before, which must fail: ${Object.keys(FORMER_SHAPES).join(', ')}`;

const { values } = parseArgs({
  options: {
    issued: { type: 'string', default: '180000' },
    limit: { type: 'string', default: '10000' },
    plant: { type: 'string' },
  },
});
const issued = Number(values.issued);
const limit = Number(values.limit);
const isShape = (name: string): name is FormerShape => Object.hasOwn(FORMER_SHAPES, name);
if (
  !Number.isInteger(issued) ||
  issued < 1000 ||
  !Number.isInteger(limit) ||
  (values.plant !== undefined && !isShape(values.plant))
) {
  process.stderr.write(`${USAGE}\n`);
  process.exit(2);
}
try {
  const { passed, failed, issuedPerSecond } = await liveAndRestart({
    connection,
    size: {
      issued,
      erased: Math.ceil(issued / 60),
      units: Math.ceil(issued / 2),
      writers: 29,
      minutes: 180,
      reminders: Math.ceil(issued / 6),
    },
    ...(values.plant !== undefined && isShape(values.plant) && { planted: values.plant }),
    say: (line) => void process.stderr.write(`${line}\n`),
  });
  const lines = [...passed]
    .sort(([, a], [, b]) => b - a)
    .map(([table, most]) => `${table.padEnd(20)} ${most}`);
  process.stdout.write(`most tombstones that one read passed over\n${lines.join('\n')}\n`);
  for (const failure of failed) process.stdout.write(`failed after the restart: ${failure}\n`);
  const beyond = [...passed].filter(([, most]) => most > limit).map(([table]) => table);
  const isRight = beyond.length === 0 && failed.length === 0;
  process.stdout.write(
    `${isRight ? 'right' : 'WRONG'}: ${issued} issued, ${Math.round(issuedPerSecond)} a second; beyond ${limit}: ${beyond.join(', ') || 'none'}; failed calls: ${failed.length}\n`,
  );
  process.exitCode = isRight ? 0 : 1;
} finally {
  await dropKeyspace(connection.keyspace);
}
