import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve, sep } from 'node:path';
import { errorTextOf } from '../file-errors.js';

/** A file to be judged, with the sidecar it came with. */
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

/** Something that lies in a folder and is not looked at. */
export interface PassedOver {
  readonly path: string;
  readonly passedOver: string;
}

export type Found = FoundAudio | Unfit | PassedOver;

export interface Search {
  /** True where `song.sidecar` belongs to the `song.wav` beside it. */
  readonly pairs: boolean;
  /** True where symbolic links are followed to wherever they lead. */
  readonly followLinks: boolean;
}

/** Content of one folder. */
interface Contents {
  /** By stem, in the order of the stems. */
  readonly groups: ReadonlyMap<string, Group>;
  readonly others: readonly PassedOver[];
}

/** The files of one name: `song.wav`, `song.mp3` and `song.sidecar`. */
interface Group {
  readonly audio: readonly string[];
  readonly sidecar: string | undefined;
}

/** The real path of the folder that links may not lead out of; undefined where they may. */
type Bounds = string | undefined;

const SIDECAR = '.sidecar';
/** Can carry a credential in themselves; everything else needs a sidecar. */
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
 * Everything that was named and what lies in it, in an order that is the same for the same files: operands as
 * they were given, a folder's files before its subfolders, names by their code units. The names of one
 * folder, and of the folders above it, are held at a time. Hidden files of folders are passed over: they are
 * the system's, and `._song.wav` is no audio.
 *
 * A delivery is what somebody else made, so its links do not lead out of it: out of the folder that was
 * named, or out of the folder of a file that was named. An operand is held to that too, because a shell's
 * `delivery/*` names what it found there.
 */
export async function* findAudio(
  operands: readonly string[],
  search: Search,
): AsyncGenerator<Found, void, undefined> {
  const { pairs } = search;
  const named = new Map(operands.map((operand) => [resolve(operand), operand]));
  // Operands of one folder stand together, as a shell lists them, so its groups are read once.
  let beside:
    | { readonly directory: string; readonly groups: ReadonlyMap<string, Group>; readonly bounds: Bounds }
    | undefined;
  for (const [absolute, path] of named) {
    try {
      if ((await stat(path)).isDirectory()) {
        // With a slash at its end a link is the folder itself.
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
        // A sidecar comes with its audio, which `delivery/*` names as well.
        for await (const found of members(dirname(path), group, beside.bounds))
          if (!named.has(resolve(found.path)) || found.path === path) yield found;
      }
    } catch (error) {
      yield { path, problem: errorTextOf(path, error) };
    }
  }
}

/** A named file, with the sidecar beside it where there is one and `pairs` are looked for. */
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
      // Not followed, wherever it leads: it may lead back.
      else if (entry.isSymbolicLink() && (await leadsToFolder(path)))
        others.push({ path, passedOver: 'a link to a folder' });
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
  // Half of a delivery is missing: said, instead of passing for a delivery in which all is good.
  if (group.audio.length === 0 && group.sidecar !== undefined)
    yield { path: join(directory, group.sidecar), problem: 'no audio beside this sidecar' };
  for (const name of group.audio) yield await fitted(join(directory, name), sidecarOf(name, group), bounds);
}

/**
 * Beside `song.mp3`, `song.sidecar` is the companion of that and not of `song.wav`, which speaks for itself.
 */
function sidecarOf(name: string, { audio, sidecar }: Group): string | undefined {
  const others = audio.some((other) => other !== name && !SELF_CONTAINED.has(extension(other)));
  return SELF_CONTAINED.has(extension(name)) && others ? undefined : sidecar;
}

/** @param companion name of the sidecar in the file's folder */
async function fitted(
  path: string,
  companion: string | undefined,
  bounds: Bounds,
): Promise<FoundAudio | Unfit> {
  try {
    const info = await stat(path);
    if (!info.isFile()) return { path, problem: 'not a regular file' };
    // Said before anything is sent.
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
    throw new Error(`${basename(path)} is a link that leads out of the delivery (--follow-links allows it)`);
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
        others.push({ path: join(directory, name), passedOver: 'a sidecar, and pairs are not looked for' });
      else if (group.sidecar !== undefined)
        others.push({ path: join(directory, name), passedOver: `a second sidecar beside ${group.sidecar}` });
      else group.sidecar = name;
    } else if (SELF_CONTAINED.has(extension(name)) || PAIRED.has(extension(name))) {
      group.audio.push(name);
    } else {
      others.push({ path: join(directory, name), passedOver: 'no audio by its name' });
    }
    if (group.audio.length > 0 || group.sidecar !== undefined) groups.set(stem(name), group);
  }
  return { groups, others };
}

/** Empty where the folder cannot be listed: its files may still be readable, each by itself. */
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
