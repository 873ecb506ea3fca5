import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { DocumentError, decodeDocument } from './project-document.js';
import type { FromProject, ToProject } from './project-messages.js';
import { type ClipState, type ProjectState, readProjectState } from './project-state.js';

/** The most bytes of a project and its log that are copied to be read. */
export const MAX_PROJECT_BYTES = 4_294_967_296;
const ENTRY = new URL('./project-thread.js', import.meta.url);
/** The longest answer of the thread in milliseconds. A project at its limits takes a few seconds. */
const ANSWER_MS = 20_000;

/** A project as it was read once. */
export interface ProjectReading {
  readonly state: ProjectState;
  /** The SHA-256 of the document that was saved last. Another value means that the user has saved. */
  readonly savedSha256: string;
  /** Returns the samples of each channel as float32. @throws DocumentError for samples that are missing or too many */
  samplesOf(clip: ClipState): Promise<readonly Buffer[]>;
  close(): Promise<void>;
}

/** Reads the size and the time of a project and of its log. */
const statsOf = (project: string) =>
  Promise.all([project, `${project}-wal`].map((file) => stat(file, { bigint: true }).catch(() => undefined)));

/** Returns the marks of a project's files. Unlike marks mean that something was written. */
export async function projectMark(project: string): Promise<string> {
  const stats = await statsOf(project);
  return stats.map((one) => (one === undefined ? 'absent' : `${one.size} ${one.mtimeNs}`)).join(' | ');
}

/**
 * Reads a project that Audacity has open and locked: a copy of the database and of its log is opened in its
 * place.
 * @returns undefined where Audacity wrote while the copy was made: try again
 * @param answerMs the longest answer of the thread that reads the database, in milliseconds
 * @throws DocumentError where the project is too large, takes too long, or cannot be understood
 */
export async function readProject(
  project: string,
  answerMs = ANSWER_MS,
): Promise<ProjectReading | undefined> {
  const mark = await projectMark(project);
  const bytes = (await statsOf(project)).reduce((sum, found) => sum + Number(found?.size ?? 0), 0);
  if (bytes > MAX_PROJECT_BYTES) throw new DocumentError('the project is too large to be copied');
  const directory = await mkdtemp(join(tmpdir(), 'takemark-audacity-'));
  try {
    const copy = join(directory, 'project.aup3');
    await copyFile(project, copy);
    await copyFile(`${project}-wal`, `${copy}-wal`).catch(ignoreAbsent);
    if ((await projectMark(project)) !== mark) {
      await rm(directory, { recursive: true, force: true });
      return undefined;
    }
    return await openCopy(copy, answerMs, () => rm(directory, { recursive: true, force: true }));
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

function ignoreAbsent(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}

async function openCopy(
  copy: string,
  answerMs: number,
  discard: () => Promise<void>,
): Promise<ProjectReading | undefined> {
  const thread = new ProjectThread(copy, answerMs);
  const close = async (): Promise<void> => {
    await thread.end();
    await discard();
  };
  try {
    const { saved, unsaved } = await thread.documents();
    const current = unsaved ?? saved;
    if (current === null) {
      await close();
      return undefined;
    }
    let bytes = 0;
    return {
      state: readProjectState(decodeDocument(current.dict, current.doc)),
      savedSha256: createHash('sha256')
        .update(saved?.doc ?? '')
        .digest('hex'),
      async samplesOf(clip) {
        const channels: Buffer[] = [];
        for (const blocks of clip.blocks) {
          const samples = await thread.samples(blocks);
          // Copies of a clip share their samples, so an honest project has no more samples than bytes.
          bytes += samples.length;
          if (bytes > 2 * MAX_PROJECT_BYTES) throw new DocumentError('the clips have too many samples');
          channels.push(samples);
        }
        return channels;
      },
      close,
    };
  } catch (error) {
    await thread.end();
    throw error;
  }
}

/** The thread that reads a project. A question that takes too long ends the thread. */
class ProjectThread {
  readonly #worker: Worker;

  constructor(
    copy: string,
    private readonly answerMs: number,
  ) {
    this.#worker = new Worker(ENTRY, { workerData: copy, env: {}, execArgv: [], stdin: false });
  }

  async documents(): Promise<Extract<FromProject, { kind: 'documents' }>> {
    const answer = await this.#ask({ kind: 'documents' });
    if (answer.kind !== 'documents') throw errorOf(answer);
    return answer;
  }

  async samples(blocks: readonly number[]): Promise<Buffer> {
    const answer = await this.#ask({ kind: 'samples', blocks });
    if (answer.kind !== 'samples') throw errorOf(answer);
    const { buffer, byteOffset, byteLength } = answer.samples;
    return Buffer.from(buffer, byteOffset, byteLength);
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  async #ask(question: ToProject): Promise<FromProject> {
    const limit = AbortSignal.timeout(this.answerMs);
    this.#worker.postMessage(question);
    try {
      const [answer] = (await once(this.#worker, 'message', { signal: limit })) as [FromProject];
      return answer;
    } catch (error) {
      if (!limit.aborted) throw error;
      await this.end();
      throw new DocumentError('reading the project takes too long');
    }
  }
}

function errorOf(answer: FromProject): Error {
  switch (answer.kind) {
    case 'refused':
      return new DocumentError(answer.message);
    case 'missing_package':
      return new MissingPackageError(
        'reading an Audacity project needs the optional package node-sqlite3-wasm: run npm install node-sqlite3-wasm@0.8',
      );
    case 'failed':
      return new Error(answer.message);
    default:
      return new Error('the thread answered another question');
  }
}

/** The error for a missing optional package. Its message names the package to install. */
export class MissingPackageError extends Error {}
