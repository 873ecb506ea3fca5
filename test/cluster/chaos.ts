/**
 * `npm run chaos [-- --kills n] [--seed n] [--out file] [--keep]`: a cluster at work while its processes are
 * killed and its servers stopped.
 */
import { seeded } from '../fixtures/service.js';
import { runCommand } from './command.js';
import { cassandraOutage, kafkaOutage, killProcesses } from './faults.js';
import { atWork, check, withRun } from './run.js';

const CASSANDRA_SECONDS = 6;
const KAFKA_SECONDS = 8;

await runCommand(
  { name: 'chaos', nodes: 1, defaultKills: 200 },
  async ({ kills, seed, servers, ledger, say, keep }) => {
    const random = seeded(seed);
    const killed = await withRun({ servers, seed, ledger, say, width: 3, keep }, async (run) => {
      const kill = (share: number) => killProcesses(run.cluster, Math.round(kills * share), random);
      await atWork(run, async () => {
        await kill(0.3);
        await kafkaOutage(run, KAFKA_SECONDS);
        await kill(0.3);
        await cassandraOutage(run, ['cassandra-1'], CASSANDRA_SECONDS);
        await kill(0.4);
      });
      await check(run);
      return run.cluster.kills;
    });
    return { kills: killed };
  },
);
