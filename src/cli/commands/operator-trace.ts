import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createDeviceKey, DeviceKey, loadDeviceKey } from '../../witness/capture/index.js';
import { defineCommand, EXIT, UsageError } from '../command.js';
import { planOutput, writeOutput } from '../output-file.js';
import { MemorySink } from '../specimens/memory-sink.js';
import { seededDeviceKey, simulateTrace } from '../specimens/simulate-trace.js';
import { ADVERSE_SCENARIOS, type AdverseScenario } from '../specimens/simulated-session.js';
import { printable } from '../terminal.js';

/** A week. */
const MAX_MINUTES = 10_080;

export const simulateSessionTrace = defineCommand({
  name: 'operator trace simulate',
  summary: 'Create a signed trace of a simulated session, for tests and sandboxes',
  details: [
    'The header marks the trace as simulated and reports repeat the mark. The production environment',
    'refuses to issue with a simulated trace. The command needs no service. --adverse takes a',
    'comma-separated list of these scenarios:',
    '',
    ...ADVERSE_SCENARIOS.map((scenario) => `  ${scenario}`),
    '',
    'Without --key and --seeded-key, the trace is signed with a new key that is discarded afterwards.',
  ],
  options: {
    minutes: { value: 'minutes', range: [2, MAX_MINUTES], help: 'length of the session in minutes (90)' },
    seed: { value: 'number', range: [0, 0xffff_ffff], help: 'random seed of the session (1)' },
    out: { value: 'file', required: true, help: 'trace file to write' },
    adverse: { value: 'scenarios', help: 'faults to simulate in the session or in the trace file' },
    'export-of': {
      value: 'file',
      help: "audio file to record as the session's export, so that it can be issued with the trace",
    },
    key: { value: 'file', help: 'device key; created if missing' },
    'seeded-key': { help: 'derive the key from the seed, so that every byte of the trace is reproducible' },
    force: { help: 'replace an existing file' },
    json: { help: 'print the trace and its counters as one line of JSON' },
  },
  async run(_operands, options, { terminal }) {
    if (options.key !== undefined && options.seededKey)
      throw new UsageError('give either --key or --seeded-key, not both');
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
    const to = new MemorySink();
    const session = { minutes, seed, adverse, ...(exportSha256 === undefined ? {} : { exportSha256 }) };
    const { events, counters } = await simulateTrace({ ...session, to, key });
    await writeOutput(output, to.parts);
    const { deviceId } = key;
    const publicKey = Buffer.from(key.publicKey).toString('base64');
    const bytes = to.parts.reduce((sum, { length }) => sum + length, 0);
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
      throw new UsageError(`--adverse must be a comma-separated list from ${ADVERSE_SCENARIOS.join(', ')}`);
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
