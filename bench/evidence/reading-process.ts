/** Child process: readers of a trace, each measured in a process that has read nothing large before. */
import { createReadStream } from 'node:fs';
import { decodeMulti, decodeMultiStream } from '@msgpack/msgpack';
import { readTrace } from '../../src/evidence/trace/read-trace.js';
import { answerCalls } from '../service/child.js';
import { probe } from '../service/process-use.js';

interface Reading {
  readonly events: number;
  readonly seconds: number;
  /** Growth of the resident memory while it ran. */
  readonly grownBytes: number;
}

/** Every frame and every event as the library decodes them; nothing is checked. */
async function decodePlainly(file: string): Promise<number> {
  let events = 0;
  for await (const frame of decodeMultiStream(createReadStream(file))) {
    const [kind, , , body] = frame as [number, unknown, unknown, Uint8Array];
    if (kind === 1) for (const event of decodeMulti(body)) if (Array.isArray(event)) events += 1;
  }
  return events;
}

/** Both passes: chain, signatures, each event validated. */
async function readWhole(file: string): Promise<number> {
  const trace = await readTrace(() => createReadStream(file));
  let events = 0;
  for await (const batch of trace.events()) events += batch.length;
  return events;
}

const READERS = { plain: decodePlainly, read: readWhole };
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
    const events = await READERS[reader](file);
    const seconds = (performance.now() - start) / 1000;
    return { events, seconds, grownBytes: probe.memoryPeak() - rssBytes };
  },
};
export type ReadingProcess = typeof methods;

answerCalls(methods);
