/** Child process: readers of a trace, each measured in a process that has read nothing large before. */
import { createReadStream } from 'node:fs';
import { decodeMulti, decodeMultiStream } from '@msgpack/msgpack';
import { replayTrace } from '../../src/witness/replay/replay-trace.js';
import { composeReport } from '../../src/witness/report/compose-report.js';
import { settleFacts } from '../../src/witness/report/settle-facts.js';
import { readTrace } from '../../src/witness/trace/read-trace.js';
import { answerCalls } from '../service/child.js';
import { probe } from '../service/process-use.js';

interface Counted {
  readonly events: number;
  /** The bytes of the report as JSON. Absent if no report was made. */
  readonly reportBytes?: number;
}

interface Reading extends Counted {
  readonly seconds: number;
  /** The growth of the resident memory in bytes, from before the run to its peak. */
  readonly grownBytes: number;
}

/** Decodes every frame and every event with the library alone. It checks nothing. */
async function decodePlainly(file: string): Promise<Counted> {
  let events = 0;
  for await (const frame of decodeMultiStream(createReadStream(file))) {
    const [kind, , , body] = frame as [number, unknown, unknown, Uint8Array];
    if (kind === 1) for (const event of decodeMulti(body)) if (Array.isArray(event)) events += 1;
  }
  return { events };
}

/** Reads a trace in both passes. It checks the chain and the signatures, and validates each event. */
async function readWhole(file: string): Promise<Counted> {
  const trace = await readTrace(() => createReadStream(file));
  let events = 0;
  for await (const batch of trace.events()) events += batch.length;
  return { events };
}

/** Reads and replays a trace, settles facts and composes a proof's report without declarations, as issuing does. */
async function replayWhole(file: string): Promise<Counted> {
  const replayed = await replayTrace(() => createReadStream(file));
  const { facts } = settleFacts(replayed, { standing: 'enrolled', originalSha256: '00'.repeat(32) });
  const report = composeReport({ facts, declarations: [], altered: 0 });
  return { events: facts.session.events, reportBytes: Buffer.byteLength(JSON.stringify(report)) };
}

const READERS = { plain: decodePlainly, read: readWhole, replay: replayWhole };
export type Reader = keyof typeof READERS;

const methods = {
  async measure({
    reader,
    file,
    warmUp,
  }: {
    reader: Reader;
    file: string;
    warmUp: string;
  }): Promise<Reading> {
    await READERS[reader](warmUp);
    const { rssBytes } = probe.use();
    probe.watchMemory();
    const start = performance.now();
    const counted = await READERS[reader](file);
    const seconds = (performance.now() - start) / 1000;
    return { ...counted, seconds, grownBytes: probe.memoryPeak() - rssBytes };
  },
};
export type ReadingProcess = typeof methods;

answerCalls(methods);
