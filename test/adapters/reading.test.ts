import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import fs, { readFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { ClassicLevel } from 'classic-level';
import t, { type Test } from 'tap';
import { WaitingLines } from '../../src/core/async/waiting-lines.js';
import { writeSidecar } from '../../src/core/credential/sidecar.js';
import { stateProduction, stateSeal } from '../../src/core/credential/statement.js';
import {
  type CredentialReaderOptions,
  createCredentialReader,
  LEAST_BYTES,
  type StartedReader,
} from '../../src/service/adapters/reading/credential-reader.js';
import { FrameCutter, frame } from '../../src/service/adapters/reading/frames.js';
import { embeddedReply, sidecarReply } from '../../src/service/adapters/reading/reply.js';
import {
  extentOf,
  issued,
  now,
  readPair,
  readStore,
  sealed,
  storeIn,
} from '../fixtures/credentialed-file.js';
import {
  cborBox,
  type ForeignOptions,
  foreignManifest,
  foreignSigner,
  storeOf,
  superbox,
} from '../fixtures/foreign-store.js';
import { readingProcessesOf } from '../fixtures/reading-processes.js';
import { testDevice, testSigning } from '../fixtures/signing.js';
import { noise, wav } from '../fixtures/wav.js';

const ours = testSigning();
const BINDING = { bytes: 12_345, sha256: createHash('sha256').update('audio').digest('hex') };
const linux = process.platform === 'linux' ? {} : { skip: 'looks into /proc' };
const { getuid } = process;
const MIB = 1_048_576;
/** Owners of readings. */
const [A, B, C] = ['ptr_a', 'ptr_b', 'ptr_c'] as const;
const FULL = { code: 'unavailable', reason: 'reader_full', retryAfterSeconds: Number };

interface Chunk {
  readonly store: Buffer;
  readonly extent: { readonly offset: number; readonly length: number };
}

function foreignChunk(options: ForeignOptions = {}, signer = foreignSigner('ES256')): Chunk {
  const store = storeOf([foreignManifest(signer, options)]);
  return { store, extent: { offset: 300, length: 8 + store.length } };
}

function chunkOf(file: Buffer): Chunk {
  const extent = extentOf(file)!;
  return { store: storeIn(file, extent), extent };
}

/** Starts a reader that is stopped when the test ends. Returns it with what it reported. */
async function reader(
  t: Test,
  options: Partial<CredentialReaderOptions> = {},
): Promise<{ readonly reader: StartedReader; readonly faults: string[] }> {
  const faults: string[] = [];
  const observer = {
    fault: (where: string, error: unknown) => void faults.push(`${where}: ${(error as Error).message}`),
  };
  const started = createCredentialReader({
    trust: ours.trust,
    observer,
    maxWaitingBytes: 16 * MIB,
    ...options,
  });
  t.teardown(() => started.stop());
  await started.start();
  return { reader: started, faults };
}

async function soleProcess(): Promise<{ readonly pid: number; readonly command: readonly string[] }> {
  const [only, ...more] = await readingProcessesOf(process.pid);
  if (only === undefined || more.length > 0)
    throw new Error(`${more.length + (only === undefined ? 0 : 1)} reading processes`);
  return only;
}

void t.test('read in the process, or in place, an answer is the same', async (t) => {
  const { reader: under, faults } = await reader(t);
  const ownFile = issued(wav(300), ours.signer);
  const own = chunkOf(ownFile);
  const chunks: [string, Chunk][] = [
    ['ours', own],
    ['ours by an unpinned leaf', chunkOf(issued(wav(300), ours.unpinned))],
    ['another installation', chunkOf(issued(wav(300), testSigning().signer))],
    ['a seal', chunkOf(sealed(wav(300), testDevice('Studio', 'ES256')))],
    ['a seal under our leaf', chunkOf(sealed(wav(300), ours.signer))],
    ['foreign', foreignChunk()],
    ['foreign, salted', foreignChunk({ salted: true })],
    ['foreign, whole chain', foreignChunk({ wholeChain: true })],
    ['foreign, SHA-512', foreignChunk({ hash: 'sha512' })],
    ['foreign, PS384', foreignChunk({}, foreignSigner('PS384'))],
    ['foreign, odd name', foreignChunk({ label: 'urn:c2pa:\u0007x' }, foreignSigner('Ed25519', 'A\u202eB'))],
    [
      'foreign, large',
      foreignChunk({
        moreAssertions: [superbox('cbor', 'com.example.large', [cborBox({ large: noise(900_000) })])],
      }),
    ],
    ['no store', { store: noise(100), extent: { offset: 44, length: 108 } }],
    ['nothing', { store: Buffer.alloc(0), extent: { offset: 44, length: 8 } }],
    ['begins as a store', { store: own.store.subarray(0, 60), extent: { offset: 44, length: 68 } }],
    [
      'does not fill its chunk',
      { store: own.store, extent: { ...own.extent, length: own.extent.length + 2 } },
    ],
    ['at another place', { store: own.store, extent: { ...own.extent, offset: own.extent.offset + 2 } }],
  ];
  for (let at = 0; at < own.store.length; at += 13) {
    const bent = Buffer.from(own.store);
    bent[at]! ^= 1 << (at % 8);
    chunks.push([`bit at ${at}`, { store: bent, extent: own.extent }]);
  }
  const kinds = new Map<string, number>();
  for (const [name, { store, extent }] of chunks) {
    const reading = readStore(store, extent, ours.trust);
    kinds.set(reading.kind, (kinds.get(reading.kind) ?? 0) + 1);
    t.strictSame(await under.readEmbedded(A, store, extent), reading, name);
  }
  t.strictSame([...kinds.keys()].sort(), ['altered', 'foreign', 'local_seal', 'not_a_store', 'service']);

  const facts = { proofId: 'prf_1', createdAt: now(), evidenceSha256: null };
  const sidecar = Buffer.from(
    writeSidecar({
      statement: stateProduction(ours.signer.identity, facts),
      binding: BINDING,
      signer: ours.signer,
    }),
  );
  const device = testDevice();
  const stranger = testSigning().signer;
  const sidecars: [string, Uint8Array][] = [
    ['ours', sidecar],
    [
      'a seal',
      writeSidecar({ statement: stateSeal(device.identity, now()), binding: BINDING, signer: device }),
    ],
    [
      'another installation',
      writeSidecar({
        statement: stateProduction(stranger.identity, facts),
        binding: BINDING,
        signer: stranger,
      }),
    ],
    [
      'an unpinned leaf',
      writeSidecar({
        statement: stateProduction(ours.unpinned.identity, facts),
        binding: BINDING,
        signer: ours.unpinned,
      }),
    ],
    ['empty', Buffer.alloc(0)],
    ['noise', noise(500)],
    ['a megabyte', Buffer.concat([sidecar, Buffer.alloc(1_000_000)])],
  ];
  for (let at = 0; at < sidecar.length; at += 7)
    sidecars.push([`bit at ${at}`, sidecar.with(at, sidecar[at]! ^ 4)]);
  for (const [name, bytes] of sidecars)
    t.strictSame(await under.readSidecar(A, bytes), readPair(bytes, ours.trust), name);

  const GOLDEN = new URL('../../../test/fixtures/golden/', import.meta.url);
  for (const name of await readdir(GOLDEN)) {
    const bytes = readFileSync(new URL(name, GOLDEN));
    if (name.endsWith('.wav'))
      t.strictSame(
        await under.readEmbedded(A, chunkOf(bytes).store, chunkOf(bytes).extent),
        readStore(chunkOf(bytes).store, chunkOf(bytes).extent, ours.trust),
        name,
      );
    if (name.endsWith('.sidecar'))
      t.strictSame(await under.readSidecar(A, bytes), readPair(bytes, ours.trust), name);
  }
  t.strictSame(faults, []);
});

void t.test('a process that inherited a file is replaced when the reader starts', linux, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-test-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const database = new ClassicLevel(join(directory, 'store'));
  await database.open();
  t.teardown(() => database.close());
  // The first look at the descriptors finds none, as if the store had opened its files just afterwards.
  const { readdirSync } = fs;
  let looks = 0;
  fs.readdirSync = ((...args: Parameters<typeof readdirSync>) => {
    if (args[0] !== '/proc/self/fd') return readdirSync(...args);
    looks += 1;
    return looks === 1 ? [] : readdirSync(...args);
  }) as typeof readdirSync;
  syncBuiltinESMExports();
  t.teardown(() => {
    fs.readdirSync = readdirSync;
    syncBuiltinESMExports();
  });
  const { faults } = await reader(t);
  t.equal(looks, 2);
  t.strictSame(faults, [
    `credential_reader: the reading process inherited an open file of ${join(directory, 'store')}`,
  ]);
  await soleProcess();
});

void t.test('the process has nothing that is worth having', linux, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-test-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const secret = join(directory, 'secrets.json');
  await writeFile(secret, 'secret');
  // The files are open in the process that starts the reading, and may stay open in the new process.
  const database = new ClassicLevel(join(directory, 'store'));
  await database.open();
  t.teardown(() => database.close());
  await reader(t);
  const { pid, command } = await soleProcess();
  t.equal(await readFile(`/proc/${pid}/environ`, 'utf8'), '', 'no environment');
  t.equal(await readlink(`/proc/${pid}/cwd`), '/');
  const own = new Set(
    await Promise.all(
      (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
    ),
  );
  const files = await Promise.all(
    (await readdir(`/proc/${pid}/fd`)).map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')),
  );
  t.strictSame(
    files.filter((file) => file.startsWith('/') && file !== '/dev/null'),
    [],
    'no open file',
  );
  t.strictSame(
    files.filter((file) => file.startsWith('socket:') && own.has(file)),
    [],
    'no socket of the service',
  );

  // The same flags restrict any other program in the same way.
  const flags = command.slice(1, -1);
  const attempt = (body: string): Promise<string> =>
    promisify(execFile)(
      command[0]!,
      [
        ...flags,
        '--input-type=commonjs',
        '--eval',
        `try { ${body}; console.log('done') } catch (error) { console.log(error.code) }`,
      ],
      { cwd: '/', env: {} },
    ).then(({ stdout }) => stdout.trim());
  t.equal(await attempt('1'), 'done');
  t.equal(
    await attempt(`require('fs').readFileSync(${JSON.stringify(secret)})`),
    'ERR_ACCESS_DENIED',
    'it cannot read the data directory',
  );
  t.equal(
    await attempt(`require('fs').writeFileSync(${JSON.stringify(`${secret}.new`)}, '')`),
    'ERR_ACCESS_DENIED',
    'or write anywhere',
  );
  t.equal(
    await attempt("require('child_process').spawnSync('/bin/true')"),
    'ERR_ACCESS_DENIED',
    'or start a program',
  );
  t.equal(
    await attempt("new (require('worker_threads').Worker)('1', { eval: true })"),
    'ERR_ACCESS_DENIED',
    'or a thread',
  );
  if (process.allowedNodeEnvironmentFlags.has('--allow-net')) {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => server.close());
    const connecting = `require('net').connect(${(server.address() as { port: number }).port}, '127.0.0.1').on('error', (error) => console.log(error.code)).on('connect', () => process.exit(console.log('connected')))`;
    t.match(await attempt(connecting), /ERR_ACCESS_DENIED/, 'or connect');
  }
  t.equal(
    getuid?.() === undefined ? '1000' : (await readFile(`/proc/${pid}/oom_score_adj`, 'utf8')).trim(),
    '1000',
    'it goes first where memory is short',
  );
});

void t.test('a process that ends is replaced, and what it was reading is read again', linux, async (t) => {
  const { reader: under, faults } = await reader(t, { readingMs: 60_000, waitingMs: 120_000 });
  const { store, extent } = foreignChunk();
  const reading = readStore(store, extent, ours.trust);
  const first = await soleProcess();
  process.kill(first.pid, 'SIGSTOP');
  const waiting = under.readEmbedded(A, store, extent);
  t.equal(
    (
      await under.readEmbedded(
        A,
        ...(Object.values(chunkOf(issued(wav(300), ours.signer))) as [Buffer, Chunk['extent']]),
      )
    ).kind,
    'service',
    'ours needs no process',
  );
  process.kill(first.pid, 'SIGKILL');
  t.strictSame(await waiting, reading);
  t.not((await soleProcess()).pid, first.pid);
  t.strictSame(faults, ['credential_reader: the reading process ended with SIGKILL']);

  process.kill((await soleProcess()).pid, 'SIGKILL');
  t.strictSame(await under.readEmbedded(A, store, extent), reading, 'also where it ends in between');
});

void t.test('a reading that comes to no end is given up, and says nothing of the file', linux, async (t) => {
  // No process can receive, parse and answer a megabyte within a millisecond.
  const { reader: under, faults } = await reader(t, { readingMs: 1, waitingMs: 120_000 });
  const { store, extent } = foreignChunk({
    moreAssertions: [superbox('cbor', 'com.example.large', [cborBox({ large: noise(1_000_000) })])],
  });
  const own = chunkOf(issued(wav(300), ours.signer));
  const [given, ofOurs] = await Promise.allSettled([
    under.readEmbedded(A, store, extent),
    under.readEmbedded(A, own.store, own.extent),
  ]);
  t.match(given, {
    status: 'rejected',
    reason: { name: 'DomainError', code: 'unavailable', reason: 'reader_failed', retryAfterSeconds: Number },
  });
  t.match(ofOurs, { status: 'fulfilled', value: { kind: 'service' } });
  const late = 'credential_reader: the reading process did not reply within 1 ms';
  t.strictSame(faults, [late, late], 'tried once more, and no further');
});

void t.test('what waits is bounded in number, bytes and time', linux, async (t) => {
  const { reader: under } = await reader(t, {
    readingMs: 60_000,
    waitingMs: 1000,
    maxWaitingBytes: 2 * LEAST_BYTES,
  });
  const { store, extent } = foreignChunk();
  const large = foreignChunk({
    moreAssertions: [superbox('cbor', 'com.example.large', [cborBox({ large: noise(200_000) })])],
  });
  const { pid } = await soleProcess();
  process.kill(pid, 'SIGSTOP');
  const underWay = under.readEmbedded(A, store, extent);
  await nextTurn();
  const waiting = [under.readEmbedded(A, store, extent), under.readEmbedded(A, store, extent)].map(
    (reading) => reading.catch((error: unknown) => error),
  );
  await t.rejects(under.readEmbedded(A, store, extent), FULL, 'in number');
  for (const refused of waiting) t.match(await refused, FULL, 'in time');
  await t.rejects(under.readEmbedded(A, large.store, large.extent), FULL, 'in bytes');
  process.kill(pid, 'SIGCONT');
  t.equal((await underWay).kind, 'foreign', 'the one under way is not hurt');
  t.equal((await under.readEmbedded(A, store, extent)).kind, 'foreign');
});

void t.test("a partner's concurrent uploads are all read, and other partners do not wait", async (t) => {
  const { reader: under } = await reader(t, { maxWaitingBytes: 65 * MIB });
  const small = foreignChunk();
  const store = Buffer.concat([small.store, Buffer.alloc(MIB - small.store.length)]);
  const large = { store, extent: { offset: 300, length: 8 + MIB } };
  const ended: string[] = [];
  const ask = (owner: string, { store, extent }: Chunk): Promise<void> =>
    under.readEmbedded(owner, store, extent).then(() => void ended.push(owner));
  const ofA = Array.from({ length: 64 }, () => ask(A, large));
  await nextTurn();
  const ofB = Array.from({ length: 8 }, () => ask(B, small));
  await Promise.all([...ofA, ...ofB]);
  t.equal(ended.length, 72);
  t.ok(ended.lastIndexOf(B) < 20, `the last of B is answered as number ${ended.lastIndexOf(B) + 1}`);
});

void t.test('who fills what may wait gives way to others, and not they to it', linux, async (t) => {
  const { reader: under } = await reader(t, {
    readingMs: 60_000,
    waitingMs: 120_000,
    maxWaitingBytes: 8 * LEAST_BYTES,
  });
  const { store, extent } = foreignChunk();
  const { pid } = await soleProcess();
  process.kill(pid, 'SIGSTOP');
  const answers: string[] = [];
  const refusals: string[] = [];
  const asked: Promise<void>[] = [];
  const ask = (name: string): void => {
    const reading = under.readEmbedded(name[0]!, store, extent);
    asked.push(
      reading.then(
        () => void answers.push(name),
        (error: unknown) => {
          t.match(error, FULL);
          refusals.push(name);
        },
      ),
    );
  };
  ask('a0');
  await nextTurn();
  for (let at = 1; at <= 9; at += 1) ask(`a${at}`);
  await nextTurn();
  t.strictSame(refusals, ['a9'], 'there is room for eight, beside the one under way');
  for (let at = 1; at <= 5; at += 1) ask(`b${at}`);
  await nextTurn();
  t.strictSame(refusals.splice(0), ['a9', 'a8', 'a7', 'a6', 'a5', 'b5'], 'each has its half');
  ask('c1');
  ask('a10');
  await nextTurn();
  t.strictSame(refusals, ['a4', 'a10'], 'the owner with the most makes room for a third');
  process.kill(pid, 'SIGCONT');
  await Promise.all(asked);
  t.strictSame(answers, ['a0', 'b1', 'a1', 'c1', 'b2', 'a2', 'b3', 'a3', 'b4'], 'by turns');
});

void t.test('lines keep their limit, and no owner within its share is refused', (t) => {
  interface Item {
    readonly owner: string;
    readonly weight: number;
  }
  const max = 20 * MIB;
  const lines = new WaitingLines<Item>(max);
  const waiting = new Set<Item>();
  const held = (owner?: string): number =>
    [...waiting].reduce((sum, item) => sum + (item.owner === (owner ?? item.owner) ? item.weight : 0), 0);
  let state = 1;
  const below = (limit: number): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state % limit;
  };
  const outcomes = { admitted: 0, displacing: 0, refused: 0 };
  for (let round = 0; round < 20_000; round += 1) {
    if (below(5) === 0) {
      const next = lines.shift();
      if (next !== undefined && !waiting.delete(next)) t.fail('an item that does not wait has its turn');
    } else if (below(20) === 0) {
      const [first] = waiting;
      if (first !== undefined && !(lines.remove(first) && waiting.delete(first) && !lines.remove(first)))
        t.fail('what waits can be taken out, once');
    } else {
      const owner = [A, A, A, A, B, C, 'ptr_d'][below(7)]!;
      const item: Item = { owner, weight: Math.max(LEAST_BYTES, below(2) * below(MIB)) };
      const after = held(item.owner) + item.weight;
      const share = max / new Set([...waiting, item].map(({ owner }) => owner)).size;
      const total = held();
      const gone = lines.admit(item);
      if (gone === undefined && (after <= share || total + item.weight <= max))
        t.fail('turned away within its share, or while there was room');
      if (gone?.some(({ owner }) => owner === item.owner)) t.fail('an owner gives way to itself');
      if (gone !== undefined) waiting.add(item);
      for (const one of gone ?? []) waiting.delete(one);
      outcomes[gone === undefined ? 'refused' : gone.length > 0 ? 'displacing' : 'admitted'] += 1;
    }
    if (held() > max || lines.empty !== (waiting.size === 0)) t.fail(`holds ${held()} bytes`);
  }
  for (const [outcome, count] of Object.entries(outcomes)) t.ok(count > 100, `${outcome}: ${count}`);
  t.end();
});

void t.test('a reader that stops refuses what waits and leaves no process', linux, async (t) => {
  const { reader: under, faults } = await reader(t, { readingMs: 60_000 });
  const { store, extent } = foreignChunk();
  process.kill((await soleProcess()).pid, 'SIGSTOP');
  const waiting = [under.readEmbedded(A, store, extent), under.readEmbedded(A, store, extent)].map(
    (reading) => reading.catch((error: unknown) => error),
  );
  await under.stop();
  for (const refused of waiting) t.match(await refused, { reason: 'shutting_down' });
  await t.rejects(under.readEmbedded(A, store, extent), { code: 'unavailable', reason: 'shutting_down' });
  t.strictSame(await readingProcessesOf(process.pid), []);
  t.strictSame(faults, []);
});

void t.test('what a captured process could say is not believed', (t) => {
  const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
  const { store, extent } = chunkOf(issued(wav(300), ours.signer));
  const service = readStore(store, extent, ours.trust);
  t.equal(service.kind, 'service');
  t.throws(() => embeddedReply(json(service)), TypeError, 'that the service signed it');
  const foreign = foreignChunk();
  const reading = readStore(foreign.store, foreign.extent, ours.trust);
  t.strictSame(embeddedReply(json(reading)), reading);
  if (reading.kind !== 'foreign') throw new Error(reading.kind);
  const { report } = reading;
  t.strictSame(
    embeddedReply(json({ ...reading, proofId: 'prf_1', report: { ...report, more: 1 } })),
    reading,
    'further members are dropped',
  );
  t.match(
    embeddedReply(json({ ...reading, report: { ...report, issuer: `\u001b[2J${'x'.repeat(5000)}` } })),
    { report: { issuer: /^\ufffd\[2Jx{252}$/ } },
  );
  for (const [name, bent] of Object.entries({
    'trust of ours': { ...reading, report: { ...report, trust: 'service' } },
    'trust of a device': { ...reading, report: { ...report, trust: 'device' } },
    'an unknown reason': { ...reading, report: { ...report, reasons: ['call_this_number'] } },
    'a sentence as a reason': { ...reading, report: { ...report, reasons: ['call this number'] } },
    'many reasons': {
      ...reading,
      report: { ...report, reasons: Array.from({ length: 33 }, () => 'ingredients') },
    },
    'another format': { ...reading, report: { ...report, format: 'x' } },
    'an unknown algorithm': { ...reading, report: { ...report, algorithm: 'none' } },
    'a number for a name': { ...reading, report: { ...report, issuer: 1 } },
    'no digest': { ...reading, binding: { exclusion: { start: 1, length: 2 }, sha256: 'x' } },
    'no report': { kind: 'foreign' },
    'no kind': {},
    'no object': null,
    'a list': [],
    'a seal without a statement': { ...reading, kind: 'local_seal' },
    'not a store': { kind: 'not_a_store', reason: 'store_start_missing' },
  }))
    t.throws(() => embeddedReply(json(bent)), TypeError, name);
  t.throws(() => embeddedReply(Buffer.from('{')), SyntaxError, 'no JSON');

  const facts = { proofId: 'prf_1', createdAt: now(), evidenceSha256: null };
  t.throws(
    () =>
      sidecarReply(
        json(
          readPair(
            writeSidecar({
              statement: stateProduction(ours.signer.identity, facts),
              binding: BINDING,
              signer: ours.signer,
            }),
            ours.trust,
          ),
        ),
      ),
    TypeError,
  );
  t.throws(
    () =>
      sidecarReply(
        json({
          kind: 'foreign',
          reason: 'signer_unknown',
          binding: { bytes: -0.5, sha256: BINDING.sha256 },
          sidecarSha256: BINDING.sha256,
        }),
      ),
    TypeError,
  );
  t.end();
});

void t.test('frames are cut out of a stream however it arrives', (t) => {
  const payloads = [Buffer.from('one'), Buffer.alloc(0), noise(5000)];
  const stream = Buffer.concat(payloads.map((payload) => frame(payload)));
  for (const size of [1, 2, 3, 5, 4096, stream.length]) {
    const cutter = new FrameCutter(5000);
    const cut: Buffer[] = [];
    for (let at = 0; at < stream.length; at += size)
      for (const payload of cutter.cut(stream.subarray(at, at + size))) cut.push(Buffer.from(payload));
    t.strictSame(cut, payloads, `pieces of ${size} bytes`);
  }
  t.throws(() => [...new FrameCutter(4999).cut(stream)], RangeError, 'announced too large');
  t.end();
});
