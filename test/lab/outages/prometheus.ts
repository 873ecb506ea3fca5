/** A real Prometheus that scrapes processes each second, with shortened rules. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../adapters/kafka-trials.js';
import { ROOT } from '../../docs/pages.js';
import { shortenedRules } from './shortened-rules.js';

const SHORTER = 30;
const POLL_MS = 500;

export type Labels = Readonly<Record<string, string>>;

export interface Prometheus {
  /**
   * Resolves when an alert with all these labels fires, or when none does.
   * @returns the seconds that this took, or undefined if the time ran out
   */
  until(wanted: Labels, fires: boolean, limitMs: number): Promise<number | undefined>;
  /** Returns how many series an expression has now whose value is a number. */
  seriesOf(expression: string): Promise<number>;
  stop(): Promise<void>;
}

/** @param targets for each job, the addresses of its operator listeners */
export async function startPrometheus(
  targets: Readonly<Record<string, readonly string[]>>,
): Promise<Prometheus> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-prometheus-'));
  const rules = await readFile(join(ROOT, 'deploy/prometheus/alerts.yml'), 'utf8');
  await writeFile(join(directory, 'rules.yml'), shortenedRules(rules, SHORTER));
  const configuration = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: ['rules.yml'],
    scrape_configs: Object.entries(targets).map(([job, addresses]) => ({
      job_name: job,
      // A scrape may wait for the store's answer.
      scrape_interval: '1s',
      static_configs: [{ targets: addresses }],
    })),
  };
  // JSON is YAML.
  await writeFile(join(directory, 'prometheus.yml'), JSON.stringify(configuration));
  const port = await freePort();
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(directory, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: 'ignore' },
  );
  const exited = once(child, 'exit');
  const firing = async (): Promise<readonly Labels[]> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/alerts`).catch(() => undefined);
    if (answer?.ok !== true) return [];
    const { data } = (await answer.json()) as {
      data: { alerts: readonly { readonly labels: Labels; readonly state: string }[] };
    };
    return data.alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels);
  };
  return {
    until: async (wanted, fires, limitMs) => {
      const began = performance.now();
      while (performance.now() - began < limitMs) {
        const found = (await firing()).some((labels) =>
          Object.entries(wanted).every(([name, value]) => labels[name] === value),
        );
        if (found === fires) return Math.round((performance.now() - began) / 1000);
        await delay(POLL_MS);
      }
      return undefined;
    },
    seriesOf: async (expression) => {
      const query = new URLSearchParams({ query: expression });
      const answer = await fetch(`http://127.0.0.1:${port}/api/v1/query?${query}`);
      const { status, error, data } = (await answer.json()) as {
        readonly status: string;
        readonly error?: string;
        readonly data: { readonly result: readonly { readonly value: readonly [number, string] }[] };
      };
      if (status !== 'success') throw new Error(`${expression}: ${error}`);
      return data.result.filter(({ value: [, text] }) => text !== 'NaN').length;
    },
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
      await rm(directory, { recursive: true, force: true });
    },
  };
}
