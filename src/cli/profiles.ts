import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { replaceFile } from '../core/files/durable.js';
import { makeDirectory } from '../core/files/make-directory.js';
import { UsageError } from './command.js';

/**
 * The address of a service and its key. They are stored together, so that a key never goes to another
 * service.
 */
export interface Profile {
  readonly url: string;
  readonly apiKey: string;
  /** The PEM file of the certificate authorities to trust for the service. */
  readonly ca?: string;
  /** The PEM file of the private key that signs calls. */
  readonly signingKey?: string;
}

export type Profiles = Readonly<Record<string, Profile>>;

const KIND = 'profiles';
const MAX_BYTES = 262_144;
const MAX_PROFILES = 100;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const OTHERS = 0o077;

/**
 * Reads the profiles of a file. A missing file has none.
 * @throws UsageError if other users could read or write the file, or it does not hold profiles
 */
export async function readProfiles(path: string): Promise<Profiles> {
  const text = await readPrivate(path);
  return text === undefined ? {} : parseProfiles(text, path);
}

/**
 * Saves a profile atomically, in a file that only its owner can read.
 * @throws UsageError for an invalid name, or for an existing name without `force`
 */
export async function addProfile(
  path: string,
  name: string,
  profile: Profile,
  { force }: { readonly force: boolean },
): Promise<void> {
  if (!NAME.test(name))
    throw new UsageError(
      'a profile name has 1 to 64 letters, digits, dots, dashes and underscores, and starts with a letter or digit',
    );
  const profiles = await readProfiles(path);
  if (Object.hasOwn(profiles, name) && !force)
    throw new UsageError(`the profile ${name} exists; give --force to replace it`);
  if (!Object.hasOwn(profiles, name) && Object.keys(profiles).length >= MAX_PROFILES)
    throw new UsageError(`the limit of ${MAX_PROFILES} profiles is reached; remove one first`);
  await makeDirectory(dirname(path));
  await writeProfiles(path, { ...profiles, [name]: profile });
}

/** Deletes a profile. @throws UsageError if the profile does not exist */
export async function removeProfile(path: string, name: string): Promise<void> {
  const profiles = await readProfiles(path);
  findProfile(profiles, name, path);
  await writeProfiles(path, Object.fromEntries(Object.entries(profiles).filter(([other]) => other !== name)));
}

/** @throws UsageError if the profile does not exist */
export function findProfile(profiles: Profiles, name: string, path: string): Profile {
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile === undefined)
    throw new UsageError(`no profile ${name} in ${path}; create it with takemark profile add`);
  return profile;
}

async function writeProfiles(path: string, profiles: Profiles): Promise<void> {
  await replaceFile(path, `${JSON.stringify({ takemark: KIND, version: 1, profiles }, null, 2)}\n`);
}

/** Reads a file that only this user can access. */
async function readPrivate(path: string): Promise<string | undefined> {
  // O_NONBLOCK: opening a named pipe must not wait for its writer.
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
        `${path} holds keys, but other users can read or write it: run chmod 600 as its owner, and rotate the keys if others could read them`,
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
    // The error is thrown below. Its message must not contain text of the file.
  }
  throw new UsageError(`${path} does not hold profiles`);
}

function isProfile([name, value]: readonly [string, unknown]): boolean {
  if (!NAME.test(name) || typeof value !== 'object' || value === null) return false;
  const { url, apiKey, ca = '', signingKey = '' } = value as Partial<Profile>;
  return [url, apiKey, ca, signingKey].every((member) => typeof member === 'string');
}
