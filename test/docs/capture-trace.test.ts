/** Tests that the page on capture traces matches the code: its table, limits, example bytes, and agent. */
import { execFile } from 'node:child_process';
import { createHash, createPrivateKey } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { appendFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import t from 'tap';
import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { DeviceKey, openTrace } from '../../src/witness/capture/index.js';
import {
  CHANNEL_SUPPORT,
  CHANNELS,
  EVENTS,
  type FieldType,
  TRACE_FINDINGS,
  TRACE_LIMITS,
  type TraceEvent,
} from '../../src/witness/domain/trace.js';
import { readTrace } from '../../src/witness/trace/read-trace.js';
import { headOfHeader, headOfSegment, signedMessage } from '../../src/witness/trace/trace-chain.js';
import { FrameSplitter } from '../../src/witness/trace/trace-frames.js';
import { type ALL_SUPPORTED, opened } from '../capture/write-trace.js';
import { ROOT } from './pages.js';

const run = promisify(execFile);
const page = await readFile(join(ROOT, 'docs/capture-trace.md'), 'utf8');

t.test('the table of events is the table of the code', async (t) => {
  const rows = Object.entries(EVENTS).map(([kind, { number, channel, fields }]) => {
    const texts = Object.entries<FieldType>(fields).map(
      ([name, type]) => `\`${name}\`: ${typeof type === 'string' ? type : type.join(' · ')}`,
    );
    return `| ${number} | \`${kind}\` | ${channel} | ${texts.join('; ')} |`.replace('|  |', '| |');
  });
  t.strictSame(
    page.split('\n').filter((line) => /^\| \d+ \| `/.test(line)),
    rows,
  );
});

t.test('channels, support, findings and bounds are those of the code', async (t) => {
  const words = (text: string) => [...text.matchAll(/`(\w+)`/g)].map(([, word]) => word);
  t.strictSame(words(/^Channels: [^.]+\./ms.exec(page)![0]), CHANNELS);
  const rows = page.split('\n').flatMap((line) => /^\| `(\w+)` \|/.exec(line)?.slice(1) ?? []);
  t.strictSame(
    rows.filter((word) => (CHANNEL_SUPPORT as readonly string[]).includes(word)),
    CHANNEL_SUPPORT,
  );
  t.strictSame(
    rows.filter((word) => word.startsWith('trace_')),
    TRACE_FINDINGS,
  );
  const { live, ...limits } = TRACE_LIMITS;
  for (const bound of [...Object.values(limits), ...Object.values(live)])
    t.ok(page.includes(bound.toLocaleString('en-US')), `${bound}`);
});

t.test('the example is what the library writes, and what the reader reads', async (t) => {
  const secret = Buffer.from(Array.from({ length: 32 }, (_, i) => i));
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), secret]);
  const key = new DeviceKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }));
  const sink = new MemorySink();
  const unsupported = Object.fromEntries(CHANNELS.map((channel) => [channel, 'unsupported']));
  const writer = await openTrace({
    to: sink,
    key,
    header: {
      adapter: 'example',
      adapterVersion: '1.0',
      startedAt: 1_767_225_600,
      traceId: '0f'.repeat(16),
      channels: {
        ...(unsupported as typeof ALL_SUPPORTED),
        session: 'supported',
        transport: 'partial',
        midi: 'unknown',
      },
    },
  });
  const events: readonly TraceEvent[] = [
    { kind: 'session.opened', at: 0, sampleRate: 48_000 },
    { kind: 'transport.located', at: 1_500_000, start: 2.5 },
    { kind: 'session.closed', at: 3_000_000, since: 1_500_000 },
  ];
  for (const event of events.slice(0, 2)) writer.append(event);
  await writer.flush();
  writer.append(events[2]!);
  await writer.seal();
  const shown = [...page.matchAll(/```hex\n([0-9a-f\n]+)```/g)].map(([, hex]) => hex!.replaceAll('\n', ''));
  t.equal(shown.length, 5, 'a block for each frame');
  t.equal(shown.join(''), sink.bytes().toString('hex'));

  const bytes = Buffer.from(shown.join(''), 'hex');
  const trace = await readTrace(opened(bytes));
  const read: TraceEvent[] = [];
  for await (const batch of trace.events()) read.push(...batch);
  t.strictSame(read, events);
  t.strictSame(trace.findings, []);

  const heads: Buffer[] = [];
  for (const frame of new FrameSplitter().push(bytes))
    if (frame.kind === 'header') heads.push(headOfHeader(frame.bytes));
    else if (frame.kind === 'segment') heads.push(headOfSegment(heads.at(-1)!, frame));
  const values = /Values on the way:\n\n```\n([^`]+)```/.exec(page)![1]!;
  t.strictSame(values.match(/[0-9a-f]{64,72}/g), [
    ...heads.map((head) => head.toString('hex')),
    ...signedMessage(false, 1, heads[1]!)
      .toString('hex')
      .match(/^(.{72})(.{64})$/)!
      .slice(1),
    key.deviceId,
    createHash('sha256').update(bytes).digest('hex'),
  ]);
});

t.test('the agent of the page runs, and leaves a trace of what it saw', async (t) => {
  const directory = t.testdir({ takes: { 'before.raw': 'abcd', 'take.raw': '' } });
  const [takes, out, key] = ['takes', 'out.trace', 'key.pem'].map((name) => join(directory, name));
  const agent = run(process.execPath, [
    join(ROOT, 'docs/examples/capture-agent.mjs'),
    takes!,
    out!,
    key!,
    '4',
  ]);
  const signatures = () =>
    readTrace(() => createReadStream(out!)).then(
      (trace) => trace.signatures,
      () => 0,
    );
  // The agent has seen the empty file once it has flushed.
  while ((await signatures()) === 0) await pause(50);
  await appendFile(join(takes!, 'take.raw'), Buffer.alloc(48_000));
  const { stdout } = await agent;
  const trace = await readTrace(() => createReadStream(out!));
  t.match(stdout, trace.deviceId);
  t.strictSame([trace.findings, trace.sealed], [[], true]);
  const kinds: string[] = [];
  for await (const batch of trace.events()) kinds.push(...batch.map(({ kind }) => kind));
  t.strictSame(kinds, [
    'session.opened',
    'recording.started',
    'recording.grew',
    'recording.finished',
    'session.closed',
  ]);
});

t.test('the library is packed alone, and works with MessagePack beside it', async (t) => {
  const directory = t.testdir();
  const { stdout } = await run(process.execPath, [
    join(ROOT, 'deploy/libraries/pack.mjs'),
    'capture',
    directory,
  ]);
  const archive = stdout.trim();
  const installed = join(directory, 'node_modules/takemark-capture');
  await mkdir(installed, { recursive: true });
  await run('tar', ['-xzf', archive, '-C', installed, '--strip-components=1']);
  await symlink(join(ROOT, 'node_modules/@msgpack'), join(directory, 'node_modules/@msgpack'));
  const description = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'));
  t.strictSame(Object.keys(description.dependencies), ['@msgpack/msgpack']);
  const { stdout: list } = await run('tar', ['-tzf', archive]);
  const files = list
    .trim()
    .split('\n')
    .map((name) => name.replace('package/', ''));
  t.strictSame(
    files.filter(
      (name) =>
        !/^(core\/(codec|domain)|witness\/(capture|domain|trace))\/|^(package\.json|LICENSE|docs\/capture-trace\.md)$/.test(
          name,
        ),
    ),
    [],
    'no server, no native code',
  );
  const agent = await readFile(join(ROOT, 'docs/examples/capture-agent.mjs'), 'utf8');
  const script = join(directory, 'agent.mjs');
  await writeFile(script, agent.replace("'takemark/capture'", "'takemark-capture'"));
  const out = join(directory, 'out.trace');
  await run(process.execPath, [script, directory, out, join(directory, 'key.pem'), '1']);
  t.ok((await readTrace(() => createReadStream(out))).sealed);
});
