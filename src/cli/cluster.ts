import { type Config, readConfig } from '../service/config/config.js';
import { listSettings } from '../service/config/listed-settings.js';

export interface BackupFacts {
  /** The time before the rows were read, in unix seconds. */
  readonly takenAt: number;
  readonly rows: number;
  readonly files: number;
  readonly bytes: number;
}

/** Operations that use the service's own configuration instead of its listeners. */
export type Cluster = ReturnType<typeof openCluster>;

/**
 * Returns the operations. Each reads the configuration and loads compose when it is called.
 * @param reachServers called before an operation that may connect to servers
 */
export function openCluster(version: string, reachServers: () => void) {
  const loadTools = async () => {
    reachServers();
    return import('../service/compose/tools.js');
  };
  const loadMove = async () => {
    reachServers();
    return import('../service/compose/move.js');
  };
  /**
   * Makes a long-running process log the error of a crash, and change its log level at SIGUSR2, as the service does.
   * @returns a function that receives the process once it runs. A signal before that has no effect.
   */
  const prepareLongRun = async ({ logFormat }: Config) => {
    reachServers();
    const { changeLevelOnSignal, exitOnCrash } = await import('../service/compose/process.js');
    exitOnCrash({ version, format: logFormat });
    return changeLevelOnSignal();
  };
  return {
    migrate: async (options: { readonly changeTopology: boolean }) =>
      (await loadTools()).migrate(readConfig(), options),
    examineInstallation: async () => {
      reachServers();
      return (await import('../service/compose/doctor.js')).examineInstallation(readConfig());
    },
    listSettings: () => listSettings(process.env),
    checkConfig: async () => (await import('../service/compose/config-check.js')).checkConfig(readConfig()),
    makeSecrets: async () => (await loadTools()).makeSecrets(readConfig()),
    rotateSecrets: async (
      bundle: { readonly text: string; readonly name: string },
      rotation: {
        readonly step: 'add' | 'use' | 'drop';
        readonly early: boolean;
        readonly purposes: readonly string[] | undefined;
      },
    ) => (await loadTools()).rotateSecrets(readConfig(), bundle, rotation),
    makeBackup: async (
      directory: string,
      readSnapshot: (receive: (body: AsyncIterable<Uint8Array>) => Promise<void>) => Promise<void>,
      signal: AbortSignal,
    ): Promise<BackupFacts & { readonly isBesideStore: boolean }> => {
      const { makeBackup } = await import('../service/compose/backup.js');
      return makeBackup(readConfig(), directory, readSnapshot, signal);
    },
    restoreBackup: async (
      directory: string,
      options: { readonly acceptLostJournals: boolean; readonly signal: AbortSignal },
    ): Promise<BackupFacts> => {
      const { restoreBackup } = await import('../service/compose/backup.js');
      return restoreBackup(readConfig(), directory, options);
    },
    exportInstallation: async (path: string, passphrase: string, signal: AbortSignal) =>
      (await loadMove()).exportInstallation(readConfig(), path, passphrase, signal),
    resumeService: async () => (await loadMove()).resumeService(readConfig()),
    readExportedBundle: async (path: string, passphrase: string) =>
      (await loadMove()).readExportedBundle(path, passphrase),
    importInstallation: async (path: string, passphrase: string, signal: AbortSignal) =>
      (await loadMove()).importInstallation(readConfig(), path, passphrase, signal),
    restore: async () => (await loadTools()).restoreCluster(readConfig()),
    requestLeaf: async () => (await loadTools()).requestSigningLeaf(readConfig()),
    installLeaf: async (pem: string) => (await loadTools()).installSigningLeaf(readConfig(), pem),
    initAuthority: async (directory: string) =>
      (await loadTools()).initSigningAuthority(readConfig(), directory),
    issueLeaf: async (directory: string, request: string, days: number) =>
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
}
