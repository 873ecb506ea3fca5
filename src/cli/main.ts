#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Config, ConfigError, readConfig } from '../service/config/config.js';
import { listSettings } from '../service/config/listed-settings.js';
import { CLIENT_FILE_SETTINGS } from '../service/config/settings.js';
import { type Cluster, EXIT } from './command.js';
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

async function loadTools() {
  reachesServers = true;
  return import('../service/compose/tools.js');
}

async function loadMove() {
  await loadTools();
  return import('../service/compose/move.js');
}

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/**
 * Makes a long-running process log the error of a crash, and change its log level at SIGUSR2, as the service does.
 * @returns a function that receives the process once it runs. A signal before that has no effect.
 */
async function prepareLongRun({ logFormat }: Config): Promise<(running: { changeLogLevel(): void }) => void> {
  reachesServers = true;
  const { changeLevelOnSignal, exitOnCrash } = await import('../service/compose/process.js');
  exitOnCrash({ version, format: logFormat });
  return changeLevelOnSignal();
}

const cluster: Cluster = {
  migrate: async (options) => (await loadTools()).migrate(readConfig(), options),
  examineInstallation: async () => {
    await loadTools();
    return (await import('../service/compose/doctor.js')).examineInstallation(readConfig());
  },
  listSettings: () => listSettings(process.env),
  checkConfig: async () => (await import('../service/compose/config-check.js')).checkConfig(readConfig()),
  makeSecrets: async () => (await loadTools()).makeSecrets(readConfig()),
  rotateSecrets: async (bundle, rotation) =>
    (await loadTools()).rotateSecrets(readConfig(), bundle, rotation),
  makeBackup: async (directory, readSnapshot, signal) => {
    const { makeBackup } = await import('../service/compose/backup.js');
    return makeBackup(readConfig(), directory, readSnapshot, signal);
  },
  restoreBackup: async (directory, options) => {
    const { restoreBackup } = await import('../service/compose/backup.js');
    return restoreBackup(readConfig(), directory, options);
  },
  exportInstallation: async (...move) => (await loadMove()).exportInstallation(readConfig(), ...move),
  resumeService: async () => (await loadMove()).resumeService(readConfig()),
  readExportedBundle: async (...archive) => (await loadMove()).readExportedBundle(...archive),
  importInstallation: async (...move) => (await loadMove()).importInstallation(readConfig(), ...move),
  restore: async () => (await loadTools()).restoreCluster(readConfig()),
  requestLeaf: async () => (await loadTools()).requestSigningLeaf(readConfig()),
  installLeaf: async (pem) => (await loadTools()).installSigningLeaf(readConfig(), pem),
  initAuthority: async (directory) => (await loadTools()).initSigningAuthority(readConfig(), directory),
  issueLeaf: async (directory, request, days) =>
    (await loadTools()).issueSigningLeaf(readConfig(), directory, request, days),
  serve: async () => {
    // Read once, because a file of a secret may be readable only once.
    const config = readConfig();
    const runs = await prepareLongRun(config);
    const { serviceBanner, startService } = await import('../service/compose/service.js');
    const build = (await import('../service/compose/build.js')).readBuild();
    const service = await startService(config, build);
    runs(service);
    return { banner: serviceBanner(service, config, build), stop: () => service.stop() };
  },
  consume: async () => {
    const config = readConfig();
    const runs = await prepareLongRun(config);
    const { startConsumers } = await import('../service/compose/consumers.js');
    const { buildText, readBuild } = await import('../service/compose/build.js');
    const build = readBuild();
    const consumers = await startConsumers(config, build);
    runs(consumers);
    const { hostPort } = await import('../service/compose/listeners.js');
    return {
      banner: `${buildText(config, build)}, consumers\n  metrics and probes  http://${hostPort(consumers.operator)}`,
      stop: () => consumers.stop(),
    };
  },
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
    cluster,
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
