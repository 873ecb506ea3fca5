import { join } from 'node:path';
import { eachOf } from '../../src/core/async/each-of.js';
import { defined } from '../../src/core/domain/defined.js';
import { broadcastWaveFile } from '../fixtures/broadcast-wave.js';
import type { ExpressHello } from '../load/express-hello.js';
import { jsonRequest } from '../load/form.js';
import type { NodeHello } from '../load/node-hello.js';
import type { PreparedCall, RequestClient } from '../load/request-client.js';
import type { UploadClient } from '../load/upload-client.js';
import { figure, interleave, type Measure, proportion, type Run, ratio, type Section } from '../measure.js';
import { Child } from '../service/child.js';
import { openLeftStore } from '../service/left-store.js';
import { ServiceProcess } from '../service/service-process.js';
import { percentile } from '../statistics.js';
import {
  createPartners,
  eachProofCalls,
  embeddedCalls,
  type Issued,
  type Partner,
  Supply,
  sha256,
  uploadCopies,
} from './verify-calls.js';

const CONNECTIONS = 64;
/** The number of partners. Several are needed, so that the plan's limit of calls a second is not measured. */
const PARTNERS = 4;
const FILE_BYTES = 24_000;
const SIDECARS = 50;
const ISSUED_AT_ONCE = 8;
const HELLO: PreparedCall = { request: 'GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n', expect: 'hello' };
/** A call that every connection of the service makes before the clock starts. */
const HEALTH: PreparedCall = {
  request: 'GET /v1/health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n',
  expect: { ok: true },
};

interface Rate {
  readonly perSecond: number;
  readonly times: readonly number[];
  readonly waits: readonly number[];
  /** The CPU microseconds of the service per call. */
  readonly cpu: number;
  /** The CPU microseconds of the service's main thread per call. Absent if the system does not report them. */
  readonly main?: number;
}

export const verify: Measure = { name: 'verify', run: measureVerify };

async function measureVerify(run: Run): Promise<Section> {
  const client = new Child<RequestClient>(new URL('../load/request-client.js', import.meta.url));
  const uploads = new Child<UploadClient>(new URL('../load/upload-client.js', import.meta.url));
  const hello = new Child<ExpressHello>(new URL('../load/express-hello.js', import.meta.url));
  const plain = new Child<NodeHello>(new URL('../load/node-hello.js', import.meta.url));
  const service = await ServiceProcess.start({
    dataDir: join(run.dataDir, 'verify'),
    profileDir: run.profileDir,
    main: run.serviceMain,
  });
  let section: Section;
  let partners: readonly Partner[];
  let units: number;
  try {
    const helloPort = await hello.call('listen');
    const plainPort = await plain.call('listen');
    partners = await createPartners(service, PARTNERS);
    const { verifyCalls: calls, verifyRounds: rounds, verifyProofs: proofs } = run.scale;
    // A share for each round and one for the warm-up.
    const each = new Supply(await proofCalls(run, service, uploads, partners, proofs * (rounds + 1)), proofs);
    const embedded = new Supply(await newUnits(run, service, uploads, partners, calls * (rounds + 1)), calls);
    const pairs = new Supply(await pairCalls(run, service, uploads, partners, calls * (rounds + 1)), calls);
    const replays = embedded.all.slice(0, calls);

    const send = async (
      port: number,
      prepared: readonly PreparedCall[],
      newcomer?: PreparedCall,
    ): Promise<Rate> => {
      const isService = port === Number(service.partnerUrl.port);
      const before = await service.probe.call('use');
      const { seconds, times, waits, wrong } = await client.call(
        'send',
        defined({
          port,
          connections: CONNECTIONS,
          calls: prepared,
          prime: isService ? HEALTH : HELLO,
          newcomer,
        }),
      );
      const after = await service.probe.call('use');
      for (const what of wrong.slice(0, 3))
        run.wrong(`verify: ${wrong.length} wrong answers, for instance ${what}`);
      return {
        perSecond: prepared.length / seconds,
        times,
        waits,
        cpu: ((after.cpuSeconds - before.cpuSeconds) / prepared.length) * 1e6,
        ...(after.mainSeconds !== undefined &&
          before.mainSeconds !== undefined && {
            main: ((after.mainSeconds - before.mainSeconds) / prepared.length) * 1e6,
          }),
      };
    };
    const port = Number(service.partnerUrl.port);
    const results = await interleave(run, 'verify', rounds, [
      {
        name: 'express',
        once: () =>
          send(
            helloPort,
            Array.from({ length: calls * 2 }, () => HELLO),
          ),
      },
      {
        name: 'node',
        once: () =>
          send(
            plainPort,
            Array.from({ length: calls * 2 }, () => HELLO),
          ),
      },
      { name: 'each', once: () => send(port, each.next()) },
      { name: 'embedded', once: () => send(port, embedded.next()) },
      { name: 'pair', once: () => send(port, pairs.next()) },
      { name: 'replay', once: () => send(port, replays) },
      { name: 'newcomers', once: () => send(port, replays, HEALTH) },
    ]);
    units = each.used + embedded.used + pairs.used;
    section = report(results, calls);
  } finally {
    await Promise.all([client.stop(), uploads.stop(), hello.stop(), plain.stop(), service.stop()]);
  }
  await checkUnits(run, service.dataDir, partners, units);
  return section;
}

/** Issues proofs of different files, each in one slot: each call verifies another proof. */
async function proofCalls(
  run: Run,
  service: ServiceProcess,
  client: Child<UploadClient>,
  partners: readonly Partner[],
  count: number,
): Promise<readonly PreparedCall[]> {
  run.progress(`verify: ${count} proofs to be verified`);
  const issued: Issued[] = [];
  await eachOf(
    Array.from({ length: count }, (_, index) => index),
    ISSUED_AT_ONCE,
    async (index) => {
      const audio = broadcastWaveFile(FILE_BYTES, `Each ${index}`);
      issued.push(
        await service.issue(partners[index % partners.length]!.partnerId, `Each ${index}`, audio, 'embedded'),
      );
    },
  );
  return eachProofCalls(service, client, partners, issued);
}

/** Uploads a credentialed file into a slot for each call, so that each call is a new billable unit. */
async function newUnits(
  run: Run,
  service: ServiceProcess,
  client: Child<UploadClient>,
  partners: readonly Partner[],
  count: number,
): Promise<readonly PreparedCall[]> {
  const issued = await service.issue(
    partners[0]!.partnerId,
    'Bench',
    broadcastWaveFile(FILE_BYTES, 'Bench'),
    'embedded',
  );
  run.progress(`verify: ${count} uploads to be verified`);
  return embeddedCalls(issued, await uploadCopies(service, client, partners, count, issued.deliverable));
}

/**
 * Returns `count` calls that pair the uploads of one file with its sidecars. Each pair is a new billable unit,
 * and its signature is checked in the call.
 */
async function pairCalls(
  run: Run,
  service: ServiceProcess,
  client: Child<UploadClient>,
  partners: readonly Partner[],
  count: number,
): Promise<readonly PreparedCall[]> {
  const audio = broadcastWaveFile(FILE_BYTES, 'Pair');
  const issued = [];
  for (let i = 0; i < SIDECARS; i += 1)
    issued.push(await service.issue(partners[0]!.partnerId, `Pair ${i}`, audio, 'sidecar'));
  run.progress(`verify: ${count} pairs to be verified`);
  const slots = await uploadCopies(service, client, partners, Math.ceil(count / SIDECARS), audio);
  const calls = issued.flatMap(({ proofId, deliverable }) =>
    slots.map(({ uploadId, apiKey }) => ({
      request: jsonRequest(
        '/v1/verify',
        { 'x-api-key': apiKey },
        JSON.stringify({ uploadId, sidecar: deliverable.toString('base64') }),
      ),
      expect: {
        verdict: 'valid',
        good: true,
        proofId,
        'decision.credentialCarrier': 'sidecar',
        'audio.sha256': sha256(audio),
      },
    })),
  );
  return calls.slice(0, count);
}

/**
 * Checks the billed units in the store that the service has left. There must be as many units as new calls,
 * and none for the replays.
 */
async function checkUnits(
  run: Run,
  dataDir: string,
  partners: readonly Partner[],
  units: number,
): Promise<void> {
  const { stores, close } = await openLeftStore(dataDir);
  let used = 0;
  for (const { partnerId } of partners)
    used += await stores.getUsed(partnerId, Math.floor(Date.now() / 1000));
  await close();
  if (used !== units) run.wrong(`verify: ${units} new units were asked for, ${used} were billed`);
}

function report(results: ReadonlyMap<string, readonly Rate[]>, calls: number): Section {
  const rates = (name: string): readonly number[] => results.get(name)!.map(({ perSecond }) => perSecond);
  const percentiles = (name: string, percent: number): readonly number[] =>
    results.get(name)!.map(({ times }) => percentile(times, percent));
  const labels = {
    each: 'verify, each proof once',
    embedded: 'verify, one proof',
    pair: 'verify, audio and sidecar',
    replay: 'verify, replays only',
  } as const;
  const names = ['each', 'embedded', 'pair', 'replay'] as const;
  const waits = (percent: number): readonly number[] =>
    results.get('newcomers')!.map((rate) => percentile(rate.waits, percent));
  const main = (name: (typeof names)[number]): readonly number[] =>
    results.get(name)!.flatMap((rate) => rate.main ?? []);
  return {
    id: 'verify',
    title: 'Verify',
    method: `POST /v1/verify of the real service on the embedded store, ${CONNECTIONS} kept-alive connections from another process, ${calls} calls a round, after a first call of each connection that is not timed. In a round of "each proof once" every call verifies another proof, and no round verifies a proof of an earlier one. Every call but a replay is a new billable unit whose usage record is on disk before the answer; verdict, proof and digest of every answer are checked, and the units billed are counted in the store afterwards. A pair's signature is checked in the call, an embedded one's was checked when the upload was measured.`,
    figures: [
      ...names.map((name) => figure(`verify.${name}`, labels[name], 'calls/s', 'ours', rates(name))),
      figure('verify.express', 'Express 5, hello', 'calls/s', 'baseline', rates('express')),
      figure('verify.node', 'node:http, hello', 'calls/s', 'baseline', rates('node')),
      ...names.map((name) =>
        figure(
          `verify.${name}.cpu`,
          labels[name],
          'CPU µs a call',
          'ours',
          results.get(name)!.map(({ cpu }) => cpu),
        ),
      ),
      ...names
        .filter((name) => main(name).length > 0)
        .map((name) =>
          figure(`verify.${name}.main`, `${labels[name]}, main thread`, 'CPU µs a call', 'ours', main(name)),
        ),
      figure('verify.newcomer', 'first answer on a new connection under load, p50', 'ms', 'ours', waits(50)),
      figure(
        'verify.newcomer.p99',
        'first answer on a new connection under load, p99',
        'ms',
        'ours',
        waits(99),
      ),
      ...(['express', 'node', ...names] as const).map((name) =>
        figure(
          `verify.${name}.p99`,
          `${name === 'express' ? 'Express 5, hello' : name === 'node' ? 'node:http, hello' : labels[name]}, p99`,
          'ms',
          name === 'express' || name === 'node' ? 'baseline' : 'ours',
          percentiles(name, 99),
        ),
      ),
    ],
    comparisons: [
      ratio(
        'verify.each/express',
        'verify, each proof once',
        'Express hello',
        'calls/s',
        rates('each'),
        rates('express'),
      ),
      ratio(
        'verify.each/node',
        'verify, each proof once',
        'node:http hello',
        'calls/s',
        rates('each'),
        rates('node'),
      ),
      ratio(
        'verify.embedded/express',
        'verify, one proof, each a new unit',
        'Express hello',
        'calls/s',
        rates('embedded'),
        rates('express'),
      ),
      ratio(
        'verify.pair/express',
        'verify, pair, each a new unit',
        'Express hello',
        'calls/s',
        rates('pair'),
        rates('express'),
      ),
      ratio(
        'verify.replay/express',
        'verify, replays only',
        'Express hello',
        'calls/s',
        rates('replay'),
        rates('express'),
      ),
      proportion(
        'verify.each.tail',
        'p99 of a call, each proof once',
        'its own p50',
        'ms',
        percentiles('each', 99),
        percentiles('each', 50),
      ),
    ],
    notes: [],
  };
}
