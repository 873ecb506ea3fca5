import { Readable } from 'node:stream';
import { DomainError } from '../../src/domain/errors.js';
import type { AssetStore, StagedAsset } from '../../src/ports/assets.js';
import type { Weather } from './weather.js';
import { cancel, type World } from './world.js';

interface Kept {
  readonly bytes: Buffer;
  /** Milliseconds of the bucket's own clock. */
  readonly at: number;
}

const REQUEST_MS = 5000;

/** Objects of one bucket, for all processes. */
export class Bucket {
  readonly objects = new Map<string, Kept>();
  readonly #world: World;
  readonly #weather: Weather;

  constructor(world: World, weather: Weather) {
    this.#world = world;
    this.#weather = weather;
  }

  /** The proofs of which there is an object. */
  proofs(): ReadonlySet<string> {
    return new Set([...this.objects.keys()].map((name) => name.split('/')[0]!));
  }

  /** The bucket as one process uses it. */
  open(): AssetStore {
    const nameOf = (proofId: string, part?: string): string =>
      part === undefined ? proofId : `${proofId}/${part}`;
    return {
      stage: async (proofId, part) => this.#stage(nameOf(proofId, part)),
      read: (proofId, range, part) =>
        this.#ask(() => {
          const kept = this.objects.get(nameOf(proofId, part));
          return (
            kept &&
            Readable.from([kept.bytes.subarray(range?.start ?? 0, (range?.end ?? kept.bytes.length - 1) + 1)])
          );
        }),
      size: (proofId, part) => this.#ask(() => this.objects.get(nameOf(proofId, part))?.bytes.length),
      delete: (proofId) =>
        this.#ask(() => {
          const wasThere = this.objects.has(proofId);
          for (const name of this.objects.keys())
            if (name === proofId || name.startsWith(`${proofId}/`)) this.objects.delete(name);
          return wasThere;
        }),
      list: () =>
        this.#ask(() => ({
          items: [...this.objects].map(([name, { at }]) => ({
            proofId: name.split('/')[0]!,
            writtenAt: Math.floor(at / 1000),
          })),
        })),
    };
  }

  #stage(name: string): StagedAsset {
    let bytes = Buffer.alloc(0);
    return {
      append: async (chunk) => void (bytes = Buffer.concat([bytes, chunk])),
      patch: async (offset, patch) => void bytes.set(patch, offset),
      read: () => Readable.from([bytes]),
      publish: () => this.#ask(() => void this.objects.set(name, { bytes, at: this.#world.now })),
      discard: async () => undefined,
    };
  }

  /** A request: it may fail before or after it took effect. */
  #ask<Value>(work: () => Value): Promise<Value> {
    const { random } = this.#world;
    const process = this.#world.current;
    const isLost = this.#weather.happens('bucket', 0.05);
    const isLate = this.#weather.happens('bucket', 0.02);
    const delay = isLate ? random.between(REQUEST_MS, 60_000) : random.between(0.5, 3);
    return new Promise((resolve, reject) => {
      const timer = this.#world.at(REQUEST_MS, process, () =>
        reject(
          new DomainError('unavailable', 'The bucket is away.', {
            reason: 'store_unavailable',
            retryAfterSeconds: 1,
          }),
        ),
      );
      if (isLost) return;
      this.#world.at(delay, undefined, () => {
        const value = work();
        if (isLate) this.#world.note(process?.name ?? 'nobody', 'LATE request of the bucket took effect');
        this.#world.at(0.5, process, () => {
          cancel(timer);
          resolve(value);
        });
      });
    });
  }
}
