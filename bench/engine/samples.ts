import { createHash } from 'node:crypto';
import { createAudioEngine } from '../../src/core/engine/create-engine.js';
import { SLAB_BYTES } from '../../src/core/engine/ingest.js';
import type { AudioEngine } from '../../src/core/ports/audio-engine.js';
import { flacFile, interleaved } from '../../test/fixtures/flac.js';
import { encode } from '../../test/fixtures/samples.js';
import { broadcastWave } from '../fixtures/broadcast-wave.js';
import { seededBytes } from '../fixtures/random.js';
import { figure, interleave, type Measure, proportion, type Run, type Section } from '../measure.js';

const WAVE_BYTES = 32 * 1024 * 1024;
const FLAC_FRAMES = 400;
const BLOCK = 4096;
const FORMAT = { bits: 16, channels: 2, rate: 44_100 };

export const samples: Measure = { name: 'samples', run: measureSamples };

interface Input {
  readonly bytes: Buffer;
  /** Bytes of its samples, as the digest takes them. */
  readonly decoded: number;
}

async function measureSamples(run: Run): Promise<Section> {
  const inputs = { wave: waveInput(), flac: flacInput() };
  const engines = {
    wasm: createAudioEngine({ kind: 'wasm', workers: 1 }),
    native: createAudioEngine({ kind: 'native', workers: 1 }),
  };
  await Promise.all(Object.values(engines).map((engine) => engine.start()));
  const contender = (name: string, engine: AudioEngine, input: Input, uploads: number, asked: boolean) => ({
    name,
    once: async () => {
      const begun = process.cpuUsage();
      const measured = await Promise.all(
        Array.from({ length: uploads }, () => sendOne(engine, input.bytes, asked)),
      );
      const { user, system } = process.cpuUsage(begun);
      for (const one of measured)
        if (asked && (one === undefined || 'reason' in one)) run.wrong(`samples: ${JSON.stringify(one)}`);
      const gigabytes = (uploads * input.bytes.length) / 1e9;
      return (user + system) / 1e6 / gigabytes;
    },
  });
  try {
    const times = await interleave(
      run,
      'samples',
      run.scale.rounds,
      [
        ['one', engines.wasm, inputs.wave, 1],
        ['four', engines.wasm, inputs.wave, 4],
        ['native', engines.native, inputs.wave, 4],
        ['flac', engines.wasm, inputs.flac, 1],
      ].flatMap(([name, engine, input, uploads]) =>
        [false, true].map((asked) =>
          contender(
            `${name as string}${asked ? ' with samples' : ''}`,
            engine as AudioEngine,
            input as Input,
            uploads as number,
            asked,
          ),
        ),
      ),
    );
    return report(times, inputs.flac);
  } finally {
    await Promise.all(Object.values(engines).map((engine) => engine.stop()));
  }
}

/** Returns a broadcast wave of 24 bits. */
function waveInput(): Input {
  const { head, dataBytes, tail } = broadcastWave(WAVE_BYTES, 'Samples');
  return { bytes: Buffer.concat([head, seededBytes('samples', dataBytes), tail]), decoded: dataBytes };
}

/** Returns FLAC as encoders write it by default: linear prediction, blocks of 4,096 samples, and an MD5. */
function flacInput(): Input {
  const noise = seededBytes('flac', 2 * BLOCK);
  const channel = (phase: number): readonly bigint[] =>
    Array.from({ length: BLOCK }, (_, i) =>
      BigInt(Math.round(9000 * Math.sin((i + phase) / 20)) + (noise[i + phase]! >> 2)),
    );
  const frame = {
    channels: [channel(0), channel(BLOCK / 2)],
    subframe: {
      kind: 'linear',
      order: 8,
      coefficients: [1800n, -800n, 100n, -50n, 20n, -20n, 10n, -36n],
      precision: 12,
      shift: 10,
      partitionOrder: 4,
      parameter: 6,
    },
  } as const;
  const pcm = encode(interleaved([frame]), { bits: 16, width: 2 });
  const md5 = createHash('md5');
  for (let i = 0; i < FLAC_FRAMES; i += 1) md5.update(pcm);
  const one = flacFile({ format: FORMAT, frames: [frame], total: BLOCK * FLAC_FRAMES, md5: md5.digest() });
  const head = one.subarray(0, 42);
  const frames = Array.from({ length: FLAC_FRAMES }, () => one.subarray(42));
  return { bytes: Buffer.concat([head, ...frames]), decoded: pcm.length * FLAC_FRAMES };
}

async function sendOne(engine: AudioEngine, bytes: Buffer, asked: boolean) {
  const ingest = engine.open('bench', { samples: asked });
  for (let at = 0; at < bytes.length; at += SLAB_BYTES / 8)
    await ingest.write(bytes.subarray(at, at + SLAB_BYTES / 8));
  return (await ingest.end()).samples;
}

function report(times: ReadonlyMap<string, readonly number[]>, flac: Input): Section {
  const of = (name: string): readonly number[] => times.get(name)!;
  const decoding = of('flac with samples').map(
    (cost, round) => (flac.decoded / flac.bytes.length / (cost - of('flac')[round]!)) * 1000,
  );
  const cost = (id: string, label: string, name: string) =>
    figure(`samples.${id}`, label, 'CPU s/GB', 'ours', of(name));
  const beside = (id: string, label: string, name: string) =>
    proportion(`samples.${id}`, label, 'the file alone', 'CPU s/GB', of(`${name} with samples`), of(name));
  return {
    id: 'samples',
    title: 'Samples',
    method:
      'CPU time of this process for uploads that the engine copies, parses and hashes, with and without their samples. The wave file has 32 MiB and 24 bits. The FLAC file has linear prediction of order 8, blocks of 4,096 samples and an MD5.',
    figures: [
      cost('one', 'a wave file with its samples', 'one with samples'),
      cost('four', 'four wave files with their samples', 'four with samples'),
      cost('native', 'four wave files with their samples, native', 'native with samples'),
      cost('flac', 'a FLAC file with its samples', 'flac with samples'),
      figure('samples.decoded', 'FLAC, decoded and hashed, of one CPU', 'MB/s', 'ours', decoding),
    ],
    comparisons: [
      beside('one.cpu', 'a wave file with its samples, CPU', 'one'),
      beside('four.cpu', 'four wave files with their samples, CPU', 'four'),
      beside('native.cpu', 'four wave files with their samples, native, CPU', 'native'),
      beside('flac.cpu', 'a FLAC file with its samples, CPU', 'flac'),
    ],
    notes: [],
  };
}
