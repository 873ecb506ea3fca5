/**
 * Asks a real Prometheus for every expression of the dashboards, while two services and a consumer are under load. Each
 * expression must have at least one series whose value is a number.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '../../../src/client/index.js';
import { ROOT } from '../../docs/pages.js';
import { wav } from '../../fixtures/wav.js';
import { runCommand } from '../cluster/command.js';
import { Cluster } from '../cluster/members.js';
import { settingsOnServers } from '../cluster/run.js';
import { startPrometheus } from '../outages/prometheus.js';

const LIMIT_MS = 180_000;
const PAUSE_MS = 500;
const SAMPLES = 48_000;
const { expressions } = (await import(join(ROOT, 'deploy/grafana/dashboards.mjs'))) as {
  expressions(interval: string): readonly string[];
};

await runCommand(
  { name: 'dashboards', kills: () => 0, prepare: async () => ({ servers: { nodes: 1 } }) },
  async ({ servers, ledger, say }) => {
    const cluster = await Cluster.start({
      settings: settingsOnServers(servers),
      services: 2,
      consumers: 1,
      onDeath: (name, { how }) => ledger.violation(`${name} ended by itself: ${how}`),
    });
    const prometheus = await startPrometheus(await targetsOf(cluster));
    const load = await startLoad(cluster, (error) => ledger.violation(`the load failed: ${error}`));
    const waiting = new Set(expressions('1m'));
    const count = waiting.size;
    try {
      for (const deadline = Date.now() + LIMIT_MS; waiting.size > 0 && Date.now() < deadline; ) {
        for (const expression of waiting)
          if ((await prometheus.seriesOf(expression)) > 0) waiting.delete(expression);
        await delay(PAUSE_MS);
      }
      for (const expression of waiting) ledger.violation(`no series: ${expression}`);
      say(`${count - waiting.size} of ${count} expressions have series`);
      return { figures: { expressions: count, withSeries: count - waiting.size, rounds: load.rounds() } };
    } finally {
      await load.stop();
      await prometheus.stop();
      await cluster.stop();
    }
  },
);

/** Returns the operator listeners of a cluster that is ready, by the job of Prometheus. */
async function targetsOf(cluster: Cluster): Promise<Readonly<Record<string, readonly string[]>>> {
  await cluster.ready();
  const services = cluster.services.map(({ operator }) => new URL(operator).host);
  // The ports of the consumers follow those of the services.
  const consumer = `127.0.0.1:${Number(services.at(-1)!.split(':')[1]) + 2}`;
  return { takemark: services, 'takemark-consumers': [consumer] };
}

/** Issues a proof, verifies it at each service and erases it, again and again until it is stopped. */
async function startLoad(
  cluster: Cluster,
  failed: (error: unknown) => void,
): Promise<{ rounds(): number; stop(): Promise<void> }> {
  const command = async (...args: readonly string[]): Promise<Readonly<Record<string, string>>> =>
    JSON.parse(await cluster.command('operator', ...args, '--json'));
  const { partnerId } = await command('partner', 'create', 'Dashboards', '--plan', 'volume');
  const { apiKey } = await command('key', 'create', '--partner', partnerId!, '--name', 'dashboards');
  const directory = await mkdtemp(join(tmpdir(), 'takemark-dashboards-'));
  const [take, issued] = [join(directory, 'take.wav'), join(directory, 'issued.wav')];
  let rounds = 0;
  let isStopped = false;
  const run = async (): Promise<void> => {
    const clients = cluster.services.map(({ partner: baseUrl }) =>
      createClient({ baseUrl, apiKey: apiKey! }),
    );
    while (!isStopped) {
      rounds += 1;
      await writeFile(take, wav(SAMPLES, {}, rounds));
      const song = ['--partner', partnerId!, '--song', 'Take', '--out', issued, '--force'];
      const { proofId } = await command('issue', take, ...song);
      const audio = await readFile(issued);
      for (const client of clients) {
        await client.verifyFile(issued);
        // A stream takes an upload slot.
        await client.verifyFile(Readable.from([audio]));
      }
      await clients[0]!.eraseProof(proofId!);
    }
    for (const client of clients) client.close();
  };
  const running = run().catch(failed);
  return {
    rounds: () => rounds,
    stop: async () => {
      isStopped = true;
      await running;
      await rm(directory, { recursive: true, force: true });
    },
  };
}
