import { createHash } from 'node:crypto';
import { mkdir, opendir, readdir, rename, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { syncDirectory } from './durable.js';
import { ifPresent } from './if-present.js';
import { makeDirectory } from './make-directory.js';

/** Digits of a shard's name: 4,096 shards, so that the files of ten million proofs are some thousands in each. */
const DIGITS = 3;
const SHARD = /^[0-9a-f]{3}$/;
/** Files that are moved at once. */
const MOVES = 64;
/** Entries that the file system hands over at once; other work has its turn between. */
const ENTRIES_AT_ONCE = 256;

/**
 * Files that are spread over subdirectories, the shards, by the SHA-256 of their names without the ending, the stem: files
 * of one stem lie together. A single directory has a bound, on ext4 some nine million names of 34 characters, and is read as a
 * whole for each page of its names. It belongs to one process at a time.
 */
export class ShardedDirectory {
  readonly #directory: string;
  readonly #endings: readonly string[];
  /** Shards that are there, and durable. */
  readonly #shards = new Set<string>();

  private constructor(directory: string, endings: readonly string[]) {
    this.#directory = directory;
    this.#endings = endings;
  }

  /**
   * Opens the directory, or makes it. Files that a former version left in it lie in their shards afterwards.
   * @param endings of the names of its files; others are left alone
   * @throws the file system's error
   */
  static async open(directory: string, endings: readonly string[]): Promise<ShardedDirectory> {
    await makeDirectory(directory);
    await syncDirectory(dirname(resolve(directory)));
    const opened = new ShardedDirectory(directory, endings);
    await opened.#read();
    return opened;
  }

  /** Path of a file. Its shard may not be there yet. */
  path(name: string): string {
    return join(this.#shardPath(this.#shardOf(name)), name);
  }

  /** Makes the shard in which files of this stem lie. */
  async prepare(stem: string): Promise<void> {
    const shard = shardOf(stem);
    if (this.#shards.has(shard)) return;
    await mkdir(this.#shardPath(shard), { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    await syncDirectory(this.#directory);
    this.#shards.add(shard);
  }

  /** Puts the entries of the shard on disk in which files of this stem lie, or would. */
  async sync(stem: string): Promise<void> {
    const shard = shardOf(stem);
    await syncDirectory(this.#shards.has(shard) ? this.#shardPath(shard) : this.#directory);
  }

  /**
   * Names behind a place, at most `limit`, shard by shard and each in the order of its names.
   * @param after the last name of the page before; absent for the first page
   * @returns `next` as long as there are more names
   */
  async page(
    after: string | undefined,
    limit: number,
  ): Promise<{ readonly names: readonly string[]; readonly next?: string }> {
    const from = after === undefined ? '' : this.#shardOf(after);
    const shards = (await readdir(this.#directory)).filter((name) => SHARD.test(name) && name >= from);
    const names: string[] = [];
    for (const shard of shards.sort()) {
      const found = (await readdir(this.#shardPath(shard)))
        .filter((name) => this.#stemOf(name) !== undefined)
        .sort();
      for (const name of found) {
        if (after !== undefined && shard === from && name <= after) continue;
        if (names.length === limit) return { names, next: names.at(-1)! };
        names.push(name);
      }
    }
    return { names };
  }

  /** Finds the shards, and moves files into theirs that lie beside them. */
  async #read(): Promise<void> {
    const moved = new Set<string>();
    let batch: string[] = [];
    const moveBatch = async (): Promise<void> => {
      await Promise.all(batch.map((name) => this.#move(name)));
      for (const name of batch) moved.add(this.#shardOf(name));
      batch = [];
    };
    for await (const entry of await opendir(this.#directory, { bufferSize: ENTRIES_AT_ONCE })) {
      if (entry.isDirectory()) {
        if (SHARD.test(entry.name)) this.#shards.add(entry.name);
      } else if (this.#stemOf(entry.name) !== undefined) batch.push(entry.name);
      if (batch.length === MOVES) await moveBatch();
    }
    await moveBatch();
    for (const shard of moved) await syncDirectory(this.#shardPath(shard));
    // Also for shards whose maker was killed before it had synced them.
    await syncDirectory(this.#directory);
  }

  async #move(name: string): Promise<void> {
    const from = join(this.#directory, name);
    const to = this.path(name);
    await this.prepare(this.#stemOf(name)!);
    if ((await ifPresent(stat(to))) !== undefined)
      throw new Error(`${from} and ${to} are two files of one name: one of them has to go`);
    await rename(from, to);
  }

  /** Undefined for a name that is none of the directory's. */
  #stemOf(name: string): string | undefined {
    const ending = this.#endings.find((each) => name.endsWith(each));
    return ending && name.slice(0, -ending.length);
  }

  #shardOf(name: string): string {
    return shardOf(this.#stemOf(name) ?? name);
  }

  #shardPath(shard: string): string {
    return join(this.#directory, shard);
  }
}

function shardOf(stem: string): string {
  return createHash('sha256').update(stem).digest('hex').slice(0, DIGITS);
}
