import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import {
  GetObjectCommand,
  ListObjectsV2Command,
  NoSuchKey,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { DomainError } from '../../../src/core/domain/errors.js';
import { type BucketNotes, openBucketNotes } from '../../../src/service/adapters/assets/bucket-notes.js';
import type { AssetStore, StagedAsset } from '../../../src/service/ports/assets.js';
import type { ContentKeys } from '../../../src/service/ports/content-keys.js';
import { authenticator } from '../../fixtures/authentication.js';
import type { Weather } from './weather.js';
import { cancel, type World } from './world.js';

interface Kept {
  readonly bytes: Buffer;
  /** Milliseconds of the bucket's own clock. */
  readonly at: number;
}

const REQUEST_MS = 5000;
/** The prefix of the names of the journal's entries. */
const ERASURES = 'erasures/';

/** The objects of one bucket, which all processes share. */
export class Bucket {
  readonly objects = new Map<string, Kept>();
  readonly keys = new Map<string, Uint8Array>();
  /** The ids whose key was destroyed. */
  readonly #destroyed = new Set<string>();
  /** The notes of the installation, which include the journal of erasures. */
  readonly notes = new Map<string, string>();
  readonly #world: World;
  readonly #weather: Weather;

  constructor(world: World, weather: Weather) {
    this.#world = world;
    this.#weather = weather;
  }

  /** Returns the proofs that have an object. */
  proofs(): ReadonlySet<string> {
    return new Set([...this.objects.keys()].map((name) => name.split('/')[0]!));
  }

  /** Returns whether the journal has the erasure of a proof. */
  hasJournalled(proofId: string): boolean {
    return this.notes.has(ERASURES + proofId);
  }

  /** Returns the bucket as one process uses it. */
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
      deleteUnfinished: () => this.#ask(() => undefined),
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

  /** Returns the content keys as one process uses them. */
  openKeys(): ContentKeys {
    const read = (proofId: string) => this.#ask(() => this.keys.get(proofId));
    return {
      obtain: async (proofId) => {
        const made = await read(proofId);
        if (made !== undefined) return made;
        const key = randomBytes(32);
        const kept = await this.#ask(() => {
          if (!this.keys.has(proofId) && !this.#destroyed.has(proofId)) this.keys.set(proofId, key);
          return this.keys.get(proofId);
        });
        if (kept === undefined) throw new DomainError('conflict', 'This id is taken.');
        return kept;
      },
      read,
      destroy: (proofId) =>
        this.#ask(() => {
          this.keys.delete(proofId);
          this.#destroyed.add(proofId);
        }),
      release: (proofId) => this.#ask(() => void this.keys.delete(proofId)),
    };
  }

  /** Opens the product's notes over this bucket. */
  openNotes(): BucketNotes {
    const client = { send: (command: unknown) => this.#answer(command), destroy: () => undefined };
    return openBucketNotes({
      client: client as unknown as S3Client,
      region: 'simulated',
      bucket: 'simulated',
      prefix: '',
      authenticator,
    });
  }

  async #answer(command: unknown): Promise<unknown> {
    if (command instanceof PutObjectCommand) {
      const { Key: name, Body: body } = command.input;
      return this.#ask(() => void this.notes.set(name!, String(body)));
    }
    if (command instanceof GetObjectCommand) {
      const text = await this.#ask(() => this.notes.get(command.input.Key!));
      if (text !== undefined) return { Body: { transformToString: async () => text } };
      throw new NoSuchKey({ message: 'There is no such note.', $metadata: { httpStatusCode: 404 } });
    }
    if (command instanceof ListObjectsV2Command)
      return this.#ask(() => ({
        Contents: [...this.notes.keys()]
          .filter((name) => name.startsWith(command.input.Prefix ?? ''))
          .map((name) => ({ Key: name })),
      }));
    throw new Error('the simulated bucket does not know this command');
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

  /** Plays a request. It may fail before or after it took effect. */
  #ask<Value>(work: () => Value): Promise<Value> {
    const { random } = this.#world;
    const process = this.#world.current;
    const isLost = this.#weather.happens('bucket', 0.05);
    const isLate = this.#weather.happens('bucket', 0.02);
    const delay = isLate ? random.between(REQUEST_MS, 60_000) : random.between(0.5, 3);
    this.#weather.arrives(delay);
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
        if (isLate) this.#world.note(process?.name ?? 'no process', 'LATE request of the bucket took effect');
        this.#world.at(0.5, process, () => {
          cancel(timer);
          resolve(value);
        });
      });
    });
  }
}
