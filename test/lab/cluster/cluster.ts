/**
 * `npm run test:cluster [-- --seed n] [--out file] [--keep]`: tests three processes that share one identity.
 * Nodes and servers are stopped and frozen, and one of three brokers hangs.
 */
import { randomUUID } from 'node:crypto';
import { runCommand } from './command.js';
import { cassandraOutage, freezeNode, kafkaOutage, loseNode } from './faults.js';
import { identity } from './identity.js';
import { atWork, check, withRun } from './run.js';
import { clusterStore, embeddedStore, stuckPartitions } from './stuck-partitions.js';

const WARM_SECONDS = 5;
const FROZEN_SECONDS = 25;
/**
 * The time in seconds for which a node is frozen. It is longer than a process waits for an answer, and short enough
 * that the node executes late requests after it wakes, instead of dropping them.
 */
const HUNG_SECONDS = 8;
/** The approximate duration of the faults, in milliseconds. */
const LASTS_MS = 240_000;

await runCommand(
  { name: 'test:cluster', kills: () => 0, prepare: async () => ({ servers: { nodes: 3 } }) },
  async ({ seed, servers, ledger, say, keep }) => {
    await withRun({ servers, seed, ledger, say, width: 1, lasts: LASTS_MS, keep }, async (run) => {
      await identity(run, randomUUID());
      await atWork(run, async () => {
        await loseNode(run, 'cassandra-3', WARM_SECONDS);
        await freezeNode(run, 'cassandra-3', FROZEN_SECONDS);
        for (const name of ['cassandra-1', 'cassandra-2', 'cassandra-3'])
          await freezeNode(run, name, HUNG_SECONDS);
        await kafkaOutage(run, WARM_SECONDS);
        await kafkaOutage(run, WARM_SECONDS, 'frozen');
        // One node of three has no quorum.
        await cassandraOutage(run, ['cassandra-2', 'cassandra-3'], WARM_SECONDS);
        await cassandraOutage(run, ['cassandra-2', 'cassandra-3'], WARM_SECONDS, 'frozen');
      });
      await check(run);
    });
    const stuck = async (name: string, open: Parameters<typeof stuckPartitions>[1]) => {
      const figures = await stuckPartitions(servers, open, (what) => ledger.violation(`${name}: ${what}`));
      say(`one of three brokers hung, ${name}: ${JSON.stringify(figures)}`);
      return figures;
    };
    const embedded = await stuck('embedded', embeddedStore);
    const cassandra = await stuck('Cassandra', clusterStore(servers.settings));
    return { figures: { embedded, cassandra } };
  },
);
