import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Path of a Chromium, or undefined. */
export async function findChromium(): Promise<string | undefined> {
  for (const program of PROGRAMS)
    if (
      await access(program).then(
        () => true,
        () => false,
      )
    )
      return program;
  return undefined;
}

type Members = Readonly<Record<string, unknown>>;

/** A headless Chromium, spoken to over pipes: no port is opened. */
export class Chromium {
  readonly #process: ChildProcess;
  readonly #profile: string;
  readonly #output: Writable;
  readonly #waiting = new Map<number, { resolve(result: Members): void; reject(error: Error): void }>();
  readonly #events: { readonly method: string; readonly params: Members }[] = [];
  #calls = 0;
  #session: string | undefined;

  private constructor(process: ChildProcess, profile: string) {
    this.#process = process;
    this.#profile = profile;
    this.#output = process.stdio[3] as Writable;
    let rest = '';
    (process.stdio[4] as Readable).setEncoding('utf8').on('data', (chunk: string) => {
      const messages = (rest + chunk).split('\0');
      rest = messages.pop() ?? '';
      for (const message of messages) this.#take(JSON.parse(message) as Members);
    });
    process.once('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('Chromium has ended'));
    });
  }

  static async open(program: string): Promise<Chromium> {
    const profile = await mkdtemp(join(tmpdir(), 'takemark-chromium-'));
    const process = spawn(
      program,
      [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        '--no-first-run',
        '--disable-background-networking',
        '--remote-debugging-pipe',
        `--user-data-dir=${profile}`,
      ],
      { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] },
    );
    const browser = new Chromium(process, profile);
    const { targetId } = await browser.call('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await browser.call('Target.attachToTarget', { targetId, flatten: true });
    browser.#session = sessionId as string;
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await browser.call(`${domain}.enable`);
    return browser;
  }

  call(method: string, params: Members = {}): Promise<Members> {
    this.#calls += 1;
    const id = this.#calls;
    const result = new Promise<Members>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    const session = this.#session === undefined ? {} : { sessionId: this.#session };
    this.#output.write(`${JSON.stringify({ id, method, params, ...session })}\0`);
    return result;
  }

  /** Opens a page at a width and in a scheme, and waits until it is drawn. */
  async show(url: string, width: number, scheme: 'light' | 'dark'): Promise<void> {
    await this.call('Emulation.setDeviceMetricsOverride', {
      width,
      height: 900,
      deviceScaleFactor: 1,
      mobile: width < 600,
    });
    await this.call('Emulation.setEmulatedMedia', {
      features: [{ name: 'prefers-color-scheme', value: scheme }],
    });
    this.#events.length = 0;
    await this.call('Page.navigate', { url });
    await this.evaluate(
      'document.readyState === "complete" ? 1 : new Promise((done) => addEventListener("load", () => done(1)))',
    );
  }

  async evaluate(expression: string): Promise<unknown> {
    const { result } = await this.call('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    return (result as Members)['value'];
  }

  /** What the page complained of since it was opened, and what it asked the network for beside itself. */
  complaints(url: string): readonly string[] {
    return this.#events.flatMap(({ method, params }) => {
      if (
        method === 'Runtime.exceptionThrown' ||
        method === 'Runtime.consoleAPICalled' ||
        method === 'Log.entryAdded'
      )
        return [JSON.stringify(params)];
      const request = params['request'] as Members | undefined;
      return method === 'Network.requestWillBeSent' && request?.['url'] !== url
        ? [String(request?.['url'])]
        : [];
    });
  }

  async screenshot(): Promise<Buffer> {
    const { data } = await this.call('Page.captureScreenshot', { captureBeyondViewport: true });
    return Buffer.from(data as string, 'base64');
  }

  async pdf(): Promise<Buffer> {
    const { data } = await this.call('Page.printToPDF', { printBackground: false, preferCSSPageSize: true });
    return Buffer.from(data as string, 'base64');
  }

  async close(): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }

  #take(message: Members): void {
    const { id, result, error, method, params } = message as {
      id?: number;
      result?: Members;
      error?: { message: string };
      method?: string;
      params?: Members;
    };
    if (id === undefined) {
      if (method !== undefined) this.#events.push({ method, params: params ?? {} });
      return;
    }
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error !== undefined) waiting?.reject(new Error(error.message));
    else waiting?.resolve(result ?? {});
  }
}
