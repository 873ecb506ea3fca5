import { join } from 'node:path';
import { broadcastWaveFile } from '../fixtures/broadcast-wave.js';
import { type Connection, openConnections } from '../load/connection.js';
import { formRequest, jsonRequest, uploadRequest } from '../load/form.js';
import { figure, interleave, type Measure, proportion, type Run, type Section } from '../measure.js';
import { ServiceProcess } from '../service/service-process.js';

/** The number of connections, which is the number of files that the core hashes at the same time. */
const CONNECTIONS = 4;
const FILE_BYTES = 1_000_000;
/** The number of files in a round per call of verify in a round. */
const SHARE = 0.1;

/** Sends a file and returns its verdict. */
type Verify = (connection: Connection) => Promise<string>;

export const oneCall: Measure = { name: 'one-call', run: measureOneCall };

async function measureOneCall(run: Run): Promise<Section> {
  const service = await ServiceProcess.start({
    dataDir: join(run.dataDir, 'one-call'),
    profileDir: run.profileDir,
    main: run.serviceMain,
  });
  const port = Number(service.partnerUrl.port);
  const connections = await openConnections(port, CONNECTIONS);
  const files = Math.round(run.scale.verifyCalls * SHARE);
  try {
    const partnerId = await service.createPartner('volume');
    const apiKey = await service.createKey(partnerId);
    const audio = broadcastWaveFile(FILE_BYTES, 'Bench');
    const { deliverable } = await service.issue(partnerId, 'Bench', audio, 'embedded');
    /** Returns the microseconds of the service's CPU for a file. */
    const cpuOf = async (verify: Verify): Promise<number> => {
      const before = await service.probe.call('use');
      let left = files;
      await Promise.all(
        connections.map(async (connection) => {
          while (left-- > 0) {
            const verdict = await verify(connection);
            if (verdict !== 'valid') run.wrong(`one-call: the verdict is ${verdict}`);
          }
        }),
      );
      const after = await service.probe.call('use');
      return ((after.cpuSeconds - before.cpuSeconds) / files) * 1e6;
    };
    const results = await interleave(run, 'one-call', run.scale.verifyRounds, [
      { name: 'three', once: () => cpuOf((connection) => threeCalls(connection, apiKey, deliverable)) },
      { name: 'one', once: () => cpuOf((connection) => singleCall(connection, apiKey, deliverable)) },
    ]);
    return report(results.get('one')!, results.get('three')!, files);
  } finally {
    for (const connection of connections) connection.close();
    await service.stop();
  }
}

async function threeCalls(connection: Connection, apiKey: string, file: Uint8Array): Promise<string> {
  const key = { 'x-api-key': apiKey };
  const slot = await connection.request([jsonRequest('/v1/uploads', key, '{"purpose":"verify"}')]);
  const { uploadId, fields } = JSON.parse(slot.body.toString()) as {
    readonly uploadId: string;
    readonly fields: Readonly<Record<string, string>>;
  };
  await connection.request(uploadRequest(`/uploads/${uploadId}`, fields, [file]));
  const result = await connection.request([jsonRequest('/v1/verify', key, JSON.stringify({ uploadId }))]);
  return verdictOf(result.body);
}

async function singleCall(connection: Connection, apiKey: string, file: Uint8Array): Promise<string> {
  const { body } = await connection.request(
    formRequest('/v1/verifications', { 'x-api-key': apiKey }, {}, [file]),
  );
  return verdictOf(body);
}

function verdictOf(body: Buffer): string {
  return String((JSON.parse(body.toString()) as { readonly verdict?: string }).verdict);
}

function report(one: readonly number[], three: readonly number[], files: number): Section {
  const unit = 'CPU µs a call';
  return {
    id: 'one-call',
    title: 'A file and its verdict in one call',
    method: `A credentialed file of 1 MB, sent to the real service on the embedded store over ${CONNECTIONS} kept-alive connections, ${files} files a round. One side sends it with POST /v1/verifications, the other side takes a slot, posts the file and calls verify. Both sides run in turn against the same process, and each verdict is checked. The CPU is that of all threads of the service.`,
    figures: [
      figure('one-call.one', 'one call', unit, 'ours', one),
      figure('one-call.three', 'slot, post and verify', unit, 'ours', three),
    ],
    comparisons: [
      proportion(
        'one-call.cpu',
        'CPU of a file of 1 MB, in one call',
        'slot, post and verify',
        unit,
        one,
        three,
      ),
    ],
    notes: [],
  };
}
