import { statfs } from 'node:fs/promises';

/** What is free on the file system of a directory. */
export interface FreeSpace {
  readonly freeBytes: number;
  /** The free share of the bytes, from 0 to 1. */
  readonly bytes: number;
  /** The free share of the inodes. Undefined if the file system creates inodes when it needs them. */
  readonly inodes: number | undefined;
}

export async function readFreeSpace(directory: string): Promise<FreeSpace> {
  const { bavail, blocks, bsize, ffree, files } = await statfs(directory);
  return {
    freeBytes: bavail * bsize,
    bytes: bavail / blocks,
    inodes: files === 0 ? undefined : ffree / files,
  };
}
