/** Thread that replays one trace and ends. Bytes are asked for as they are needed. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { DomainError } from '../../../core/domain/errors.js';
import { replayTrace } from '../../../witness/replay/replay-trace.js';
import { WorkBudget } from '../../../witness/trace/work-budget.js';
import type { FromReplay, ToReplay } from './replay-messages.js';

async function replay(port: MessagePort): Promise<void> {
  const say = (message: FromReplay): void => port.postMessage(message);
  /** Where the answer to the one open question goes. */
  let answer: ((chunk: Uint8Array | undefined) => void) | undefined;
  port.on('message', ({ chunk }: ToReplay) => answer?.(chunk));
  let streams = 0;
  async function* open(): AsyncGenerator<Uint8Array, void> {
    const stream = streams;
    streams += 1;
    for (;;) {
      const chunk = await new Promise<Uint8Array | undefined>((resolve) => {
        answer = resolve;
        say({ kind: 'read', stream });
      });
      if (chunk === undefined) return;
      yield chunk;
    }
  }
  try {
    say({ kind: 'replayed', replayed: await replayTrace(open, new WorkBudget(workerData as number)) });
  } catch (error) {
    if (!(error instanceof DomainError))
      say({
        kind: 'failed',
        message: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
    else {
      const { code, message, reason } = error;
      say({ kind: 'refused', code, message, ...(reason === undefined ? {} : { reason }) });
    }
  }
  port.close();
}

if (parentPort === null) throw new Error('a replay must run in a worker thread');
await replay(parentPort);
