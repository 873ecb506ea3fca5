import { createHash } from 'node:crypto';
import t from 'tap';
import { DeviceKey } from '../../src/witness/capture/index.js';
import type { TraceEvent } from '../../src/witness/domain/trace.js';
import { readTrace } from '../../src/witness/trace/read-trace.js';
import { opened, SESSION, writeTrace } from '../capture/write-trace.js';
import { sized } from '../fixtures/sampling.js';

async function read(bytes: Uint8Array, ...lengths: readonly number[]) {
  const trace = await readTrace(opened(bytes, ...lengths));
  const events: TraceEvent[] = [];
  for await (const batch of trace.events()) events.push(...batch);
  const { findings, sealed, segments, signatures } = trace;
  return { trace, events, codes: findings.map(({ code }) => code), findings, sealed, segments, signatures };
}

for (const algorithm of ['Ed25519', 'ES256'] as const)
  t.test(`what was appended is read, signed with ${algorithm}`, async (t) => {
    const { bytes, key } = await writeTrace(
      async (writer) => {
        for (const [index, event] of SESSION.entries()) {
          writer.append(event);
          if (index % 5 === 4) await writer.flush();
        }
        await writer.seal();
      },
      { key: DeviceKey.generate(algorithm) },
    );
    const { trace, events, findings, sealed, segments, signatures } = await read(bytes);
    t.strictSame(events, SESSION);
    t.strictSame(
      { findings, sealed, segments, signatures },
      { findings: [], sealed: true, segments: 4, signatures: 4 },
    );
    t.equal(trace.deviceId, key.deviceId);
    t.equal(trace.sha256, createHash('sha256').update(bytes).digest('hex'));
    t.equal(trace.bytes, bytes.length);
  });

t.test('every cut gives the events up to the last signature before it', async (t) => {
  const { bytes } = await writeTrace(async (writer) => {
    for (const [index, event] of SESSION.entries()) {
      writer.append(event);
      if (index % 4 === 3) await writer.flush();
    }
    await writer.seal();
  });
  let last = -1;
  for (let length = 0; length < bytes.length; length += sized(1, 5)) {
    const cut = bytes.subarray(0, length);
    const outcome = await read(cut).catch((error) => error);
    if (outcome instanceof Error) {
      t.match(outcome, { code: 'unprocessable', reason: 'trace_malformed' });
      t.equal(last, -1, 'refused only while the header is not whole');
      continue;
    }
    last = Math.max(last, outcome.events.length);
    t.equal(outcome.events.length, last);
    t.strictSame(outcome.events, SESSION.slice(0, last));
    t.ok(outcome.codes.includes('trace_truncated'));
  }
  t.equal(last, 16, 'all but what the seal alone covers');
});
