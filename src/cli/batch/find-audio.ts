import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, extname, resolve, sep } from 'node:path';
import { errorTextOf } from '../file-errors.js';
import { directoryOf, type FileName, fileName, isCalled, type Place, placeIn, shown } from './file-name.js';

/** A file to verify, with its sidecar. */
export interface FoundAudio {
  /** The path for people. */
  readonly path: string;
  /** The path as it is stored, if it is not UTF-8. */
  readonly place?: Buffer;
  readonly sidecar?: string;
  readonly sidecarPlace?: Buffer;
  readonly bytes: number;
}

/** A path that was named or found and cannot be judged. */
export interface Unfit {
  readonly path: string;
  readonly problem: string;
  /** True for a file with the name of a sidecar that may belong to another file as well. */
  readonly ambiguous?: true;
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
  /** The groups by stem in lower case. Several groups are equal if their names differ only in case. */
  readonly alike: ReadonlyMap<string, readonly Group[]>;
}

/** The files with the same stem in NFC: `song.wav`, `song.mp3` and `song.sidecar`. */
interface Group {
  readonly audio: readonly FileName[];
  readonly sidecars: readonly FileName[];
}

/** What the names in a directory say about the sidecar of a file. */
type Companion = { readonly sidecar?: FileName } | { readonly problem: string };

/** The real path of the directory that links must not leave, or undefined if they may. */
type Bounds = Buffer | undefined;

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
  let beside: (Beside & { readonly directory: string }) | undefined;
  for (const [absolute, path] of named) {
    try {
      const isThere = await exists(path);
      if (isThere && (await leadsToFolder(path))) {
        // A link with a trailing slash resolves to the directory itself.
        if ((await lstat(path)).isSymbolicLink())
          await refuseToLeave(path, await boundsOf(dirname(absolute), search));
        yield* walk(path, pairs, await boundsOf(path, search));
        continue;
      }
      const directory = dirname(absolute);
      if (beside?.directory !== directory) beside = { directory, ...(await besideOf(directory, search)) };
      const names = isThere ? [] : beside.names.filter((name) => isCalled(name, basename(path)));
      // A missing file is reported by the name that was given.
      if (names.length === 0) {
        for await (const found of foundAs(path, { text: basename(path) }, beside, search))
          if (resolve(found.path) === absolute || !named.has(resolve(found.path))) yield found;
      }
      for (const name of names) {
        const place = placeIn(dirname(path), name);
        if (named.has(resolve(shown(place)))) continue;
        if (await leadsToFolder(place)) yield* walk(place, pairs, await boundsOf(place, search));
        else yield* foundAs(place, name, beside, search);
      }
    } catch (error) {
      yield { path, problem: errorTextOf(path, error) };
    }
  }
}

/** The directory of a named file. */
interface Beside {
  readonly names: readonly FileName[];
  readonly contents: Contents;
  readonly bounds: Bounds;
}

async function besideOf(directory: string, search: Search): Promise<Beside> {
  const names = await namesIn(directory);
  return {
    names,
    contents: contentsOf(directory, search.pairs ? names : [], search.pairs),
    bounds: await boundsOf(directory, search),
  };
}

/** Yields the file at a path, or the audio of a sidecar at that path. */
async function* foundAs(
  place: Place,
  name: FileName,
  { contents, bounds }: Beside,
  { pairs }: Search,
): AsyncGenerator<FoundAudio | Unfit, void, undefined> {
  const group = contents.groups.get(stem(name)) ?? { audio: [], sidecars: [] };
  // A sidecar is verified with its audio, which `delivery/*` names as well.
  if (pairs && extension(name) === SIDECAR) yield* members(directoryOf(place, name), group, contents, bounds);
  else yield await fitted(place, name, companionOf(name, group, contents), bounds);
}

/** Finds a named file and, if `pairs` is set, the sidecar beside it. */
export async function findOne(path: string, search: Search): Promise<FoundAudio | Unfit> {
  try {
    const beside = await besideOf(dirname(resolve(path)), search);
    const names = await namesOf(path);
    if (names.length > 1)
      return { path, problem: 'the names of several files are equal to this name: name their directory' };
    const [name = { text: basename(path) }] = names;
    const group = beside.contents.groups.get(stem(name));
    return await fitted(
      names.length === 0 ? path : placeIn(dirname(path), name),
      name,
      group === undefined ? {} : companionOf(name, group, beside.contents),
      beside.bounds,
    );
  } catch (error) {
    return { path, problem: errorTextOf(path, error) };
  }
}

/** Returns the file that a path names, also if its name is in another Unicode form or is not UTF-8. */
export async function namedFile(path: string): Promise<string | { readonly path: Buffer }> {
  const [name, ...more] = await namesOf(path);
  if (name === undefined || more.length > 0) return path;
  const place = placeIn(dirname(path), name);
  return typeof place === 'string' ? place : { path: place };
}

/** Returns true if a path, or a name that is equal to it, is a directory. False for a missing path. */
export async function isDirectory(path: string): Promise<boolean> {
  if (await leadsToFolder(path)) return true;
  for (const name of await namesOf(path)) if (await leadsToFolder(placeIn(dirname(path), name))) return true;
  return false;
}

/** Returns the names that are equal to the name of a missing file. */
async function namesOf(path: string): Promise<readonly FileName[]> {
  if (await exists(path)) return [];
  return (await namesIn(dirname(resolve(path)))).filter((name) => isCalled(name, basename(path)));
}

async function* walk(
  directory: Place,
  pairs: boolean,
  bounds: Bounds,
): AsyncGenerator<Found, void, undefined> {
  const names: FileName[] = [];
  const folders: FileName[] = [];
  const others: PassedOver[] = [];
  try {
    for (const entry of await readdir(directory, { withFileTypes: true, encoding: 'buffer' })) {
      const name = fileName(entry.name);
      const place = placeIn(directory, name);
      if (name.text.startsWith('.')) others.push({ path: shown(place), passedOver: 'hidden' });
      else if (entry.isDirectory()) folders.push(name);
      // Never followed, because it may lead back to a parent.
      else if (entry.isSymbolicLink() && (await leadsToFolder(place)))
        others.push({ path: shown(place), passedOver: 'a link to a directory' });
      else names.push(name);
    }
  } catch (error) {
    yield { path: shown(directory), problem: errorTextOf(shown(directory), error) };
    return;
  }
  const contents = contentsOf(directory, names, pairs);
  for (const group of contents.groups.values()) {
    if (pairs) yield* members(directory, group, contents, bounds);
    else for (const name of group.audio) yield await fitted(placeIn(directory, name), name, {}, bounds);
  }
  yield* [...others, ...contents.others].sort((left, right) => byCodeUnits(left.path, right.path));
  for (const name of folders.sort(byText)) yield* walk(placeIn(directory, name), pairs, bounds);
}

async function* members(
  directory: Place,
  group: Group,
  contents: Contents,
  bounds: Bounds,
): AsyncGenerator<FoundAudio | Unfit, void, undefined> {
  // Report a missing half of a pair. Otherwise an incomplete delivery would look good.
  if (group.audio.length === 0)
    for (const sidecar of group.sidecars) {
      const other = alikeIn(contents, sidecar).flatMap(({ audio }) => audio)[0];
      const remark = other === undefined ? '' : `: the name of ${other.text} differs only in case`;
      yield { path: shown(placeIn(directory, sidecar)), problem: `no audio beside this sidecar${remark}` };
    }
  for (const name of group.audio)
    yield await fitted(placeIn(directory, name), name, companionOf(name, group, contents), bounds);
}

/** Returns the other groups whose stem differs only in case. */
function alikeIn({ alike, groups }: Contents, name: FileName): readonly Group[] {
  const own = groups.get(stem(name));
  return (alike.get(stem(name).toLowerCase()) ?? []).filter((group) => group !== own);
}

/**
 * Returns the sidecar of a file. If `song.mp3` and `song.wav` exist, `song.sidecar` belongs to `song.mp3`,
 * because `song.wav` can embed a credential. If `song.mp3` and `song.flac` exist, the sidecar may belong to either, and
 * a verdict on the wrong one would be an accusation.
 */
function companionOf(name: FileName, group: Group, contents: Contents): Companion {
  const sidecar = sidecarOf(name, group);
  if (sidecar === undefined) {
    const other = canEmbed(name) ? undefined : alikeIn(contents, name).flatMap(({ sidecars }) => sidecars)[0];
    return other === undefined
      ? {}
      : {
          problem: `its sidecar may be ${other.text}, whose name differs only in case: rename one of them, or name the sidecar with --sidecar`,
        };
  }
  const rivals = group.audio.filter((each) => each.text !== name.text && sidecarOf(each, group) === sidecar);
  return rivals.length === 0
    ? { sidecar }
    : {
        problem: `${sidecar.text} may be the sidecar of ${rivals.map(({ text }) => text).join(', ')} as well: move the other files away, or name the sidecar with --sidecar`,
      };
}

/** Returns the sidecar that a file may claim. One with the very same stem goes before one in another Unicode form. */
function sidecarOf(name: FileName, { audio, sidecars }: Group): FileName | undefined {
  const needs = audio.some((other) => other.text !== name.text && !canEmbed(other));
  if (canEmbed(name) && needs) return undefined;
  return sidecars.find((each) => bareStem(each) === bareStem(name)) ?? sidecars[0];
}

async function fitted(
  place: Place,
  name: FileName,
  companion: Companion,
  bounds: Bounds,
): Promise<FoundAudio | Unfit> {
  const path = shown(place);
  try {
    const info = await stat(place);
    if (!info.isFile()) return { path, problem: 'not a regular file' };
    // Report an empty file before anything is sent.
    if (info.size === 0) return { path, problem: 'the file is empty' };
    await refuseToLeave(place, bounds);
    if ('problem' in companion) return { path, problem: companion.problem, ambiguous: true };
    const audio = { path, ...(typeof place === 'string' ? {} : { place }), bytes: info.size };
    if (companion.sidecar === undefined) return audio;
    const sidecar = placeIn(directoryOf(place, name), companion.sidecar);
    await refuseToLeave(sidecar, bounds);
    return {
      ...audio,
      sidecar: shown(sidecar),
      ...(typeof sidecar === 'string' ? {} : { sidecarPlace: sidecar }),
    };
  } catch (error) {
    return { path, problem: errorTextOf(path, error) };
  }
}

async function boundsOf(directory: Place, { followLinks }: Search): Promise<Bounds> {
  return followLinks ? undefined : realpath(directory, { encoding: 'buffer' });
}

async function refuseToLeave(place: Place, bounds: Bounds): Promise<void> {
  if (bounds === undefined) return;
  // As bytes, because the target of a link may not be UTF-8 either.
  const real = await realpath(place, { encoding: 'buffer' });
  const within = bounds.at(-1) === sep.charCodeAt(0) ? bounds : Buffer.concat([bounds, Buffer.from(sep)]);
  if (!real.equals(bounds) && !real.subarray(0, within.length).equals(within))
    throw new Error(
      `${basename(shown(place))} is a link out of the directory (takemark verify reads it with --follow-links)`,
    );
}

async function leadsToFolder(place: Place): Promise<boolean> {
  return stat(place).then(
    (info) => info.isDirectory(),
    () => false,
  );
}

/** Returns false only if the file does not exist. Any other fault is reported when the file is read. */
async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'ENOENT',
  );
}

/** Sorts the names of one folder. */
function contentsOf(directory: Place, names: readonly FileName[], pairs: boolean): Contents {
  const groups = new Map<string, { audio: FileName[]; sidecars: FileName[] }>();
  const others: PassedOver[] = [];
  for (const name of [...names].sort(byText)) {
    const group = groups.get(stem(name)) ?? { audio: [], sidecars: [] };
    const passOver = (passedOver: string): void =>
      void others.push({ path: shown(placeIn(directory, name)), passedOver });
    if (extension(name) === SIDECAR) {
      const first = group.sidecars.find((each) => bareStem(each) === bareStem(name));
      if (!pairs) passOver('a sidecar, ignored with --no-pairs');
      else if (first !== undefined) passOver(`a second sidecar beside ${first.text}`);
      else group.sidecars.push(name);
    } else if (canEmbed(name) || PAIRED.has(extension(name))) {
      group.audio.push(name);
    } else {
      passOver('no audio extension');
    }
    if (group.audio.length > 0 || group.sidecars.length > 0) groups.set(stem(name), group);
  }
  const alike = new Map<string, Group[]>();
  for (const [name, group] of groups) {
    const key = name.toLowerCase();
    alike.set(key, [...(alike.get(key) ?? []), group]);
  }
  return { groups, others, alike };
}

/** Returns no names if the directory cannot be listed. Its files may still be readable one by one. */
async function namesIn(directory: string): Promise<readonly FileName[]> {
  const stored = await readdir(directory, { encoding: 'buffer' }).catch(() => []);
  return stored.map(fileName);
}

/** Returns the name without its extension, in NFC: file systems and programs write names in either form. */
function stem(name: FileName): string {
  return bareStem(name).normalize('NFC');
}

function bareStem({ text }: FileName): string {
  return basename(text, extname(text));
}

function extension({ text }: FileName): string {
  return extname(text).toLowerCase();
}

function canEmbed(name: FileName): boolean {
  return SELF_CONTAINED.has(extension(name));
}

function byText(left: FileName, right: FileName): number {
  return byCodeUnits(left.text, right.text);
}

function byCodeUnits(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
