/**
 * Takes as they grow. When recording starts, Ardour writes a copy of the session (`.pending`), which has the connections
 * at that moment. Then it writes the take's file in steps of 512 KiB.
 */
import { readdirSync, readFileSync, type Stats, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { readWaveLayout, type WaveLayout } from './audio-file.js';
import { inputOf } from './inputs.js';
import type { Ledger } from './ledger.js';
import { readSession, type SessionState } from './session-file.js';
import { parseXml } from './xml.js';

interface WatchedFile {
  readonly path: string;
  readonly isMidi: boolean;
  size: number;
  layout?: WaveLayout | undefined;
  /** The sizes that were seen and not reported yet, in bytes, with their times. */
  readonly steps: { readonly at: number; readonly size: number }[];
  /** The copy of the session that was written when recording started. */
  pending?: Pending | undefined;
  take?: number;
  /** The track whose name identified the file as its take. */
  track?: string;
  /** True once a save has named the file. */
  settled: boolean;
  /** The earliest time at which the file may have come, in microseconds of the session clock. */
  readonly since: number;
}

interface Pending {
  readonly mtime: number;
  readonly at: number;
  readonly session?: SessionState;
}

export interface TakesOptions {
  readonly ledger: Ledger;
  readonly directory: string;
  /** The name of the session file without its extension. */
  readonly name: string;
  readonly clock: () => number;
  readonly clockOf: (wall: number) => number;
  readonly countsDummy: boolean;
}

/** Watches the folder of a session for files of takes and of everything else that becomes a source. */
export class Takes {
  readonly #options: TakesOptions;
  readonly #files = new Map<string, WatchedFile>();
  /** The files that were there before the agent. */
  readonly #earlier = new Set<string>();
  #pending: Pending | undefined;
  /** The former take. Its last step may come after the save that ended it. */
  #lastPending: Pending | undefined;
  /** True if recording was pending at the last poll. A save may have ended it since then. */
  #isRecording = false;
  #hasRecorded = false;
  #lastPoll = 0;
  /** The earliest time in microseconds at which an audio file may have come that no save named while it existed. */
  #unnamedSince: number | undefined;

  constructor(options: TakesOptions) {
    this.#options = options;
    for (const [key] of this.#list()) this.#earlier.add(key);
  }

  /** Looks at the folder, and reports what it sees of takes at once. */
  async poll(): Promise<void> {
    const now = this.#options.clock();
    const wasRecording = this.#isRecording;
    this.#readPending(now);
    this.#isRecording = this.#pending !== undefined;
    const records = this.#isRecording || wasRecording;
    this.#hasRecorded ||= records;
    const there = new Map(this.#list());
    for (const [key, path] of there)
      if (!this.#earlier.has(key)) await this.#observe(key, path, now, records);
    // A single step may be any file that came whole, such as a bounce: where no track was armed for it, a save will say.
    this.#writeSteps(
      [...this.#files.values()].filter(
        (file) => file.take !== undefined || file.steps.length > 1 || isArmed(file),
      ),
    );
    for (const [key, file] of [...this.#files]) {
      if (there.has(key)) continue;
      this.#files.delete(key);
      if (file.settled) continue;
      if (file.take === undefined) this.#noteUnnamed(file);
      else this.#options.ledger.add({ kind: 'recording.discarded', take: file.take }, { at: now });
    }
    this.#lastPoll = now;
  }

  /** Reports a gap for files that no save has named: each may be a take that was not seen. */
  end(): void {
    for (const file of this.#files.values())
      if (!file.settled && file.take === undefined) this.#noteUnnamed(file);
    const { ledger, clock } = this.#options;
    if (this.#unnamedSince !== undefined)
      ledger.add(
        { kind: 'capture.gap', scope: 'recording', reason: 'other' },
        { at: clock(), since: this.#unnamedSince },
      );
  }

  #noteUnnamed({ isMidi, since }: WatchedFile): void {
    if (!isMidi) this.#unnamedSince = Math.min(since, this.#unnamedSince ?? since);
  }

  /** Returns what was seen of a source's file, or undefined if the file was there before the agent or is absent. */
  seen(
    name: string,
    isMidi: boolean,
  ): { readonly path: string; readonly take?: number; readonly track?: string } | undefined {
    const file = this.#files.get(`${isMidi ? 'midi' : 'audio'}/${name}`);
    if (file === undefined) return undefined;
    const { path, take, track } = file;
    return { path, ...(take === undefined ? {} : { take }), ...(track === undefined ? {} : { track }) };
  }

  /** Reports all steps that were seen of a file, once a save says that it is a take. */
  confirmTake(name: string): void {
    const file = this.#files.get(`audio/${name}`);
    if (file !== undefined) this.#writeSteps([file]);
  }

  /** True where Ardour was recording since the last save. */
  get hasRecorded(): boolean {
    return this.#hasRecorded;
  }

  /** Marks files that a save has named. No take of these files continues. */
  settle(names: Iterable<string>): void {
    for (const name of names)
      for (const kind of ['audio', 'midi']) {
        const file = this.#files.get(`${kind}/${name}`);
        if (file !== undefined) file.settled = true;
      }
    this.#hasRecorded = this.#isRecording;
  }

  *#list(): Generator<readonly [key: string, path: string]> {
    for (const [kind, folder] of [
      ['audio', 'audiofiles'],
      ['midi', 'midifiles'],
    ] as const)
      for (const path of sourceFolders(this.#options.directory, folder))
        for (const file of namesIn(path)) yield [`${kind}/${file}`, join(path, file)];
  }

  #readPending(now: number): void {
    const { directory, name, clockOf } = this.#options;
    const path = join(directory, `${name}.pending`);
    const stats = statIfThere(path);
    if (stats === undefined) {
      this.#lastPending = this.#pending ?? this.#lastPending;
      this.#pending = undefined;
      return;
    }
    if (this.#pending?.mtime === stats.mtimeMs) return;
    // Written since the last poll; its own time says when, within that.
    const at = Math.min(now, Math.max(this.#lastPoll, clockOf(stats.mtimeMs)));
    try {
      const session = readSession(parseXml(readFileSync(path, 'utf8')));
      this.#pending = { mtime: stats.mtimeMs, at, session };
    } catch {
      // Caught while it was written: the next poll reads it again.
      this.#pending = { mtime: Number.NaN, at: this.#pending?.at ?? at };
    }
  }

  async #observe(key: string, path: string, now: number, records: boolean): Promise<void> {
    const known = this.#files.get(key);
    if (known?.settled === true) return;
    const stats = statIfThere(path);
    if (stats === undefined) return;
    const isMidi = key.startsWith('midi/');
    const file: WatchedFile = known ?? {
      path,
      isMidi,
      size: 0,
      steps: [],
      settled: false,
      since: this.#lastPoll,
    };
    this.#files.set(key, file);
    if (stats.size === file.size) return;
    file.size = stats.size;
    if (isMidi || !records) return;
    const { clockOf } = this.#options;
    // The step was between the last poll and this one. The file's own time counts within these bounds.
    const at = Math.min(now, Math.max(this.#lastPoll, clockOf(stats.mtimeMs)));
    file.pending = this.#pending ?? file.pending ?? this.#lastPending;
    file.steps.push({ at, size: stats.size });
    file.layout ??= await layoutOf(path);
  }

  /** Reports simultaneous takes in the order of time, because a late report is not exact. */
  #writeSteps(files: readonly WatchedFile[]): void {
    const growing = files.flatMap((file) =>
      file.layout === undefined || file.steps.length === 0 ? [] : [{ file, layout: file.layout }],
    );
    const begun = growing.filter(({ file }) => file.take === undefined).map(({ file }) => file);
    for (const file of begun.toSorted((one, other) => startOf(one) - startOf(other))) this.#begin(file);
    const steps = growing.flatMap(({ file, layout }) =>
      file.steps.splice(0).map(({ at, size }) => ({
        at,
        take: file.take!,
        frames: Math.floor(Math.max(0, size - layout.dataStart) / layout.frameBytes),
      })),
    );
    for (const { at, take, frames } of steps.toSorted((one, other) => one.at - other.at))
      if (frames > 0) this.#options.ledger.add({ kind: 'recording.grew', take, frames }, { at });
  }

  #begin(file: WatchedFile): void {
    const { ledger, countsDummy } = this.#options;
    const session = file.pending?.session;
    const state = trackOf(file);
    const track = state === undefined ? undefined : ledger.tracks.get(state.id)?.track;
    const input =
      session === undefined || state === undefined ? 'unknown' : inputOf(state, session, countsDummy);
    file.take = ledger.next('take');
    if (state !== undefined) file.track = state.name;
    const at = startOf(file);
    const late = ledger.last() - at;
    ledger.add(
      { kind: 'recording.started', take: file.take, input, ...(track === undefined ? {} : { track }) },
      // The hook reports the same start with a time some milliseconds later, and is read first.
      { at: late > 0 && late <= START_TOLERANCE ? ledger.last() : at },
    );
  }
}

/** The delay in microseconds of the report of a start, so that it is exact: two looks. */
const START_TOLERANCE = 200_000;

/** Returns the session clock in microseconds when recording of a file began, whose first step was seen. */
function startOf({ steps, pending }: WatchedFile): number {
  const first = steps[0]!.at;
  return Math.min(first, pending?.at ?? first);
}

/** Returns true if the track whose take the file is was armed when recording began. */
function isArmed(file: WatchedFile): boolean {
  return Number(trackOf(file)?.controls.get('rec-enable') ?? 0) > 0;
}

/** Returns the track whose take a file is: the file's name has the track's between a take's name and a number. */
function trackOf({ path, pending }: WatchedFile): TrackOfFile {
  const stem = basename(path)
    .replace(/\.[^.]*$/, '')
    .replace(/%[A-Za-z0-9]+$/, '');
  const named = [...(pending?.session?.tracks.values() ?? [])].filter(
    ({ name, type }) =>
      type === 'audio' && (stem.match(/^(.*)-[0-9]+$/)?.[1] ?? '').match(suffix(name)) !== null,
  );
  return named.toSorted((one, other) => other.name.length - one.name.length)[0];
}

type TrackOfFile = ReturnType<SessionState['tracks']['get']>;

const suffix = (name: string): RegExp => new RegExp(`(?:^|_)${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`);

async function layoutOf(path: string): Promise<WaveLayout | undefined> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    return await readWaveLayout(file);
  } finally {
    await file.close();
  }
}

/**
 * Returns the folders in which a session keeps its sources. Ardour names them by the session's folder at the time,
 * not by its file: a copy or a session that was renamed has others. That of the folder's present name comes last.
 */
export function sourceFolders(directory: string, kind: 'audiofiles' | 'midifiles'): readonly string[] {
  const own = basename(directory);
  const names = namesIn(join(directory, 'interchange')).filter((name) => name !== own);
  return [...names, own].map((name) => join(directory, 'interchange', name, kind));
}

/** Returns the names of the entries of a folder, or none if the folder cannot be read. */
export function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

export function statIfThere(path: string): Stats | undefined {
  try {
    const stats = statSync(path);
    return stats.isFile() ? stats : undefined;
  } catch {
    return undefined;
  }
}
