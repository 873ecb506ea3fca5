/**
 * `npm run test:cluster [-- --seed n] [--out file] [--keep]`: one identity over three processes; a node lost,
 * and frozen; servers lost, and frozen; one of three brokers that hangs.
 */
import { randomUUID } from 'node:crypto';
import { startBrokers } from './brokers.js';
import { runCommand } from './command.js';
import { cassandraOutage, freezeNode, kafkaOutage, loseNode } from './faults.js';
import { identity } from './identity.js';
import { atWork, check, withRun } from './run.js';
import { stuckPartitions } from './stuck-partitions.js';

const WARM_SECONDS = 5;
const FROZEN_SECONDS = 25;
/**
 * Longer than a process waits for an answer, and not so long that a node refuses what came meanwhile: it
 * carries out late what others have done.
 */
const HUNG_SECONDS = 8;

await runCommand(
  { name: 'test:cluster', kills: () => 0, prepare: async () => ({ servers: { nodes: 3 } }) },
  async ({ seed, servers, ledger, say, keep }) => {
    await withRun({ servers, seed, ledger, say, width: 1, keep }, async (run) => {
      await identity(run, randomUUID());
      await atWork(run, async () => {
        await loseNode(run, 'cassandra-3', WARM_SECONDS);
        await freezeNode(run, 'cassandra-3', FROZEN_SECONDS);
        for (const name of ['cassandra-1', 'cassandra-2', 'cassandra-3'])
          await freezeNode(run, name, HUNG_SECONDS);
        await kafkaOutage(run, WARM_SECONDS);
        await kafkaOutage(run, WARM_SECONDS, 'frozen');
        // With one node of three there is no quorum.
        await cassandraOutage(run, ['cassandra-2', 'cassandra-3'], WARM_SECONDS);
        await cassandraOutage(run, ['cassandra-2', 'cassandra-3'], WARM_SECONDS, 'frozen');
      });
      await check(run);
    });
    const brokers = await startBrokers();
    try {
      const figures = await stuckPartitions(brokers, (what) => ledger.violation(what));
      say(`one of three brokers hung: ${JSON.stringify(figures)}`);
      return { figures };
    } finally {
      await brokers.remove();
    }
  },
);
