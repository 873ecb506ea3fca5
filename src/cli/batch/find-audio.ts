import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';

/** A file to be judged, with the sidecar it came with. */
export interface FoundAudio {
  readonly path: string;
  readonly sidecar?: string;
  readonly bytes: number;
  /** Differs whenever the file or its sidecar does: their sizes and the times of their last change. */
  readonly stamp: string;
}

/** Something that was named or found, and cannot be judged. */
export interface Unfit {
  readonly path: string;
  readonly problem: string;
}

export type Found = FoundAudio | Unfit;

/** The files of one name: `song.wav`, `song.mp3` and `song.sidecar`. */
interface Group {
  readonly audio: readonly string[];
  readonly sidecar: string | undefined;
}

const SIDECAR = '.sidecar';
/** Can carry a credential in themselves; everything else needs a sidecar. */
const SELF_CONTAINED = new Set(['.wav', '.wave', '.bwf', '.rf64', '.bw64']);
const PAIRED = new Set(['.aif', '.aiff', '.aifc', '.caf', '.mp3', '.m4a', '.mp4', '.w64', '.flac', '.ogg', '.opus']);

/**
 * Everything to be judged, in an order that is the same for the same files: operands as they were given, a folder's files
 * before its subfolders, names by their code units. The names of one folder, and of the folders above it, are held at a time.
 * Hidden files of folders are left out: they are the system's, and `._song.wav` is no audio.
 * @param pairs whether `song.sidecar` belongs to the `song.wav` beside it
 */
export async function* findAudio(operands: readonly string[], { pairs }: { readonly pairs: boolean }): AsyncGenerator<Found, void, undefined> {
  const named = new Map(operands.map((operand) => [resolve(operand), operand]));
  // Operands of one folder stand together, as a shell lists them, so its groups are read once.
  let beside: { readonly directory: string; readonly groups: ReadonlyMap<string, Group> } | undefined;
  for (const [absolute, path] of named) {
    const info = await stat(path).catch((error: unknown) => ({ problem: words(error) }));
    if ('problem' in info) {
      yield { path, problem: info.problem };
    } else if (info.isDirectory()) {
      yield* walk(path, pairs);
    } else if (!pairs) {
      yield await fitted(path, undefined);
    } else {
      const directory = dirname(absolute);
      if (beside?.directory !== directory) beside = { directory, groups: grouped(await namesIn(directory)) };
      const group = beside.groups.get(stem(path)) ?? { audio: [], sidecar: undefined };
      if (extension(path) !== SIDECAR) {
        const sidecar = sidecarOf(basename(path), group);
        yield await fitted(path, sidecar === undefined ? undefined : join(dirname(path), sidecar));
      } else {
        // It comes with its audio, which `delivery/*` names as well.
        for await (const found of members(dirname(path), group)) if (!named.has(resolve(found.path)) || found.path === path) yield found;
      }
    }
  }
}

/** The sidecar that stands beside one file, if it is this file's. */
export async function sidecarBeside(path: string): Promise<string | undefined> {
  const group = grouped(await namesIn(dirname(path))).get(stem(path));
  const sidecar = group === undefined ? undefined : sidecarOf(basename(path), group);
  return sidecar === undefined ? undefined : join(dirname(path), sidecar);
}

async function* walk(directory: string, pairs: boolean): AsyncGenerator<Found, void, undefined> {
  const names: string[] = [];
  const folders: string[] = [];
  try {
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      if (entry.name.startsWith('.')) continue;
      // A link to a folder is no folder here, and not followed: it may lead back.
      (entry.isDirectory() ? folders : names).push(entry.name);
    }
  } catch (error) {
    yield { path: directory, problem: words(error) };
    return;
  }
  for (const group of grouped(names).values()) {
    if (pairs) yield* members(directory, group);
    else for (const name of group.audio) yield await fitted(join(directory, name), undefined);
  }
  for (const name of folders.sort(byCodeUnits)) yield* walk(join(directory, name), pairs);
}

async function* members(directory: string, group: Group): AsyncGenerator<Found, void, undefined> {
  // Half of a delivery is missing: said, instead of passing for a delivery in which all is good.
  if (group.audio.length === 0 && group.sidecar !== undefined) yield { path: join(directory, group.sidecar), problem: 'no audio beside this sidecar' };
  for (const name of group.audio) {
    const sidecar = sidecarOf(name, group);
    yield await fitted(join(directory, name), sidecar === undefined ? undefined : join(directory, sidecar));
  }
}

/** Beside `song.mp3`, `song.sidecar` is the companion of that and not of `song.wav`, which speaks for itself. */
function sidecarOf(name: string, { audio, sidecar }: Group): string | undefined {
  const others = audio.some((other) => other !== name && !SELF_CONTAINED.has(extension(other)));
  return SELF_CONTAINED.has(extension(name)) && others ? undefined : sidecar;
}

async function fitted(path: string, sidecar: string | undefined): Promise<Found> {
  try {
    const [audio, companion] = await Promise.all([stat(path, { bigint: true }), sidecar === undefined ? undefined : stat(sidecar, { bigint: true })]);
    if (!audio.isFile()) return { path, problem: 'not a regular file' };
    const stamp = [audio, companion].map((info) => (info === undefined ? '' : `${info.size}:${info.mtimeNs}`)).join('+');
    return { path, ...(sidecar === undefined ? {} : { sidecar }), bytes: Number(audio.size), stamp };
  } catch (error) {
    return { path, problem: words(error) };
  }
}

/** What a file and its sidecar look like now; undefined where they are gone. */
export async function stampOf({ path, sidecar }: FoundAudio): Promise<string | undefined> {
  const now = await fitted(path, sidecar);
  return 'stamp' in now ? now.stamp : undefined;
}

/** By stem, in the order of the stems. */
function grouped(names: readonly string[]): Map<string, Group> {
  const groups = new Map<string, { audio: string[]; sidecar: string | undefined }>();
  for (const name of [...names].sort(byCodeUnits)) {
    const isSidecar = extension(name) === SIDECAR;
    if (!isSidecar && !SELF_CONTAINED.has(extension(name)) && !PAIRED.has(extension(name))) continue;
    const group = groups.get(stem(name)) ?? { audio: [], sidecar: undefined };
    if (isSidecar) group.sidecar ??= name;
    else group.audio.push(name);
    groups.set(stem(name), group);
  }
  return groups;
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

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
