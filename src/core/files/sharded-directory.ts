import { createHash } from 'node:crypto';
import { mkdir, opendir, readdir, rename, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { syncDirectory } from './durable.js';
import { ifPresent } from './if-present.js';
import { makeDirectory } from './make-directory.js';

/**
 * The number of digits of a shard's name. 4,096 shards hold a few thousand files each for ten million proofs.
 */
const DIGITS = 3;
const SHARD = /^[0-9a-f]{3}$/;
/** The number of files that are moved at once. */
const MOVES = 64;
/** The number of entries per read of a directory. Other work can run between the reads. */
const ENTRIES_AT_ONCE = 256;

/**
 * Files in subdirectories (shards). The SHA-256 of a file's stem, its name without the ending, selects the
 * shard. So files with the same stem are in the same shard. A single directory has a limit, on ext4 about
 * nine million names of 34 characters, and every page of names reads all of it. Only one process may use the
 * directory.
 */
export class ShardedDirectory {
  readonly #directory: string;
  readonly #endings: readonly string[];
  /** The shards that exist durably. */
  readonly #shards = new Set<string>();

  private constructor(directory: string, endings: readonly string[]) {
    this.#directory = directory;
    this.#endings = endings;
  }

  /**
   * Opens or creates the directory. Moves files that a former version stored in the directory itself into
   * their shards.
   * @param endings the endings of its files' names. Other files are left alone.
   * @throws the file system's error
   */
  static async open(directory: string, endings: readonly string[]): Promise<ShardedDirectory> {
    await makeDirectory(directory);
    await syncDirectory(dirname(resolve(directory)));
    const opened = new ShardedDirectory(directory, endings);
    await opened.#read();
    return opened;
  }

  /** Returns the path of a file, even if the shard does not exist yet. */
  path(name: string): string {
    return join(this.#shardPath(this.#shardOf(name)), name);
  }

  /** Creates the shard for files of this stem. */
  async prepare(stem: string): Promise<void> {
    const shard = shardOf(stem);
    if (this.#shards.has(shard)) return;
    await mkdir(this.#shardPath(shard), { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    await syncDirectory(this.#directory);
    this.#shards.add(shard);
  }

  /** Syncs the entries of this stem's shard to disk, or of the directory if the shard does not exist. */
  async sync(stem: string): Promise<void> {
    const shard = shardOf(stem);
    await syncDirectory(this.#shards.has(shard) ? this.#shardPath(shard) : this.#directory);
  }

  /**
   * Lists the names after a place, at most `limit`, ordered by shard and then by name.
   * @param after the last name of the previous page. Absent for the first page.
   * @returns `next` as long as more names follow
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

  /** Finds the shards, and moves files beside them into their shards. */
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
    // This sync also covers shards whose creator crashed before its sync.
    await syncDirectory(this.#directory);
  }

  async #move(name: string): Promise<void> {
    const from = join(this.#directory, name);
    const to = this.path(name);
    await this.prepare(this.#stemOf(name)!);
    if ((await ifPresent(stat(to))) !== undefined)
      throw new Error(`${from} and ${to} are two files with the same name. Delete one of them.`);
    await rename(from, to);
  }

  /** Returns the stem of a name, or undefined when the name has none of the directory's endings. */
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
