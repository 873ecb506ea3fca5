import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { defined } from '../../domain/defined.js';
import type { Channel, ChannelSupport, TraceEvent } from '../../domain/trace.js';
import { DocumentError } from './project-document.js';
import { projectMark, readProject } from './project-file.js';
import { ProjectTeller } from './project-teller.js';
import { wavChannels } from './wav-channels.js';

/** Channels as this agent sees them: differences between two states of the project, and files that are exported. */
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

/** Greatest original or exported file that is read. */
const MAX_FILE_BYTES = 1_073_741_824;
/** Most files of a directory that are looked at. */
const MAX_FILES = 4096;
/** Reads of a project that may fail one after the other before a gap is told. */
const TOLERATED_FAILURES = 20;

export interface FollowOptions {
  /** Path of the .aup3 file, which Audacity has open. */
  readonly project: string;
  /** Directory of files that may be imported: WAV of 16, 24 or 32 bits. */
  readonly originals?: string;
  /** Directory into which the session is exported. */
  readonly exports?: string;
  /** Microseconds of the session clock. */
  readonly clock: () => number;
  readonly tell: (event: TraceEvent) => void;
}

/** Follower of a project: `look` is called again and again, a few times a second. */
export class ProjectFollower {
  readonly #options: FollowOptions;
  readonly #teller: ProjectTeller;
  readonly #originals = new Map<string, string>();
  readonly #seenOriginals = new Set<string>();
  readonly #exports = new Map<string, { size: number; quiet: number; told: string }>();
  #mark = '';
  #saved: string | undefined;
  #readAt: number;
  #failures = 0;
  #version: string | undefined;

  constructor(options: FollowOptions) {
    this.#options = options;
    this.#teller = new ProjectTeller(options.tell);
    this.#readAt = options.clock();
  }

  /** Version of Audacity as the project names it; undefined before the first look that succeeded. */
  get version(): string | undefined {
    return this.#version;
  }

  /** Looks at the project and the exports, and tells what is new. */
  async look(): Promise<void> {
    const mark = await projectMark(this.#options.project);
    if (mark !== this.#mark) await this.#read(mark);
    if (this.#options.exports !== undefined) await this.#lookAtExports(this.#options.exports);
  }

  async #read(mark: string): Promise<void> {
    const { clock, tell } = this.#options;
    const at = clock();
    const since = this.#readAt;
    try {
      const reading = await readProject(this.#options.project);
      if (reading === undefined) return;
      try {
        await this.#learnOriginals();
        this.#version = reading.state.version;
        if (this.#saved !== undefined && this.#saved !== reading.savedSha256)
          tell({ kind: 'session.saved', at, since });
        this.#saved = reading.savedSha256;
        this.#teller.take(
          reading.state,
          {
            samplesOf: reading.samplesOf,
            originalOf: (channels) => this.#originals.get(digest(channels)),
          },
          { at, since },
        );
        this.#mark = mark;
        this.#readAt = at;
        this.#failures = 0;
      } finally {
        await reading.close();
      }
    } catch (error) {
      // A database that is being written may not open; a document that cannot be understood stays so.
      this.#failures += 1;
      if (this.#failures < TOLERATED_FAILURES && !(error instanceof DocumentError)) return;
      if (this.#failures === TOLERATED_FAILURES || error instanceof DocumentError)
        tell({ kind: 'capture.gap', at, since, reason: 'unreadable' });
      this.#mark = mark;
      this.#readAt = at;
    }
  }

  async #learnOriginals(): Promise<void> {
    const { originals } = this.#options;
    if (originals === undefined) return;
    for (const name of (await readdir(originals)).slice(0, MAX_FILES)) {
      const file = join(originals, name);
      const { size, mtimeMs } = await stat(file);
      const seen = `${name} ${size} ${mtimeMs}`;
      if (this.#seenOriginals.has(seen) || size > MAX_FILE_BYTES) continue;
      this.#seenOriginals.add(seen);
      const bytes = await readFile(file);
      const channels = wavChannels(bytes);
      if (channels !== undefined) this.#originals.set(digest(channels), digest([bytes]));
    }
  }

  async #lookAtExports(directory: string): Promise<void> {
    const names = await readdir(directory).catch(() => []);
    for (const name of names.slice(0, MAX_FILES)) {
      const file = join(directory, name);
      const found = await stat(file).catch(() => undefined);
      if (found === undefined || !found.isFile() || found.size > MAX_FILE_BYTES) continue;
      const known = this.#exports.get(name) ?? { size: -1, quiet: 0, told: '' };
      this.#exports.set(name, known);
      known.quiet = known.size === found.size ? known.quiet + 1 : 0;
      known.size = found.size;
      const version = `${found.size} ${found.mtimeMs}`;
      // Settled: three looks without growth.
      if (known.quiet < 3 || known.told === version || found.size === 0) continue;
      known.told = version;
      await this.#tellExport(file);
    }
  }

  async #tellExport(file: string): Promise<void> {
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
    const channels = wavChannels(await readFile(file));
    const frames = channels?.[0] === undefined ? undefined : channels[0].length / 4;
    this.#options.tell(
      defined({
        kind: 'export.finished' as const,
        at: this.#options.clock(),
        fileSha256: hash.digest('hex'),
        samplesSha256: channels === undefined ? undefined : digest(channels),
        frames,
        channels: channels?.length,
        rerender: 'not_tried' as const,
      }),
    );
  }
}

function digest(parts: readonly Uint8Array[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
}
