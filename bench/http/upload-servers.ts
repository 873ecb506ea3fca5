import { join } from 'node:path';
import type { BusboySink } from '../load/busboy-sink.js';
import type { Caller, UploadClient, UploadLoad } from '../load/upload-client.js';
import type { Run } from '../measure.js';
import { Child } from '../service/child.js';
import type { Probe } from '../service/process-use.js';
import { ServiceProcess } from '../service/service-process.js';

/** The servers that uploads are sent to, with the labels of their figures. */
export const UPLOAD_SERVERS = { wasm: 'service', native: 'native engine', busboy: 'http + busboy' } as const;
export type UploadServer = keyof typeof UPLOAD_SERVERS;

/** The connections of a caller: half of what the plan `volume` and one address allow, so that no limit is reached. */
export const CONNECTIONS_OF_CALLER = 32;

/** A run of one server. */
export interface Uploads {
  readonly megabytesPerSecond: number;
  readonly cpuSecondsPerGigabyte: number;
  /** The seconds of each upload. */
  readonly times: readonly number[];
  /** The lanes that a task of the engine uses on average, or 0 if no engine counts them. */
  readonly lanesPerTask: number;
}

interface Server {
  readonly port: number;
  readonly probe: Child<Probe>;
  /** The callers. Absent for a sink, which knows no callers. */
  readonly callers?: readonly Caller[];
  /** The process with the WASM engine. */
  readonly counted?: ServiceProcess;
}

/**
 * The service on either engine, and the baseline that takes the same posts and throws the bytes away, each in
 * a process of its own, with a client in another one.
 */
export class UploadServers {
  readonly #run: Run;
  readonly #name: string;
  readonly #client = new Child<UploadClient>(new URL('../load/upload-client.js', import.meta.url));
  readonly #sink = new Child<BusboySink>(new URL('../load/busboy-sink.js', import.meta.url));
  readonly #services: ServiceProcess[] = [];
  readonly #servers = new Map<UploadServer, Server>();

  private constructor(run: Run, name: string) {
    this.#run = run;
    this.#name = name;
  }

  /**
   * @param name of the measurement
   * @param mostAtOnce uploads that one run of a server has under way, at most
   */
  static async start(run: Run, name: string, mostAtOnce: number): Promise<UploadServers> {
    const servers = new UploadServers(run, name);
    try {
      await servers.#start(Math.ceil(mostAtOnce / CONNECTIONS_OF_CALLER));
      return servers;
    } catch (error) {
      await servers.stop();
      throw error;
    }
  }

  async #start(callers: number): Promise<void> {
    const port = await this.#sink.call('listen');
    this.#servers.set('busboy', { port, probe: this.#sink as unknown as Child<Probe> });
    for (const engine of ['wasm', 'native'] as const) {
      const service = await ServiceProcess.start({
        dataDir: join(this.#run.dataDir, `${this.#name}-${engine}`),
        engine,
        settings: { TAKEMARK_EIGHT_LANES: process.env['TAKEMARK_EIGHT_LANES'] ?? 'off' },
        profileDir: this.#run.profileDir,
        main: this.#run.serviceMain,
      });
      this.#services.push(service);
      this.#servers.set(engine, {
        port: Number(service.partnerUrl.port),
        probe: service.probe,
        callers: await callersOf(service, callers),
        ...(engine === 'wasm' ? { counted: service } : {}),
      });
    }
  }

  /** Sends uploads, all digests checked. CPU is that of the whole server process, making the slots included. */
  async load(name: UploadServer, load: Omit<UploadLoad, 'port' | 'callers'>): Promise<Uploads> {
    const { port, probe, callers, counted } = this.#servers.get(name)!;
    const look = async () => ({ use: await probe.call('use'), engine: await counted?.engineCounts() });
    const before = await look();
    const result = await this.#client.call('upload', {
      ...load,
      port,
      callers: callers?.slice(0, Math.ceil(load.connections / CONNECTIONS_OF_CALLER)),
    });
    const after = await look();
    for (const wrong of result.wrong) this.#run.wrong(`${this.#name}: ${name}: ${wrong}`);
    return {
      megabytesPerSecond: result.bytes / result.seconds / 1e6,
      cpuSecondsPerGigabyte: ((after.use.cpuSeconds - before.use.cpuSeconds) / result.bytes) * 1e9,
      times: result.times,
      lanesPerTask:
        before.engine === undefined || after.engine === undefined
          ? 0
          : (after.engine.lanes - before.engine.lanes) / (after.engine.tasks - before.engine.tasks),
    };
  }

  /** Returns how many uploads the kernel of the WASM engine hashes side by side. */
  async kernelLanes(): Promise<number> {
    return this.#servers.get('wasm')!.counted!.metric('takemark_engine_kernel_lanes');
  }

  async stop(): Promise<void> {
    await Promise.all([
      this.#client.stop(),
      this.#sink.stop(),
      ...this.#services.map((service) => service.stop()),
    ]);
  }
}

/** Creates partners on the largest plan, each at a loopback address of its own, the first at 127.0.0.1. */
async function callersOf(service: ServiceProcess, count: number): Promise<readonly Caller[]> {
  const callers: Caller[] = [];
  for (let host = 1; host <= count; host += 1)
    callers.push({
      apiKey: await service.createKey(await service.createPartner('volume')),
      address: `127.0.0.${host}`,
    });
  return callers;
}
