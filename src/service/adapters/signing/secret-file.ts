import { chmod, stat } from 'node:fs/promises';

const GROUP_OR_OTHERS = 0o077;
const OTHERS = 0o007;

/**
 * Makes sure that only its owner can read a secret file. If the mode cannot be changed, for example on a read-only
 * mount of secrets, its group may read it and others may not. On Windows, which has no modes, nothing is checked.
 * @returns `sound`, also if the file does not exist; `tightened` if the mode was changed to 0600; `group` if the group
 * can still read the file
 * @throws Error if others can read it and the mode cannot be changed
 */
export async function secureFile(
  path: string,
  platform: NodeJS.Platform = process.platform,
): Promise<'sound' | 'tightened' | 'group'> {
  if (platform === 'win32') return 'sound';
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (found === undefined || (found.mode & GROUP_OR_OTHERS) === 0) return 'sound';
  try {
    await chmod(path, 0o600);
    return 'tightened';
  } catch (cause) {
    if ((found.mode & OTHERS) === 0) return 'group';
    throw new Error(
      `${path} holds a secret, but any user of this machine can read it: its mode must be 0600, or 0440 for a group`,
      { cause },
    );
  }
}
