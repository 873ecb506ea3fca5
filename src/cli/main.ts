#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { ConfigError, readConfig } from '../config.js';
import { type Cluster, EXIT } from './command.js';
import { run } from './program.js';
import type { Sealer } from './sealer.js';
import { Terminal } from './terminal.js';

/**
 * Here the command line reaches past the service. Compose is loaded when it is needed: every other command starts without the
 * engine and the stores.
 */
async function openSealer(directory: string): Promise<Sealer> {
  const compose = await import('../compose.js');
  return compose.openSealer(directory);
}

const cluster: Cluster = {
  migrate: async () => (await import('../compose.js')).migrateStore(readConfig()),
  makeSecrets: async () => (await import('../compose.js')).makeSecrets(readConfig()),
};

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as { version: string };

async function main(): Promise<number> {
  const interruption = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    // Once: a second one ends the process at once, whatever it is doing.
    process.once(name, () => interruption.abort(new Error(name)));
  }
  // `takemark ... | head` closes the pipe early, which is no failure of ours.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? EXIT.good : EXIT.trouble));
  const { client, dataDirectory } = readConfig();
  const config = { ...client, dataDirectory };
  return run(process.argv.slice(2), { terminal: new Terminal(process.stdout, process.stderr), config, version, signal: interruption.signal, openSealer, cluster });
}

try {
  // The code is set, not forced: what is still in a pipe gets written.
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  process.stderr.write(`takemark: ${error.message.replaceAll('\n', '; ')}\n`);
  process.exitCode = EXIT.usage;
}
