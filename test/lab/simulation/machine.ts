import crypto from 'node:crypto';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import type { Random } from './random.js';
import { cancel, type Scheduled, World } from './world.js';

const load = createRequire(import.meta.url);

/** The shortest timer of a process, in milliseconds. Shorter pauses, as of pollers, would only cost steps. */
const GRAIN_MS = 50;

/** A timer with the methods of Node's own. */
class Timer {
  readonly scheduled: { event: Scheduled };

  constructor(event: Scheduled) {
    this.scheduled = { event };
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }
}

/**
 * The machine of the simulated processes. While it is installed, clocks, timers and randomness of this Node
 * come from a world. Each process has its own clock.
 */
export class Machine {
  #world: World | undefined;
  readonly #undo: (() => void)[] = [];
  readonly #immediate = setImmediate;

  static install(): Machine {
    const machine = new Machine();
    machine.#install();
    return machine;
  }

  /** Begins a new world, which replaces the last one. */
  begin(seed: number): World {
    const immediate = this.#immediate;
    this.#world = new World(seed, (run) => void immediate(run));
    return this.#world;
  }

  end(): void {
    this.#world = undefined;
  }

  uninstall(): void {
    for (const undo of this.#undo.splice(0)) undo();
    syncBuiltinESMExports();
  }

  #install(): void {
    const promises = load('node:timers/promises') as Record<string, unknown>;
    const real = { setTimeout, setInterval, clearTimeout, clearInterval, now: Date.now };
    const randomness = { uuid: crypto.randomUUID, bytes: crypto.randomBytes, unit: Math.random };
    const monotonic = performance.now.bind(performance);
    const realSleep = promises['setTimeout'] as (...args: unknown[]) => unknown;
    this.#replace(Date, 'now', () => this.#clock() ?? real.now());
    this.#replace(performance, 'now', () => {
      const world = this.#world;
      return world === undefined ? monotonic() : world.now - (world.current?.bornAt ?? 0);
    });
    this.#replace(
      globalThis,
      'setTimeout',
      (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
        this.#world === undefined
          ? real.setTimeout(run, ms, ...args)
          : new Timer(this.#after(this.#world, ms, () => run(...args))),
    );
    this.#replace(
      globalThis,
      'setInterval',
      (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
        const world = this.#world;
        if (world === undefined) return real.setInterval(run, ms, ...args);
        const again = (): void => {
          timer.scheduled.event = this.#after(world, ms, again);
          run(...args);
        };
        const timer: Timer = new Timer(this.#after(world, ms, again));
        return timer;
      },
    );
    const clear = (realClear: (timer: never) => void) => (timer: unknown) => {
      if (timer instanceof Timer) cancel(timer.scheduled.event);
      else realClear(timer as never);
    };
    this.#replace(globalThis, 'clearTimeout', clear(real.clearTimeout));
    this.#replace(globalThis, 'clearInterval', clear(real.clearInterval));
    this.#replace(
      promises,
      'setTimeout',
      (ms = 0, value: unknown, options?: { readonly signal?: AbortSignal }) =>
        this.#world === undefined
          ? realSleep(ms, value, options)
          : this.#sleep(this.#world, ms as number, value, options?.signal),
    );
    this.#replace(crypto, 'randomUUID', () => {
      const entropy = this.#entropy;
      return entropy === undefined ? randomness.uuid() : uuidOf(entropy.bytes(16));
    });
    this.#replace(
      crypto,
      'randomBytes',
      (length: number) => this.#entropy?.bytes(length) ?? randomness.bytes(length),
    );
    this.#replace(Math, 'random', () => this.#entropy?.unit() ?? randomness.unit());
    syncBuiltinESMExports();
  }

  #replace(holder: object, name: string, value: unknown): void {
    const before = Object.getOwnPropertyDescriptor(holder, name);
    Object.defineProperty(holder, name, { value, configurable: true, writable: true });
    this.#undo.push(() => {
      if (before === undefined) Reflect.deleteProperty(holder, name);
      else Object.defineProperty(holder, name, before);
    });
  }

  get #entropy(): Random | undefined {
    return this.#world?.entropy;
  }

  #clock(): number | undefined {
    const world = this.#world;
    return world && Math.floor(world.now + (world.current?.skewMs ?? 0));
  }

  #after(world: World, ms: number, run: () => void): Scheduled {
    return world.at(
      Math.max(world.current === undefined ? 0 : GRAIN_MS, Number(ms) || 0),
      world.current,
      run,
    );
  }

  #sleep(world: World, ms: number, value: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(signal.reason);
      const aborted = (): void => {
        cancel(event);
        reject(signal?.reason);
      };
      const event = this.#after(world, ms, () => {
        signal?.removeEventListener('abort', aborted);
        resolve(value);
      });
      signal?.addEventListener('abort', aborted, { once: true });
    });
  }
}

function uuidOf(bytes: Buffer): string {
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
