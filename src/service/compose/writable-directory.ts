import { access, constants } from 'node:fs/promises';
import { makeDirectory } from '../../core/files/make-directory.js';
import { ConfigError } from '../config/config.js';

/** What an operator has to change, by the code of the file system's error. */
const PROBLEMS: Readonly<Record<string, string>> = {
  EEXIST: 'is not a directory',
  ENOTDIR: 'is not a directory',
  ENOENT: 'cannot be created',
  EACCES: 'is not writable for this user',
  EPERM: 'is not writable for this user',
  EROFS: 'is on a read-only file system',
};

/**
 * Creates a directory if it is missing, and checks that this process may write to it.
 * @param setting the variable that names the directory
 * @throws ConfigError
 */
export async function openWritableDirectory(setting: string, directory: string): Promise<void> {
  try {
    await makeDirectory(directory);
    await access(directory, constants.W_OK | constants.X_OK);
  } catch (error) {
    const problem = PROBLEMS[(error as NodeJS.ErrnoException).code ?? ''];
    if (problem === undefined) throw error;
    throw new ConfigError(`${setting}: ${directory} ${problem}`);
  }
}
