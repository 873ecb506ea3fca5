import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { replaceFile } from '../files/durable.js';
import { makeDirectory } from '../files/make-directory.js';
import { UsageError } from './command.js';

/** Address of a service, and the key for it: they are named together, so that neither goes with another's. */
export interface Profile {
  readonly url: string;
  readonly apiKey: string;
  /** PEM file of the authorities that may vouch for the service. */
  readonly ca?: string;
  /** PEM file of the private key that signs calls. */
  readonly signingKey?: string;
}

export type Profiles = Readonly<Record<string, Profile>>;

const KIND = 'profiles';
const MAX_BYTES = 262_144;
const MAX_PROFILES = 100;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const OTHERS = 0o077;

/**
 * The profiles of a file; none where it does not exist.
 * @throws UsageError where others than its owner could read or write it, or it holds something else
 */
export async function readProfiles(path: string): Promise<Profiles> {
  const text = await readPrivate(path);
  return text === undefined ? {} : parseProfiles(text, path);
}

/**
 * Keeps a profile, in a file that its owner alone can read, and in whole or not at all.
 * @throws UsageError for a name that cannot be one, or that is taken, without `force`
 */
export async function addProfile(
  path: string,
  name: string,
  profile: Profile,
  { force }: { readonly force: boolean },
): Promise<void> {
  if (!NAME.test(name))
    throw new UsageError(
      'a profile has a name of 1 to 64 letters, digits, dots, dashes and underscores, the first a letter or digit',
    );
  const profiles = await readProfiles(path);
  if (Object.hasOwn(profiles, name) && !force)
    throw new UsageError(`the profile ${name} exists; give --force to replace it`);
  if (!Object.hasOwn(profiles, name) && Object.keys(profiles).length >= MAX_PROFILES)
    throw new UsageError(`there are ${MAX_PROFILES} profiles, and no more are kept`);
  await makeDirectory(dirname(path));
  await writeProfiles(path, { ...profiles, [name]: profile });
}

/** @throws UsageError where there is no such profile */
export async function removeProfile(path: string, name: string): Promise<void> {
  const profiles = await readProfiles(path);
  findProfile(profiles, name, path);
  await writeProfiles(path, Object.fromEntries(Object.entries(profiles).filter(([other]) => other !== name)));
}

/** @throws UsageError where there is no such profile */
export function findProfile(profiles: Profiles, name: string, path: string): Profile {
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile === undefined)
    throw new UsageError(`there is no profile ${name} in ${path}; takemark profile add makes one`);
  return profile;
}

async function writeProfiles(path: string, profiles: Profiles): Promise<void> {
  await replaceFile(path, `${JSON.stringify({ takemark: KIND, version: 1, profiles }, null, 2)}\n`);
}

/** Text of a file that belongs to this user alone. */
async function readPrivate(path: string): Promise<string | undefined> {
  // Without waiting for the writer of a pipe.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    },
  );
  if (handle === undefined) return undefined;
  try {
    const info = await handle.stat();
    if (!info.isFile() || info.size > MAX_BYTES) throw new UsageError(`${path} does not hold profiles`);
    const isForeign = process.getuid !== undefined && info.uid !== process.getuid();
    if (isForeign || (process.getuid !== undefined && (info.mode & OTHERS) !== 0))
      throw new UsageError(
        `${path} holds keys, and others may read or write it: chmod 600 it, as its owner; rotate the keys if others could`,
      );
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

function parseProfiles(text: string, path: string): Profiles {
  try {
    const { takemark, profiles } = JSON.parse(text) as {
      readonly takemark?: unknown;
      readonly profiles?: Readonly<Record<string, unknown>>;
    };
    if (takemark === KIND && profiles !== undefined && Object.entries(profiles).every(isProfile))
      return profiles as Profiles;
  } catch {
    // Told below, as no text of the file belongs into a message.
  }
  throw new UsageError(`${path} does not hold profiles`);
}

function isProfile([name, value]: readonly [string, unknown]): boolean {
  if (!NAME.test(name) || typeof value !== 'object' || value === null) return false;
  const { url, apiKey, ca = '', signingKey = '' } = value as Partial<Profile>;
  return [url, apiKey, ca, signingKey].every((member) => typeof member === 'string');
}
