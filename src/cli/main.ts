#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { ConfigError, readConfig } from '../service/config/config.js';
import { CLIENT_FILE_SETTINGS } from '../service/config/settings.js';
import { openCluster } from './cluster.js';
import { EXIT } from './command.js';
import type { FileKit } from './file-kit.js';
import { run } from './program.js';
import type { Sealer } from './sealer.js';
import { readSecret } from './secret-input.js';
import { Terminal } from './terminal.js';

let reachesServers = false;

/** Loads compose only on demand, so that other commands start without the engine and the stores. */
async function openSealer(directory: string): Promise<Sealer> {
  const tools = await import('../service/compose/tools.js');
  return tools.openSealer(directory);
}

async function openFileKit(): Promise<FileKit> {
  const tools = await import('../service/compose/tools.js');
  return tools.openFileKit();
}

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

async function main(): Promise<number> {
  const interruption = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    // `once`, so that a second signal ends the process immediately.
    process.once(name, () => interruption.abort(new Error(name)));
  }
  // `takemark ... | head` closes the pipe early. Abort cleanly: no child process or unfinished file stays,
  // and files without a verdict do not count as good (rule 17.6).
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') {
      process.exitCode = EXIT.runtimeError;
      process.stderr.write(`takemark: cannot write the results (${error.code ?? error.name})\n`);
    }
    interruption.abort(error);
  });
  // A closed stderr does not change the exit code.
  process.stderr.on('error', () => undefined);
  const { client, dataDirectory } = readConfig(process.env, CLIENT_FILE_SETTINGS);
  return run(process.argv.slice(2), {
    terminal: new Terminal(process.stdout, process.stderr),
    config: { ...client, dataDirectory, profilesFile: profilesFile() },
    version,
    signal: interruption.signal,
    openSealer,
    openFileKit,
    readSecret: (prompt) => readSecret(process.stdin, process.stderr, prompt, interruption.signal),
    cluster: openCluster(version, () => (reachesServers = true)),
  });
}

/** Returns the path of the profiles. A user of a container may have no home directory, and then has none in the root. */
function profilesFile(): string {
  let home = '/';
  try {
    home = homedir();
  } catch {
    // Neither HOME nor the list of users names one.
  }
  return join(home, '.takemark', 'profiles.json');
}

try {
  // Set the code instead of exiting, so that output that is still in a pipe gets written.
  const exitCode = await main();
  process.exitCode ??= exitCode;
  // The Cassandra client keeps looking for a lost node even after close. That must not keep the process
  // alive.
  if (reachesServers) process.stdout.write('', () => process.exit());
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  process.stderr.write(`takemark: ${error.message.replaceAll('\n', '; ')}\n`);
  process.exitCode = EXIT.usage;
}
