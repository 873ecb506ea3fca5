import { parseBuffer } from 'music-metadata';
import {
  CONTEXT_BYTES,
  createCoreMemory,
  instantiateCore,
  loadCore,
  readMeasurement,
  SCRATCH_BYTES,
} from '../../src/core/engine/core.js';
import { SLAB_BYTES } from '../../src/core/engine/ingest.js';
import { MAX_UPLOAD_BYTES } from '../../src/service/domain/upload.js';
import { BROADCAST_FORMAT, broadcastWave } from '../fixtures/broadcast-wave.js';
import { seededBytes } from '../fixtures/random.js';
import { figure, interleave, type Measure, proportion, type Run, type Section, speedup } from '../measure.js';

const PAGE = 65_536;
const pagesFor = (bytes: number): number => PAGE * Math.ceil(bytes / PAGE);
/** The scratch of the core, the context of the file and the file begin at pages, one after the other. */
const CONTEXT = PAGE + pagesFor(SCRATCH_BYTES);
const FILE = CONTEXT + pagesFor(CONTEXT_BYTES);

export const parse: Measure = { name: 'parse', run: measureParse };

async function measureParse(run: Run): Promise<Section> {
  const { head, dataBytes, tail, frames } = broadcastWave(MAX_UPLOAD_BYTES, 'Parsed take');
  const file = Buffer.concat([head, seededBytes('parsed', dataBytes), tail]);
  const module = await loadCore();
  const memory = createCoreMemory(FILE + file.length);
  new Uint8Array(memory.buffer).set(file, FILE);
  const core = instantiateCore(module, memory, PAGE);
  const { parses } = run.scale;

  const parseAs = (step: number): void => {
    core.init(CONTEXT);
    for (let at = 0; at < file.length; at += step)
      core.parse({ context: CONTEXT, address: FILE + at, length: Math.min(step, file.length - at) });
    core.finish(CONTEXT);
  };
  const hashed = (): void => {
    core.init(CONTEXT);
    for (let at = 0; at < file.length; at += SLAB_BYTES)
      core.update([{ context: CONTEXT, address: FILE + at, length: Math.min(SLAB_BYTES, file.length - at) }]);
    core.finish(CONTEXT);
  };
  const check = (): void => {
    const { format, frames: found, bext, chunkCount } = readMeasurement(memory, CONTEXT);
    const right =
      format?.sampleRate === BROADCAST_FORMAT.sampleRate &&
      format.channels === BROADCAST_FORMAT.channels &&
      found === frames &&
      bext?.description === 'Parsed take' &&
      chunkCount === 10;
    if (!right) run.wrong(`parse: the core read ${JSON.stringify({ format, found, chunkCount })}`);
  };

  const times = await interleave(run, 'parse', run.scale.rounds, [
    {
      name: 'music-metadata',
      once: async () => {
        const microseconds = await perCall(Math.ceil(parses / 10), async () => {
          const { format } = await parseBuffer(file, { mimeType: 'audio/wav', size: file.length });
          if (format.sampleRate !== BROADCAST_FORMAT.sampleRate || format.numberOfSamples !== frames)
            run.wrong(`parse: music-metadata read ${JSON.stringify(format)}`);
        });
        return microseconds;
      },
    },
    {
      name: 'core, one slice',
      once: async () => checked(await perCall(parses * 100, () => parseAs(file.length)), check),
    },
    {
      name: 'core, slabs',
      once: async () => checked(await perCall(parses * 10, () => parseAs(SLAB_BYTES)), check),
    },
    {
      name: 'core, with the measurement read',
      once: async () =>
        perCall(parses * 10, () => {
          parseAs(file.length);
          readMeasurement(memory, CONTEXT);
        }),
    },
    { name: 'hash', once: async () => checked(await perCall(1, hashed), check) },
  ]);
  const of = (name: string): readonly number[] => times.get(name)!;
  return {
    id: 'parse',
    title: 'Parse',
    method: `A broadcast WAVE of ${(file.length / 2 ** 20).toFixed(0)} MiB in memory: filler, bext, iXML and format before the samples; cue, labels, text and levels behind them. The core walks every chunk and reads format, bext and structure. Both readers' answers are checked.`,
    figures: [
      figure('parse.core', 'core, the file in one slice', 'µs', 'ours', of('core, one slice')),
      figure('parse.slabs', 'core, in slabs', 'µs', 'ours', of('core, slabs')),
      figure(
        'parse.read',
        'core, and its findings read into objects',
        'µs',
        'ours',
        of('core, with the measurement read'),
      ),
      figure('parse.music-metadata', 'music-metadata parseBuffer', 'µs', 'baseline', of('music-metadata')),
      figure('parse.hash', 'parse and hash, one stream', 'µs', 'other', of('hash')),
    ],
    comparisons: [
      speedup(
        'parse.core/music-metadata',
        'parse, speed',
        'music-metadata parseBuffer',
        'µs',
        of('core, one slice'),
        of('music-metadata'),
      ),
      speedup(
        'parse.slabs/music-metadata',
        'parse in slabs, speed',
        'music-metadata parseBuffer',
        'µs',
        of('core, slabs'),
        of('music-metadata'),
      ),
      speedup(
        'parse.read/music-metadata',
        'parse and findings as objects, speed',
        'music-metadata parseBuffer',
        'µs',
        of('core, with the measurement read'),
        of('music-metadata'),
      ),
      proportion(
        'parse.core/hash',
        'parse in slabs, share of the time',
        'one-stream hash of the same file',
        'µs',
        of('core, slabs'),
        of('hash'),
      ),
    ],
    notes: [],
  };
}

/** Returns the microseconds of one call. */
async function perCall(calls: number, once: () => void | Promise<void>): Promise<number> {
  const start = performance.now();
  for (let i = 0; i < calls; i += 1) {
    const pending = once();
    if (pending !== undefined) await pending;
  }
  return ((performance.now() - start) * 1000) / calls;
}

function checked(value: number, check: () => void): number {
  check();
  return value;
}
