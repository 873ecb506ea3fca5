import { createHash } from 'node:crypto';
import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js';
import { createSHA256 } from 'hash-wasm';
import type { Lanes } from '../../src/core/engine/core.js';
import { createAudioEngine } from '../../src/core/engine/create-engine.js';
import { SLAB_BYTES } from '../../src/core/engine/ingest.js';
import type { LaneTest } from '../../src/core/engine/lane-test.js';
import { describeMachine, SHA_MASK } from '../machine.js';
import {
  type Comparison,
  figure,
  interleave,
  type Measure,
  type Run,
  ratio,
  type Section,
} from '../measure.js';
import { Child } from '../service/child.js';
import type { HashProcess } from './hash-process.js';
import { type HashRun, hashSlabs, Kernel, slabOrder } from './kernel.js';
import { hashWithNode } from './node-hash.js';

const CHUNK_BYTES = 64 * 1024;

export const hash: Measure = { name: 'hash', run: measureHash };

async function measureHash(run: Run): Promise<Section> {
  const slabs = hashSlabs();
  const count = run.scale.hashSlabs;
  const kernel = await Kernel.load();
  const wasm = await createSHA256();
  const engine = createAudioEngine({ kind: 'native' });
  await engine.start();
  const masked = new Child<HashProcess>(new URL('./hash-process.js', import.meta.url), {
    env: { ...process.env, OPENSSL_ia32cap: SHA_MASK },
  });

  const merging = new Child<HashProcess>(new URL('./hash-process.js', import.meta.url));
  const laneTest = await merging.call('testLanes');
  const allowsEight = laneTest.lanes === 8;
  const eight = Array.from({ length: 8 }, (_, lane) => digestOf(slabs, lane, count / 8, 8));

  const one = [digestOf(slabs, undefined, count)];
  const four = [0, 1, 2, 3].map((lane) => digestOf(slabs, lane, count / 4));
  const checked = (
    name: string,
    expected: readonly string[],
    contender: () => HashRun | Promise<HashRun>,
  ) => ({
    name,
    once: async () => {
      const { megabytesPerSecond, digests } = await contender();
      if (digests.join() !== expected.join())
        run.wrong(`hash: ${name} gave ${digests.join()}, expected ${expected.join()}`);
      return megabytesPerSecond;
    },
  });
  try {
    const speeds = await interleave(run, 'hash', run.scale.rounds, [
      checked('hash-wasm', one, () =>
        timed(count, () => {
          wasm.init();
          for (const slab of slabOrder(undefined, count)) wasm.update(slabs[slab]!);
          return wasm.digest('hex');
        }),
      ),
      checked('noble', one, () =>
        timed(count, () => {
          const stream = nobleSha256.create();
          for (const slab of slabOrder(undefined, count)) stream.update(slabs[slab]!);
          return Buffer.from(stream.digest()).toString('hex');
        }),
      ),
      checked('one stream', one, () => kernel.single(count)),
      checked('four lanes', four, () => kernel.lanes(count)),
      ...(allowsEight ? [checked('eight lanes', eight, () => merging.call('eightLanes', count))] : []),
      checked('node:crypto', one, () => hashWithNode(slabs, count)),
      checked('node:crypto, SHA masked', one, () => masked.call('hash', count)),
      checked('native engine', one, () =>
        timed(count, async () => {
          const ingest = engine.open('bench');
          for (const slab of slabOrder(undefined, count)) {
            for (let at = 0; at < SLAB_BYTES; at += CHUNK_BYTES)
              await ingest.write(slabs[slab]!.subarray(at, at + CHUNK_BYTES));
          }
          return (await ingest.end()).sha256;
        }),
      ),
    ]);
    return report(speeds, laneTest);
  } finally {
    await engine.stop();
    await masked.stop();
    await merging.stop();
  }
}

function report(speeds: ReadonlyMap<string, readonly number[]>, laneTest: LaneTest): Section {
  const of = (name: string): readonly number[] => speeds.get(name)!;
  const single = of('one stream');
  const lanes = of('four lanes');
  const eight = speeds.get('eight lanes');
  const { shaInstructions } = describeMachine();
  return {
    id: 'hash',
    title: 'Hash',
    method:
      'SHA-256 of slabs that lie in memory, on one thread. The core is called as its worker calls it, parsing included; the four lanes are the sum of four streams. Every digest is compared with node:crypto.',
    figures: [
      figure('hash.lanes', 'four lanes, sum', 'MB/s', 'ours', lanes),
      ...(eight === undefined ? [] : [figure('hash.eight', 'eight lanes, sum', 'MB/s', 'ours', eight)]),
      figure('hash.single', 'one stream', 'MB/s', 'ours', single),
      figure('hash.native', 'native engine (copy, parse, node:crypto)', 'MB/s', 'ours', of('native engine')),
      figure('hash.node', 'node:crypto', 'MB/s', 'baseline', of('node:crypto')),
      figure(
        'hash.masked',
        'node:crypto, SHA instructions masked',
        'MB/s',
        'baseline',
        of('node:crypto, SHA masked'),
      ),
      figure('hash.hash-wasm', 'hash-wasm', 'MB/s', 'baseline', of('hash-wasm')),
      figure('hash.noble', '@noble/hashes', 'MB/s', 'baseline', of('noble')),
    ],
    comparisons: [
      ratio('hash.single/hash-wasm', 'one stream', 'hash-wasm', 'MB/s', single, of('hash-wasm')),
      ratio('hash.single/node', 'one stream', 'node:crypto', 'MB/s', single, of('node:crypto')),
      ratio(
        'hash.single/masked',
        'one stream',
        'node:crypto, SHA masked',
        'MB/s',
        single,
        of('node:crypto, SHA masked'),
      ),
      ratio('hash.lanes/hash-wasm', 'four lanes', 'hash-wasm', 'MB/s', lanes, of('hash-wasm')),
      ratio('hash.lanes/noble', 'four lanes', '@noble/hashes', 'MB/s', lanes, of('noble')),
      ratio('hash.lanes/node', 'four lanes', 'node:crypto', 'MB/s', lanes, of('node:crypto')),
      ratio(
        'hash.lanes/masked',
        'four lanes',
        'node:crypto, SHA masked',
        'MB/s',
        lanes,
        of('node:crypto, SHA masked'),
      ),
      ...(eight === undefined ? [] : compareEight(eight, of)),
      ratio(
        'hash.native/node',
        'native engine',
        'node:crypto',
        'MB/s',
        of('native engine'),
        of('node:crypto'),
      ),
    ],
    notes: [
      `The test of the lanes, as a worker makes it at its start with TAKEMARK_EIGHT_LANES=on: ${laneTest.outcome}, ${laneTest.gain.toFixed(2)} times four lanes. Eight lanes are measured only where they pass.`,
      shaInstructions === false
        ? 'No SHA instructions are used here, so masking them changes nothing: both node:crypto figures are its AVX2 code, and the lanes beat it. With SHA instructions node:crypto alone does about 1,580 MB/s, which no WASM reaches.'
        : shaInstructions === true
          ? 'This processor has SHA instructions: node:crypto needs 1.7 to 2 times less CPU than the lanes here. Without them the lanes win. TAKEMARK_ENGINE=native is the choice for hosts where that pays.'
          : 'Whether this processor has SHA instructions is not known; where masking makes node:crypto slower, it has.',
    ],
  };
}

function compareEight(eight: readonly number[], of: (name: string) => readonly number[]): Comparison[] {
  return [
    ratio('hash.eight/lanes', 'eight lanes', 'four lanes', 'MB/s', eight, of('four lanes')),
    ratio('hash.eight/hash-wasm', 'eight lanes', 'hash-wasm', 'MB/s', eight, of('hash-wasm')),
    ratio('hash.eight/node', 'eight lanes', 'node:crypto', 'MB/s', eight, of('node:crypto')),
    ratio(
      'hash.eight/masked',
      'eight lanes',
      'node:crypto, SHA masked',
      'MB/s',
      eight,
      of('node:crypto, SHA masked'),
    ),
  ];
}

async function timed(slabs: number, digest: () => string | Promise<string>): Promise<HashRun> {
  const start = performance.now();
  const result = await digest();
  const seconds = (performance.now() - start) / 1000;
  return { megabytesPerSecond: (slabs * SLAB_BYTES) / seconds / 1e6, digests: [result] };
}

function digestOf(
  slabs: readonly Uint8Array[],
  lane: number | undefined,
  count: number,
  lanes: Lanes = 4,
): string {
  const hash = createHash('sha256');
  for (const slab of slabOrder(lane, count, lanes)) hash.update(slabs[slab]!);
  return hash.digest('hex');
}
