/** A service in its own process, limited to the memory of a small container. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createMemoryCgroup, type MemoryCgroup } from './memory-cgroup.js';

const MAIN = new URL('../../../src/service/main.js', import.meta.url).pathname;
const START_MS = 120_000;
export const CONTAINER_MIB = 512;
/**
 * The largest heap is half of the container, which is Node's default there. The initial size is that of `npm
 * start`.
 */
const HEAP_FLAGS = ['--initial-old-space-size=128', '--max-old-space-size=256'];
const WORDS_KEPT = 4000;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface AttackedPartner {
  readonly partnerId: string;
  readonly keyId: string;
  readonly apiKey: string;
}

export class ConfinedService {
  readonly dataDirectory: string;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #group: MemoryCgroup;
  readonly #logs: string[] = [];
  #child: ChildProcess | undefined;
  #exit: Exit | undefined;
  #words = '';
  #partnerPort = 0;
  #operatorPort = 0;
  #token = '';

  private constructor(
    dataDirectory: string,
    settings: Readonly<Record<string, string>>,
    group: MemoryCgroup,
  ) {
    this.dataDirectory = dataDirectory;
    this.#settings = settings;
    this.#group = group;
  }

  static async start(settings: Readonly<Record<string, string>> = {}): Promise<ConfinedService> {
    const group = await createMemoryCgroup(CONTAINER_MIB * 1_048_576);
    const service = new ConfinedService(await mkdtemp(join(tmpdir(), 'takemark-attacked-')), settings, group);
    try {
      await service.#spawn();
      return service;
    } catch (error) {
      await service.remove();
      throw error;
    }
  }

  /** The port of the partner listener. */
  get port(): number {
    return this.#partnerPort;
  }

  get operatorPort(): number {
    return this.#operatorPort;
  }

  get partnerUrl(): string {
    return `http://127.0.0.1:${this.#partnerPort}`;
  }

  /** The URL of the operator API, which ends in `/operator/v1`. */
  get operatorUrl(): string {
    return `http://127.0.0.1:${this.#operatorPort}/operator/v1`;
  }

  /** The bearer token of the operator listener. */
  get token(): string {
    return this.#token;
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  /** The lines of the log, the newest last. */
  get log(): readonly string[] {
    return this.#logs;
  }

  running(): boolean {
    return this.#child !== undefined && this.#exit === undefined;
  }

  /** Returns how the process ended, with the end of its log. Undefined while it runs. */
  ending(): (Exit & { readonly words: string }) | undefined {
    return this.#exit && { ...this.#exit, words: this.#words };
  }

  /** Returns the current resident memory of the process. */
  async rssMiB(): Promise<number> {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)![1]) / 1024;
  }

  /** Returns the peak memory of the process and of the page cache of its files. */
  async peakMiB(): Promise<number> {
    return (await this.#group.peakBytes()) / 1_048_576;
  }

  oomKills(): Promise<number> {
    return this.#group.oomKills();
  }

  /**
   * Calls the operator listener. Returns the body, as JSON or text.
   * @throws Error if the status is not 2xx
   */
  async operator(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`${this.operatorUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`operator ${method} ${path}: ${response.status} ${text}`);
    return response.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : text;
  }

  async partner(plan: string): Promise<AttackedPartner> {
    const { partnerId } = (await this.operator('POST', '/partners', { name: 'Attacked', plan })) as {
      partnerId: string;
    };
    const { keyId, apiKey } = (await this.operator('POST', `/partners/${partnerId}/keys`, {
      name: 'key',
    })) as { keyId: string; apiKey: string };
    return { partnerId, keyId, apiKey };
  }

  /**
   * Issues a proof embedded into the file.
   * @returns the proof's id
   */
  async issue(partnerId: string, audio: Uint8Array, song = 'Song'): Promise<string> {
    const response = await fetch(
      `${this.operatorUrl}/proofs?${new URLSearchParams({ partnerId, song, fileName: 'take.wav', carrier: 'embedded' })}`,
      {
        method: 'POST',
        headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/octet-stream' },
        body: Buffer.from(audio),
      },
    );
    if (!response.ok) throw new Error(`issue: ${response.status} ${await response.text()}`);
    return ((await response.json()) as { proofId: string }).proofId;
  }

  /** Returns the value of a metric, summed over its labels. */
  async metric(name: string): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${this.#operatorPort}/metrics`);
    const samples = [
      ...(await response.text()).matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm')),
    ];
    return samples.reduce((sum, [, value]) => sum + Number(value), 0);
  }

  /** Ends the process, by default with SIGTERM. The data directory stays. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined || this.#exit !== undefined) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  /**
   * Starts the process again on its data directory after its end.
   * @throws Error if it does not serve
   */
  async restart(): Promise<void> {
    await this.stop();
    await this.#spawn();
  }

  /** Ends the process and deletes all of its files. */
  async remove(): Promise<void> {
    await this.stop('SIGKILL');
    await this.#group.remove();
    await rm(this.dataDirectory, { recursive: true, force: true });
  }

  async #spawn(): Promise<void> {
    const endpoints = join(this.dataDirectory, 'endpoints.json');
    await rm(endpoints, { force: true });
    this.#exit = undefined;
    this.#words = '';
    // The shell joins the group before it becomes the service, so that every page is counted in the group.
    const child = spawn(
      '/bin/sh',
      ['-c', 'echo $$ > "$0" && exec "$@"', this.#group.processes, process.execPath, ...HEAP_FLAGS, MAIN],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          PATH: process.env['PATH'],
          TAKEMARK_DATA_DIR: this.dataDirectory,
          TAKEMARK_PORT: '0',
          TAKEMARK_OPERATOR_PORT: '0',
          TAKEMARK_HOST: '127.0.0.1',
          TAKEMARK_STOP_GRACE_SECONDS: '2',
          ...this.#settings,
        },
      },
    );
    this.#child = child;
    child.once('exit', (code, signal) => (this.#exit = { code, signal }));
    child.stdout
      .setEncoding('utf8')
      .on('data', (text: string) => this.#logs.push(...text.split('\n').filter(Boolean)));
    child.stderr
      .setEncoding('utf8')
      .on('data', (text: string) => (this.#words = (this.#words + text).slice(-WORDS_KEPT)));
    for (
      const deadline = Date.now() + START_MS;
      Date.now() < deadline && this.#exit === undefined;
      await delay(20)
    ) {
      const text = await readFile(endpoints, 'utf8').catch(() => undefined);
      if (text === undefined) continue;
      const { partner, operator } = JSON.parse(text) as { partner: number; operator: number };
      this.#partnerPort = partner;
      this.#operatorPort = operator;
      this.#token =
        this.#settings['TAKEMARK_OPERATOR_TOKEN'] ??
        (await readFile(join(this.dataDirectory, 'operator-token'), 'utf8')).trim();
      return;
    }
    throw new Error(`the service did not start: ${JSON.stringify(this.#exit)} ${this.#words}`);
  }
}
