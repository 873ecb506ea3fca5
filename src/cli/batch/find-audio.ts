import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve, sep } from 'node:path';
import { errorTextOf } from '../file-errors.js';

/** A file to verify, with its sidecar. */
export interface FoundAudio {
  readonly path: string;
  readonly sidecar?: string;
  readonly bytes: number;
}

/** Something that was named or found, and cannot be judged. */
export interface Unfit {
  readonly path: string;
  readonly problem: string;
}

/** A directory entry that is skipped. */
export interface PassedOver {
  readonly path: string;
  readonly passedOver: string;
}

export type Found = FoundAudio | Unfit | PassedOver;

export interface Search {
  /** True if `song.sidecar` belongs to the `song.wav` beside it. */
  readonly pairs: boolean;
  /** True if symbolic links are followed out of the directory. */
  readonly followLinks: boolean;
}

/** The content of one directory. */
interface Contents {
  /** The groups by stem, in the order of the stems. */
  readonly groups: ReadonlyMap<string, Group>;
  readonly others: readonly PassedOver[];
}

/** The files with the same stem: `song.wav`, `song.mp3` and `song.sidecar`. */
interface Group {
  readonly audio: readonly string[];
  readonly sidecar: string | undefined;
}

/** The real path of the directory that links must not leave, or undefined if they may. */
type Bounds = string | undefined;

const SIDECAR = '.sidecar';
/** The formats that can embed a credential. All other formats need a sidecar. */
const SELF_CONTAINED: ReadonlySet<string> = new Set(['.wav', '.wave', '.bwf', '.rf64', '.bw64']);
const PAIRED: ReadonlySet<string> = new Set([
  '.aif',
  '.aiff',
  '.aifc',
  '.caf',
  '.mp3',
  '.m4a',
  '.mp4',
  '.w64',
  '.flac',
  '.ogg',
  '.opus',
]);

/**
 * Yields the named files and the content of named directories in a stable order: operands as given, files
 * before subdirectories, names by code units. It holds the names of one directory and its parents at a time.
 * It skips hidden files in directories: they belong to the system, and `._song.wav` is not audio.
 *
 * Other people made the delivery, so its links must not leave the named directory, or the directory of a
 * named file. The same holds for operands, because a shell expands `delivery/*` to the names found there.
 */
export async function* findAudio(
  operands: readonly string[],
  search: Search,
): AsyncGenerator<Found, void, undefined> {
  const { pairs } = search;
  const named = new Map(operands.map((operand) => [resolve(operand), operand]));
  // A shell lists the operands of one directory in a row, so the directory is read once.
  let beside:
    | { readonly directory: string; readonly groups: ReadonlyMap<string, Group>; readonly bounds: Bounds }
    | undefined;
  for (const [absolute, path] of named) {
    try {
      if ((await stat(path)).isDirectory()) {
        // A link with a trailing slash resolves to the directory itself.
        if ((await lstat(path)).isSymbolicLink())
          await refuseToLeave(path, await boundsOf(dirname(absolute), search));
        yield* walk(path, pairs, await boundsOf(path, search));
        continue;
      }
      const directory = dirname(absolute);
      if (beside?.directory !== directory) {
        beside = {
          directory,
          groups: pairs
            ? contentsOf(directory, await namesIn(directory), pairs).groups
            : new Map<string, Group>(),
          bounds: await boundsOf(directory, search),
        };
      }
      const group = beside.groups.get(stem(path)) ?? { audio: [], sidecar: undefined };
      if (!pairs || extension(path) !== SIDECAR) {
        yield await fitted(path, sidecarOf(basename(path), group), beside.bounds);
      } else {
        // A sidecar is verified with its audio, which `delivery/*` names as well.
        for await (const found of members(dirname(path), group, beside.bounds))
          if (!named.has(resolve(found.path)) || found.path === path) yield found;
      }
    } catch (error) {
      yield { path, problem: errorTextOf(path, error) };
    }
  }
}

/** Finds a named file and, if `pairs` is set, the sidecar beside it. */
export async function findOne(path: string, search: Search): Promise<FoundAudio | Unfit> {
  const directory = dirname(resolve(path));
  const group = search.pairs
    ? contentsOf(directory, await namesIn(directory), true).groups.get(stem(path))
    : undefined;
  try {
    return await fitted(
      path,
      group === undefined ? undefined : sidecarOf(basename(path), group),
      await boundsOf(directory, search),
    );
  } catch (error) {
    return { path, problem: errorTextOf(path, error) };
  }
}

async function* walk(
  directory: string,
  pairs: boolean,
  bounds: Bounds,
): AsyncGenerator<Found, void, undefined> {
  const names: string[] = [];
  const folders: string[] = [];
  const others: PassedOver[] = [];
  try {
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (entry.name.startsWith('.')) others.push({ path, passedOver: 'hidden' });
      else if (entry.isDirectory()) folders.push(entry.name);
      // Never followed, because it may lead back to a parent.
      else if (entry.isSymbolicLink() && (await leadsToFolder(path)))
        others.push({ path, passedOver: 'a link to a directory' });
      else names.push(entry.name);
    }
  } catch (error) {
    yield { path: directory, problem: errorTextOf(directory, error) };
    return;
  }
  const { groups, others: unlike } = contentsOf(directory, names, pairs);
  for (const group of groups.values()) {
    if (pairs) yield* members(directory, group, bounds);
    else for (const name of group.audio) yield await fitted(join(directory, name), undefined, bounds);
  }
  yield* [...others, ...unlike].sort((left, right) => byCodeUnits(left.path, right.path));
  for (const name of folders.sort(byCodeUnits)) yield* walk(join(directory, name), pairs, bounds);
}

async function* members(
  directory: string,
  group: Group,
  bounds: Bounds,
): AsyncGenerator<FoundAudio | Unfit, void, undefined> {
  // Report a missing half of a pair. Otherwise an incomplete delivery would look good.
  if (group.audio.length === 0 && group.sidecar !== undefined)
    yield { path: join(directory, group.sidecar), problem: 'no audio beside this sidecar' };
  for (const name of group.audio) yield await fitted(join(directory, name), sidecarOf(name, group), bounds);
}

/**
 * Returns the sidecar of a file. If `song.mp3` and `song.wav` exist, `song.sidecar` belongs to `song.mp3`,
 * because `song.wav` can embed a credential.
 */
function sidecarOf(name: string, { audio, sidecar }: Group): string | undefined {
  const others = audio.some((other) => other !== name && !SELF_CONTAINED.has(extension(other)));
  return SELF_CONTAINED.has(extension(name)) && others ? undefined : sidecar;
}

/** @param companion the name of the sidecar in the file's directory */
async function fitted(
  path: string,
  companion: string | undefined,
  bounds: Bounds,
): Promise<FoundAudio | Unfit> {
  try {
    const info = await stat(path);
    if (!info.isFile()) return { path, problem: 'not a regular file' };
    // Report an empty file before anything is sent.
    if (info.size === 0) return { path, problem: 'the file is empty' };
    await refuseToLeave(path, bounds);
    if (companion === undefined) return { path, bytes: info.size };
    const sidecar = join(dirname(path), companion);
    await refuseToLeave(sidecar, bounds);
    return { path, sidecar, bytes: info.size };
  } catch (error) {
    return { path, problem: errorTextOf(path, error) };
  }
}

async function boundsOf(directory: string, { followLinks }: Search): Promise<Bounds> {
  return followLinks ? undefined : realpath(directory);
}

async function refuseToLeave(path: string, bounds: Bounds): Promise<void> {
  if (bounds === undefined) return;
  const real = await realpath(path);
  const within = real === bounds || real.startsWith(bounds.endsWith(sep) ? bounds : `${bounds}${sep}`);
  if (!within)
    throw new Error(`${basename(path)} is a link out of the directory (allow it with --follow-links)`);
}

async function leadsToFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (info) => info.isDirectory(),
    () => false,
  );
}

/** Sorts the names of one folder. */
function contentsOf(directory: string, names: readonly string[], pairs: boolean): Contents {
  const groups = new Map<string, { audio: string[]; sidecar: string | undefined }>();
  const others: PassedOver[] = [];
  for (const name of [...names].sort(byCodeUnits)) {
    const group = groups.get(stem(name)) ?? { audio: [], sidecar: undefined };
    if (extension(name) === SIDECAR) {
      if (!pairs)
        others.push({ path: join(directory, name), passedOver: 'a sidecar, ignored with --no-pairs' });
      else if (group.sidecar !== undefined)
        others.push({ path: join(directory, name), passedOver: `a second sidecar beside ${group.sidecar}` });
      else group.sidecar = name;
    } else if (SELF_CONTAINED.has(extension(name)) || PAIRED.has(extension(name))) {
      group.audio.push(name);
    } else {
      others.push({ path: join(directory, name), passedOver: 'no audio extension' });
    }
    if (group.audio.length > 0 || group.sidecar !== undefined) groups.set(stem(name), group);
  }
  return { groups, others };
}

/** Returns no names if the directory cannot be listed. Its files may still be readable one by one. */
async function namesIn(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => []);
}

function stem(path: string): string {
  return basename(path, extname(path));
}

function extension(path: string): string {
  return extname(path).toLowerCase();
}

function byCodeUnits(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
