import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import {
  CaptureError,
  createDeviceKey,
  DeviceKey,
  loadDeviceKey,
  MAX_BUFFERED_BYTES,
  openTrace,
  TRACE_LIMITS,
  type TraceEvent,
  TraceFullError,
} from '../../src/witness/capture/index.js';
import { readTrace } from '../../src/witness/trace/read-trace.js';
import { ALL_SUPPORTED, opened, SESSION, writeTrace } from './write-trace.js';

const HEADER = { adapter: 'test', adapterVersion: '1.0', channels: ALL_SUPPORTED } as const;

async function read(bytes: Uint8Array) {
  const trace = await readTrace(opened(bytes));
  const events: TraceEvent[] = [];
  for await (const batch of trace.events()) events.push(...batch);
  return { events, codes: trace.findings.map(({ code }) => code), sealed: trace.sealed };
}

t.test('a key is made once, kept for its owner alone, and loaded', async (t) => {
  const directory = t.testdir();
  for (const algorithm of ['Ed25519', 'ES256'] as const) {
    const file = join(directory, algorithm);
    const made = await createDeviceKey(file, algorithm);
    t.equal((await stat(file)).mode & 0o777, 0o600);
    const loaded = await loadDeviceKey(file);
    t.strictSame([loaded.deviceId, loaded.algorithm], [made.deviceId, algorithm]);
    t.match(made.deviceId, /^[0-9a-f]{64}$/);
    await t.rejects(createDeviceKey(file), { name: 'CaptureError', message: /already exists/ });
    t.equal((await loadDeviceKey(file)).deviceId, made.deviceId, 'the first key stays');
  }
  t.strictSame((await readdir(directory)).sort(), ['ES256', 'Ed25519'], 'no draft is left');
  const file = join(directory, 'Ed25519');
  await chmod(file, 0o644);
  await t.rejects(loadDeviceKey(file), { message: /other users can read the key file/ });
  await writeFile(file, 'no key');
  await chmod(file, 0o600);
  await t.rejects(loadDeviceKey(file), { message: /does not hold a private key/ });
  await t.rejects(loadDeviceKey(join(directory, 'none')), { code: 'ENOENT' });
});

t.test('an event that is none is refused, and the trace is as it was', async (t) => {
  const wrong = [
    { kind: 'session.nothing', at: 0 },
    { kind: 'session.saved', at: -1 },
    { kind: 'session.saved', at: 0.5 },
    { kind: 'session.saved', at: Number.NaN },
    { kind: 'session.saved', at: '0' },
    { kind: 'session.saved', at: 1, since: 2 },
    { kind: 'session.saved', at: 0, name: 'My Song' },
    { kind: 'track.added', at: 0, track: 1 },
    { kind: 'track.added', at: 0, track: 1, type: 'voice' },
    { kind: 'track.added', at: 0, track: 2 ** 32, type: 'audio' },
    { kind: 'track.added', at: 0, track: 100, type: 'audio' },
    { kind: 'track.removed', at: 0, track: 1 },
    { kind: 'tempo.point', at: 0, start: 0, bpm: 0 },
    { kind: 'tempo.point', at: 0, start: -1, bpm: 120 },
    { kind: 'transport.located', at: 0, start: Number.NaN },
    { kind: 'export.finished', at: 0, fileSha256: 'AB'.repeat(32), rerender: 'matched' },
    { kind: 'capture.gap', at: 0, reason: 'other' },
    { kind: 'midi.recorded', at: 0, take: 100, source: 1, notes: 1 },
  ] as unknown as TraceEvent[];
  const first: TraceEvent[] = [
    { kind: 'track.added', at: 0, track: 100, type: 'audio' },
    { kind: 'recording.started', at: 0, take: 100, input: 'none' },
    { kind: 'recording.discarded', at: 0, take: 100 },
  ];
  const last: TraceEvent = { kind: 'session.saved', at: 1 };
  const { bytes } = await writeTrace(async (writer) => {
    for (const event of first) writer.append(event);
    for (const event of wrong) t.throws(() => writer.append(event), CaptureError, JSON.stringify(event));
    writer.append(last);
    t.equal(writer.events, 4);
    await writer.seal();
  });
  t.strictSame(await read(bytes), { events: [...first, last], codes: [], sealed: true });
});

t.test('a header that is none is refused before a file is there', async (t) => {
  const directory = t.testdir();
  const to = join(directory, 'a.trace');
  const key = DeviceKey.generate();
  for (const header of [
    { ...HEADER, adapter: 'Ardour 7' },
    { ...HEADER, adapterVersion: 'seven' },
    { ...HEADER, startedAt: -1 },
    { ...HEADER, traceId: 'ab' },
    { ...HEADER, channels: {} as typeof ALL_SUPPORTED },
  ])
    await t.rejects(openTrace({ to, key, header }), CaptureError);
  t.strictSame(await readdir(directory), []);
  const writer = await openTrace({ to, key, header: HEADER });
  await t.rejects(openTrace({ to, key, header: HEADER }), { code: 'EEXIST' });
  t.equal((await stat(to)).mode & 0o777, 0o600);
  writer.append({ kind: 'session.saved', at: 0 });
  await writer.close();
  t.strictSame(await read(await readFile(to)), {
    events: [],
    codes: ['trace_truncated', 'trace_unsigned_tail'],
    sealed: false,
  });
});

t.test('what was not flushed has a bound, and nothing follows a seal', async (t) => {
  const event: TraceEvent = { kind: 'session.saved', at: 0 };
  let appended = 0;
  const { bytes } = await writeTrace(async (writer) => {
    await writer.flush();
    t.throws(
      () => {
        for (;;) {
          writer.append(event);
          appended += 1;
        }
      },
      { name: 'CaptureError', message: /buffer is full/ },
    );
    t.ok(writer.bufferedBytes <= MAX_BUFFERED_BYTES);
    await writer.flush();
    t.equal(writer.bufferedBytes, 0);
    writer.append(event);
    await Promise.all([writer.flush(), writer.flush(), writer.seal()]);
    for (const step of [() => writer.append(event), () => writer.flush(), () => writer.seal()])
      t.throws(step, { name: 'CaptureError', message: /sealed/ });
    await writer.close();
  });
  const { events, codes, sealed } = await read(bytes);
  t.strictSame([events.length, codes, sealed], [appended + 1, [], true]);
});

t.test('an event beyond a limit of the trace is refused as such, and the trace can be sealed', async (t) => {
  const { plugins } = TRACE_LIMITS.live;
  const added = (plugin: number): TraceEvent => ({ kind: 'plugin.added', at: 0, plugin, type: 'unknown' });
  const { bytes } = await writeTrace(async (writer) => {
    for (let plugin = 1; plugin <= plugins; plugin += 1) writer.append(added(plugin));
    t.throws(() => writer.append(added(plugins + 1)), TraceFullError);
    t.throws(() => writer.append({ kind: 'plugin.removed', at: 0, plugin: plugins + 1 }), CaptureError);
    await writer.seal();
  });
  const { events, codes, sealed } = await read(bytes);
  t.strictSame([events.length, codes, sealed], [plugins, [], true]);
});

t.test('after a write that failed the trace ends before it', async (t) => {
  class Full extends MemorySink {
    room = 2;
    override async write(bytes: Uint8Array): Promise<void> {
      this.room -= 1;
      if (this.room >= 0) return super.write(bytes);
      await super.write(bytes.subarray(0, 20));
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    }
  }
  const sink = new Full();
  const writer = await openTrace({ to: sink, key: DeviceKey.generate(), header: HEADER });
  for (const event of SESSION.slice(0, 3)) writer.append(event);
  await writer.flush();
  writer.append(SESSION[4]!);
  await t.rejects(writer.flush(), { code: 'ENOSPC' });
  t.throws(() => writer.append(SESSION[0]!), { message: /an earlier write failed/ });
  await writer.close();
  t.ok(sink.closed);
  t.strictSame(await read(sink.bytes()), {
    events: SESSION.slice(0, 3),
    codes: ['trace_truncated', 'trace_unsigned_tail'],
    sealed: false,
  });
});

t.test('a killed agent leaves a trace of all that it had flushed', async (t) => {
  const directory = t.testdir();
  const key = join(directory, 'key');
  await createDeviceKey(key);
  const script = new URL('./append-child.js', import.meta.url).pathname;
  for (let kill = 0; kill < 6; kill += 1) {
    const file = join(directory, `${kill}.trace`);
    const child = spawn(process.execPath, [script, file, key], { stdio: ['ignore', 'pipe', 'inherit'] });
    let acknowledged = 0;
    let lines = 0;
    const exited = once(child, 'exit');
    for await (const line of createInterface({ input: child.stdout })) {
      acknowledged = Number(line);
      lines += 1;
      // Amid the next append or flush, at another place each time.
      if (lines === 5 + kill * 9) setTimeout(() => child.kill('SIGKILL'), kill);
    }
    t.strictSame(await exited, [null, 'SIGKILL']);
    const trace = await readTrace(() => createReadStream(file));
    let events = 0;
    for await (const batch of trace.events()) for (const event of batch) if (event.at === events) events += 1;
    t.ok(events >= acknowledged, `${events} of ${acknowledged} acknowledged events`);
    t.match(
      trace.findings.map(({ code }) => code).filter((code) => code !== 'trace_unsigned_tail'),
      ['trace_truncated'],
    );
  }
});
