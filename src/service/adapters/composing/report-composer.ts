import { Worker } from 'node:worker_threads';
import { EncodedJson } from '../../../core/domain/encoded-json.js';
import { DomainError } from '../../../core/domain/errors.js';
import {
  composeStored,
  isLarge,
  type SentReport,
  type StoredEvidence,
} from '../../../witness/report/compose-stored.js';
import type { FromComposing, ToComposing } from './composing-messages.js';

const ENTRY = new URL('./composing-entry.js', import.meta.url);
/** The heap of the thread in MiB. The largest report with source detail needs less than half of it. */
const HEAP_MIB = 96;
/** The part of the heap for new objects in MiB. Without this bound the thread takes several times as much. */
const YOUNG_HEAP_MIB = 8;

interface Waiting {
  readonly resolve: (report: SentReport) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Composes reports. A small report is composed at once. A large one is decoded, composed and encoded in a
 * thread, because it would hold up other calls for milliseconds. The thread starts with the first large
 * report, and it keeps nothing of a report.
 */
export class ReportComposer {
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #next = 1;
  #isStopped = false;

  /**
   * Composes a report. The caller limits how many run at once.
   * @throws DomainError `unavailable` / `store_unavailable` when the thread ended
   */
  async compose(stored: StoredEvidence): Promise<SentReport> {
    if (!isLarge(stored)) return composeStored(stored);
    if (this.#isStopped) throw ended(undefined);
    this.#worker ??= this.#start();
    const worker = this.#worker;
    const id = this.#next;
    this.#next += 1;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.ref();
      worker.postMessage({ id, stored } satisfies ToComposing);
    });
  }

  /** Ends the thread. Reports that are being composed fail. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(ENTRY, {
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB, maxYoungGenerationSizeMb: YOUNG_HEAP_MIB },
      env: {},
      // Loaders and hooks of the process are not needed in the thread.
      execArgv: [],
      stdin: false,
    });
    let failure: unknown;
    worker.on('message', (message: FromComposing) => this.#answer(worker, message));
    worker.on('error', (error) => (failure = error));
    worker.on('exit', () => {
      this.#worker = undefined;
      const waiting = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const { reject } of waiting) reject(ended(failure));
    });
    return worker;
  }

  #answer(worker: Worker, message: FromComposing): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    // An idle thread does not keep the process running.
    if (this.#waiting.size === 0) worker.unref();
    if ('fault' in message) waiting?.reject(new Error(message.fault));
    else waiting?.resolve({ ...message.composed, report: new EncodedJson(message.composed.report) });
  }
}

function ended(cause: unknown): DomainError {
  return new DomainError('unavailable', 'The report cannot be composed at the moment.', {
    reason: 'store_unavailable',
    retryAfterSeconds: 1,
    ...(cause === undefined ? {} : { cause }),
  });
}
