import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createDeviceKey, DeviceKey, loadDeviceKey, type TraceSink } from '../../capture/index.js';
import { seededDeviceKey, simulateTrace } from '../../capture/simulate/simulate-trace.js';
import { ADVERSE_SCENARIOS, type AdverseScenario } from '../../capture/simulate/simulated-session.js';
import { defineCommand, EXIT, UsageError } from '../command.js';
import { planOutput, writeOutput } from '../output-file.js';
import { printable } from '../terminal.js';

/** A week. */
const MAX_MINUTES = 10_080;

export const simulateSessionTrace = defineCommand({
  name: 'operator trace simulate',
  summary: 'Make the signed trace of a session that never was, for tests and sandboxes',
  details: [
    'The header says that the trace is simulated, reports repeat it, and the environment production',
    'refuses to issue with it. No service is needed. --adverse takes scenarios, parted by commas:',
    '',
    ...ADVERSE_SCENARIOS.map((scenario) => `  ${scenario}`),
    '',
    'Without --key and --seeded-key the trace is signed with a key that nobody keeps.',
  ],
  operands: [],
  options: {
    minutes: { value: 'minutes', range: [2, MAX_MINUTES], help: 'length of the session (90)' },
    seed: { value: 'number', range: [0, 0xffff_ffff], help: 'what determines the session (1)' },
    out: { value: 'file', required: true, help: 'where the trace goes' },
    adverse: { value: 'scenarios', help: 'what is wrong with the session or with the file' },
    'export-of': {
      value: 'file',
      help: 'audio whose digest the export has: the trace can be issued with it',
    },
    key: { value: 'file', help: "the device's key; it is made where there is none" },
    'seeded-key': { help: 'a key that the seed determines: the same trace in every byte' },
    force: { help: 'replace a file that exists' },
    json: { help: 'the trace and what was done in it as one line of JSON' },
  },
  async run(_operands, options, { terminal }) {
    if (options.key !== undefined && options.seededKey)
      throw new UsageError('--key and --seeded-key exclude each other');
    const { minutes = 90, seed = 1, exportOf, key: keyFile } = options;
    const adverse = scenariosOf(options.adverse);
    const inputs = [exportOf, keyFile].filter((path) => path !== undefined);
    const output = await planOutput(options.out, options.force, inputs);
    const exportSha256 = exportOf === undefined ? undefined : await digestOf(exportOf);
    const key =
      keyFile !== undefined
        ? await loadOrCreateKey(keyFile)
        : options.seededKey
          ? seededDeviceKey(seed)
          : DeviceKey.generate();
    const chunks: Uint8Array[] = [];
    const to: TraceSink = {
      async write(bytes) {
        chunks.push(bytes);
      },
      async sync() {},
      async close() {},
    };
    const session = { minutes, seed, adverse, ...(exportSha256 === undefined ? {} : { exportSha256 }) };
    const { events, counters } = await simulateTrace({ ...session, to, key });
    await writeOutput(output, chunks);
    const { deviceId } = key;
    const publicKey = Buffer.from(key.publicKey).toString('base64');
    const bytes = chunks.reduce((sum, { length }) => sum + length, 0);
    if (options.json)
      terminal.printJson({ trace: options.out, bytes, events, deviceId, publicKey, counters });
    else
      terminal.print(
        `${events} events of ${minutes} simulated minutes, device ${deviceId.slice(0, 16)}  ${printable(options.out)}`,
      );
    return EXIT.good;
  },
});

function scenariosOf(text: string | undefined): readonly AdverseScenario[] {
  return (text?.split(',') ?? []).map((word) => {
    const scenario = ADVERSE_SCENARIOS.find((known) => known === word);
    if (scenario === undefined)
      throw new UsageError(`--adverse must be some of ${ADVERSE_SCENARIOS.join(', ')}, parted by commas`);
    return scenario;
  });
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

async function loadOrCreateKey(file: string): Promise<DeviceKey> {
  return loadDeviceKey(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return createDeviceKey(file);
    throw error;
  });
}
