import { defined } from '../../core/domain/defined.js';
import { createIds, systemClock } from '../adapters/system/system.js';
import { auditJob, collectionJobs, fileDigestsJob, gatedJobs, reminderJob } from '../background/jobs.js';
import { startJobs } from '../background/scheduler.js';
import { assertKnownSettings, type Config } from '../config/config.js';
import { listen } from '../consumers/listen.js';
import { createProbeListener } from '../http/operator-listener.js';
import { commitOf } from './build.js';
import { disposedOnFailure, sharedGrace } from './disposer.js';
import { announceEndpoints } from './endpoints-file.js';
import { openSecrets } from './identity.js';
import {
  assetsWithKeys,
  clockJobs,
  contentKeyJob,
  isStoreShared,
  lookForKeys,
  openInfrastructure,
  openProbes,
  servedRoutes,
  startEvents,
  stopOnce,
  watchDependencies,
} from './infrastructure.js';
import { bind, hostPort } from './listeners.js';
import { noteRuntime, noteUnknownSettings } from './process.js';
import type { ServiceOptions } from './service.js';

/** A running process of consumers. */
export interface Consumers {
  readonly operator: { readonly port: number; readonly host: string };
  /** Finishes the current batch and stops. Safe to call twice. */
  stop(): Promise<void>;
  /** Changes the level of the log to the next one. */
  changeLogLevel(): void;
}

/**
 * Starts the consumers of a cluster for `takemark consumers`. Any number of such processes may run. The
 * process serves only metrics and probes.
 * @throws Error with a message for the operator
 */
export async function startConsumers(config: Config, options: ServiceOptions): Promise<Consumers> {
  assertKnownSettings(config);
  if (!isStoreShared(config) || config.bus !== 'kafka')
    throw new Error(
      'takemark consumers needs TAKEMARK_STORE=cassandra and TAKEMARK_BUS=kafka; with other settings the service runs the consumers itself',
    );
  const clock = options.clock ?? systemClock;
  const ids = options.ids ?? createIds(clock);
  return disposedOnFailure(async (disposer) => {
    const secrets = { ...(await openSecrets(config)), complete: undefined };
    const { logDestination } = options;
    const infrastructure = await openInfrastructure(
      {
        config,
        clock,
        secrets,
        build: { version: options.version, commit: commitOf(config, options) },
        routes: servedRoutes(config.environment, 'consumers'),
        ...defined({ logDestination }),
      },
      disposer,
    );
    const {
      telemetry,
      encrypted: stores,
      unissued,
      journal,
      bus,
      auditor,
      fileDigests,
      clocks,
      gate,
    } = infrastructure;
    const maySweep = (): boolean => clocks?.maySweep() ?? true;
    const { observer, requestLog } = telemetry;
    await gate.look();
    if (!gate.isClosed) await lookForKeys(infrastructure, config);
    listen(bus, { stores, assets: assetsWithKeys(infrastructure), journal, clock, observer });
    await startEvents(infrastructure, disposer);
    const probes = openProbes(infrastructure, config);
    const { pingBucket } = infrastructure;
    const dependencies = watchDependencies({ telemetry, pingBucket }, probes, config, true);
    const graceMs = sharedGrace(config.stopGraceMs);
    const listener = createProbeListener({
      ids,
      requestLog,
      observer,
      metrics: telemetry.metrics,
      ready: async () => {
        await probes.ready();
        const { missing } = dependencies.watch;
        return missing.length === 0 ? {} : { missing: [...missing] };
      },
      host: config.operator.host,
      names: config.operator.names,
    });
    const operator = await bind(listener, 'OPERATOR', config.operator);
    disposer.add(() => listener.close(graceMs()));
    const jobs = [
      ...clockJobs(infrastructure),
      dependencies.job,
      ...gatedJobs(gate, [
        contentKeyJob(infrastructure, config),
        ...collectionJobs({ stores, unissued, clock, maySweep }),
        reminderJob({ stores, clock, maySweep }),
        auditJob(auditor, { maySweep }),
        fileDigestsJob(fileDigests),
      ]),
    ];
    disposer.add(startJobs(jobs, observer, graceMs));
    await announceEndpoints(config.dataDirectory, { operator: operator.port }, disposer);
    noteUnknownSettings(config, telemetry);
    noteRuntime(telemetry, clock);
    telemetry.note('consumers_started', {
      version: options.version,
      commit: commitOf(config, options),
      environment: config.environment,
      operator: hostPort(operator),
    });
    return {
      operator,
      changeLogLevel: telemetry.changeLogLevel,
      stop: stopOnce({ ...config, ...options }, telemetry, probes, [listener], disposer),
    };
  });
}
