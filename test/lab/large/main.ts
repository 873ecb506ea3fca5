/**
 * Large files against a service that is held to 512 MiB. A curve shows memory and processor time of uploads and
 * issuings by length. Then the service is killed at ten places of each, and two large uploads run beside forty small
 * ones. With `--servers` the service runs on the Cassandra and the bucket that the environment names. Options:
 * `--sizes 1,65,256,1024,2046` in MiB, `--kills 10`, `--kill-size 128`.
 */
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { parseArgs } from 'node:util';
import { type Client, createClient } from '../../../src/client/index.js';
import { inParallel } from '../../fixtures/service.js';
import { type AttackedPartner, ConfinedService } from '../attacks/confined-service.js';
import { master, masterBytes } from './sources.js';
import { onEmbedded, onServers } from './stores.js';

const MIB = 1_048_576;
/** The memory in MiB that a file above 65 MiB may cost beyond as many bytes in files of 65 MiB, by kind of call. */
const SPARE_MIB = { upload: 8, issuing: 16 };
const BASE_MIB = 65;
/** The fewest calls of 65 MiB before the measured one. */
const WARM_CALLS = 4;
/** The number of small uploads at one time. A killed process has its share of what the plan allows for 30 s. */
const SMALL_WIDTH = 8;
const CLOCK_TICKS = 100;
const SETTINGS = { TAKEMARK_LOG_LEVEL: 'silent', TAKEMARK_STOP_GRACE_SECONDS: '30' };

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: `1,${BASE_MIB},256,1024,2046` },
    kills: { type: 'string', default: '10' },
    'kill-size': { type: 'string', default: '128' },
    servers: { type: 'boolean', default: false },
  },
});
const stores = values.servers ? await onServers() : onEmbedded;
const sizes = values.sizes.split(',').map(Number);
const violations: string[] = [];
const must = (holds: boolean, what: string): void => {
  if (!holds) violations.push(what);
};

interface Issued {
  readonly proofId: string;
  readonly asset: { readonly bytes: number; readonly sha256: string; readonly uploadPurpose?: string };
}

/** The service, one partner of it, and the client of this partner. */
interface House {
  readonly service: ConfinedService;
  readonly partner: AttackedPartner;
  readonly client: Client;
  /** The proofs that were issued, which are erased at the end. */
  readonly issued: Set<string>;
}

/** Starts a service for the work. Erases afterwards what the work has issued: then no file is left. */
async function withHouse(work: (house: House) => Promise<void>): Promise<void> {
  const service = await ConfinedService.start({ ...SETTINGS, ...stores.settings });
  const partner = await service.partner('volume');
  const client = clientOf({ service, partner });
  const issued = new Set<string>();
  try {
    await work({ service, partner, client, issued });
    const eraser = clientOf({ service, partner });
    for (const proofId of issued) await eraser.eraseProof(proofId);
    eraser.close();
    const left = await stores.files(service.dataDirectory);
    must(left.length === 0, `after all proofs were erased there are the files ${left.join(', ')}`);
    must((await service.oomKills()) === 0, 'the kernel killed the service at its limit of memory');
  } finally {
    client.close();
    await service.remove();
  }
}

/** Sends an issuing that may be large. `sent` is called with the bytes sent so far. */
async function issue(
  { service, partner, issued }: House,
  bytes: number,
  { key, sent }: { readonly key: string; readonly sent?: (bytes: number) => Promise<void> },
): Promise<Issued> {
  const query = new URLSearchParams({
    partnerId: partner.partnerId,
    song: 'Master',
    fileName: 'master.wav',
    carrier: 'embedded',
    large: 'true',
  });
  const call = request(`${service.operatorUrl}/proofs?${query}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${service.token}`,
      'content-type': 'application/octet-stream',
      'content-length': bytes,
      'idempotency-key': key,
    },
  });
  const answered = once(call, 'response') as Promise<[IncomingMessage]>;
  answered.catch(() => undefined);
  let done = 0;
  for (const piece of master(bytes)) {
    if (!call.write(piece)) await Promise.race([once(call, 'drain'), answered]);
    done += piece.length;
    await sent?.(done);
  }
  call.end();
  const [response] = await answered;
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk as string;
  if (response.statusCode !== 201) throw new Error(`issuing answers ${response.statusCode}: ${text}`);
  const answer = JSON.parse(text) as Issued;
  issued.add(answer.proofId);
  return answer;
}

/** Uploads a master to a new slot. @param sent called with the bytes sent so far */
async function upload(
  { client }: House,
  purpose: 'verify' | 'verify_large',
  bytes: number,
  sent?: (bytes: number) => Promise<void>,
): Promise<string> {
  const slot = await client.createUpload({ purpose, contentLength: bytes });
  async function* audio(): AsyncGenerator<Uint8Array> {
    let done = 0;
    for (const piece of master(bytes)) {
      yield piece;
      done += piece.length;
      await sent?.(done);
    }
  }
  return (await client.upload(slot, audio(), { bytes })).uploadId;
}

/** Returns the peak resident memory of the process so far in MiB, and its processor time in seconds. */
async function usage({ service }: House): Promise<{ readonly peakMiB: number; readonly cpu: number }> {
  const status = await readFile(`/proc/${service.pid}/status`, 'utf8');
  const stat = (await readFile(`/proc/${service.pid}/stat`, 'utf8')).split(') ')[1]!.split(' ');
  return {
    peakMiB: Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)![1]) / 1024,
    cpu: (Number(stat[11]) + Number(stat[12])) / CLOCK_TICKS,
  };
}

type LargeCall = (house: House, bytes: number) => Promise<void>;

interface Grown {
  readonly beforeMiB: number;
  readonly peakMiB: number;
  /** The processor time in seconds. */
  readonly cpu: number;
  readonly seconds: number;
}

/** Measures `calls` calls of `size` MiB in a new process that has served `warmCalls` calls of 65 MiB. */
async function measured(call: LargeCall, warmCalls: number, calls: number, size: number): Promise<Grown> {
  let grown: Grown | undefined;
  await withHouse(async (house) => {
    for (let warm = 0; warm < warmCalls; warm += 1) await call(house, masterBytes(BASE_MIB));
    const before = await usage(house);
    const began = performance.now();
    for (let n = 0; n < calls; n += 1) await call(house, masterBytes(size));
    const seconds = (performance.now() - began) / 1000;
    const { peakMiB, cpu } = await usage(house);
    grown = { beforeMiB: before.peakMiB, peakMiB, cpu: cpu - before.cpu, seconds };
  });
  return grown!;
}

/**
 * Measures one kind of call by length. The heap of a process grows with its work in the first gigabytes. So the growth
 * by a long file is compared with the growth of another process, which served the same bytes in calls of 65 MiB.
 */
async function curve(kind: keyof typeof SPARE_MIB, call: LargeCall): Promise<void> {
  for (const size of sizes) {
    const sameBytes = Math.ceil(size / BASE_MIB);
    const warmCalls = Math.max(WARM_CALLS, sameBytes);
    const { beforeMiB, peakMiB, cpu, seconds } = await measured(call, warmCalls, 1, size);
    const small = size > BASE_MIB ? await measured(call, warmCalls, sameBytes, BASE_MIB) : undefined;
    const grewMiB = peakMiB - beforeMiB;
    const smallGrewMiB = small === undefined ? 0 : small.peakMiB - small.beforeMiB;
    const compared =
      small === undefined ? '' : `, ${sameBytes} of ${BASE_MIB} MiB ${smallGrewMiB.toFixed(1)} MiB`;
    const perGigabyte = cpu / ((size * MIB) / 1e9);
    const added = `${kind} of ${size} MiB added ${grewMiB.toFixed(1)} MiB${compared}`;
    const memory = `at most ${peakMiB.toFixed(0)} MiB resident`;
    const time = `${cpu.toFixed(2)} s CPU (${perGigabyte.toFixed(1)} s/GB), ${seconds.toFixed(1)} s`;
    console.log(`${added}: ${memory}, ${time}`);
    must(grewMiB <= smallGrewMiB + SPARE_MIB[kind], added);
  }
}

async function verified({ client }: House, uploadId: string, verdict: string): Promise<void> {
  const result = await client.verify({ uploadId });
  must(result.verdict === verdict, `the verdict is ${result.verdict} instead of ${verdict}`);
}

/** Issues a master, downloads it in two ranges, verifies the download, and erases the proof. */
async function wholeLife(house: House, bytes: number): Promise<void> {
  const { client } = house;
  const { proofId, asset } = await issue(house, bytes, { key: `whole-life-${bytes}` });
  const large = asset.bytes > BASE_MIB * MIB;
  must((asset.uploadPurpose === 'verify_large') === large, 'the answer names the wrong purpose');
  const middle = Math.floor(asset.bytes / 2);
  const ranges = [
    { start: 0, end: middle - 1 },
    { start: middle, end: asset.bytes - 1 },
  ];
  const hash = createHash('sha256');
  async function* downloaded(): AsyncGenerator<Uint8Array> {
    for (const range of ranges) {
      const part = await client.readAsset(proofId, { range });
      for await (const chunk of part.body) {
        hash.update(chunk);
        yield chunk;
      }
    }
  }
  const slot = await client.createUpload({
    purpose: large ? 'verify_large' : 'verify',
    contentLength: asset.bytes,
  });
  const { uploadId } = await client.upload(slot, downloaded(), { bytes: asset.bytes });
  must(hash.digest('hex') === asset.sha256, 'the ranges are not the issued file');
  await verified(house, uploadId, 'valid');
  await client.eraseProof(proofId);
  house.issued.delete(proofId);
  await verified(house, uploadId, 'unregistered');
  console.log(`${asset.bytes} bytes were issued, downloaded by range, uploaded, verified and erased`);
}

/** Returns a client for the service, whose port changes when it starts again. */
function clientOf({ service, partner }: Pick<House, 'service' | 'partner'>): Client {
  return createClient({ baseUrl: service.partnerUrl, apiKey: partner.apiKey });
}

/** Kills the process after each share of an upload. It accepts the file again afterwards. */
async function killUploads(kills: number, bytes: number): Promise<void> {
  await withHouse(async (house) => {
    for (let kill = 1; kill <= kills; kill += 1) {
      const at = (bytes * kill) / (kills + 1);
      const doomed = clientOf(house);
      await upload({ ...house, client: doomed }, 'verify_large', bytes, async (sent) => {
        if (sent >= at && house.service.running()) await house.service.stop('SIGKILL');
      }).then(
        () => must(false, `an upload that was killed at ${kill} is stored`),
        () => doomed.close(),
      );
      await house.service.restart();
      const client = clientOf(house);
      await verified(
        { ...house, client },
        await upload({ ...house, client }, 'verify_large', bytes),
        'unreadable',
      );
      client.close();
    }
    console.log(`${kills} kills of an upload of ${bytes} bytes`);
  });
}

/** Kills the process after each share of an issuing. Afterwards one proof exists, and no other file. */
async function killIssuings(kills: number, bytes: number): Promise<void> {
  await withHouse(async (house) => {
    const { service } = house;
    const key = 'killed-issuing-0001';
    for (let kill = 1; kill <= kills; kill += 1) {
      const at = (bytes * kill) / (kills + 1);
      await issue(house, bytes, {
        key,
        sent: async (sent) => {
          if (sent >= at && service.running()) await service.stop('SIGKILL');
        },
      }).then(
        () => must(false, `an issuing that was killed at ${kill} is answered`),
        () => undefined,
      );
      await service.restart();
    }
    const first = await issue(house, bytes, { key });
    const again = await issue(house, bytes, { key });
    must(first.proofId === again.proofId, 'a repeated issuing makes a second proof');
    const files = await stores.files(service.dataDirectory);
    must(files.length === 1, `after the kills there are the files ${files.join(', ')}`);
    console.log(`${kills} kills of an issuing of ${bytes} bytes`);
  });
}

/** Runs two large uploads of one partner beside forty small ones of another. */
async function besideSmallOnes(bytes: number): Promise<void> {
  await withHouse(async (house) => {
    const other = await house.service.partner('volume');
    const small = createClient({
      baseUrl: house.service.partnerUrl,
      apiKey: other.apiKey,
      retry: { maxAttempts: 1 },
    });
    const large = [1, 2].map(() => upload(house, 'verify_large', bytes));
    const refusals: string[] = [];
    await inParallel(Array(40).keys(), SMALL_WIDTH, async () => {
      await upload({ ...house, client: small }, 'verify', masterBytes(1)).catch((error: unknown) =>
        refusals.push(String(error)),
      );
    });
    must(
      refusals.length === 0,
      `${refusals.length} small uploads were refused beside large ones: ${[...new Set(refusals)].join('; ')}`,
    );
    await Promise.all(large);
    small.close();
    console.log('40 small uploads beside 2 large ones');
  });
}

await curve('upload', async (house, bytes) =>
  verified(
    house,
    await upload(house, bytes > BASE_MIB * MIB ? 'verify_large' : 'verify', bytes),
    'unreadable',
  ),
);
await curve('issuing', async (house, bytes) => void (await issue(house, bytes, { key: randomUUID() })));
await withHouse((house) => wholeLife(house, masterBytes(sizes.at(-1)!)));
const kills = Number(values.kills);
const killBytes = masterBytes(Number(values['kill-size']));
// Before the kills, so that SMALL_WIDTH stays within the share.
await besideSmallOnes(killBytes);
if (kills > 0) {
  await killUploads(kills, killBytes);
  await killIssuings(kills, killBytes);
}
await stores.remove();
for (const violation of violations) console.log(`VIOLATION: ${violation}`);
console.log(`${violations.length} violations`);
process.exit(violations.length === 0 ? 0 : 1);
