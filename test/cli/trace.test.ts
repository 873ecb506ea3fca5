import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import type { TraceEvent } from '../../src/witness/domain/trace.js';
import { readTrace } from '../../src/witness/trace/read-trace.js';
import { TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
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
    err: /--adverse must be a comma-separated list from/,
  });
  t.match(await simulate('--adverse', 'gap,import_only', '--force'), { code: 0 });
});

t.test('a proof is issued with a trace, a summary and detections from the command line', async (t) => {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  const { partnerId, caller } = await service.partner();
  const { takemark, file, directory } = await setUp(t, {
    operatorUrl: service.operatorUrl,
    operatorToken: service.service.operatorToken,
  });
  const audio = await file('mix.wav', wav(96_000));
  const [trace, key, out] = ['take.trace', 'device.pem', 'out.wav'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  t.match(
    await takemark(
      ...['operator', 'trace', 'simulate', '--minutes', '30', '--out', trace],
      ...['--key', key, '--export-of', audio],
    ),
    { code: 0 },
  );
  const imported = await firstImport(trace);
  const summary = await file('summary.json', Buffer.from('{"counters":{"takesRecorded":99999}}'));
  const detections = await file(
    'detections.json',
    Buffer.from(
      JSON.stringify({
        detections: [{ sha256: imported, detector: 'ear', detectorVersion: '1', likelihood: 0.75 }],
      }),
    ),
  );
  const issue = (...more: string[]) =>
    takemark('operator', 'issue', audio, '--partner', partnerId, '--song', 'Take one', '--out', out, ...more);
  const supplied = ['--summary', summary, '--detections', detections];
  t.match(await issue(...supplied), { code: 2, err: /need --trace/ });
  const issued = await issue('--trace', trace, ...supplied, '--json');
  t.match(issued, { code: 0, err: '' });
  const { verdict, proofId, evidenceReport } = await service.verify(caller, await readFile(out));
  t.strictSame([verdict, proofId], ['valid', JSON.parse(issued.out).proofId]);
  t.match(evidenceReport?.session?.evidence, {
    traceSha256: createHash('sha256')
      .update(await readFile(trace))
      .digest('hex'),
    export: { issuedAudio: 'matches' },
    simulated: true,
  });
  const codes = evidenceReport?.facts.map(({ code }) => code) ?? [];
  t.ok(codes.includes('session_summary_reconciled'), 'the summary arrived');
  t.ok(codes.includes('imported_audio_ai_likelihood'), 'and so did the detections');
});

async function firstImport(path: string): Promise<string | undefined> {
  const trace = await readTrace(() => createReadStream(path));
  for await (const batch of trace.events())
    for (const event of batch) if (event.kind === 'import.added') return event.samplesSha256;
  return undefined;
}
