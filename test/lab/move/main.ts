/**
 * Moves one machine with many proofs to a cluster, by the commands of the operator. The export and the import are
 * killed and repeated. Afterwards both sides are asked for everything, and the answers are compared.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { access, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Client } from 'cassandra-driver';
import { openArchive } from '../../../src/core/codec/sealed-archive.js';
import type { ArchiveRow } from '../../../src/service/ports/moved-rows.js';
import { TestClock, TestService } from '../../fixtures/service.js';
import { wav } from '../../fixtures/wav.js';
import { runCommand } from '../cluster/command.js';
import { takemark } from '../cluster/members.js';
import { settingsOnServers } from '../cluster/run.js';
import { compareSides } from './compare.js';
import { fillStore } from './fill.js';
import { PARTNERS, REVIEW_AGE_SECONDS } from './rows.js';

const CLI = new URL('../../../src/cli/main.js', import.meta.url).pathname;
const PASSPHRASE = 'correct horse battery staple';
const SAMPLES = 48_000;
const POLL_MS = 20;
/** The seconds that a row of a review lives beyond its end. */
const SPARE_SECONDS = 3600;
/** The most seconds between the reading of the clock and the write of a row, from which Cassandra counts. */
const WRITE_SECONDS = 60;
const MIB = 1_048_576;

type Settings = Readonly<Record<string, string>>;

/** A review as the command line prints it. */
interface PrintedReview {
  readonly reviewId: string;
  readonly status: string;
  readonly outcome?: string;
  readonly expiresAt: number;
  readonly evidenceRequests: readonly { readonly requestId: string }[];
}

await runCommand(
  {
    name: 'move',
    options: { proofs: '100000', cuts: '6' },
    kills: () => 0,
    prepare: async (_seed, values) => ({
      servers: { nodes: 1 as const, measured: true },
      proofs: Number(values['proofs']),
      cuts: Number(values['cuts']),
    }),
  },
  async ({ servers, ledger, say, keep }, { proofs, cuts }) => {
    const directory = await mkdtemp(join(tmpdir(), 'takemark-move-'));
    const must = (holds: boolean, what: string): void => {
      if (!holds) ledger.violation(what);
    };
    const seconds: Record<string, number> = {};
    const timed = async <Result>(what: string, work: () => Promise<Result>): Promise<Result> => {
      const began = performance.now();
      const result = await work();
      seconds[what] = Math.round((performance.now() - began) / 100) / 10;
      say(`${what}: ${seconds[what]} s`);
      return result;
    };
    const source: Settings = { TAKEMARK_DATA_DIR: join(directory, 'machine') };
    const target: Settings = {
      ...settingsOnServers(servers),
      TAKEMARK_STORE: 'cassandra',
      TAKEMARK_ASSETS: 's3',
      TAKEMARK_DATA_DIR: join(directory, 'cluster'),
      TAKEMARK_SECRETS_FILE: join(directory, 'secrets.json'),
    };
    const archive = join(directory, 'move.takemark');
    try {
      const real = await beginAsMachine(source);
      const now = Math.floor(Date.now() / 1000);
      await timed('fill', () => fillStore(source, proofs, now));

      const killed = moving(source, 'export', '--out', archive);
      await untilThere(join(source['TAKEMARK_DATA_DIR']!, 'exported'), killed.ended);
      killed.child.kill('SIGKILL');
      await killed.ended;
      must(!(await isThere(archive)), 'a killed export left a file in the place of the export');
      const made = await timed('export', () =>
        succeeded(moving(source, 'export', '--out', archive, '--json')),
      );
      const exported = JSON.parse(made) as { readonly exportId: string; readonly erased: number };
      await withService(source, async (frozen) => {
        const refused = await listed(frozen, real.apiKey);
        must(refused === '503 registry_moved', `the machine answers ${refused} after the export`);
      });

      await succeeded(
        moving(source, 'import', '--from', archive, '--secrets-out', target['TAKEMARK_SECRETS_FILE']!),
      );
      await takemark(target, 'operator', 'migrate');
      const { blocks, kinds } = await timed('count', () => countArchive(archive));
      const client = clientOf(target);
      try {
        // The last cut is in the comparison, which begins after the last block.
        for (let cut = 1; cut <= cuts; cut += 1) {
          const place = Math.floor((blocks * cut) / cuts);
          await timed(`import until block ${place} of ${blocks}`, async () => {
            const { child, ended } = moving(target, 'import', '--from', archive);
            await untilBlock(client, exported.exportId, place, ended);
            child.kill('SIGKILL');
            must((await ended).signal === 'SIGKILL', `the import ended before block ${place}`);
          });
        }
        const resumed = JSON.parse(
          await timed('import to its end', () =>
            succeeded(moving(target, 'import', '--from', archive, '--json')),
          ),
        ) as { readonly wasComplete: boolean; readonly compared: number; readonly erased: number };
        must(!resumed.wasComplete, 'a killed import counts as complete');
        must(
          resumed.erased === exported.erased,
          `${resumed.erased} of ${exported.erased} erasures were imported`,
        );
        const again = JSON.parse(await succeeded(moving(target, 'import', '--from', archive, '--json'))) as {
          readonly wasComplete: boolean;
        };
        must(again.wasComplete, 'a second import does not report that the first is complete');

        const compared = await timed('compare', () =>
          compareSides({ source, target }, proofs, now, (what) =>
            ledger.violation(`both sides differ in: ${what}`),
          ),
        );
        // The erasure by a call is beside those of the filled store.
        must(compared.erased === exported.erased - 1, `${compared.erased} proofs are erased on both sides`);
        await goOnInCluster(target, client, real, must);
        return {
          figures: { proofs, megabytes: Math.round((await stat(archive)).size / MIB), blocks, kinds },
          imported: resumed,
          compared,
          seconds,
        };
      } finally {
        await client.shutdown();
      }
    } finally {
      if (!keep) await rm(directory, { recursive: true, force: true });
    }
  },
);

/** What real calls have left on the machine. */
interface RealCalls {
  readonly apiKey: string;
  readonly kept: { readonly proofId: string; readonly file: Buffer };
  readonly erased: { readonly proofId: string; readonly file: Buffer };
  /** A review that the command line has opened long ago. */
  readonly review: PrintedReview;
}

/** Issues and erases proofs and opens a review on the machine, with its clock set back by the age of the reviews. */
async function beginAsMachine(settings: Settings): Promise<RealCalls> {
  const clock = new TestClock();
  clock.advance(-REVIEW_AGE_SECONDS);
  const service = await TestService.start(settings, clock);
  try {
    const { partnerId, apiKey, caller } = await service.partner();
    const kept = await service.issue(partnerId, wav(SAMPLES, {}, 1));
    const erased = await service.issue(partnerId, wav(SAMPLES, {}, 2));
    await service.verify(caller, kept.file);
    await service.service.operations.partner.eraseProof(caller, { proofId: erased.proofId });
    const ids = ['--creator', 'creator-1', '--account', 'a-1', '--submission', 's-1', '--track', 't-1'];
    const { reviewId } = await printedReview(service, apiKey, 'create', kept.proofId, ...ids);
    const review = await printedReview(service, apiKey, 'get', reviewId);
    return { apiKey, kept, erased, review };
  } finally {
    await service.stop({ keep: true });
  }
}

/** Verifies on the cluster what was issued on the machine, and ends the review by the command line. */
async function goOnInCluster(
  settings: Settings,
  client: Client,
  { apiKey, kept, erased, review }: RealCalls,
  must: (holds: boolean, what: string) => void,
): Promise<void> {
  for (const { name, left } of await livesOf(client, kept.proofId, review.reviewId)) {
    const most = review.expiresAt - Math.floor(Date.now() / 1000) + SPARE_SECONDS + WRITE_SECONDS;
    must(left !== null && left <= most, `${name} of the review lives ${left} s, and ${most} s are left`);
  }
  await withService({ ...settings, TAKEMARK_CONSUMERS: 'on' }, async (service) => {
    const caller = await service.service.operations.partner.authenticate(apiKey);
    for (const [file, wanted] of [
      [kept.file, 'valid'],
      [erased.file, 'unregistered'],
    ] as const) {
      const { verdict } = await service.verify(caller, file);
      must(verdict === wanted, `a file is ${verdict} on the cluster and not ${wanted}`);
    }
    const run = (...args: readonly string[]) => printedReview(service, apiKey, ...args);
    const moved = await run('get', review.reviewId);
    const changed = Object.keys({ ...review, ...moved }).filter(
      // Each response has a request id of its own.
      (name) =>
        name !== 'requestId' && !isDeepStrictEqual(Reflect.get(moved, name), Reflect.get(review, name)),
    );
    must(changed.length === 0, `the review has other members on the cluster: ${changed.join(', ')}`);
    const { evidenceRequests } = await run('ask', review.reviewId, '--kind', 'source_evidence');
    await run('answer', review.reviewId, evidenceRequests[0]!.requestId, '--status', 'accepted');
    const ended = await run('resolve', review.reviewId, '--outcome', 'accepted');
    must(
      ended.outcome === 'accepted' && ended.expiresAt === review.expiresAt,
      'the review did not end as it had to',
    );
    const { operator } = service.service.operations;
    for (const partnerId of PARTNERS)
      must((await operator.verifyAudit({ partnerId })).ok, `the audit log of ${partnerId} is broken`);
  });
}

async function withService(settings: Settings, work: (service: TestService) => Promise<void>): Promise<void> {
  const service = await TestService.start(settings);
  try {
    await work(service);
  } finally {
    await service.stop({ keep: true });
  }
}

async function printedReview(
  { partnerUrl }: TestService,
  apiKey: string,
  ...args: readonly string[]
): Promise<PrintedReview> {
  const environment = { TAKEMARK_URL: partnerUrl, TAKEMARK_API_KEY: apiKey };
  return JSON.parse(await takemark(environment, 'reviews', ...args, '--json')) as PrintedReview;
}

/** Returns the status of a list of proofs, and the reason of a refusal. */
async function listed({ partnerUrl }: TestService, apiKey: string): Promise<string> {
  const response = await fetch(`${partnerUrl}/v1/proofs`, { headers: { 'x-api-key': apiKey } });
  const { reason } = (await response.json()) as { readonly reason?: string };
  return [response.status, ...(reason === undefined ? [] : [reason])].join(' ');
}

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
}

/** Starts a command of the operator that reads the passphrase. */
function moving(
  settings: Settings,
  ...args: readonly string[]
): { readonly child: ChildProcess; readonly ended: Promise<Ended> } {
  const child = spawn(process.execPath, [CLI, 'operator', ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], ...settings },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  child.stdin.end(PASSPHRASE);
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, output }));
  return { child, ended };
}

/** @throws Error with what the command printed, unless it succeeded */
async function succeeded({ ended }: ReturnType<typeof moving>): Promise<string> {
  const { code, output } = await ended;
  if (code !== 0) throw new Error(`the command ended with ${code}: ${output}`);
  return output;
}

/** Counts the blocks of an export that hold rows, and the rows by kind. */
async function countArchive(path: string) {
  const kinds: Record<string, number> = {};
  let blocks = 0;
  for await (const { values } of openArchive<ArchiveRow>(PASSPHRASE, createReadStream(path))) {
    blocks += 1;
    for (const { kind } of values) kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return { blocks, kinds };
}

/** Resolves when an import has stored so many blocks, or has ended. */
async function untilBlock(
  client: Client,
  exportId: string,
  block: number,
  ended: Promise<unknown>,
): Promise<void> {
  let hasEnded = false;
  void ended.then(() => (hasEnded = true));
  while (!hasEnded) {
    const { rows } = await client.execute('SELECT bucket FROM watermark WHERE name = ?', [
      `move/${exportId}`,
    ]);
    if (Number(rows[0]?.['bucket'] ?? 0) >= block) return;
    await delay(POLL_MS);
  }
}

async function untilThere(path: string, ended: Promise<unknown>): Promise<void> {
  let hasEnded = false;
  void ended.then(() => (hasEnded = true));
  while (!hasEnded && !(await isThere(path))) await delay(POLL_MS);
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Returns the seconds that the rows of a review have left in Cassandra. A row without an end has null. */
async function livesOf(
  client: Client,
  proofId: string,
  reviewId: string,
): Promise<readonly { readonly name: string; readonly left: number | null }[]> {
  const places = await client.execute('SELECT TTL(proof_id) AS left FROM review_proof WHERE review_id = ?', [
    reviewId,
  ]);
  const parts = await client.execute('SELECT part, TTL(op) AS left FROM record WHERE proof_id = ?', [
    proofId,
  ]);
  return [
    ...places.rows.map((row) => ({ name: 'the place', left: row['left'] as number | null })),
    ...parts.rows
      .filter((row) => (row['part'] as string).includes(reviewId))
      .map((row) => ({ name: row['part'] as string, left: row['left'] as number | null })),
  ];
}

function clientOf(settings: Settings): Client {
  return new Client({
    contactPoints: settings['TAKEMARK_CASSANDRA']!.split(','),
    localDataCenter: settings['TAKEMARK_CASSANDRA_DC']!,
    keyspace: settings['TAKEMARK_CASSANDRA_KEYSPACE']!,
  });
}
