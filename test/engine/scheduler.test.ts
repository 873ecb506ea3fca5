import { createHash } from 'node:crypto';
import t, { type Test } from 'tap';
import type { Measurement } from '../../src/core/domain/audio.js';
import { DomainError } from '../../src/core/domain/errors.js';
import { BlockAllocator } from '../../src/core/engine/blocks.js';
import type { Lanes, Slice } from '../../src/core/engine/core.js';
import { DecoderPlaces } from '../../src/core/engine/decoder-places.js';
import { SLAB_BYTES, SLABS_PER_UPLOAD } from '../../src/core/engine/ingest.js';
import { LANES, MOST_LANES, Scheduler } from '../../src/core/engine/scheduler.js';
import type { TaskOutcome } from '../../src/core/engine/worker.js';
import type { AudioIngest, Displacement } from '../../src/core/ports/audio-engine.js';
import { ByteBudget } from '../../src/service/http/byte-budget.js';
import { noise } from '../fixtures/wav.js';

interface Options {
  readonly workers?: number;
  readonly maxQueue?: number;
  readonly maxUploads?: number;
  readonly slabs?: number;
  readonly lanes?: Lanes;
  /** The most bytes of credentials of all owners. */
  readonly memory?: number;
  /** Returns true if the upload of a task that ends has bytes that are not decoded. Its next task asks again. */
  readonly isPaused?: () => boolean;
}

/** A task that the scheduler has started and the test ends. */
interface StartedTask {
  readonly lanes: Lanes;
  readonly slices: readonly Slice[];
  /** Hashes the slices, or fails, and waits until the scheduler has seen it. */
  readonly end: (outcome?: Error | TaskOutcome) => Promise<void>;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A scheduler whose tasks end when the test says so. Each measurement has the digest of the slices. */
class UnderTest {
  readonly memory: Buffer;
  readonly slabs: BlockAllocator;
  readonly contexts: BlockAllocator;
  readonly scheduler: Scheduler;
  readonly tasks: StartedTask[] = [];
  readonly displaced: Displacement[] = [];
  readonly occupied: boolean[] = [];
  /** The most bytes of a credential in each slab. */
  credentialBytes = 0;
  readonly memoryOfOwners: ByteBudget;
  finishFault: Error | undefined;
  readonly #hashes = new Map<number, ReturnType<typeof createHash>>();
  readonly #test: Test;

  constructor(
    test: Test,
    {
      workers = 1,
      maxQueue = 1,
      maxUploads = 16,
      slabs = 8,
      lanes = 4,
      memory = Infinity,
      isPaused = () => false,
    }: Options = {},
  ) {
    this.#test = test;
    this.memoryOfOwners = new ByteBudget(memory);
    this.memory = Buffer.alloc(slabs * SLAB_BYTES);
    this.slabs = new BlockAllocator(0, SLAB_BYTES, slabs);
    const tasks = workers + maxQueue;
    this.contexts = new BlockAllocator(0, 1, maxUploads + tasks * MOST_LANES);
    this.scheduler = new Scheduler({
      groups: 1,
      worthwhile: LANES,
      lanes: () => lanes,
      endsInTask: false,
      workers,
      maxQueue,
      maxUploads,
      memory: this.memory,
      contexts: this.contexts,
      slabs: this.slabs,
      scratches: new BlockAllocator(0, 1, tasks),
      run: ({ slices, lanes }) => this.#run(slices, lanes),
      decoders: new DecoderPlaces(new BlockAllocator(0, 1, 1)),
      lendDecoder: () => undefined,
      needsDecoder: () => false,
      isPaused,
      begin: (context) => void this.#hashes.set(context, createHash('sha256')),
      credentialBytes: ({ length }) =>
        this.credentialBytes === 0 ? undefined : Buffer.alloc(Math.min(length, this.credentialBytes)),
      memoryOfOwners: this.memoryOfOwners,
      finish: ({ context }) => this.#finish(context),
      displaced: (reason) => this.displaced.push(reason),
      occupied: (any) => this.occupied.push(any),
    });
  }

  /** Returns the contexts of the slices of each running task. */
  get carried(): number[][] {
    return this.tasks.map(({ slices }) => slices.map(({ context }) => context));
  }

  /** Returns an upload with one full slab and nothing waiting. */
  full(owner = 'a'): AudioIngest {
    const ingest = this.scheduler.open(owner);
    if (ingest.write(Buffer.alloc(SLAB_BYTES)) !== undefined) throw new Error('there was no slab');
    return ingest;
  }

  /** Opens uploads, and then fills a slab of each. */
  fullTogether(count: number): readonly AudioIngest[] {
    const ingests = Array.from({ length: count }, () => this.scheduler.open('a'));
    for (const ingest of ingests)
      if (ingest.write(Buffer.alloc(SLAB_BYTES)) !== undefined) throw new Error('there was no slab');
    return ingests;
  }

  #run(slices: readonly Slice[], lanes: Lanes): Promise<TaskOutcome> {
    const bytes = slices.map((slice) => this.#digest(slice));
    if (new Set(slices.map(({ context }) => context)).size !== slices.length)
      this.#test.fail('two slices of one upload in one task');
    return new Promise((resolve, reject) => {
      const task: StartedTask = {
        slices,
        lanes,
        end: async (outcome = {}) => {
          this.tasks.splice(this.tasks.indexOf(task), 1);
          for (const [i, slice] of slices.entries()) {
            if (this.#digest(slice) !== bytes[i]) this.#test.fail('a slab was overwritten under its task');
            this.#hashes.get(slice.context)!.update(this.#bytes(slice));
          }
          if (outcome instanceof Error) reject(outcome);
          else resolve(outcome);
          await turn();
        },
      };
      this.tasks.push(task);
    });
  }

  #finish(context: number): Measurement {
    if (this.finishFault !== undefined) throw this.finishFault;
    const sha256 = this.#hashes.get(context)!.digest('hex');
    return { bytes: 0, sha256, container: 'unknown', chunks: [], chunkCount: 0, findings: [] };
  }

  #bytes({ address, length }: Slice): Buffer {
    return this.memory.subarray(address, address + length);
  }

  #digest(slice: Slice): string {
    return createHash('sha1').update(this.#bytes(slice)).digest('hex');
  }
}

/** Returns the current state of a promise. */
function watch(promise: Promise<unknown> | undefined): { state: 'pending' | 'done' | unknown } {
  const watched: { state: unknown } = { state: 'pending' };
  Promise.resolve(promise).then(
    () => (watched.state = 'done'),
    (error: unknown) => (watched.state = error),
  );
  return watched;
}

/** Matches a DomainError. */
const reason = (reason: string): Error => Object.assign(new Error(), { reason });

t.test('an idle pool takes every ready slab, and a busy one waits for four lanes', async (t) => {
  const under = new UnderTest(t, { workers: 2, maxQueue: 1, maxUploads: 40, slabs: 40 });
  // Contexts 0 to 8.
  for (let i = 0; i < 9; i += 1) under.scheduler.open('a');
  under.full();
  t.strictSame(under.carried, [[9]], 'an idle pool takes one alone');
  under.full();
  const aborted = under.full();
  under.full();
  aborted.abort();
  // Takes context 11 of the previous upload.
  under.full();
  t.equal(under.tasks.length, 1, 'while a task runs, three wait for a fourth');
  for (let i = 13; i <= 25; i += 1) under.full();
  t.strictSame(
    under.carried.slice(1),
    [
      [10, 12, 11, 13],
      [14, 15, 16, 17],
    ],
    'four at a time, the oldest first, up to the bound of the queue',
  );
  await under.tasks[1]!.end();
  t.strictSame(under.carried, [[9], [14, 15, 16, 17], [18, 19, 20, 21]]);
  await under.tasks[1]!.end();
  await under.tasks[1]!.end();
  t.strictSame(under.carried, [[9], [22, 23, 24, 25]]);
  under.full();
  t.equal(under.tasks.length, 2, 'a task still runs');
  await under.tasks[0]!.end();
  t.equal(under.tasks.length, 1, 'a task still runs');
  await under.tasks[0]!.end();
  t.strictSame(under.carried, [[26]], 'the pool was idle');
  t.strictSame([under.scheduler.tasks, under.scheduler.lanes], [6, 18]);
});

t.test(
  'with eight lanes a task that waits for a worker takes all other uploads, at most eight',
  async (t) => {
    const under = new UnderTest(t, { lanes: 8, maxUploads: 40, slabs: 40 });
    under.fullTogether(17);
    t.strictSame(
      under.carried,
      [[0], [1, 2, 3, 4, 5, 6, 7, 8]],
      'the idle pool takes the first alone, and eight wait for the worker',
    );
    await under.tasks[0]!.end();
    t.strictSame(under.carried, [
      [1, 2, 3, 4, 5, 6, 7, 8],
      [9, 10, 11, 12, 13, 14, 15, 16],
    ]);
    t.strictSame(
      under.tasks.map(({ lanes }) => lanes),
      [8, 8],
    );
  },
);

t.test('with eight lanes no task waits for an upload that another task carries', async (t) => {
  const under = new UnderTest(t, { lanes: 8, slabs: 20 });
  const uploads = under.fullTogether(6);
  t.strictSame(under.carried, [[0], [1, 2, 3, 4, 5]], 'five are all that are left');
  t.strictSame(
    under.tasks.map(({ lanes }) => lanes),
    [4, 8],
    'four or fewer are hashed in four lanes',
  );
  await under.tasks[0]!.end();
  void uploads[0]!.write(Buffer.alloc(SLAB_BYTES));
  t.equal(under.tasks.length, 1, 'one upload waits while a task runs, as with four lanes');
  await under.tasks[0]!.end();
  t.strictSame(under.carried, [[0]]);
});

t.test('with eight lanes an idle worker takes four uploads at once', async (t) => {
  const under = new UnderTest(t, { lanes: 8, workers: 2, slabs: 20 });
  for (let i = 0; i < 9; i += 1) under.scheduler.open('a');
  for (let i = 0; i < 5; i += 1) under.full();
  t.strictSame(under.carried, [[9], [10, 11, 12, 13]]);
});

t.test('with fewer than four uploads a free worker takes one, and the queue does not', async (t) => {
  const under = new UnderTest(t, { workers: 2, maxQueue: 1 });
  under.full();
  under.full();
  t.strictSame(under.carried, [[0], [1]]);
  const third = under.full();
  t.equal(under.tasks.length, 2);
  third.abort();
  await under.tasks[0]!.end();
  t.equal(under.tasks.length, 1);
});

t.test('an upload that goes lets a free worker take what waited for a fourth', async (t) => {
  for (const go of ['end', 'abort'] as const) {
    const under = new UnderTest(t, { workers: 2, maxQueue: 1 });
    const [gone] = [under.scheduler.open('a'), under.scheduler.open('a')];
    under.full();
    under.full();
    t.strictSame(under.carried, [[2]], 'four are open');
    await gone[go]();
    t.strictSame(under.carried, [[2], [3]], go);
  }
});

t.test('a task that fails ends its uploads and no other', async (t) => {
  const under = new UnderTest(t, { maxUploads: 8 });
  const first = under.full();
  const others = Array.from({ length: 4 }, () => under.full());
  const write = watch(others[0]!.write(Buffer.alloc(10)));
  const died = new Error('died');
  await under.tasks[1]!.end(died);
  for (const { signal } of others) t.match(signal.reason, { reason: 'engine_failed', cause: died });
  t.equal(write.state, 'done', 'it was copied before');
  t.throws(() => others[0]!.write(Buffer.alloc(1)), reason('engine_failed'));
  t.notOk(first.signal.aborted);
  const measured = first.end();
  await under.tasks[0]!.end();
  await measured;
  t.strictSame([under.slabs.inUse, under.contexts.inUse], [0, 0]);
});

t.test('an upload whose state went with a thread ends alone', async (t) => {
  const under = new UnderTest(t);
  under.full();
  const together = [under.full(), under.full(), under.full(), under.full()];
  await under.tasks[1]!.end({ digests: [undefined, 'gone', undefined, undefined] });
  t.strictSame(
    together.map(({ signal }) => signal.aborted),
    [false, true, false, false],
  );
  t.match(together[1]!.signal.reason, { code: 'unavailable', reason: 'engine_failed' });
  t.equal(under.slabs.inUse, 1, 'its slab is free as the others are');
});

t.test('a finish that fails gives the upload up and leaves the others alone', async (t) => {
  const under = new UnderTest(t);
  under.finishFault = new Error('not of this build');
  const upload = under.scheduler.open('a');
  await t.rejects(upload.end(), { reason: 'engine_failed', cause: under.finishFault });
  t.match(upload.signal.reason, { reason: 'engine_failed' });
  t.strictSame([under.contexts.inUse, under.scheduler.uploads], [0, 0]);
});

t.test('a slab in flight is given back when its task is done, not when the upload is aborted', async (t) => {
  const under = new UnderTest(t, { slabs: 2, maxUploads: 1 });
  const upload = under.full();
  await upload.write(Buffer.alloc(10));
  upload.abort();
  t.equal(under.slabs.inUse, 1, 'the slab that was being filled is free');
  t.equal(under.scheduler.uploads, 1);
  const next = under.scheduler.open('a');
  t.not(under.contexts.inUse, 1, 'the place is free, the context is not');
  await next.write(noise(SLAB_BYTES));
  await under.tasks[0]!.end();
  t.equal(under.contexts.inUse, 1);
  next.abort();
  await under.tasks[0]!.end();
  t.strictSame([under.slabs.inUse, under.contexts.inUse, under.scheduler.uploads], [0, 0, 0]);
  t.strictSame(under.occupied, [true, false]);
});

t.test(
  'a slab that comes free goes to the write whose upload holds the fewest, then to the oldest',
  async (t) => {
    const under = new UnderTest(t, { workers: 1, maxQueue: 0, slabs: 4, maxUploads: 8 });
    const carried = under.full();
    const rich = under.scheduler.open('a');
    t.equal(rich.write(Buffer.alloc(2 * SLAB_BYTES)), undefined, 'holds two');
    const other = under.full();
    const rest = watch(rich.write(Buffer.alloc(10)));
    const [poor, poorer] = [under.scheduler.open('a'), under.scheduler.open('a')];
    const first = watch(poor.write(Buffer.alloc(10)));
    const second = watch(poorer.write(Buffer.alloc(10)));
    const end = async (): Promise<void> => {
      await under.tasks[0]!.end();
      await turn();
    };
    await end();
    t.strictSame([rest.state, first.state, second.state], ['pending', 'done', 'pending'], 'one slab');
    await end();
    t.strictSame([rest.state, first.state, second.state], ['done', 'done', 'done'], 'two slabs');
    for (const ingest of [carried, rich, other, poor, poorer]) ingest.abort();
  },
);

t.test('an upload with bytes to decode lets the others have their turn, and keeps its slab', async (t) => {
  const pauses = [true, true, false];
  const under = new UnderTest(t, { workers: 1, maxQueue: 0, isPaused: () => pauses.shift() === true });
  const dense = under.full();
  const measured = watch(dense.end());
  const [{ context, address }] = under.tasks[0]!.slices as [Slice];
  const other = under.full();
  await under.tasks[0]!.end();
  const rest = { context, address, length: 0 };
  t.match(under.tasks[0]!.slices, [{ length: SLAB_BYTES }, rest], 'the other is first');
  await under.tasks[0]!.end();
  t.equal(under.slabs.inUse, 1, 'the one with which the other has paused');
  t.equal(measured.state, 'done');
  await under.tasks[0]!.end();
  t.equal(under.slabs.inUse, 0);
  other.abort();
  t.strictSame([under.contexts.inUse, under.scheduler.uploads], [0, 0]);
});

t.test('no upload holds more than three slabs, however much it writes', async (t) => {
  const under = new UnderTest(t, { slabs: 8 });
  const upload = under.scheduler.open('a');
  const write = watch(upload.write(Buffer.alloc(10 * SLAB_BYTES)));
  let rounds = 0;
  while (under.tasks.length > 0) {
    t.equal(under.slabs.inUse, Math.min(SLABS_PER_UPLOAD, 10 - rounds));
    await under.tasks[0]!.end();
    rounds += 1;
  }
  t.strictSame([rounds, write.state], [10, 'done']);
  t.equal(under.scheduler.bytes, 10 * SLAB_BYTES);
});

t.test('where every slab is being filled the fullest is hashed as it is', async (t) => {
  const under = new UnderTest(t, { slabs: 3 });
  for (const bytes of [10, 30, 20]) under.scheduler.open('a').write(Buffer.alloc(bytes));
  const write = watch(under.scheduler.open('a').write(Buffer.alloc(5)));
  t.strictSame(under.carried, [[1]]);
  await under.tasks[0]!.end();
  t.equal(write.state, 'done');
});

t.test('an abort of the upload that waits does not take a slab from the others', async (t) => {
  const under = new UnderTest(t, { slabs: 1, maxQueue: 0 });
  under.full();
  const [gone, stays] = [under.scheduler.open('a'), under.scheduler.open('a')];
  const lost = watch(gone.write(Buffer.alloc(5)));
  const write = watch(stays.write(Buffer.alloc(5)));
  gone.abort();
  await under.tasks[0]!.end();
  t.match(lost.state, { reason: 'upload_aborted' });
  t.equal(write.state, 'done');
});

t.test('backpressure is not held against the client', async (t) => {
  const under = new UnderTest(t, { slabs: 1, maxUploads: 1 });
  const upload = under.full('a');
  const write = watch(upload.write(Buffer.alloc(5)));
  const ticks = (): void => {
    for (let i = 0; i < 100; i += 1) under.scheduler.tick(100);
  };
  ticks();
  t.throws(() => under.scheduler.open('b'), reason('engine_full'), 'it waits for a slab');
  await under.tasks[0]!.end();
  t.equal(write.state, 'done');
  ticks();
  under.scheduler.open('b');
  t.ok(upload.signal.aborted, 'it is waited for');
  t.strictSame(under.displaced, ['upload_stalled']);
});

t.test('an upload fails when its owner holds too many bytes of credentials', async (t) => {
  const under = new UnderTest(t, { slabs: 8, memory: 1200 });
  under.credentialBytes = 300;
  const [first, second, third] = [under.full('a'), under.full('a'), under.full('a')];
  while (under.tasks.length > 0) await under.tasks[0]!.end();
  t.strictSame(
    [first, second, third].map(({ signal }) => signal.aborted),
    [false, false, true],
    'an owner may hold half of the memory',
  );
  t.match(third.signal.reason, { code: 'unavailable', reason: 'ingress_full', retryAfterSeconds: 2 });
  const other = under.full('b');
  while (under.tasks.length > 0) await under.tasks[0]!.end();
  t.notOk(other.signal.aborted, 'another owner has room');
  t.equal(under.memoryOfOwners.held, 900);
  first.abort();
  t.equal(under.memoryOfOwners.held, 600, 'an aborted upload holds nothing');
  await second.end();
  await other.end();
  t.equal(under.memoryOfOwners.held, 0, 'an upload that has ended holds nothing');
  t.equal(under.slabs.inUse, 0);
  t.equal(under.contexts.inUse, 0);
});

t.test('a listener of a displacement finds the place taken, and may make any call', async (t) => {
  const under = new UnderTest(t, { slabs: 2, maxUploads: 3 });
  const displaced = under.full('a');
  const other = under.full('a');
  const third = under.scheduler.open('a');
  const pending = watch(third.write(Buffer.alloc(5)));
  let within: AudioIngest | undefined;
  displaced.signal.addEventListener('abort', () => {
    t.throws(() => under.scheduler.open('a'), reason('engine_full'), "its place is the newcomer's");
    t.throws(() => displaced.write(Buffer.alloc(1)), reason('engine_full'));
    displaced.abort();
    other.abort();
    within = under.scheduler.open('c');
    t.equal(under.scheduler.uploads, 4, 'the displaced one waits for its slab in flight');
  });
  const newcomer = under.scheduler.open('b');
  t.ok(displaced.signal.aborted);
  t.notOk(newcomer.signal.aborted);
  const writes = [watch(newcomer.write(Buffer.alloc(5))), watch(within!.write(Buffer.alloc(5)))];
  for (let i = 0; i < 9 && under.tasks.length > 0; i += 1) await under.tasks[0]!.end();
  t.strictSame(
    [pending, ...writes].map(({ state }) => state),
    ['done', 'done', 'done'],
  );
  for (const ingest of [third, newcomer, within!]) ingest.abort();
  for (let i = 0; i < 9 && under.tasks.length > 0; i += 1) await under.tasks[0]!.end();
  t.strictSame([under.slabs.inUse, under.contexts.inUse, under.scheduler.uploads], [0, 0, 0]);
});

t.test('a failed task whose uploads abort and end each other gives everything back once', async (t) => {
  const under = new UnderTest(t, { maxQueue: 0, slabs: 8, maxUploads: 8 });
  under.full();
  const four = Array.from({ length: 4 }, () => under.full());
  const bystander = under.full();
  let ended: ReturnType<typeof watch> | undefined;
  for (const { signal } of four)
    signal.addEventListener('abort', () => {
      for (const ingest of four) ingest.abort();
      ended ??= watch(bystander.end());
      t.equal(under.scheduler.open('a').write(Buffer.alloc(SLAB_BYTES)), undefined);
    });
  await under.tasks[0]!.end();
  await under.tasks[0]!.end(new Error('died'));
  t.ok(four.every(({ signal }) => signal.aborted));
  for (let i = 0; i < 9 && under.tasks.length > 0; i += 1) await under.tasks[0]!.end();
  t.equal(ended?.state, 'done');
  t.equal(under.slabs.inUse, 0);
});

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

t.test('in any order of events everybody gets on and every digest is right', async (t) => {
  const chunk = noise(4 * SLAB_BYTES, 7);
  for (let seed = 1; seed <= 60; seed += 1) {
    const next = random(seed * 7919);
    const maxUploads = 1 + next(10);
    const slabs = 1 + next(9);
    const workers = 1 + next(3);
    const maxQueue = next(3);
    const isPaused = (): boolean => next(6) === 0;
    const under = new UnderTest(t, { workers, maxQueue, maxUploads, slabs, isPaused });
    const live = new Set<{
      readonly ingest: AudioIngest;
      readonly hash: ReturnType<typeof createHash>;
      busy: boolean;
    }>();
    let open = 0;
    const faults: string[] = [];
    const act = (upload: typeof live extends Set<infer U> ? U : never): void => {
      const known = (error: unknown): void => {
        live.delete(upload);
        if (!(error instanceof DomainError)) faults.push(String(error));
      };
      try {
        const kind = next(20);
        if (kind === 0) {
          live.delete(upload);
          upload.ingest.abort();
        } else if (kind <= 3) {
          upload.busy = true;
          open += 1;
          const expected = upload.hash.digest('hex');
          upload.ingest
            .end()
            .then(({ sha256 }) => {
              if (sha256 !== expected) faults.push('a wrong digest');
              live.delete(upload);
            }, known)
            .finally(() => (open -= 1));
        } else {
          const part = chunk.subarray(0, [1, 1000, SLAB_BYTES, next(chunk.length)][next(4)]);
          upload.hash.update(part);
          upload.busy = true;
          const written = upload.ingest.write(part);
          if (written === undefined) {
            upload.busy = false;
            return;
          }
          open += 1;
          written.then(() => (upload.busy = false), known).finally(() => (open -= 1));
        }
      } catch (error) {
        known(error);
      }
    };
    const step = async (): Promise<void> => {
      const kind = next(10);
      const idle = [...live].filter(({ busy }) => !busy);
      if (kind <= 1) {
        try {
          const ingest = under.scheduler.open(`owner ${next(3)}`);
          const upload = { ingest, hash: createHash('sha256'), busy: false };
          // A listener that acts at once, while the end of its upload is still in progress.
          ingest.signal.addEventListener('abort', () => {
            const other = [...live].find(({ busy }) => !busy);
            if (other !== undefined) act(other);
          });
          live.add(upload);
        } catch (error) {
          if (!(error instanceof DomainError)) faults.push(String(error));
        }
      } else if (kind <= 6 && idle.length > 0) {
        act(idle[next(idle.length)]!);
      } else if (kind <= 7) {
        under.scheduler.tick(100);
      } else if (under.tasks.length > 0) {
        await under.tasks[next(under.tasks.length)]!.end(next(8) === 0 ? new Error('died') : undefined);
      }
      if (open > 0 && under.tasks.length === 0) {
        await turn();
        if (open > 0 && under.tasks.length === 0) faults.push('somebody waits and nothing runs');
      }
      if (under.tasks.length > workers + maxQueue) faults.push('too many tasks');
      if (under.displaced.length > 0 && under.scheduler.uploads > maxUploads + (workers + maxQueue) * LANES)
        faults.push('too many uploads');
    };
    for (let i = 0; i < 150; i += 1) await step();
    for (let i = 0; i < 1000 && under.scheduler.uploads > 0; i += 1) {
      for (const { ingest, busy } of live) if (!busy) ingest.abort();
      await under.tasks[0]?.end();
      await turn();
    }
    t.strictSame(
      { faults, open, inUse: [under.slabs.inUse, under.contexts.inUse, under.scheduler.uploads] },
      { faults: [], open: 0, inUse: [0, 0, 0] },
      `seed ${seed}: ${maxUploads} uploads, ${slabs} slabs, ${workers} workers, queue of ${maxQueue}`,
    );
  }
});
