import { TakemarkError } from '../client/errors.js';

/** The messages for file system errors, by error code (errno, POSIX.1-2017, XSH 2.3). */
const MEANINGS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EISDIR: 'is a directory',
  ENOTDIR: 'a part of the path is not a directory',
  ELOOP: 'too many symbolic links',
  ENAMETOOLONG: 'the name is too long',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the file system is full',
  EDQUOT: 'disk quota exceeded',
  EMFILE: 'too many open files in this process',
  ENFILE: 'too many open files on this machine',
  EIO: 'input/output error of the device',
};

/**
 * Returns the message of an error for the user. A file system error, also as the cause of a failed audio
 * source, gives the path and the reason. Any other error gives the first line of its message.
 */
export function errorText(error: unknown): string {
  const failure = fileFailure(error);
  return failure === undefined ? ownText(error) : `${failure.path}: ${failure.meaning}`;
}

/** Returns the same as `errorText`, without the path if the path is already shown. */
export function errorTextOf(path: string, error: unknown): string {
  const failure = fileFailure(error);
  return failure?.path === path ? failure.meaning : errorText(error);
}

function fileFailure(error: unknown): { readonly path: string; readonly meaning: string } | undefined {
  const isSource = error instanceof TakemarkError && error.code === 'source_failed';
  const failure = isSource ? error.cause : error;
  if (!(failure instanceof Error)) return undefined;
  const { code, path } = failure as NodeJS.ErrnoException;
  if (code === undefined || path === undefined) return undefined;
  return { path, meaning: (Object.hasOwn(MEANINGS, code) ? MEANINGS[code] : undefined) ?? code };
}

function ownText(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n')[0] ?? error.name) : String(error);
}
