import { TakemarkError } from '../client/errors.js';

/** Meanings of the file system's errors by their code (errno, POSIX.1-2017, XSH 2.3). */
const MEANINGS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  EACCES: 'permission denied',
  EPERM: 'not permitted',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is no folder',
  ELOOP: 'too many links',
  ENAMETOOLONG: 'its name is too long',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the file system is full',
  EDQUOT: "this user's space is used up",
  EMFILE: 'too many files are open in this process',
  ENFILE: 'too many files are open on this machine',
  EIO: 'the device reports an error',
};

/**
 * Text of an error for its reader. One of the file system, or a source of audio that failed by one, names the path and
 * says what is wrong; of every other the first line of its message is kept, as it may say what to do.
 */
export function errorText(error: unknown): string {
  const failure = fileFailure(error);
  return failure === undefined ? ownText(error) : `${failure.path}: ${failure.meaning}`;
}

/** As `errorText`, for a reader who sees the path already. */
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
