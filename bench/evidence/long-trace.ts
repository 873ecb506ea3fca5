import { seededDeviceKey } from '../../src/cli/specimens/simulate-trace.js';
import { SimulatedSession } from '../../src/cli/specimens/simulated-session.js';
import { openTrace } from '../../src/witness/capture/index.js';

/** Acts come this many times as often as a person's, so that hours hold millions of them. */
const PACE = 400;
const FLUSH_EVENTS = 5000;
const ENDLESS_MINUTES = 500_000;

/**
 * Writes the sealed trace of a simulated session that is cut after so many events.
 * @param simulated what its header says: production refuses one that says so
 */
export async function writeLongTrace(file: string, events: number, simulated = true): Promise<void> {
  const session = new SimulatedSession({ minutes: ENDLESS_MINUTES, seed: 1, pace: PACE });
  const writer = await openTrace({
    to: file,
    key: seededDeviceKey(1),
    header: {
      adapter: 'simulator',
      adapterVersion: '1.0',
      startedAt: 1_767_225_600,
      simulated,
      channels: session.channels,
    },
  });
  let flushed = 0;
  for (const batch of session.events()) {
    for (const event of batch) if (writer.events < events) writer.append(event);
    if (writer.events - flushed >= FLUSH_EVENTS) {
      await writer.flush();
      flushed = writer.events;
    }
    if (writer.events >= events) break;
  }
  await writer.seal();
}
