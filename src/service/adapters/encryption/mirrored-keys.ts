import { eachOf } from '../../../core/async/each-of.js';
import type { ContentKeys } from '../../ports/content-keys.js';
import type { KeyDirectory } from './key-directory.js';

/** The keys that are compared at once. Few, because the service serves calls meanwhile. */
const COMPARED_AT_ONCE = 4;
const PAGE = 1000;

/** What a comparison of both directories has changed. */
export interface Aligned {
  /** The number of keys that one of the directories lacked. */
  readonly copied: number;
  /** The number of keys of erased proofs that one of the directories still had. */
  readonly destroyed: number;
  /** The number of ids whose two keys differ. Both keys stay as they are. */
  readonly different: number;
}

/** Keys in two directories on two disks, so that the loss of one disk loses no key. */
export interface MirroredKeys extends ContentKeys {
  /**
   * Copies each key that only one directory has, and destroys the keys of erased proofs in both. Needed once
   * after each start: one of the directories may be new, or may have been absent for some time.
   * @param erased the ids of all erased proofs. A key of another id is never destroyed, because it may be the
   * last copy
   * @param ending ends the comparison early
   */
  align(erased: AsyncIterable<{ readonly proofId: string }>, ending?: AbortSignal): Promise<Aligned>;
}

/**
 * Joins two directories of keys. A key is in both before it is used, and is destroyed in both before an erasure
 * is answered. A key that one directory has lost is read from the other one.
 */
export function mirroredKeys(first: KeyDirectory, second: KeyDirectory): MirroredKeys {
  const both = [first, second] as const;
  const turns = new Turns();

  const read = async (proofId: string): Promise<Uint8Array | undefined> =>
    (await first.read(proofId)) ?? second.read(proofId);
  const destroyBoth = async (proofId: string): Promise<void> => {
    await Promise.all(both.map((keys) => keys.destroy(proofId)));
  };
  const destroy = (proofId: string): Promise<void> => turns.take(proofId, () => destroyBoth(proofId));

  return {
    obtain: (proofId) =>
      turns.take(proofId, async () => {
        // A first directory that is new must not get another key for an id that has one.
        const key = (await read(proofId)) ?? (await first.obtain(proofId));
        await Promise.all(both.map((keys) => keys.store(proofId, key)));
        return key;
      }),
    read,
    destroy,
    release: destroy,

    async align(erased, ending) {
      let [copied, destroyed, different] = [0, 0, 0];
      // The journal names most erasures twice.
      await eachOf(untilAborted(erased, ending), COMPARED_AT_ONCE, ({ proofId }) =>
        turns.take(proofId, async () => {
          if ((await read(proofId)) === undefined) return;
          await destroyBoth(proofId);
          destroyed += 1;
        }),
      );
      const compare = (proofId: string): Promise<void> =>
        turns.take(proofId, async () => {
          const [one, other] = await Promise.all(both.map((keys) => keys.read(proofId)));
          if (one !== undefined && other !== undefined) {
            if (Buffer.compare(one, other) !== 0) different += 1;
            return;
          }
          const key = one ?? other;
          // It was destroyed since it was listed.
          if (key === undefined) return;
          await (one === undefined ? first : second).store(proofId, key);
          copied += 1;
        });
      await eachOf(untilAborted(idsOf(first), ending), COMPARED_AT_ONCE, compare);
      await eachOf(untilAborted(idsOf(second), ending), COMPARED_AT_ONCE, async (proofId) => {
        if ((await first.read(proofId)) === undefined) await compare(proofId);
      });
      return { copied, destroyed, different };
    },
  };
}

async function* untilAborted<Item>(items: AsyncIterable<Item>, signal?: AbortSignal): AsyncGenerator<Item> {
  for await (const item of items) {
    if (signal?.aborted) return;
    yield item;
  }
}

async function* idsOf(keys: KeyDirectory): AsyncGenerator<string> {
  let after: string | undefined;
  do {
    const { proofIds, next } = await keys.list(after, PAGE);
    yield* proofIds;
    after = next;
  } while (after !== undefined);
}

/**
 * Runs work on one id in the order of the calls. Otherwise a copy that read a key before its destruction could
 * write the key after it.
 */
class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  async take<Value>(id: string, work: () => Promise<Value>): Promise<Value> {
    const own = (this.#last.get(id) ?? Promise.resolve()).then(work);
    // A failure is the caller's, and does not end the turns of others.
    const settled = own.catch(() => undefined);
    this.#last.set(id, settled);
    try {
      return await own;
    } finally {
      if (this.#last.get(id) === settled) this.#last.delete(id);
    }
  }
}
