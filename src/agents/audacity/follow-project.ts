import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { defined } from '../../core/domain/defined.js';
import type { Channel, ChannelSupport, TraceEvent } from '../../witness/domain/trace.js';
import { digestAudio } from '../ardour/audio-file.js';
import { Originals } from '../ardour/originals.js';
import { type Captured, type TraceOutput, TraceQueue } from '../ardour/trace-queue.js';
import { ProjectComparer } from './project-comparer.js';
import { DocumentError } from './project-document.js';
import { MissingPackageError, projectMark, readProject } from './project-file.js';

/** The support of each channel by this agent, which sees differences between two states of a project, and exports. */
export const AUDACITY_CHANNELS: Readonly<Record<Channel, ChannelSupport>> = {
  session: 'partial',
  transport: 'unsupported',
  tempo: 'unsupported',
  tracks: 'partial',
  clips: 'partial',
  midi: 'unsupported',
  // A take that is recorded and a file that is imported look alike in the project.
  recording: 'unknown',
  automation: 'partial',
  plugins: 'partial',
  mixer: 'partial',
  imports: 'partial',
  sourceMap: 'partial',
  export: 'partial',
};

/** The most files of a directory that are looked at. */
const MAX_FILES = 4096;
/** The failed reads of a project, one after the other, that are a gap. */
const TOLERATED_FAILURES = 20;

export interface FollowOptions {
  /** The path of the .aup3 file, which Audacity has open. */
  readonly project: string;
  /** The directory of files that may be imported: WAV of 16 or 24 bits, or of 32-bit float. */
  readonly originals?: string;
  /** The directory into which the session is exported. */
  readonly exports?: string;
  /** Returns the session clock in microseconds. */
  readonly clock: () => number;
  readonly write: (event: TraceEvent) => void;
}

const POLL_MS = 250;
/** The looks from the end of the session on, with the one during which it ended: an export settles in four. */
const LAST_LOOKS = 6;

export interface AudacitySession extends Pick<FollowOptions, 'project' | 'originals' | 'exports'> {
  /** Opens the trace once the project could be read. Its clock begins at a whole second. */
  readonly open: (start: {
    readonly startedAt: number;
    readonly dawVersion?: string;
  }) => Promise<TraceOutput>;
  /** The signal that is aborted when the session is over. */
  readonly signal: AbortSignal;
}

/** Follows a project until it is over or the trace is full, then seals the trace. */
export async function followAudacity({ open, signal, ...paths }: AudacitySession): Promise<Captured> {
  const startedAt = Math.floor(Date.now() / 1000);
  const origin = Date.now() - performance.now() - startedAt * 1000;
  const queue = new TraceQueue();
  const follower = new ProjectFollower({
    ...paths,
    clock: () => Math.round((origin + performance.now()) * 1000),
    write: (event) => queue.push(event),
  });
  let trace: TraceOutput | undefined;
  let isWhole = true;
  // The last save and export are seen, too.
  for (let left = LAST_LOOKS; isWhole && left > 0; left -= signal.aborted ? 1 : 0) {
    await follower.look();
    if (left === 1) follower.end();
    if (follower.version !== undefined) {
      trace ??= await open({ startedAt, dawVersion: follower.version });
      isWhole = await queue.write(trace);
    }
    await pause(POLL_MS);
  }
  if (trace === undefined) return 'absent';
  await trace.seal();
  return isWhole ? 'sealed' : 'full';
}

/** A follower of a project. Its `look` is called a few times a second. */
export class ProjectFollower {
  readonly #options: FollowOptions;
  readonly #comparer = new ProjectComparer();
  readonly #originals: Originals;
  readonly #exports = new Map<string, { size: number; quiet: number; reported: string }>();
  #mark = '';
  #saved: string | undefined;
  /** The time in microseconds at which the last successful read began. The state may have changed since then. */
  #readAt: number | undefined;
  /** True after the first look at the exports. Exports that were there before the agent are not reported. */
  #hasSeenExports = false;
  #failures = 0;
  #version: string | undefined;

  constructor(options: FollowOptions) {
    this.#options = options;
    this.#originals = new Originals(options.originals);
  }

  /** The version of Audacity in the project. Undefined before the first look that succeeded. */
  get version(): string | undefined {
    return this.#version;
  }

  /** Looks at the project and the exports, and reports what is new. */
  async look(): Promise<void> {
    const mark = await projectMark(this.#options.project);
    if (mark !== this.#mark) await this.#read(mark);
    if (this.#options.exports !== undefined) await this.#lookAtExports(this.#options.exports);
  }

  /** Reports a gap if the last state of the project was not read. */
  end(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    const { clock, write } = this.#options;
    write({ kind: 'capture.gap', at: clock(), since: this.#readAt ?? 0, reason: 'unreadable' });
  }

  async #read(mark: string): Promise<void> {
    let isLasting = false;
    try {
      if (await this.#take()) {
        this.#mark = mark;
        this.#failures = 0;
        return;
      }
    } catch (error) {
      if (error instanceof MissingPackageError) throw error;
      // A document that cannot be understood stays so. A database that is being written may not open.
      isLasting = error instanceof DocumentError;
    }
    this.#failures += 1;
    if (this.#failures < TOLERATED_FAILURES && !isLasting) return;
    this.#mark = mark;
    this.end();
  }

  /** Reads the project, and reports what is new. @returns false where it was written meanwhile */
  async #take(): Promise<boolean> {
    const { clock, write } = this.#options;
    const began = clock();
    const reading = await readProject(this.#options.project);
    if (reading === undefined) return false;
    try {
      const at = clock();
      // The first state was found: what it holds was done before.
      const since = this.#readAt ?? at;
      const { state, samplesOf, savedSha256: saved } = reading;
      this.#version = state.version;
      if (this.#saved !== undefined && this.#saved !== saved) write({ kind: 'session.saved', at, since });
      this.#saved = saved;
      const originalOf = (channels: readonly Buffer[]) => this.#originalOf(channels);
      const events = await this.#comparer.take(state, { samplesOf, originalOf }, { at, since });
      for (const event of events) write(event);
      this.#readAt = began;
      return true;
    } finally {
      await reading.close();
    }
  }

  /** Returns the SHA-256 of the file that is found for every channel alike. A channel alone may be in many files. */
  async #originalOf(channels: readonly Buffer[]): Promise<string | undefined> {
    const found = new Set<string | undefined>();
    for (const channel of channels)
      found.add(await this.#originals.find(createHash('sha256').update(channel).digest('hex')));
    return found.size === 1 ? [...found][0] : undefined;
  }

  async #lookAtExports(directory: string): Promise<void> {
    const names = await readdir(directory).catch(() => []);
    for (const name of names.slice(0, MAX_FILES)) {
      const file = join(directory, name);
      const found = await stat(file).catch(() => undefined);
      if (found === undefined || !found.isFile()) continue;
      const version = `${found.size} ${found.mtimeMs}`;
      const known = this.#exports.get(name) ?? {
        size: -1,
        quiet: 0,
        reported: this.#hasSeenExports ? '' : version,
      };
      this.#exports.set(name, known);
      known.quiet = known.size === found.size ? known.quiet + 1 : 0;
      known.size = found.size;
      // Settled: three looks without growth.
      if (known.quiet < 3 || known.reported === version || found.size === 0) continue;
      known.reported = version;
      await this.#writeExport(file);
    }
    this.#hasSeenExports = true;
  }

  async #writeExport(file: string): Promise<void> {
    // Deleted again, or closed to this user: the export cannot be reported.
    const digest = await digestAudio(file).catch(() => undefined);
    if (digest === undefined) return;
    const { fileSha256, samplesSha256, frames, rate, channels } = digest;
    const known = defined({ samplesSha256, frames, rate, channels });
    const at = this.#options.clock();
    this.#options.write({ kind: 'export.finished', at, fileSha256, rerender: 'not_tried', ...known });
  }
}
