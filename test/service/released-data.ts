import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';

/** A data directory as a release left it. Contents of files are in base64. */
export interface ReleasedData {
  /** The time of writing in Unix seconds. */
  readonly writtenAt: number;
  readonly partnerId: string;
  readonly apiKey: string;
  readonly reviewId: string;
  readonly embedded: { readonly proofId: string; readonly file: string };
  readonly pair: { readonly proofId: string; readonly file: string; readonly sidecar: string };
  readonly erased: { readonly proofId: string; readonly file: string };
  /** Every file of the directory, by its path. */
  readonly files: Readonly<Record<string, string>>;
}

// Compiled files run in dist/test/service.
const DIRECTORY = new URL('../../../test/service/released-data/', import.meta.url);
const ENDING = '.json.gz';

/** Returns the releases whose data directories are kept. */
export async function releases(): Promise<readonly string[]> {
  const names = await readdir(DIRECTORY);
  return names.filter((name) => name.endsWith(ENDING)).map((name) => name.slice(0, -ENDING.length));
}

export async function readReleased(version: string): Promise<ReleasedData> {
  return JSON.parse(
    gunzipSync(await readFile(new URL(version + ENDING, DIRECTORY))).toString(),
  ) as ReleasedData;
}

/** Writes the files of a release below `directory`, readable by their owner only. */
export async function unpack({ files }: ReleasedData, directory: string): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const path = join(directory, name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFile(path, Buffer.from(content, 'base64'), { mode: 0o600 });
  }
  await chmod(directory, 0o700);
}
