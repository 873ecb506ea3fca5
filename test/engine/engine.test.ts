import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Measurement } from '../../src/core/domain/audio.js';
import { DomainError } from '../../src/core/domain/errors.js';
import { BlockAllocator } from '../../src/core/engine/blocks.js';
import { createCoreMemory, loadCore } from '../../src/core/engine/core.js';
import {
  completeOptions,
  createAudioEngine,
  type EngineOptions,
} from '../../src/core/engine/create-engine.js';
import { DecoderPlaces, mayBeFlac } from '../../src/core/engine/decoder-places.js';
import { SLAB_BYTES } from '../../src/core/engine/ingest.js';
import { LANES } from '../../src/core/engine/scheduler.js';
import { WorkerEngine } from '../../src/core/engine/worker-engine.js';
import { WorkerPool } from '../../src/core/engine/worker-pool.js';
import type { AudioEngine, AudioIngest, Displacement } from '../../src/core/ports/audio-engine.js';
import { flacFile } from '../fixtures/flac.js';
import { collectGarbage } from '../fixtures/garbage.js';
import { extensibleWave, samplesDigest, someSamples } from '../fixtures/samples.js';
import { sized } from '../fixtures/sampling.js';
import { until } from '../fixtures/until.js';
import { chunk, fmtChunk, id3Tag, noise, riff } from '../fixtures/wav.js';

const MIB = 1024 * 1024;

/** Returns random numbers that the seed determines. */
function random(seed: number): (below: number) => number {
  let x = seed | 0 || 1;
  return (below) => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) % below;
  };
}

interface Sample {
  readonly file: Buffer;
  readonly sha256: string;
  readonly bindingSha256?: string;
  readonly credential?: Buffer;
}

const sha256 = (...parts: Uint8Array[]): string =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex');

function opaque(bytes: number, seed: number): Sample {
  const file = noise(bytes, seed);
  return { file, sha256: sha256(file) };
}

/** Returns a WAV with a credential of `credentialBytes` at its end. */
function credentialed(audioBytes: number, credentialBytes: number, seed: number): Sample {
  const credential = noise(credentialBytes, seed + 1);
  const file = riff([
    fmtChunk(),
    chunk({ id: 'data', data: noise(audioBytes, seed) }),
    chunk({ id: 'C2PA', data: credential }),
  ]);
  const at = 12 + 24 + 8 + audioBytes + (audioBytes % 2);
  return {
    file,
    sha256: sha256(file),
    bindingSha256: sha256(file.subarray(0, at), file.subarray(at + 8 + credentialBytes)),
    credential,
  };
}

function sample(next: (below: number) => number): Sample {
  const seed = next(1_000_000) + 1;
  const bytes = [next(200), next(5000), next(300_000), next(3 * MIB)][next(4)] ?? 0;
  return next(2) === 0
    ? opaque(bytes, seed)
    : credentialed(bytes, next(8) === 0 ? next(MIB) : next(4000), seed);
}

async function sendAll(ingest: AudioIngest, file: Uint8Array): Promise<Measurement> {
  await ingest.write(file);
  return ingest.end();
}

async function send(
  ingest: AudioIngest,
  file: Uint8Array,
  next: (below: number) => number,
  largest = 64 * 1024,
): Promise<Measurement> {
  for (let at = 0; at < file.length; ) {
    // The test overwrites this buffer after the write, so the engine must have copied it.
    const part = Uint8Array.from(file.subarray(at, at + 1 + next(largest)));
    await ingest.write(part);
    at += part.length;
    part.fill(0xee);
    if (next(8) === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return ingest.end();
}

function check(test: Test, measured: Measurement, expected: Sample, name: string): void {
  test.equal(measured.bytes, expected.file.length, `${name}: bytes`);
  test.equal(measured.sha256, expected.sha256, `${name}: digest`);
  test.equal(measured.bindingSha256, expected.bindingSha256, `${name}: binding digest`);
  test.ok(
    expected.credential === undefined
      ? measured.credential === undefined
      : expected.credential.equals(measured.credential?.data ?? noise(1)),
    `${name}: credential`,
  );
}

/** Returns the DomainError that `act` throws or rejects with. */
async function refusal(act: () => unknown): Promise<DomainError> {
  try {
    await act();
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

async function started(test: Test, options: EngineOptions): Promise<AudioEngine> {
  const engine = createAudioEngine(options);
  await engine.start();
  test.teardown(() => engine.stop());
  return engine;
}

async function startedWorkers(
  test: Test,
  options: Omit<EngineOptions, 'kind'> & { readonly kind?: EngineOptions['kind'] },
): Promise<WorkerEngine> {
  const engine = new WorkerEngine(completeOptions({ kind: 'wasm', ...options }));
  await engine.start();
  test.teardown(() => engine.stop());
  return engine;
}

/** Returns the innermost cause of an error. */
function innermost(error: Error): Error {
  return error.cause instanceof Error ? innermost(error.cause) : error;
}

/** A clock that a test moves. At each tick exactly one beat has passed. */
class TickedClock {
  #now = 0;
  #beats = 0;
  readonly #beatMs: number;
  readonly options = {
    tickMs: 10,
    now: () => {
      if (this.#beats > 0) {
        this.#beats -= 1;
        this.#now += this.#beatMs;
      }
      return this.#now;
    },
  };

  constructor(beatMs = 100) {
    this.#beatMs = beatMs;
  }

  /** Waits for this many beats, and calls `each` between them. */
  async run(beats: number, each: () => Promise<void>): Promise<void> {
    for (let i = 0; i < beats; i += 1) {
      await each();
      this.#beats = 1;
      await until(() => this.#beats === 0);
    }
  }
}

async function openWhenFree(engine: AudioEngine): Promise<AudioIngest> {
  for (;;) {
    try {
      return engine.open('a');
    } catch (error) {
      if (!(error instanceof DomainError) || error.reason !== 'engine_full') throw error;
      await sleep(5);
    }
  }
}

for (const kind of ['wasm', 'native'] as const) {
  t.test(`${kind} engine`, async (t) => {
    for (const [uploads, slabs, workers] of [
      [1, 4, 1],
      [3, 12, 2],
      [5, 3, 1],
      [17, 20, 1],
      [40, 60, 2],
      [12, 1, 2],
    ] as const) {
      await t.test(`${uploads} uploads through ${slabs} slabs and ${workers} workers`, async (t) => {
        const engine = await started(t, { kind, workers, slabs, maxUploads: uploads });
        const next = random(uploads * 7 + slabs);
        const samples = Array.from({ length: uploads }, () => sample(next));
        const measured = await Promise.all(
          samples.map((one, i) =>
            send(
              engine.open('a'),
              one.file,
              random(i + 1),
              [1, 64 * 1024, 200_000, 2 * MIB][one.file.length < 5000 ? i % 4 : 1 + (i % 3)],
            ),
          ),
        );
        for (const [i, one] of samples.entries()) check(t, measured[i]!, one, `upload ${i}`);
        t.equal(engine.stats().uploadsInFlight, 0);
        t.equal(engine.stats().slabsInUse, 0);
        t.equal(
          engine.stats().bytes,
          samples.reduce((sum, { file }) => sum + file.length, 0),
        );
      });
    }

    await t.test('an empty upload is measured as an empty file', async (t) => {
      const engine = await started(t, { kind, workers: 1, maxUploads: 2 });
      const nothing = engine.open('a');
      check(t, await nothing.end(), opaque(0, 1), 'no write');
      nothing.abort();
      const empty = engine.open('a');
      t.equal(empty.write(new Uint8Array(0)), undefined);
      check(t, await empty.end(), opaque(0, 1), 'an empty write');
      t.equal(engine.stats().uploadsInFlight, 0);
    });

    await t.test(
      'the samples are hashed when the opener asks for them, beside uploads that do not',
      async (t) => {
        const engine = await started(t, { kind, workers: 2, slabs: 8, maxUploads: 8 });
        const formats = [
          { bits: 16, channels: 2, rate: 44_100 },
          { bits: 24, channels: 1, rate: 96_000 },
          { bits: 20, channels: 3, rate: 48_000 },
        ];
        await Promise.all(
          [...formats, ...formats].map(async (format, i) => {
            const samples = someSamples(format.channels * 40_000, format.bits, 1 + i);
            const file = extensibleWave(format, i % 3 === 2 ? 4 : format.bits / 8, samples);
            const asked = i < 5;
            const measured = await send(engine.open('a', { samples: asked }), file, random(1 + i));
            const expected = asked ? { sha256: samplesDigest(format, samples) } : undefined;
            t.strictSame(measured.samples, expected);
            t.equal(measured.sha256, sha256(file));
          }),
        );
        t.strictSame((await sendAll(engine.open('a', { samples: true }), noise(50))).samples, {
          reason: 'container_unsupported',
        });
        t.strictSame((await engine.open('a', { samples: true }).end()).samples, {
          reason: 'container_unsupported',
        });
      },
    );

    await t.test('a FLAC upload gets a decoder while one is free, and is not refused without', async (t) => {
      const engine = await started(t, { kind, workers: 1, slabs: 8, maxUploads: 8, decoders: 1 });
      const format = { bits: 16, channels: 2, rate: 44_100 };
      const samples = someSamples(200, 16);
      const channels = [0, 1].map((channel) => samples.filter((_, i) => i % 2 === channel));
      const frames = [{ channels, subframe: { kind: 'verbatim' } as const }];
      // Padding, so that the decoder is lent before the file ends.
      const metadata = [[1, Buffer.alloc(SLAB_BYTES)]] as const;
      const file = flacFile({ format, frames, metadata });
      const expected = { sha256: samplesDigest(format, samples) };
      const holder = engine.open('a', { samples: true });
      await holder.write(file.subarray(0, SLAB_BYTES));
      const second = await sendAll(engine.open('b', { samples: true }), file);
      t.strictSame(second.samples, { reason: 'decoder_busy' });
      t.equal(second.sha256, sha256(file));
      await holder.write(file.subarray(SLAB_BYTES));
      t.strictSame((await holder.end()).samples, expected);
      const tagged = Buffer.concat([id3Tag(), noise(100)]);
      t.strictSame((await sendAll(engine.open('b', { samples: true }), tagged)).samples, {
        reason: 'container_unsupported',
      });
      const aborted = engine.open('b', { samples: true });
      await aborted.write(file.subarray(0, SLAB_BYTES));
      aborted.abort();
      await until(() => engine.stats().uploadsInFlight === 0);
      const last = await send(engine.open('b', { samples: true }), file, random(3));
      t.strictSame(last.samples, expected);
    });

    await t.test('a file of few bytes and very many samples is decoded in many tasks', async (t) => {
      const engine = await started(t, { kind, workers: 1, slabs: 8, maxUploads: 8, decoders: 2 });
      const format = { bits: 16, channels: 5, rate: 48_000 };
      const channels = Array.from({ length: 5 }, () => Array.from({ length: 65_535 }, () => 5n));
      const frames = Array.from({ length: 2 }, () => ({ channels, subframe: { kind: 'constant' } as const }));
      const dense = flacFile({ format, frames });
      const other = noise(3 * SLAB_BYTES);
      const [measured, plain] = await Promise.all([
        sendAll(engine.open('a', { samples: true }), dense),
        sendAll(engine.open('b', { samples: true }), other),
      ]);
      const samples = frames.flatMap(() => Array.from({ length: 65_535 * 5 }, () => 5n));
      t.strictSame(measured.samples, { sha256: samplesDigest(format, samples) });
      t.equal(measured.sha256, sha256(dense));
      t.equal(plain.sha256, sha256(other));
      t.ok(engine.stats().lanes >= 2 + 3, 'each frame has a turn of its own');
      t.equal(engine.stats().slabsInUse, 0);
    });

    await t.test('a credential is found when a write splits its header', async (t) => {
      const engine = await started(t, { kind, workers: 1, maxUploads: 2 });
      const one = credentialed(51, 33, 5);
      for (let cut = 1; cut < one.file.length; cut += 1) {
        const ingest = engine.open('a');
        await ingest.write(one.file.subarray(0, cut));
        await ingest.write(one.file.subarray(cut));
        const measured = await ingest.end();
        if (measured.bindingSha256 !== one.bindingSha256 || measured.sha256 !== one.sha256)
          t.fail(`cut at ${cut}`);
      }
      const ingest = engine.open('a');
      for (const byte of one.file) await ingest.write(Uint8Array.of(byte));
      check(t, await ingest.end(), one, 'byte by byte');
    });

    await t.test('aborts do not disturb other uploads', async (t) => {
      const engine = await started(t, { kind, workers: 1, slabs: 9, maxUploads: 24 });
      const next = random(99);
      const uploads = Array.from({ length: 60 }, async (_, i) => {
        const one = sample(next);
        const ingest = await openWhenFree(engine);
        if (i % 3 !== 0) return check(t, await send(ingest, one.file, random(i + 1)), one, `upload ${i}`);
        const sending = send(ingest, one.file, random(i + 1)).catch((error: unknown) => error);
        await sleep(next(30));
        ingest.abort();
        ingest.abort();
        const outcome = await sending;
        if (outcome instanceof DomainError) {
          t.equal(outcome.reason, 'upload_aborted');
          t.equal((await refusal(() => ingest.write(Uint8Array.of(1)))).reason, 'upload_aborted');
        }
        t.notOk(ingest.signal.aborted, 'the caller knows of its own abort');
      });
      await Promise.all(uploads);
      await until(() => engine.stats().uploadsInFlight === 0);
      t.equal(engine.stats().slabsInUse, 0);
    });

    await t.test('a full engine refuses', async (t) => {
      const engine = await started(t, { kind, workers: 1, maxUploads: 2 });
      const first = engine.open('a');
      engine.open('a').abort();
      const second = engine.open('a');
      const error = await refusal(() => engine.open('a'));
      t.match(error, { code: 'unavailable', reason: 'engine_full' });
      t.ok((error.retryAfterSeconds ?? 0) > 0);
      first.abort();
      engine.open('a').abort();
      check(t, await send(second, noise(1000), random(1)), opaque(1000, 1), 'the one in flight');
    });

    await t.test('an owner below its share gets the place of the slowest upload of one above', async (t) => {
      const clock = new TickedClock();
      const displaced: Displacement[] = [];
      const engine = await started(t, {
        kind,
        workers: 1,
        maxUploads: 6,
        ...clock.options,
        observer: { fault: () => undefined, displaced: (reason) => displaced.push(reason) },
      });
      const greedy = Array.from({ length: 6 }, () => engine.open('greedy'));
      const rates = [5, 4, 1, 6, 2, 7];
      const send = (ingests: readonly AudioIngest[]) => async () =>
        void (await Promise.all(
          ingests.map(async (ingest, i) => ingest.signal.aborted || ingest.write(noise(rates[i]! * 1000))),
        ));
      await clock.run(20, send(greedy));
      const one = opaque(30_000, 5);
      const modest = engine.open('modest');
      t.ok(greedy[2]!.signal.aborted, 'the slowest goes');
      t.match(greedy[2]!.signal.reason, { code: 'unavailable', reason: 'engine_full' });
      t.ok(greedy[2]!.signal.reason.retryAfterSeconds > 0);
      t.match(await refusal(() => greedy[2]!.write(noise(1))), { reason: 'engine_full' });
      t.match(
        await refusal(() => engine.open('greedy')),
        { reason: 'engine_full' },
        'and cannot push itself in again',
      );
      const others = [engine.open('modest'), engine.open('modest')];
      t.strictSame(
        greedy.map(({ signal }) => signal.aborted),
        [false, true, true, false, true, false],
        'then the next slowest, until both have half',
      );
      t.match(
        await refusal(() => engine.open('modest')),
        { reason: 'engine_full' },
        'an owner beyond its share displaces no upload that sends',
      );
      const third = engine.open('third');
      t.equal(
        [...greedy, modest, ...others].filter(({ signal }) => signal.aborted).length,
        4,
        'a third one makes the shares smaller',
      );
      t.strictSame(displaced, Array(4).fill('upload_over_share'));
      check(t, await sendAll(third, one.file), one, 'the third');
      for (const ingest of [...greedy, modest, ...others]) ingest.abort();
      await until(() => engine.stats().uploadsInFlight === 0);
      t.equal(engine.stats().slabsInUse, 0);
    });

    await t.test('large uploads share half of the places, and others have the rest', async (t) => {
      const clock = new TickedClock();
      const displaced: Displacement[] = [];
      const engine = await started(t, {
        kind,
        workers: 1,
        maxUploads: 8,
        ...clock.options,
        observer: { fault: () => undefined, displaced: (reason) => displaced.push(reason) },
      });
      const large = Array.from({ length: 4 }, () => engine.open('greedy', { size: 'large' }));
      t.match(await refusal(() => engine.open('greedy', { size: 'large' })), { reason: 'engine_full' });
      const rates = [3, 1, 2, 4];
      await clock.run(
        20,
        async () => void (await Promise.all(large.map((ingest, i) => ingest.write(noise(rates[i]! * 1000))))),
      );
      const modest = engine.open('modest', { size: 'large' });
      t.strictSame(
        large.map(({ signal }) => signal.aborted),
        [false, true, false, false],
        'the slowest goes for a partner below its share',
      );
      const small = Array.from({ length: 4 }, () => engine.open('small'));
      t.strictSame(displaced, ['upload_over_share'], 'small files found places without displacing any');
      for (const ingest of [...large, modest, ...small]) ingest.abort();
      const again = Array.from({ length: 4 }, () => engine.open('greedy', { size: 'large' }));
      t.equal(again.length, 4, 'ended uploads gave their places back');
      for (const ingest of again) ingest.abort();
    });

    await t.test('a stalled upload loses its place when places are scarce, and not before', async (t) => {
      const clock = new TickedClock();
      const displaced: Displacement[] = [];
      const engine = await started(t, {
        kind,
        workers: 1,
        maxUploads: 3,
        ...clock.options,
        observer: { fault: () => undefined, displaced: (reason) => displaced.push(reason) },
      });
      const still = engine.open('a');
      await still.write(noise(4));
      const moving = engine.open('b');
      await clock.run(50, async () => void (await moving.write(noise(100))));
      t.notOk(still.signal.aborted, 'while there is room it stays');
      const third = engine.open('c');
      t.notOk(still.signal.aborted);
      const fourth = engine.open('d');
      t.ok(still.signal.aborted, 'the next upload gets its place');
      t.match(await refusal(() => still.end()), { code: 'unavailable', reason: 'engine_full' });
      t.match(
        await refusal(() => engine.open('e')),
        { reason: 'engine_full' },
        'those that send keep theirs',
      );
      t.strictSame(displaced, ['upload_stalled']);
      for (const ingest of [moving, third, fourth]) ingest.abort();
    });

    await t.test('while places are free no rate is too low for the engine', async (t) => {
      const clock = new TickedClock(1000);
      const engine = await started(t, { kind, workers: 1, maxUploads: 2, ...clock.options });
      const slow = engine.open('a');
      // 35 seconds at 8 KiB/s.
      await clock.run(35, async () => void (await slow.write(noise(8190))));
      t.notOk(slow.signal.aborted);
      t.equal((await slow.end()).bytes, 35 * 8190);
    });

    await t.test('stop lets admitted uploads finish', async (t) => {
      const engine = createAudioEngine({ kind, workers: 1, maxUploads: 4 });
      t.throws(() => engine.open('a'), { message: 'the audio engine has not started' });
      await engine.start();
      const one = opaque(2 * MIB + 17, 3);
      const ingest = engine.open('a');
      await ingest.write(one.file.subarray(0, 5));
      const stopped = engine.stop();
      t.equal(await Promise.race([stopped.then(() => 'stopped'), sleep(50, 'draining')]), 'draining');
      t.match(await refusal(() => engine.open('a')), { code: 'unavailable', reason: 'shutting_down' });
      check(t, await send({ ...bound(ingest) }, one.file.subarray(5), random(1)), one, 'admitted');
      await stopped;
      await engine.stop();
      const unused = createAudioEngine({ kind });
      await unused.stop();
    });
  });
}

t.test('an owner below its share is never refused when others hold everything', async (t) => {
  const next = random(7);
  for (let round = 0; round < sized(40, 10); round += 1) {
    const max = 2 + next(20);
    const engine = await started(t, { kind: 'native', maxUploads: max, now: () => 0 });
    const held = new Map<string, AudioIngest[]>();
    for (let i = 0; i < 8 * max; i += 1) {
      const owner = `owner ${next(1 + next(6))}`;
      const live = [...held]
        .map(([name, ingests]) => [name, ingests.filter(({ signal }) => !signal.aborted)] as const)
        .filter(([, ingests]) => ingests.length > 0);
      const own = live.find(([name]) => name === owner)?.[1] ?? [];
      const share = Math.floor(max / (live.length + (own.length === 0 ? 1 : 0)));
      try {
        held.set(owner, [...own, engine.open(owner)]);
      } catch (error) {
        if (!(error instanceof DomainError)) throw error;
        if (own.length < share) t.fail(`${own.length} of ${share}, refused`);
      }
      for (const [name, ingests] of live) {
        const left = ingests.filter(({ signal }) => !signal.aborted).length;
        if (left < ingests.length && ingests.length <= share)
          t.fail(`${name} lost one of ${ingests.length}, its share being ${share}`);
      }
    }
    t.ok(engine.stats().uploadsInFlight <= max);
    for (const ingests of held.values()) for (const ingest of ingests) ingest.abort();
  }
});

function bound(ingest: AudioIngest): AudioIngest {
  return {
    signal: ingest.signal,
    write: (part) => ingest.write(part),
    end: () => ingest.end(),
    abort: () => ingest.abort(),
  };
}

t.test('options out of range are refused', async (t) => {
  t.throws(() => createAudioEngine({ kind: 'wasm', workers: 0 }), RangeError);
  t.throws(() => createAudioEngine({ kind: 'wasm', slabs: 1.5 }), RangeError);
  t.throws(() => createAudioEngine({ kind: 'wasm', slabBytes: 1000 }), RangeError);
});

t.test('a file may be FLAC if it begins like FLAC or like a tag', async (t) => {
  for (const head of ['f', 'fLa', 'fLaC', 'fLaC and more', 'I', 'ID3', 'ID3 and more'])
    t.equal(mayBeFlac(Buffer.from(head)), true, head);
  for (const head of ['', 'F', 'fLaX', 'RIFF', 'IDX', 'OggS'])
    t.equal(mayBeFlac(Buffer.from(head)), false, head);
});

t.test('an owner gets a decoder while the owner has fewer than are free', async (t) => {
  const places = new DecoderPlaces(new BlockAllocator(0, 8, 5));
  const taken = ['a', 'a', 'a', 'a', 'b', 'b', 'c', 'd'].map((owner) => places.take(owner) !== undefined);
  t.strictSame(taken, [true, true, true, false, true, false, true, false]);
  t.equal(places.inUse, 5);
  places.give('a', 0);
  t.strictSame([places.take('a'), places.take('d')], [undefined, 0]);
  t.throws(() => places.give('a', 80));
});

t.test('a block is given back once', async (t) => {
  const blocks = new BlockAllocator(1000, 10, 2);
  t.strictSame([blocks.take(), blocks.take(), blocks.take()], [1000, 1010, undefined]);
  blocks.give(1010);
  t.throws(() => blocks.give(1010), { message: 'block 1010 is not in use' });
  t.throws(() => blocks.give(5), { message: 'block 5 is not in use' });
  t.equal(blocks.inUse, 1);
});

t.test('a refusal of the core does not count as a dead worker', async (t) => {
  const module = await loadCore();
  const memory = createCoreMemory(MIB);
  const deaths: unknown[] = [];
  const pool = new WorkerPool({
    workers: 1,
    input: { module, memory, testsLanes: false },
    idleScratch: 65_536,
    onDeath: (error) => deaths.push(error),
  });
  await pool.ready();
  await t.rejects(
    pool.run({
      scratch: 65_536,
      slices: [{ context: 131_072, address: 0, length: 1, first: true, last: false }],
      lanes: 4,
    }),
    {
      message: /^the audio core failed: Error: these contexts are finished/,
    },
  );
  await pool.run({ scratch: 65_536, slices: [], lanes: 4 });
  await pool.close();
  t.strictSame([deaths, pool.deaths], [[], 0]);
  const broken = new WorkerPool({
    workers: 2,
    input: { module: {} as WebAssembly.Module, memory, testsLanes: false },
    idleScratch: 65_536,
    onDeath: () => undefined,
  });
  await t.rejects(broken.ready(), { message: /^the audio core failed: TypeError/ });
  await broken.close();
});

for (const kind of ['wasm', 'native'] as const) {
  t.test(`a paused client holds no slab, ${kind}`, async (t) => {
    const engine = await startedWorkers(t, { kind, workers: 1, slabs: 4, maxUploads: 4, tickMs: 10 });
    const one = credentialed(70_000, 999, 8);
    const ingest = engine.open('a');
    await ingest.write(one.file.subarray(0, 30_000));
    t.equal(engine.stats().slabsInUse, 1);
    await until(() => engine.stats().slabsInUse === 0);
    t.equal(engine.stats().uploadsInFlight, 1);
    check(t, await send(ingest, one.file.subarray(30_000), random(1)), one, 'after the pause');
  });

  t.test(`the end comes with bytes or without, ${kind}`, async (t) => {
    const engine = await startedWorkers(t, { kind, workers: 2, slabs: 8, maxUploads: 8, tickMs: 10 });
    for (const length of [1, SLAB_BYTES - 1, SLAB_BYTES, SLAB_BYTES + 1, 3 * SLAB_BYTES]) {
      const one = opaque(length, length);
      check(t, await pour(engine, one.file), one, `${length} bytes`);
      const paused = engine.open('a');
      await paused.write(one.file);
      await until(() => engine.stats().slabsInUse === 0);
      check(t, await paused.end(), one, `${length} bytes, all of them hashed before the end`);
      const left = engine.open('a');
      await left.write(one.file);
      const ended = left.end();
      left.abort();
      t.equal((await refusal(() => ended)).reason, 'upload_aborted');
    }
    await until(() => engine.stats().uploadsInFlight === 0);
    t.equal(engine.stats().slabsInUse, 0);
  });
}

t.test('an upload is hashed when it has filled a slab of the chosen length', async (t) => {
  const engine = await startedWorkers(t, { kind: 'native', workers: 1, slabBytes: 65_536, tickMs: 10_000 });
  const one = opaque(65_537, 7);
  const ingest = engine.open('a');
  await ingest.write(one.file.subarray(0, 65_535));
  t.equal(engine.stats().tasks, 0);
  await ingest.write(one.file.subarray(65_535, 65_536));
  t.equal(engine.stats().tasks, 1);
  check(t, await send(ingest, one.file.subarray(65_536), random(1)), one, 'the whole file');
});

t.test('clients that trickle give way to one that waits for a slab', async (t) => {
  const engine = await startedWorkers(t, { workers: 1, slabs: 2, maxUploads: 4, tickMs: 10 });
  const slow = [engine.open('a'), engine.open('a')];
  let done = false;
  const trickle = (async () => {
    while (!done) {
      for (const ingest of slow) await ingest.write(Uint8Array.of(1));
      await sleep(1);
    }
  })();
  const one = opaque(5 * MIB, 9);
  check(t, await send(engine.open('a'), one.file, random(1)), one, 'the fast one');
  done = true;
  await trickle;
  for (const ingest of slow) ingest.abort();
  await until(() => engine.stats().slabsInUse === 0);
});

/** Writes as fast as the engine accepts. */
async function pour(engine: AudioEngine, file: Uint8Array, times = 1): Promise<Measurement> {
  const ingest = engine.open('a');
  for (let i = 0; i < times; i += 1) {
    for (let at = 0; at < file.length; at += 65_536) await ingest.write(file.subarray(at, at + 65_536));
  }
  return ingest.end();
}

t.test('fast uploads share their tasks', async (t) => {
  const engine = await startedWorkers(t, { workers: 1, slabs: 24, maxUploads: 8 });
  const one = opaque(16 * MIB, 11);
  for (const uploads of [4, 8]) {
    const before = engine.stats();
    const all = await Promise.all(Array.from({ length: uploads }, () => pour(engine, one.file)));
    t.ok(all.every((measured) => measured.sha256 === one.sha256));
    const { tasks, lanes } = engine.stats();
    const ratio = (lanes - before.lanes) / (tasks - before.tasks);
    t.ok(ratio > 3, `${uploads} uploads: ${ratio.toFixed(2)} lanes a task`);
  }
});

t.test('memory does not grow with the upload', async (t) => {
  const engine = await startedWorkers(t, { workers: 1, slabs: 12, maxUploads: 4 });
  const part = noise(MIB);
  await pour(engine, part, 16);
  collectGarbage();
  const before = process.memoryUsage().rss;
  const parts = sized(256, 64);
  await pour(engine, part, parts);
  collectGarbage();
  const grown = process.memoryUsage().rss - before;
  t.ok(grown < 24 * MIB, `grew by ${Math.round(grown / MIB)} MiB over ${parts} MiB`);
});

for (const kind of ['wasm', 'native'] as const) {
  t.test(`uploads of a worker that dies fail and all others are measured right, ${kind}`, async (t) => {
    const faults: unknown[] = [];
    const engine = await startedWorkers(t, {
      kind,
      workers: 2,
      slabs: 40,
      maxUploads: 16,
      observer: { fault: (_, error) => faults.push(error), displaced: () => undefined },
    });
    const next = random(4242);
    let right = 0;
    let failed = 0;
    let done = false;
    const causes = new Set<string>();
    const samples = Array.from({ length: 8 }, (_, i) =>
      i % 2 === 0 ? credentialed(next(4 * MIB), next(200_000), i + 1) : opaque(next(4 * MIB), i + 1),
    );
    const uploads = Array.from({ length: 16 }, async (_, slot) => {
      while (!done) {
        const one = samples[next(samples.length)]!;
        const ingest = engine.open('a');
        try {
          const measured = await send(ingest, one.file, random(slot + 1));
          if (measured.sha256 !== one.sha256 || measured.bindingSha256 !== one.bindingSha256)
            t.fail('a wrong digest');
          right += 1;
        } catch (error) {
          if (
            !(error instanceof DomainError) ||
            error.reason !== 'engine_failed' ||
            error.retryAfterSeconds !== 1
          )
            throw error;
          if (!ingest.signal.aborted || ingest.signal.reason !== error) t.fail('the signal says the same');
          causes.add(innermost(error).message);
          failed += 1;
        }
      }
    });
    let kills = 0;
    while (kills < sized(30, 8) || right < sized(30, 10) || failed < sized(10, 3)) {
      // The pause grows, because a machine that starts threads slowly would otherwise hash nothing.
      await sleep(next(120) * (1 + kills / 20));
      const victim = engine.threads[next(2)];
      if (victim !== undefined) {
        // Not awaited, because the next thread may end while this one's replacement starts.
        void victim.terminate();
        kills += 1;
      }
    }
    done = true;
    await Promise.all(uploads);
    t.comment(`${kills} kills: ${right} right, ${failed} failed`);
    t.strictSame(
      [...causes].filter(
        (cause) => !/^(worker exited with code: [01]|the state of the upload is gone)$/.test(cause),
      ),
      [],
      'no upload fails but for a thread that ended',
    );
    // A native worker holds the state of all its uploads. A wasm worker holds only the uploads of its two
    // tasks.
    if (kind === 'wasm')
      t.ok(failed <= 2 * LANES * kills, 'a worker takes no more than the lanes of its two tasks with it');
    t.ok(engine.stats().workerRestarts > 0 && faults.length >= engine.stats().workerRestarts);
    t.equal(engine.stats().slabsInUse, 0);
    t.equal(engine.stats().uploadsInFlight, 0);
    await until(() => engine.threads.length === 2);
    const after = credentialed(3 * MIB, 5000, 77);
    check(t, await send(engine.open('a'), after.file, random(3)), after, 'afterwards');
  });
}
