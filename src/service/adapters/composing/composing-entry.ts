/** The thread that composes and encodes large reports. */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { composeStored } from '../../../witness/report/compose-stored.js';
import type { FromComposing, ToComposing } from './composing-messages.js';

const encoder = new TextEncoder();

function listen(port: MessagePort): void {
  port.on('message', ({ id, stored }: ToComposing) => {
    const answer = (message: FromComposing, transferred: readonly ArrayBuffer[] = []): void =>
      port.postMessage(message, transferred);
    try {
      const composed = composeStored(stored);
      const report = encoder.encode(JSON.stringify(composed.report));
      answer({ id, composed: { ...composed, report } }, [report.buffer]);
    } catch (error) {
      answer({ id, fault: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  });
}

if (parentPort === null) throw new Error('reports must be composed in a worker thread');
listen(parentPort);
