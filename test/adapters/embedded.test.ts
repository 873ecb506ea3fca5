import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { ClassicLevel } from 'classic-level';
import t, { type Test } from 'tap';
import { findDamage } from '../../src/adapters/embedded/log-check.js';
import { openEmbeddedStore, STORE_FORMAT } from '../../src/adapters/embedded/store.js';
import type { Commit } from '../../src/adapters/embedded/commit-queue.js';
import { crc32c } from '../../src/codec/crc32c.js';
import { RecordCodec } from '../../src/codec/record.js';
import type { Stores } from '../../src/ports/stores.js';
import { issuedProof, NOW, type OpenedStore, storeContract, uploadFacts, uploadSlot, usageCharge } from '../store-contract/suite.js';

const WRITER = fileURLToPath(new URL('./embedded-writer.js', import.meta.url));
/** Plain node: the test runner's hooks slow a child down, and take a write over a size limit for the end of the process. */
const PLAIN_NODE = ['env', '-u', 'NODE_OPTIONS', process.execPath] as const;
const KILLS = Number(process.env.TAKEMARK_KILLS ?? 15);
const SEED = Number(process.env.TAKEMARK_SEED ?? Date.now() % 1_000_000);

storeContract(t, 'the embedded store', () => openAt(t.testdir()));

async function openAt(directory: string): Promise<OpenedStore> {
  const stores = await openEmbeddedStore({ directory });
  return {
    stores,
    close: () => stores.close(),
    reopen: async () => {
      await stores.close();
      return openAt(directory);
    },
  };
}

void t.test('a directory that cannot be served', async (t) => {
  const directory = t.testdir();
  const inner = join(directory, 'made', 'by', 'it');
  const stores = await openEmbeddedStore({ directory: inner });
  t.equal(statSync(inner).mode & 0o777, 0o700);
  await t.rejects(openEmbeddedStore({ directory: inner }), { name: 'StoreOpenError', code: 'in_use', message: /in use/ }, 'opened here');
  await stores.close();
  await t.resolves(stores.close(), 'closing again is harmless');

  const holder = writer('hold', inner);
  await line(holder, 'ready');
  await t.rejects(openEmbeddedStore({ directory: inner }), { code: 'in_use' }, 'opened by another process');
  await kill(holder);

  await withLevel(inner, (level) => level.put('meta/format', new RecordCodec().encode('meta/format', 1, { format: STORE_FORMAT + 1 })));
  await t.rejects(openEmbeddedStore({ directory: inner }), { code: 'newer_format', message: /format 2; .* up to 1/ });
  await t.rejects(openEmbeddedStore({ directory: inner }), { code: 'newer_format' }, 'and the refusal leaves it closed');

  const foreign = join(directory, 'foreign');
  mkdirSync(foreign);
  await withLevel(foreign, (level) => level.put('a', Buffer.from('b')));
  await t.rejects(openEmbeddedStore({ directory: foreign }), { code: 'not_a_store' });

  writeFileSync(join(directory, 'file'), '');
  await t.rejects(openEmbeddedStore({ directory: join(directory, 'file') }), { code: 'io_failed' });
});

void t.test('damage is never taken for data', async (t) => {
  t.equal(crc32c(Buffer.from('123456789')), 0xe3069283, 'the check value of CRC-32C');
  const directory = join(t.testdir(), 'store');
  const proofs = Array.from({ length: 40 }, (_, i) => issuedProof(`prf_${i}`, 'ptr_1'));
  const stores = await openEmbeddedStore({ directory });
  for (const proof of proofs) {
    await stores.reserveProof(proof.proofId, 'ptr_1', NOW);
    await stores.issueProof({ ...proof, sidecar: new Uint8Array(1500) });
  }
  await stores.close();
  const log = readdirSync(directory).find((name) => name.endsWith('.log'))!;
  const whole = readFileSync(join(directory, log));
  t.ok(whole.length > 65_536, 'the log has several blocks');

  t.equal(findDamage(whole), undefined);
  const cuts = Array.from({ length: 500 }, (_, i) => Math.floor((whole.length * i) / 500));
  t.strictSame(cuts.filter((cut) => findDamage(whole.subarray(0, cut)) !== undefined), [], 'a log that ends anywhere is a process that died');
  const flips = Array.from({ length: 500 }, (_, i) => Math.floor((whole.length * 0.95 * i) / 500));
  const missed = flips.filter((flip) => {
    const flipped = Buffer.from(whole);
    flipped[flip]! ^= 0x10;
    return findDamage(flipped) === undefined;
  });
  // The six bytes at a block's end that belong to no record may hold anything.
  t.strictSame(missed.filter((flip) => 32_768 - (flip % 32_768) > 6), [], 'a flipped bit before the end is damage');
  whole[5000]! ^= 1;
  writeFileSync(join(directory, log), whole);
  await t.rejects(openEmbeddedStore({ directory }), { code: 'damaged', message: /damaged at byte/ });
  whole[5000]! ^= 1;
  writeFileSync(join(directory, log), whole);

  // A row that was changed, and a row under another key.
  await withLevel(directory, async (level) => {
    const row = (await level.get('proof/prf_1'))!;
    await level.put('proof/prf_2', row);
    const changed = Uint8Array.from(row);
    changed[40]! ^= 1;
    await level.put('proof/prf_3', changed);
    await level.put('proof/prf_4', new Uint8Array(2));
    await level.put('proof/prf_5', new RecordCodec().encode('proof/prf_5', 2, {}));
  });
  const opened = await openEmbeddedStore({ directory });
  t.match(await opened.getProof('prf_1'), { proofId: 'prf_1' });
  for (const proofId of ['prf_2', 'prf_3', 'prf_4', 'prf_5']) {
    await t.rejects(opened.getProof(proofId), { code: 'unavailable', reason: 'store_unavailable', cause: { name: 'RecordError' } });
    await t.rejects(opened.issueProof(issuedProof(proofId, 'ptr_1')), { code: 'unavailable', reason: 'store_unavailable' }, 'no condition is decided on it');
  }
  await opened.close();

  const lost = join(t.testdirName, 'lost');
  mkdirSync(lost);
  for (const name of readdirSync(directory)) copyFileSync(join(directory, name), join(lost, name));
  rmSync(join(lost, 'CURRENT'));
  await t.rejects(openEmbeddedStore({ directory: lost }), { code: 'damaged', message: /CURRENT/ }, 'instead of a new, empty store');
});

void t.test('commits are shared, and waiting is bounded', async (t) => {
  const commits: Commit[] = [];
  const stores = await openEmbeddedStore({ directory: t.testdir(), onCommit: (commit) => commits.push(commit) });
  commits.length = 0;
  await Promise.all(Array.from({ length: 1000 }, (_, i) => stores.charge(usageCharge('ptr_1', `call-${i}`))));
  t.equal(commits.reduce((sum, { operations }) => sum + operations, 0), 1000);
  t.ok(commits.length <= 3, `1000 charges took ${commits.length} batches`);
  t.ok(commits[0]!.rows < 2100, 'in which the counters appear once');

  // Conditions see what is not yet on disk, answers wait for it, and reads do not see it.
  const slot = uploadSlot('upl_1');
  const created = stores.createSlot(slot);
  t.equal(await stores.getUpload('upl_1', NOW), undefined, 'a read sees what is on disk');
  const order: string[] = [];
  const first = stores.putFacts(uploadFacts(slot, 'a')).then((outcome) => order.push(outcome));
  const second = stores.putFacts(uploadFacts(slot, 'b')).then((outcome) => order.push(outcome));
  await Promise.all([created, first, second]);
  t.strictSame(order, ['stored', 'already_used'], 'a refusal comes no earlier than what it rests on');

  const results = await Promise.allSettled(Array.from({ length: 20_000 }, (_, i) => stores.charge(usageCharge('ptr_2', `call-${i}`))));
  const refused = results.filter((result) => result.status === 'rejected');
  t.equal(refused.length, 20_000 - 16_384);
  t.match(refused[0], { reason: { code: 'unavailable', reason: 'store_unavailable', retryAfterSeconds: 1 } });
  t.equal(await stores.getUsed('ptr_2', NOW), 16_384);

  const last = stores.charge(usageCharge('ptr_3', 'a'));
  const closed = stores.close();
  t.strictSame(await last, { outcome: 'charged', used: 1 }, 'closing lets accepted operations end');
  await closed;
  await t.rejects(stores.charge(usageCharge('ptr_3', 'b')), { code: 'unavailable', reason: 'shutting_down' });
});

void t.test('an acknowledgement comes after the sync', async (t) => {
  if (!tool(t, 'strace')) return;
  const directory = t.testdir();
  const trace = (mode: string, argument = '') => {
    const output = join(directory, `${mode}.trace`);
    const { status, stderr } = spawnSync('strace', ['-f', '-y', '-e', 'trace=write,fdatasync,fsync', '-s', '32', '-o', output, ...PLAIN_NODE, WRITER, mode, join(directory, mode), argument], { encoding: 'utf8' });
    t.equal(status, 0, stderr);
    const lines = readFileSync(output, 'utf8').split('\n');
    const said = (text: string) => lines.findIndex((line) => line.includes(`"${text}\\n"`) && line.includes('write(1<'));
    return lines.slice(said('ready'), said('acknowledged'));
  };

  const once = trace('charge-once');
  const written = once.findLastIndex((line) => /write\(\d+<[^>]*\.log>/.test(line));
  t.ok(written > 0, 'the log was written after the store was ready');
  const sync = syncs(once.slice(written));
  t.equal(sync.length, 1, 'and synced, successfully, before the acknowledgement was written');
  t.comment(once.slice(written).join('\n'));

  const together = syncs(trace('charge-together', '1000'));
  t.ok(together.length >= 1 && together.length <= 3, `1000 concurrent charges took ${together.length} syncs of the log`);
});

/** Syncs of the log in a trace that have ended well. A call that is interrupted by another thread's line ends in a line of its own. */
function syncs(lines: readonly string[]): readonly string[] {
  return lines.filter((line, i) => {
    const call = /^(\d+) +f(?:data)?sync\(\d+<[^>]*\.log>(.*)$/.exec(line);
    if (call === null) return false;
    if (!call[2]!.includes('unfinished')) return /= 0$/.test(line);
    const end = lines.slice(i + 1).find((later) => later.startsWith(`${call[1]} `));
    return end !== undefined && /resumed>\) *= 0$/.test(end);
  });
}

void t.test('a disk that is full for a while', async (t) => {
  if (!tool(t, 'prlimit')) return;
  // Files may not grow over 256 KiB: the record that crosses it is written in part, as on a full disk.
  await outlives(t, ['prlimit', '--fsize=262144:'], (pid) => t.equal(spawnSync('prlimit', ['--pid', String(pid), '--fsize=unlimited:']).status, 0));
});

void t.test('a sync that fails', async (t) => {
  if (!tool(t, 'strace')) return;
  // LevelDB takes no write after a failed sync until it is opened anew. Calls are counted by thread, so there is one.
  await outlives(t, ['strace', '-f', '-o', '/dev/null', '-e', 'trace=fdatasync', '-e', 'inject=fdatasync:error=EIO:when=40', 'env', 'UV_THREADPOOL_SIZE=1'], () => undefined);
});

/** @param mend called with the process's id when it has met the failure */
async function outlives(t: Test, wrapper: readonly [string, ...string[]], mend: (pid: number) => void): Promise<void> {
  const directory = join(t.testdir(), 'store');
  const [command, ...before] = wrapper;
  const child = spawn(command, [...before, ...PLAIN_NODE, WRITER, 'fill', directory], { stdio: ['ignore', 'pipe', 'inherit'] });
  const charged: string[] = [];
  let failure = '';
  let back = false;
  for await (const line of createInterface({ input: child.stdout })) {
    const [word, ...rest] = line.split(' ');
    if (word === 'charged') charged.push(rest[0]!);
    if (word === 'back') back = true;
    if (word === 'full') {
      failure = rest.join(' ');
      mend(child.pid!);
    }
  }
  t.equal(failure, 'unavailable store_unavailable');
  t.ok(back, 'it serves again without a restart');
  t.ok(charged.length > 100 && charged.includes('after-49'));
  const stores = await openEmbeddedStore({ directory });
  await checkCharges(t, stores, 'ptr_full', new Set(charged), charged);
  await stores.close();
}

void t.test(`killed ${KILLS} times, seed ${SEED}`, { timeout: 60_000 + KILLS * 3_000 }, async (t) => {
  const directory = join(t.testdir(), 'store');
  const random = mulberry32(SEED);
  let acknowledged = 0;
  let slowest = 0;
  for (let round = 0; round < KILLS; round++) {
    const child = writer('everything', directory, String(round));
    const lines: string[] = [];
    const reader = createInterface({ input: child.stdout! });
    reader.on('line', (line) => lines.push(line));
    await once(reader, 'line');
    await new Promise((resolve) => setTimeout(resolve, random() * 300));
    child.kill('SIGKILL');
    await once(reader, 'close');

    const start = performance.now();
    const stores = await openEmbeddedStore({ directory });
    await stores.ping();
    slowest = Math.max(slowest, performance.now() - start);
    acknowledged += await checkRound(t, stores, round, lines);
    await stores.close();
  }
  t.ok(slowest < 2000, `slowest start after a kill: ${Math.round(slowest)} ms`);
  t.comment(`${acknowledged} acknowledged operations were found again`);
  await withLevel(directory, (level) => checkIndexes(t, level));
});

/** @returns how many acknowledged operations were looked for */
async function checkRound(t: Test, stores: Stores, round: number, lines: readonly string[]): Promise<number> {
  const begun = { charge: 0, slot: 0, proof: 0, quota: 0 };
  const done = { charge: new Map<number, string>(), slot: new Map<number, string>(), proof: new Map<number, string>(), quota: new Map<number, string>() };
  for (const line of lines) {
    const [word, kind, index, outcome] = line.split(' ') as [string, keyof typeof begun, string, string];
    if (word === 'begin') begun[kind] = Math.max(begun[kind], Number(index) + 1);
    if (word === 'done') done[kind].set(Number(index), outcome);
  }
  const problems: string[] = [];

  for (let i = 0; i < begun.quota; i++) {
    const used = await stores.getUsed(`ptr_quota-${round}-${i}`, NOW);
    const told = done.quota.get(i);
    if (used > 5 || (told !== undefined && (told !== '5' || used !== 5))) problems.push(`quota ${i}: ${used} used, ${told} acknowledged`);
  }
  for (let i = 0; i < begun.slot; i++) {
    const upload = await stores.getUpload(`upl_${round}-${i}`, NOW);
    const stored = upload?.facts?.embedded?.kind === 'not_a_store' ? upload.facts.embedded.reason : undefined;
    const told = done.slot.get(i);
    if (told !== undefined && told !== stored) problems.push(`slot ${i}: ${told} was told, ${stored} is stored`);
  }
  for (let i = 0; i < begun.proof; i++) {
    const ids = ['a', 'b'].map((letter) => `prf_${round}-${i}${letter}`);
    const states = await Promise.all(ids.map(async (proofId) => (await stores.getProof(proofId))?.state));
    const issued = ids.filter((_, j) => states[j] === 'issued');
    const replay = await stores.getIssuingReplay(`replay_${round}-${i}`, NOW);
    const told = done.proof.get(i);
    if (issued.length > 1 || replay?.proofId !== issued[0] || (told !== undefined && told !== issued.join())) problems.push(`proof ${i}: ${told} was told, ${issued.join()} issued, replay of ${replay?.proofId}`);
  }
  const charged = new Set(Array.from(done.charge, ([i]) => `${round}-${i}`));
  const tried = Array.from({ length: begun.charge }, (_, i) => `${round}-${i}`);
  t.strictSame(problems, [], `round ${round}`);
  await checkCharges(t, stores, 'ptr_kill', charged, tried);
  return done.charge.size + done.quota.size + done.slot.size + done.proof.size;
}

/** What was acknowledged is charged; what is counted is what is charged, by month and by day. */
async function checkCharges(t: Test, stores: Stores, partnerId: string, acknowledged: ReadonlySet<string>, tried: readonly string[]): Promise<void> {
  const before = await stores.getUsed(partnerId, NOW);
  const [day] = await stores.getDailyUsage(partnerId, '2026-03-31', '2026-03-31');
  t.equal(day?.operations.verify ?? 0, before, 'the day’s and the month’s count agree');
  const again = await Promise.all(tried.map((key) => stores.charge(usageCharge(partnerId, key))));
  const lost = tried.filter((key, i) => acknowledged.has(key) && again[i]!.outcome !== 'already_charged');
  t.strictSame(lost, [], 'no acknowledged charge is lost');
  const news = again.filter(({ outcome }) => outcome === 'charged').length;
  t.equal(await stores.getUsed(partnerId, NOW), before + news, 'no charge is counted twice');
}

/** Every row has its index entries, and every entry its row. */
async function checkIndexes(t: Test, level: ClassicLevel<string, Uint8Array>): Promise<void> {
  const keys = new Set(await level.keys().all());
  const codec = new RecordCodec();
  const problems: string[] = [];
  const under = (prefix: string) => [...keys].filter((key) => key.startsWith(prefix));
  const indexed = ['proof-time/', 'bound/', 'original/', 'credential/', 'pending/'].map((prefix) => new Set(under(prefix).map((key) => key.slice(key.lastIndexOf('/') + 1))));
  for (const key of under('proof/')) {
    const proof = codec.decode(key, (await level.get(key))!).value as { state: string; proofId: string };
    const entries = indexed.map((ids) => ids.has(proof.proofId));
    const expected = proof.state === 'issued' ? [true, true, true, true, false] : [false, false, false, false, true];
    if (expected.some((each, i) => each !== entries[i])) problems.push(key);
  }
  const expiring = new Set(under('expiry/').map((key) => key.slice('expiry/000000000000/'.length)));
  for (const key of [...under('billed/'), ...under('upload/'), ...under('replay/')]) if (!expiring.has(key)) problems.push(key);
  for (const key of expiring) if (!keys.has(key)) problems.push(key);
  const billed = under('billed/ptr_kill/').length;
  const month = codec.decode('usage-month/ptr_kill/2026-03', (await level.get('usage-month/ptr_kill/2026-03'))!).value as { used: number };
  t.equal(month.used, billed, 'one billed row for each unit');
  t.strictSame(problems, [], `${keys.size} rows and entries agree`);
}

function writer(...args: readonly string[]): ChildProcess {
  const [command, ...before] = PLAIN_NODE;
  return spawn(command, [...before, WRITER, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function line(child: ChildProcess, expected: string): Promise<void> {
  for await (const each of createInterface({ input: child.stdout! })) if (each === expected) return;
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

async function withLevel(directory: string, use: (level: ClassicLevel<string, Uint8Array>) => Promise<void>): Promise<void> {
  const level = new ClassicLevel<string, Uint8Array>(directory, { valueEncoding: 'view' });
  await use(level);
  await level.close();
}

/** False, and said so, where a tool of the system is missing; in CI that is a failure. */
function tool(t: Test, name: string): boolean {
  if (spawnSync(name, ['--version']).error === undefined) return true;
  if (process.env.CI) t.fail(`${name} is not installed`);
  else t.pass('not shown here', { skip: `${name} is not installed` });
  return false;
}

/** Small seeded generator (mulberry32), numbers in [0, 1). */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
