/**
 * Restarts two processes in turn, twenty times under load, behind nginx and then behind HAProxy. No call fails
 * when it is repeated once, and every acknowledged upload is verified again after each restart.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../adapters/kafka-trials.js';
import { runCommand } from '../cluster/command.js';
import { Cluster } from '../cluster/members.js';
import { settingsOnServers } from '../cluster/run.js';
import { type Figures, Load } from './load.js';
import { startHaproxy, startNginx } from './proxies.js';

/** The wait in milliseconds for HAProxy, which needs two checks, one each second, before it uses a process again. */
const CHECKS_MS = 2500;

/** The drain time in seconds. HAProxy needs it to notice that a process drains. nginx asks no probe. */
const DRAIN_SECONDS = '5';
const PROXIES = { nginx: startNginx, haproxy: startHaproxy };

await runCommand(
  {
    name: 'restarts',
    options: { restarts: '20' },
    kills: () => 0,
    prepare: async (_seed, values) => ({ servers: { nodes: 1 }, restarts: Number(values['restarts']) }),
  },
  async ({ servers, ledger, say }, { restarts }) => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const cluster = await Cluster.start({
      settings: {
        ...settingsOnServers(servers),
        TAKEMARK_DRAIN_SECONDS: DRAIN_SECONDS,
        TAKEMARK_TRUSTED_PROXIES: '127.0.0.1',
      },
      services: 2,
      consumers: 1,
      publicUrl: url,
      onDeath: (process, { how }) => ledger.violation(`${process} ended by itself: ${how}`),
    });
    try {
      await cluster.ready();
      const apiKey = await apiKeyOf(cluster);
      const figures: Record<string, Figures> = {};
      for (const [name, start] of Object.entries(PROXIES)) {
        const proxy = await start(port, cluster.services);
        try {
          const load = new Load(url, apiKey, (what) => ledger.violation(`${name}: ${what}`));
          await restartInTurn(cluster, load, restarts, (line) => say(`${name}: ${line}`));
          figures[name] = load.figures;
        } finally {
          await proxy.stop();
        }
      }
      return { figures };
    } finally {
      await cluster.stop();
    }
  },
);

async function restartInTurn(
  cluster: Cluster,
  load: Load,
  restarts: number,
  say: (line: string) => void,
): Promise<void> {
  const running = load.start();
  for (let restart = 0; restart < restarts; restart += 1) {
    const service = cluster.services[restart % cluster.services.length]!.name;
    await cluster.roll(service);
    await cluster.whenReady(service);
    await delay(CHECKS_MS);
    // After each restart, because an upload expires after 15 minutes.
    await load.checkAcknowledged();
    say(`${restart + 1} restarts, ${JSON.stringify(load.figures)}`);
  }
  load.stop();
  await running;
  await load.checkAcknowledged();
}

async function apiKeyOf(cluster: Cluster): Promise<string> {
  const command = async (...args: readonly string[]): Promise<Readonly<Record<string, string>>> =>
    JSON.parse(await cluster.command('operator', ...args, '--json'));
  const { partnerId } = await command('partner', 'create', 'Restarts', '--plan', 'volume');
  const { apiKey } = await command('key', 'create', '--partner', partnerId!, '--name', 'restarts');
  return apiKey!;
}
