import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import type { TraceEvent } from '../../src/domain/trace.js';
import { readTrace } from '../../src/evidence/trace/read-trace.js';
import { setUp } from './bench.js';

t.test('a simulated trace is made without a service, for a device and an export', async (t) => {
  const { takemark } = await setUp(t);
  const directory = t.testdir();
  const [out, key, audio] = ['a.trace', 'device.pem', 'mix.wav'].map((name) => join(directory, name));
  await writeFile(audio!, 'RIFF of a mix');
  const simulate = (...more: string[]) =>
    takemark('operator', 'trace', 'simulate', '--minutes', '10', '--out', out!, ...more);
  const made = await simulate('--key', key!, '--export-of', audio!, '--json');
  t.match(made, { code: 0, err: '' });
  const result = JSON.parse(made.out);
  const trace = await readTrace(() => createReadStream(out!));
  t.equal(trace.deviceId, result.deviceId);
  t.strictSame(trace.findings, [{ code: 'trace_simulated' }]);
  t.equal((await stat(key!)).mode & 0o777, 0o600, 'the key opens to its owner alone');
  const events: TraceEvent[] = [];
  for await (const batch of trace.events()) events.push(...batch);
  t.equal(events.length, result.events);
  t.match(
    events.find(({ kind }) => kind === 'export.finished'),
    { fileSha256: createHash('sha256').update('RIFF of a mix').digest('hex') },
  );
  t.match(await simulate('--key', key!), { code: 2, err: /exists; give --force/ });
  t.match(JSON.parse((await simulate('--key', key!, '--force', '--json')).out), {
    deviceId: result.deviceId,
  });
  const seeded = ['--seeded-key', '--force', '--json', '--seed', '7'];
  await simulate(...seeded);
  const first = await readFile(out!);
  await simulate(...seeded);
  t.ok(first.equals(await readFile(out!)), 'a seeded key makes the same bytes');
  t.match(await simulate('--adverse', 'gap,nonsense', '--force'), {
    code: 2,
    err: /--adverse must be some of/,
  });
  t.match(await simulate('--adverse', 'gap,import_only', '--force'), { code: 0 });
});
