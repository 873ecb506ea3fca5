/** Tests that reading a trace detects every changed bit. */
import { createHash } from 'node:crypto';
import t from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { SeededRandom } from '../../src/cli/specimens/random.js';
import { seededDeviceKey, simulateTrace } from '../../src/cli/specimens/simulate-trace.js';
import type { AdverseScenario } from '../../src/cli/specimens/simulated-session.js';
import { DeviceKey } from '../../src/witness/capture/index.js';
import { replayTrace } from '../../src/witness/replay/replay-trace.js';
import { composeReport } from '../../src/witness/report/compose-report.js';
import { evaluateOverlay } from '../../src/witness/report/overlay.js';
import { settleFacts } from '../../src/witness/report/settle-facts.js';
import { type ReadTrace, readTrace } from '../../src/witness/trace/read-trace.js';
import { opened, SESSION, writeTrace } from '../capture/write-trace.js';
import { sized } from '../fixtures/sampling.js';

/** Returns the result of a reading without the digest of the file. A refusal is returned as its message. */
async function reading(bytes: Uint8Array, ...lengths: readonly number[]): Promise<string> {
  try {
    const trace = await readTrace(opened(bytes, ...lengths));
    const content = createHash('sha256');
    for await (const batch of trace.events()) content.update(JSON.stringify(batch));
    const { header, deviceId, sealed, signatures, segments, findings } = trace;
    return JSON.stringify({
      findings,
      header,
      deviceId,
      sealed,
      signatures,
      segments,
      content: content.digest('hex'),
    });
  } catch (error) {
    const { code, reason } = error as { code?: string; reason?: string };
    if (code !== 'unprocessable') throw error;
    return `refused: ${reason}`;
  }
}

/** The distance between two changed bits. It is odd, so that all places of a byte occur. */
const STEP = sized(1, 41);

const findingsOf = (text: string): string =>
  text.startsWith('refused') ? text : JSON.stringify((JSON.parse(text) as ReadTrace).findings);

function flipped(bytes: Buffer, bit: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[bit >> 3]! ^= 1 << (bit & 7);
  return changed;
}

async function simulated(seed: number, adverse: readonly AdverseScenario[] = []): Promise<Buffer> {
  const sink = new MemorySink();
  await simulateTrace({ minutes: 6, seed, adverse, to: sink, key: seededDeviceKey(seed) });
  return sink.bytes();
}

t.test('bits all over a sealed trace', async (t) => {
  // The other algorithm differs in key and signatures alone.
  for (const [algorithm, step] of [
    ['Ed25519', STEP],
    ['ES256', 7 * STEP],
  ] as const) {
    const { bytes } = await writeTrace(
      async (writer) => {
        for (const event of SESSION.slice(0, 8)) writer.append(event);
        await writer.flush();
        for (const event of SESSION.slice(8)) writer.append(event);
        await writer.seal();
      },
      { key: DeviceKey.generate(algorithm) },
    );
    const intact = findingsOf(await reading(bytes));
    t.equal(intact, '[]');
    const silent: number[] = [];
    for (let bit = 0; bit < bytes.length * 8; bit += step)
      if (findingsOf(await reading(flipped(bytes, bit))) === intact) silent.push(bit);
    t.strictSame(silent, [], `${algorithm}: ${bytes.length * 8} bits, in steps of ${step}`);
  }
});

/** Returns the facts of the report of an issuing, each as text. A refusal is returned as its message. */
async function reported(bytes: Uint8Array, deviceId: string): Promise<ReadonlySet<string>> {
  try {
    const replayed = await replayTrace(opened(bytes));
    const { facts, detail } = settleFacts(replayed, {
      standing: replayed.deviceId === deviceId ? 'enrolled' : 'unknown',
      originalSha256: 'cd'.repeat(32),
    });
    const report = composeReport({
      facts,
      detail,
      overlay: { revision: 1, engineVersion: 1, facts: evaluateOverlay(facts, []) },
      declarations: [],
      altered: 0,
    });
    return new Set([...report.facts, ...report.conflicts, ...report.unverifiable].map(({ code }) => code));
  } catch (error) {
    const { code, reason } = error as { code?: string; reason?: string };
    if (code !== 'unprocessable') throw error;
    return new Set([`refused: ${reason}`]);
  }
}

t.test('bits all over a trace, up to the report of the proof', async (t) => {
  const { bytes, key } = await writeTrace(async (writer) => {
    for (const event of SESSION.slice(0, 3)) writer.append(event);
    await writer.flush();
    for (const event of SESSION.slice(-2)) writer.append(event);
    await writer.seal();
  });
  const intact = await reported(bytes, key.deviceId);
  t.ok(intact.has('session_evidence_replayed'));
  const silent: number[] = [];
  const said = new Set<string>();
  for (let bit = 0; bit < bytes.length * 8; bit += STEP) {
    const codes = [...(await reported(flipped(bytes, bit), key.deviceId))].filter(
      (code) => !intact.has(code),
    );
    if (!codes.some((code) => /^(trace_|refused: trace_)/.test(code))) silent.push(bit);
    for (const code of codes) said.add(code);
  }
  t.strictSame(silent, [], `${bytes.length * 8} bits: ${[...said].join(', ')}`);
  t.ok(said.has('trace_signature_invalid') && said.has('trace_device_unknown'));
});

t.test('bits anywhere in longer traces', async (t) => {
  const random = new SeededRandom(1);
  for (const seed of [1, 2, 3, 4]) {
    const bytes = await simulated(seed);
    const intact = findingsOf(await reading(bytes));
    const silent: number[] = [];
    for (let trial = 0; trial < sized(500, 60); trial += 1) {
      const bit = random.whole(0, bytes.length * 8 - 1);
      if (findingsOf(await reading(flipped(bytes, bit))) === intact) silent.push(bit);
    }
    t.strictSame(silent, [], `${bytes.length} bytes`);
  }
});

t.test('bits of an unsigned tail change no evidence, and the digest reveals them', async (t) => {
  const bytes = await simulated(5, ['unsigned_tail']);
  const trace = await readTrace(opened(bytes));
  const tail = trace.findings.find(({ code }) => code === 'trace_unsigned_tail')!.values!['bytes']!;
  const contentOf = (text: string) => (JSON.parse(text) as { content: string }).content;
  const intact = contentOf(await reading(bytes));
  const random = new SeededRandom(2);
  for (let trial = 0; trial < sized(300, 60); trial += 1) {
    const changed = flipped(bytes, (bytes.length - tail) * 8 + random.whole(0, tail * 8 - 1));
    const text = await reading(changed);
    t.equal(contentOf(text), intact);
    t.match(text, /trace_unsigned_tail/);
    t.not((await readTrace(opened(changed))).sha256, trace.sha256);
  }
});

t.test('bytes that are lost or doubled anywhere', async (t) => {
  const bytes = await simulated(6);
  const intact = findingsOf(await reading(bytes));
  const random = new SeededRandom(3);
  for (let trial = 0; trial < sized(200, 40); trial += 1) {
    const at = random.whole(0, bytes.length - 1);
    const end = Math.min(bytes.length, at + random.whole(1, 400));
    const lost = Buffer.concat([bytes.subarray(0, at), bytes.subarray(end)]);
    const doubled = Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]);
    t.not(findingsOf(await reading(lost)), intact, `${at} to ${end} lost`);
    t.not(findingsOf(await reading(doubled)), intact, `${at} to ${end} doubled`);
  }
});

t.test('the chunks of the stream do not matter', async (t) => {
  const random = new SeededRandom(4);
  const traces = [
    await simulated(7),
    await simulated(8, ['gap']),
    await simulated(9, ['unsigned_tail', 'laundered']),
    flipped(await simulated(10), 9999),
  ];
  for (const bytes of traces) {
    const whole = await reading(bytes);
    t.equal(await reading(bytes, 1), whole, 'one byte at a time');
    for (let trial = 0; trial < sized(30, 8); trial += 1) {
      const most = random.pick([3, 40, 1000, 100_000]);
      const lengths = Array.from({ length: 500 }, () => random.whole(0, most));
      t.equal(await reading(bytes, ...lengths, 64), whole);
    }
  }
});
