/** The agent for Ardour 7: follows the folder of a session during the work on it, and writes a trace. */
import { readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { defined } from '../../core/domain/defined.js';
import type { Channel, ChannelSupport } from '../../witness/capture/index.js';
import { digestAudio } from './audio-file.js';
import { Exports, type FinishedExport } from './exports.js';
import { readHistory, type Transaction } from './history-file.js';
import { HookFile } from './hook-file.js';
import { HOOK_FILE } from './hook-script.js';
import { inputOf } from './inputs.js';
import { type Ledger, openLedger } from './ledger.js';
import { countNotes } from './midi-file.js';
import { Originals } from './originals.js';
import { OtherSaves } from './other-saves.js';
import { SaveWriter } from './save.js';
import { readSession, type SessionState, type SourceState } from './session-file.js';
import { contentOf, SourceFiles, stampOf } from './source-files.js';
import { readClaims, type SourceWitness } from './sources.js';
import { namesIn, sourceFolders, statIfThere, Takes } from './takes.js';
import { type Captured, type TraceOutput, TraceQueue } from './trace-queue.js';
import { Transport } from './transport.js';
import { parseXml } from './xml.js';

/**
 * The support of each channel by a session's folder. Acts without a transaction show only as a last value at the next
 * save, and what began and ended between two saves does not show at all. Playback leaves nothing.
 */
export const ARDOUR_CHANNELS: Readonly<Record<Channel, ChannelSupport>> = {
  session: 'partial',
  transport: 'unsupported',
  tempo: 'partial',
  tracks: 'partial',
  clips: 'partial',
  midi: 'partial',
  recording: 'supported',
  automation: 'partial',
  plugins: 'partial',
  mixer: 'partial',
  imports: 'partial',
  sourceMap: 'partial',
  export: 'partial',
};

const POLL_MS = 100;
/** The history is written some milliseconds after the session, and not at all without a transaction. */
const SETTLE_MS = 200;
const HISTORY_MS = 1000;
/** The milliseconds of failed reads of a save after which there is a gap. */
const UNREADABLE_MS = 5000;

/** The start of a trace. */
export interface SessionStart {
  /** The time in whole unix seconds at which the session clock begins. */
  readonly startedAt: number;
  readonly dawVersion?: string;
  /** The support of each channel in this capture. */
  readonly channels: Readonly<Record<Channel, ChannelSupport>>;
}

export interface FollowOptions {
  /** The folder of the session. */
  readonly directory: string;
  /** Opens the trace once the session is there. */
  readonly open: (start: SessionStart) => Promise<TraceOutput>;
  /** The folder with the files that imports may come from. */
  readonly originals?: string;
  /** The folders for exports, in addition to the session's own. */
  readonly exports?: readonly string[];
  /** True if Ardour's dummy device counts as hardware. The trace has to be marked as simulated. */
  readonly countsDummy?: boolean;
  /** True if the agent waits for the hook in Ardour's window and follows it. */
  readonly hook?: boolean;
  /** Renders the session again at the end and compares. */
  readonly rerender?: (session: RenderedSession, exported: FinishedExport) => Promise<Rerendered>;
  /** The signal that is aborted when the session is over. */
  readonly signal: AbortSignal;
  /** True once the program that works on the session has ended. */
  readonly hasEnded?: () => boolean;
}

export interface Rerendered {
  readonly outcome: 'matched' | 'differed' | 'not_tried';
  /** The numbers of compared and of equal windows of 4,096 frames (see `compareWindows`). */
  readonly windows?: number;
  readonly equalWindows?: number;
}

export interface RenderedSession {
  readonly directory: string;
  readonly name: string;
  readonly sampleRate: number;
  /** Names of the tracks whose takes were witnessed. */
  readonly armed: readonly string[];
  /** The number of earlier exports of the same length and format, at most `MAX_EXPORTS_BEFORE`. */
  readonly exportsBefore: number;
  /** The time in milliseconds of the wall clock after which no render begins. */
  readonly deadline: number;
}

/** An export, with the number of earlier ones of the same length and format. */
type CountedExport = FinishedExport & Pick<RenderedSession, 'exportsBefore'>;

/** Follows a session until it is over or the trace is full, then seals the trace. */
export async function followArdour(options: FollowOptions): Promise<Captured> {
  const directory = resolve(options.directory);
  const isOver = () => options.signal.aborted || options.hasEnded?.() === true;
  const found = await findSession(directory, isOver);
  if (found === undefined) return 'absent';
  let { beganAt } = found;
  if (options.hook === true) {
    if (!(await hearHook(join(directory, HOOK_FILE), isOver))) return 'absent';
    // The agent did not look at the session while it waited for the hook.
    beganAt = Date.now();
  }
  const session = new Following({ ...options, directory }, { name: found.name, beganAt });
  const output = await session.begin();
  let isWhole = true;
  while (isWhole && !isOver()) {
    await pause(POLL_MS);
    isWhole = await session.step(output);
  }
  isWhole &&= await session.end(output, options.hasEnded?.() === true);
  await output.seal();
  return isWhole ? 'sealed' : 'full';
}

interface FoundSession {
  readonly name: string;
  /** The time in milliseconds of the wall clock from which the agent observes. */
  readonly beganAt: number;
}

/**
 * Waits for a session in a folder, and returns the one whose file was written last. A session that comes while the
 * agent waits is observed from the last look before it came, so its first save is not from before the agent.
 */
async function findSession(directory: string, isOver: () => boolean): Promise<FoundSession | undefined> {
  const writtenAt = (file: string): number => statIfThere(join(directory, file))?.mtimeMs ?? 0;
  let beganAt = Date.now();
  while (!isOver()) {
    const lookedAt = Date.now();
    const [newest] = namesIn(directory)
      .filter((file) => file.endsWith('.ardour'))
      .toSorted((one, other) => writtenAt(other) - writtenAt(one));
    if (newest !== undefined) return { name: basename(newest, '.ardour'), beganAt };
    beganAt = lookedAt;
    await pause(POLL_MS);
  }
  return undefined;
}

/** Waits for the first line of the hook. @returns false where none came */
async function hearHook(path: string, isOver: () => boolean): Promise<boolean> {
  const hook = new HookFile(path);
  while (!isOver()) {
    if (hook.look().lines.length > 0) return true;
    await pause(POLL_MS);
  }
  return false;
}

interface ReadSave {
  readonly session: SessionState;
  readonly history?: readonly Transaction[];
  readonly wall: number;
}

class Following {
  readonly #options: FollowOptions;
  readonly #name: string;
  /** The time in milliseconds of the wall clock from which the agent observes. */
  readonly #beganAt: number;
  readonly #startedAt: number;
  /** The session clock does not follow changes of the wall clock. */
  readonly #origin: number;
  readonly #queue = new TraceQueue();
  readonly #ledger: Ledger = openLedger((event) => this.#queue.push(event));
  readonly #saves: SaveWriter;
  readonly #originals: Originals;
  readonly #takes: Takes;
  readonly #exports: Exports;
  readonly #transport: Transport | undefined;
  #lastSave = Number.NaN;
  /** The save that was seen last. `since` and the time below are milliseconds of the monotonic clock. */
  #seen = { wall: Number.NaN, since: 0 };
  #unreadableSince: number | undefined;
  #saving: Promise<void> | undefined;
  #session: SessionState | undefined;
  /** The time of the save that was read last, in microseconds of the session clock. */
  #readAt = 0;
  /** The latest exports, which are rendered again at the end. */
  #exported: readonly CountedExport[] = [];
  /** The number of exports by their length and format. An export that was written over counts, too. */
  readonly #exportCounts = new Map<string, number>();
  readonly #others: OtherSaves;
  readonly #sourceFiles: SourceFiles;
  #checkedAt = 0;

  constructor(options: FollowOptions, { name, beganAt }: FoundSession) {
    this.#options = options;
    this.#name = name;
    this.#beganAt = beganAt;
    this.#startedAt = Math.floor(beganAt / 1000);
    this.#origin = Date.now() - performance.now() - this.#startedAt * 1000;
    this.#saves = new SaveWriter(this.#ledger, (wall) => this.#clockOf(wall), this.#clockOf(beganAt));
    this.#originals = new Originals(options.originals);
    this.#takes = new Takes({
      ledger: this.#ledger,
      directory: options.directory,
      name,
      clock: () => this.#clock(),
      clockOf: (wall) => this.#clockOf(wall),
      countsDummy: options.countsDummy === true,
    });
    if (options.hook === true)
      this.#transport = new Transport(join(options.directory, HOOK_FILE), this.#ledger, () => this.#clock());
    this.#others = new OtherSaves(options.directory, name, this.#ledger);
    this.#sourceFiles = new SourceFiles(this.#ledger);
    this.#exports = new Exports([join(options.directory, 'export'), ...(options.exports ?? [])]);
  }

  async begin(): Promise<TraceOutput> {
    let version: string | undefined;
    try {
      version = this.#readState().programVersion;
    } catch {
      // Still being written: its version is not known.
    }
    const transport = this.#transport === undefined ? ARDOUR_CHANNELS.transport : 'supported';
    const channels = { ...ARDOUR_CHANNELS, transport };
    return this.#options.open(defined({ startedAt: this.#startedAt, channels, dawVersion: version }));
  }

  /** Looks once at everything. @returns false where the trace is full */
  async step(output: TraceOutput): Promise<boolean> {
    await this.#takes.poll();
    this.#transport?.poll();
    // Digests of a save take a while, during which takes are still watched.
    this.#saving ??= this.#look().finally(() => {
      this.#saving = undefined;
    });
    await Promise.race([this.#saving, pause(POLL_MS)]);
    return this.#queue.write(output);
  }

  /** Reads what is left. @returns false where the trace is full */
  async end(output: TraceOutput, hasClosed: boolean): Promise<boolean> {
    await this.#saving;
    const deadline = performance.now() + HISTORY_MS + UNREADABLE_MS;
    do {
      await this.#takes.poll();
      await this.#look(0);
      await pause(SETTLE_MS);
    } while (this.#hasUnreadSave() && performance.now() < deadline);
    this.#transport?.end(this.#readAt);
    await this.#writeExports(0);
    this.#others.end(this.#clock());
    this.#takes.end();
    // A file that was replaced is in the render as well, so it is reported first.
    await this.#checkSources(false);
    const before = this.#stamp();
    // The render is of the session as it is now, and the session does not last while it is rendered.
    const endedAt = this.#clock();
    const isUnread = this.#hasUnreadSave();
    if (isUnread) this.#writeUnread(endedAt);
    const rendered = isUnread ? [] : await this.#renderAgain();
    // If files were written meanwhile, the render is of another session than the one that was read.
    if (this.#stamp() !== before) rendered.length = 0;
    for (const { fileSha256, outcome, ...windows } of rendered)
      if (outcome !== 'not_tried')
        this.#ledger.add({ kind: 'export.rendered', fileSha256, outcome, ...windows }, { at: endedAt });
    if (hasClosed) this.#ledger.add({ kind: 'session.closed' }, { at: endedAt });
    return this.#queue.write(output);
  }

  /** Renders the session once more for each of the latest exports. */
  async #renderAgain(): Promise<(Rerendered & { readonly fileSha256: string })[]> {
    const { directory, rerender } = this.#options;
    const session = this.#session;
    if (session === undefined || rerender === undefined) return [];
    const { sampleRate, sources } = session;
    const takes = [...sources.values()].filter(
      ({ id }) => this.#ledger.sources.get(id)?.origin === 'recording',
    );
    const armed = [...new Set(takes.map(({ capturedFor }) => capturedFor))];
    const rendered: (Rerendered & { readonly fileSha256: string })[] = [];
    const deadline = Date.now() + RENDERING_MS;
    for (const exported of this.#exported.toReversed()) {
      if (Date.now() > deadline) break;
      const { exportsBefore, digest } = exported;
      const shown = { directory, name: this.#name, sampleRate, armed, exportsBefore, deadline };
      rendered.push({ fileSha256: digest.fileSha256, ...(await rerender(shown, exported)) });
    }
    return rendered;
  }

  async #checkSources(isSaved: boolean): Promise<void> {
    const at = this.#clock();
    await this.#sourceFiles.check({ at, since: this.#checkedAt }, isSaved);
    this.#checkedAt = at;
  }

  /** Returns a text that changes when the session file or the file of a source is written. */
  #stamp(): string {
    return `${stampOf(this.#path('ardour'))}\n${this.#sourceFiles.stamp()}`;
  }

  #clock(): number {
    return Math.max(0, Math.round((this.#origin + performance.now()) * 1000));
  }

  #clockOf(wall: number): number {
    return Math.min(this.#clock(), Math.max(0, Math.round((wall - this.#startedAt * 1000) * 1000)));
  }

  async #look(quiet?: number): Promise<void> {
    this.#others.look(this.#readAt, this.#clock());
    await this.#followSave();
    await this.#writeExports(quiet);
  }

  #path(extension: string): string {
    return join(this.#options.directory, `${this.#name}.${extension}`);
  }

  #readState(): SessionState {
    return readSession(parseXml(readFileSync(this.#path('ardour'), 'utf8')));
  }

  #hasUnreadSave(): boolean {
    const stats = statIfThere(this.#path('ardour'));
    return stats !== undefined && stats.mtimeMs !== this.#lastSave;
  }

  async #followSave(): Promise<void> {
    const save = this.#readSave();
    if (save === undefined) return;
    const { session, history, wall } = save;
    const isFirst = this.#session === undefined;
    const witnessed = isFirst ? new Map<string, SourceWitness>() : await this.#witness(session);
    this.#lastSave = wall;
    const isEarlier = wall < this.#beganAt;
    const savedAt = isFirst && isEarlier ? this.#clock() : this.#clockOf(wall);
    this.#writeInputs(session);
    await this.#checkSources(true);
    this.#saves.write({
      session,
      savedAt,
      isEarlier,
      witnessed,
      ...(history === undefined ? {} : { history }),
    });
    this.#takes.settle([...session.sources.values()].map(({ name }) => name));
    this.#session = session;
    this.#readAt = savedAt;
  }

  /** Returns the newest save if it is new and both of its files are whole. */
  #readSave(): ReadSave | undefined {
    const stats = statIfThere(this.#path('ardour'));
    if (stats === undefined || stats.mtimeMs === this.#lastSave) return undefined;
    if (stats.mtimeMs !== this.#seen.wall) this.#seen = { wall: stats.mtimeMs, since: performance.now() };
    const watched = performance.now() - this.#seen.since;
    // A file server may have another time than this machine. The first save may be an old one.
    const age = this.#session === undefined ? Math.max(watched, Date.now() - stats.mtimeMs) : watched;
    const written = statIfThere(this.#path('history'));
    const isHistoryNew = written !== undefined && written.mtimeMs >= stats.mtimeMs;
    const isAwaited = !isHistoryNew && (this.#session !== undefined || written !== undefined);
    if (age < SETTLE_MS || (isAwaited && age < HISTORY_MS)) return undefined;
    try {
      const session = this.#readState();
      const history =
        written === undefined
          ? undefined
          : readHistory(parseXml(readFileSync(this.#path('history'), 'utf8')), session.tempo);
      // Read across another save, the two are of two states.
      const isTorn =
        statIfThere(this.#path('ardour'))?.mtimeMs !== stats.mtimeMs ||
        statIfThere(this.#path('history'))?.mtimeMs !== written?.mtimeMs;
      if (isTorn) return undefined;
      this.#unreadableSince = undefined;
      return { session, wall: stats.mtimeMs, ...(history === undefined ? {} : { history }) };
    } catch {
      this.#noteUnreadable(stats.mtimeMs);
      return undefined;
    }
  }

  /** Reports a save as not seen if its file stays unreadable. A file may be read while it is written. */
  #noteUnreadable(wall: number): void {
    this.#unreadableSince ??= performance.now();
    if (performance.now() - this.#unreadableSince < UNREADABLE_MS) return;
    this.#lastSave = wall;
    this.#unreadableSince = undefined;
    this.#writeUnread(this.#clock());
  }

  #writeUnread(at: number): void {
    this.#ledger.add({ kind: 'capture.gap', reason: 'unreadable' }, { at, since: this.#readAt });
  }

  /** Returns what the agent saw of the files of new sources, by the ids of the sources. */
  async #witness(session: SessionState): Promise<ReadonlyMap<string, SourceWitness>> {
    const witnessed = new Map<string, SourceWitness>();
    const claims = readClaims(session);
    for (const source of this.#saves.newSources(session)) {
      const isTake = claims.get(source.id)?.kind === 'take';
      witnessed.set(source.id, await this.#witnessSource(source, isTake));
    }
    return witnessed;
  }

  async #witnessSource(source: SourceState, isTake: boolean): Promise<SourceWitness> {
    // A compound has no file; it was not there at the last save.
    if (source.parts !== undefined) return { appeared: true };
    if (source.origin.startsWith('/')) {
      const stamp = stampOf(source.origin);
      const digest = await digestAudio(source.origin).catch(() => undefined);
      if (digest === undefined) return { appeared: true };
      const { fileSha256, samplesSha256, frames, rate, channels } = digest;
      if (samplesSha256 !== undefined) this.#sourceFiles.add(source.id, source.origin, samplesSha256, stamp);
      return {
        appeared: true,
        originalSha256: fileSha256,
        ...defined({ samplesSha256, frames, rate, channels }),
      };
    }
    const isMidi = source.type === 'midi';
    if (isTake) this.#takes.confirmTake(source.name);
    const seen = this.#takes.seen(source.name, isMidi);
    const path = seen?.path ?? this.#pathOf(source);
    if (path === undefined) return { appeared: false };
    const appeared = seen !== undefined;
    const stamp = stampOf(path);
    if (isMidi) {
      const notes = await countNotes(path).catch(() => undefined);
      this.#sourceFiles.add(source.id, path, await contentOf(path, true), stamp, true);
      const take =
        appeared && this.#takes.hasRecorded && source.takeId !== '' ? this.#ledger.next('take') : undefined;
      return { appeared, ...defined({ notes, take }) };
    }
    const { samplesSha256, frames, rate, channels } = (await digestAudio(path).catch(() => undefined)) ?? {};
    if (samplesSha256 !== undefined) this.#sourceFiles.add(source.id, path, samplesSha256, stamp);
    const originalSha256 =
      samplesSha256 === undefined ? undefined : await this.#originals.find(samplesSha256);
    // A take that grew under one track's name and is said to be of another was not seen whole.
    const take = seen?.track === undefined || seen.track === source.capturedFor ? seen?.take : undefined;
    return { appeared, ...defined({ take, samplesSha256, originalSha256, frames, rate, channels }) };
  }

  /** Returns the path of a source's file, or undefined if it is absent or its name leaves the session's folders. */
  #pathOf({ name, type }: SourceState): string | undefined {
    if (name === '' || name.includes('/') || name.includes('\0') || name === '..') return undefined;
    const folder = type === 'midi' ? 'midifiles' : 'audiofiles';
    return sourceFolders(this.#options.directory, folder)
      .map((each) => join(each, name))
      .findLast((path) => statIfThere(path) !== undefined);
  }

  /** Reports tracks with another input than at the last save: takes may have run in between. */
  #writeInputs(session: SessionState): void {
    const countsDummy = this.#options.countsDummy === true;
    for (const state of session.tracks.values()) {
      const known = this.#ledger.tracks.get(state.id);
      const former = this.#session?.tracks.get(state.id);
      if (state.type !== 'audio') continue;
      if (known === undefined || former === undefined || this.#session === undefined) continue;
      const input = inputOf(state, session, countsDummy);
      if (input !== inputOf(former, this.#session, countsDummy))
        this.#ledger.add(
          { kind: 'recording.input', track: known.track, input },
          // Before the end of a take that may have run meanwhile.
          { at: this.#ledger.last(), since: this.#readAt },
        );
    }
  }

  async #writeExports(quiet?: number): Promise<void> {
    for (const finished of await this.#exports.poll(quiet)) {
      this.#writeExport(finished);
      const form = `${finished.digest.frames}/${finished.digest.bits}`;
      const exportsBefore = Math.min(this.#exportCounts.get(form) ?? 0, MAX_EXPORTS_BEFORE);
      this.#exportCounts.set(form, exportsBefore + 1);
      const others = this.#exported.filter(({ path }) => path !== finished.path);
      this.#exported = [...others, { ...finished, exportsBefore }].slice(-MAX_RERENDERED);
    }
  }

  #writeExport({ digest, wall }: FinishedExport): void {
    const { fileSha256, samplesSha256, frames, rate, channels } = digest;
    this.#ledger.add(
      {
        kind: 'export.finished',
        fileSha256,
        // The outcome of rendering again is reported at the end.
        rerender: 'not_tried',
        ...defined({ samplesSha256, frames, rate, channels }),
      },
      { at: this.#clockOf(wall) },
    );
  }
}

/** The most exports that are rendered again at the end. They are the latest ones. */
const MAX_RERENDERED = 4;
/** The most earlier exports that are rendered before one. */
const MAX_EXPORTS_BEFORE = 8;
/** The milliseconds after which no further render begins. */
const RENDERING_MS = 600_000;
