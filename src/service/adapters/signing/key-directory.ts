import { mkdtemp, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { SignatureAlgorithm } from '../../../core/domain/parsed-credential.js';
import { syncDirectory, UNFINISHED } from '../../../core/files/durable.js';
import { makeDirectory } from '../../../core/files/make-directory.js';

/** A certificate and its private key, PEM, in a directory of their own that appears whole or not at all. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

const CERTIFICATE = 'certificate.pem';
const KEY = 'key.pem';
const UNFINISHED_LIFE_MS = 600_000;

/**
 * Returns the pair in a directory, or undefined if the directory does not exist. A directory without a key file was
 * made by hand: this is an error, and never a reason to make new keys.
 */
export async function readKeyPair(directory: string): Promise<KeyPair | undefined> {
  try {
    await stat(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  return {
    certificate: await readFile(join(directory, CERTIFICATE), 'utf8'),
    key: await readFile(join(directory, KEY), 'utf8'),
  };
}

/**
 * Writes a pair under `parent/name`: into a directory beside it, synced, then renamed. Killed at any moment
 * it leaves the pair or nothing. When another process was quicker its pair stays.
 * @returns the pair that is there now
 */
export async function keepKeyPair(parent: string, name: string, pair: KeyPair): Promise<KeyPair> {
  await keepPair(parent, name, pair);
  const kept = await readKeyPair(join(parent, name));
  if (kept === undefined) throw new Error(`no key pair in ${join(parent, name)}`);
  return kept;
}

/** Writes a certificate as `keepKeyPair` writes a pair; the key may be elsewhere. */
export async function keepPair(
  parent: string,
  name: string,
  { certificate, key }: Pick<KeyPair, 'certificate'> & Partial<KeyPair>,
): Promise<void> {
  await makeDirectory(parent);
  const unfinished = await mkdtemp(join(parent, UNFINISHED));
  if (key !== undefined) await writeSynced(join(unfinished, KEY), key);
  await writeSynced(join(unfinished, CERTIFICATE), certificate);
  await syncDirectory(unfinished);
  try {
    await rename(unfinished, join(parent, name));
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
  }
  await syncDirectory(parent);
}

/**
 * Returns the text of the certificates in a pair's directory, whether or not the key is there. Returns undefined if
 * there is no such directory, or no certificate in it.
 */
export async function readCertificates(directory: string): Promise<string | undefined> {
  try {
    return await readFile(join(directory, CERTIFICATE), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Returns the name of the directory of an algorithm's leaf: `leaf-ed25519`, and `leaf-ed25519.2` for the second one
 * that was installed.
 */
export function leafDirectory(algorithm: SignatureAlgorithm, number: number): string {
  return `leaf-${algorithm.toLowerCase()}${number === 1 ? '' : `.${number}`}`;
}

/**
 * Returns the numbers of an algorithm's leaves, that of the signing one first. A later one replaces those before it.
 */
export async function leavesOf(home: string, algorithm: SignatureAlgorithm): Promise<readonly number[]> {
  const numbers = (await entriesOf(home)).flatMap((entry) => {
    const [, name, number = '1'] = /^(leaf-[a-z0-9]+)(?:\.([1-9][0-9]{0,5}))?$/.exec(entry) ?? [];
    return name === leafDirectory(algorithm, 1) ? Number(number) : [];
  });
  return numbers.sort((a, b) => b - a);
}

/**
 * Removes the files of a killed start, once they are too old to belong to a running process.
 * @param now milliseconds since the epoch
 */
export async function removeUnfinished(parent: string, now: number): Promise<void> {
  for (const entry of await entriesOf(parent)) {
    const path = join(parent, entry);
    if (!entry.startsWith(UNFINISHED)) continue;
    const age =
      now -
      (await stat(path).then(
        (found) => found.mtimeMs,
        () => now,
      ));
    if (age > UNFINISHED_LIFE_MS) await rm(path, { recursive: true, force: true });
  }
}

/** Returns the sorted names in a directory. A directory that does not exist has none. */
export async function entriesOf(directory: string): Promise<readonly string[]> {
  try {
    return (await readdir(directory)).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** Returns the paths of the private keys below a directory. A directory that does not exist has none. */
export async function keyFiles(directory: string): Promise<readonly string[]> {
  const found = await readdir(directory, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return found.filter((path) => basename(path) === KEY).map((path) => join(directory, path));
}

async function writeSynced(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}
