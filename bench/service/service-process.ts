import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditStep } from '../../src/core/domain/finding.js';
import { Child } from './child.js';
import type { Probe } from './process-use.js';

const MAIN = new URL('../../src/service/main.js', import.meta.url);
const PROBE = new URL('./process-probe.js', import.meta.url);
const START_MS = 60_000;
/** Things that a step of the auditor looks at. */
export const AUDIT_STEP = 500;
/** Flags of `npm start`. */
export const START_FLAGS = ['--initial-old-space-size=128'];

export interface ServiceOptions {
  readonly dataDir: string;
  readonly engine?: 'wasm' | 'native';
  readonly profileDir?: string | undefined;
  /** Its main module; that of this build where absent. */
  readonly main?: URL | undefined;
  /** Others than those of the embedded default. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Where the settings name one: the service makes none then. */
  readonly operatorToken?: string;
}

/** Counters of the engine since the start, as the operator listener reports them. */
export interface EngineCounts {
  readonly tasks: number;
  readonly lanes: number;
}

/** The service as `npm start` runs it, in a process and a data directory of its own. */
export class ServiceProcess {
  readonly partnerUrl: URL;
  readonly dataDir: string;
  readonly #operatorUrl: URL;
  readonly #token: string;
  readonly #child: Child<Probe>;

  private constructor(
    child: Child<Probe>,
    dataDir: string,
    partner: number,
    operator: number,
    token: string,
  ) {
    this.#child = child;
    this.dataDir = dataDir;
    this.partnerUrl = new URL(`http://127.0.0.1:${partner}`);
    this.#operatorUrl = new URL(`http://127.0.0.1:${operator}/operator/v1/`);
    this.#token = token;
  }

  static async start({
    dataDir,
    engine = 'wasm',
    profileDir,
    main = MAIN,
    settings,
    operatorToken,
  }: ServiceOptions): Promise<ServiceProcess> {
    const profile = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
    const inherited = Object.fromEntries(
      Object.entries(process.env).filter(
        ([name]) => !name.startsWith('TAKEMARK_') && name !== 'NODE_OPTIONS',
      ),
    );
    const child = new Child<Probe>(main, {
      execArgv: [...START_FLAGS, ...profile, '--import', PROBE.href],
      env: {
        ...inherited,
        ...settings,
        TAKEMARK_DATA_DIR: dataDir,
        TAKEMARK_PORT: '0',
        TAKEMARK_HOST: '127.0.0.1',
        TAKEMARK_OPERATOR_PORT: '0',
        TAKEMARK_ENGINE: engine,
      },
    });
    for (
      const deadline = Date.now() + START_MS;
      Date.now() < deadline && child.process.exitCode === null;
      await sleep(30)
    ) {
      const ports = await readPorts(dataDir);
      if (ports === undefined) continue;
      const token = operatorToken ?? (await readFile(join(dataDir, 'operator-token'), 'utf8')).trim();
      return new ServiceProcess(child, dataDir, ports.partner, ports.operator, token);
    }
    await child.stop();
    throw new Error(`the service did not start: ${child.words}`);
  }

  get probe(): Child<Probe> {
    return this.#child;
  }

  async createPartner(plan: string): Promise<string> {
    const { partnerId } = (await this.#post('partners', { name: 'Load', plan })) as { partnerId: string };
    return partnerId;
  }

  async createKey(partnerId: string): Promise<string> {
    const { apiKey } = (await this.#post(`partners/${partnerId}/keys`, { name: 'load' })) as {
      apiKey: string;
    };
    return apiKey;
  }

  /** Issues a proof. Returns its id and what was made: the credentialed file, or the sidecar of a pair. */
  async issue(
    partnerId: string,
    song: string,
    audio: Uint8Array,
    carrier: 'embedded' | 'sidecar',
  ): Promise<{ readonly proofId: string; readonly deliverable: Buffer }> {
    const proofId = await this.issueAlone(partnerId, song, audio, carrier);
    const asset = await this.#fetch(
      `proofs/${proofId}/asset?part=${carrier === 'embedded' ? 'audio' : 'sidecar'}`,
    );
    return { proofId, deliverable: Buffer.from(await asset.arrayBuffer()) };
  }

  /**
   * Issues a proof and leaves what was made where it is.
   * @param audio or a form that has it, as its content type says
   */
  async issueAlone(
    partnerId: string,
    song: string,
    audio: Uint8Array,
    carrier: 'embedded' | 'sidecar',
    contentType = 'application/octet-stream',
  ): Promise<string> {
    const query = new URLSearchParams({
      partnerId,
      song: song.replaceAll(' ', '_'),
      fileName: 'take.wav',
      carrier,
    });
    const response = await this.#fetch(`proofs?${query}`, {
      method: 'POST',
      headers: { 'content-type': contentType },
      body: Buffer.from(audio),
    });
    return ((await response.json()) as { proofId: string }).proofId;
  }

  /** Asks the auditor for a step of a pass, with at most `AUDIT_STEP` things. */
  async auditStep(from: string): Promise<AuditStep> {
    const step = await this.#fetch(
      `audit/stores?${new URLSearchParams({ from, limit: String(AUDIT_STEP) })}`,
    );
    return (await step.json()) as AuditStep;
  }

  async engineCounts(): Promise<EngineCounts> {
    return {
      tasks: await this.metric('takemark_engine_tasks'),
      lanes: await this.metric('takemark_engine_lanes'),
    };
  }

  async metric(name: string): Promise<number> {
    const value = new RegExp(`^${name} (\\S+)$`, 'm').exec(await (await this.#fetch('/metrics')).text())?.[1];
    if (value === undefined) throw new Error(`the service does not report ${name}`);
    return Number(value);
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }

  async #post(path: string, body: object): Promise<unknown> {
    return (
      await this.#fetch(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    ).json();
  }

  async #fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const response = await fetch(new URL(path, this.#operatorUrl), {
      ...init,
      headers: { ...init.headers, authorization: `Bearer ${this.#token}` },
    });
    if (!response.ok) throw new Error(`operator ${path}: ${response.status} ${await response.text()}`);
    return response;
  }
}

async function readPorts(
  dataDir: string,
): Promise<{ readonly partner: number; readonly operator: number } | undefined> {
  try {
    const { partner, operator } = JSON.parse(
      await readFile(join(dataDir, 'endpoints.json'), 'utf8'),
    ) as Record<string, unknown>;
    return { partner: portOf(partner), operator: portOf(operator) };
  } catch {
    // Not there yet.
    return undefined;
  }
}

/** Returns the port of an endpoint, which is a port or an address that ends in one. */
function portOf(endpoint: unknown): number {
  return typeof endpoint === 'number' ? endpoint : Number(new URL(String(endpoint)).port);
}
