import { encode } from '@msgpack/msgpack';
import t from 'tap';
import { EVENTS, type EventKind, TRACE_LIMITS } from '../../src/witness/domain/trace.js';
import { replayTrace } from '../../src/witness/replay/replay-trace.js';
import { type OpenTrace, readTrace } from '../../src/witness/trace/read-trace.js';
import { opened } from '../capture/write-trace.js';
import { heldBytes } from '../fixtures/memory.js';
import { onlyInFull, sized } from '../fixtures/sampling.js';
import { body, Forge, forged, headerMap, lazily } from './forge-trace.js';

const MIB = 1_048_576;
/** The limit in bytes for the growth of the memory that a reading holds. */
const MEMORY = 64 * MIB;

async function outcome(open: OpenTrace): Promise<string> {
  try {
    const trace = await readTrace(open);
    let events = 0;
    for await (const batch of trace.events()) events += batch.length;
    return [...trace.findings.map(({ code }) => code), `${events} events`].join(', ');
  } catch (error) {
    const { code, reason, message } = error as { code?: string; reason?: string; message: string };
    return `${code} ${reason}: ${message}`;
  }
}

/** Reads while it watches the process's memory. */
async function measured(open: OpenTrace): Promise<{ readonly text: string; readonly growth: number }> {
  const before = heldBytes();
  let most = 0;
  const text = await outcome(async function* () {
    let chunks = 0;
    // Seldomer and seldomer: each look collects first.
    let next = 16;
    for await (const chunk of open()) {
      chunks += 1;
      if (chunks === next) {
        most = Math.max(most, heldBytes());
        next += Math.max(16, next >> 2);
      }
      yield chunk;
    }
  });
  return { text, growth: most - before };
}

const number = (kind: EventKind): number => EVENTS[kind].number;
const TRACK = [number('track.added'), 0, null, 1, 0];
const CLIP = [number('clip.created'), 0, null, 1, 1, null, 0, 0, 1];
const SOURCE = [number('import.added'), 0, null, 7, 0, null, null, null, null, null];
const TAKE = [number('recording.started'), 0, null, 1, null, 0];
const DIGEST = new Uint8Array(32);

/** What a signed part says, and why it is refused. */
const REFUSED: Readonly<Record<string, readonly [events: readonly unknown[], message: RegExp]>> = {
  'an unknown number': [[[999, 0, null]], /unknown number/],
  'a number of the negative kind': [[[-1, 0, null]], /not a number from 0/],
  'an event that is not an array': [[{ number: 1 }], /not an array/],
  'too few fields': [[[number('track.added'), 0, null, 1]], /wrong number of fields/],
  'too many fields': [[[number('session.saved'), 0, null, 1]], /wrong number of fields/],
  'nested arrays': [[[number('session.saved'), [[[[[[[[[[1]]]]]]]]]], null]], /at is not a number/],
  'text in place of a number': [[[number('session.saved'), 'now', null]], /at is not a number/],
  'a time beyond its bound': [
    [[number('session.saved'), TRACE_LIMITS.time + 1, null]],
    /at is not a whole number/,
  ],
  'a time beyond 2^53': [[[number('session.saved'), 2 ** 60, null]], /at is not a (whole )?number/],
  'a negative time': [[[number('session.saved'), -1, null]], /at is not a number/],
  'an interval that ends before it begins': [[[number('session.saved'), 5, 6]], /since is not a whole/],
  'a gap without its begin': [[[number('capture.gap'), 5, null, null, 0]], /since is missing/],
  'negative beats': [[[number('tempo.point'), 0, null, -4, 120, null]], /start is not a number/],
  'negative beats as a float': [[[number('tempo.point'), 0, null, -0.5, 120, null]], /start is not a number/],
  'beats that are no number': [[[number('tempo.point'), 0, null, NaN, 120, null]], /start is not a number/],
  'endless beats': [[[number('tempo.point'), 0, null, Infinity, 120, null]], /start is no/],
  'a tempo of 0': [[[number('tempo.point'), 0, null, 0, 0, null]], /bpm is not a number/],
  'a tempo beyond its bound': [[[number('tempo.point'), 0, null, 0, 10_000.5, null]], /bpm is not a number/],
  'a tempo map that runs backwards': [
    [
      [number('tempo.point'), 0, null, 8, 120, null],
      [number('tempo.point'), 0, null, 4, 120, null],
    ],
    /starts before the previous/,
  ],
  'a word that is none': [[[number('track.added'), 0, null, 1, 4]], /type is not a whole number/],
  'a missing field that is demanded': [[[number('track.removed'), 0, null, null]], /track is not a number/],
  'a digest that is too short': [
    [[number('export.finished'), 0, null, new Uint8Array(31), null, null, null, null, null, 0]],
    /fileSha256 is not a SHA-256/,
  ],
  'a digest that is text': [
    [[number('export.finished'), 0, null, 'ab'.repeat(32), null, null, null, null, null, 0]],
    /fileSha256 is not a SHA-256/,
  ],
  'a rate of 0': [
    [[number('export.finished'), 0, null, DIGEST, null, null, 0, null, null, 0]],
    /rate is not a whole number/,
  ],
  'a track twice': [[TRACK, TRACK], /the id of the track is already in use/],
  'a clip twice': [[TRACK, CLIP, CLIP], /the id of the clip is already in use/],
  'a clip on no track': [[CLIP], /the id of the track is unknown/],
  'a clip of a track that was removed': [
    [TRACK, CLIP, [number('track.removed'), 0, null, 1], [number('clip.deleted'), 0, null, 1]],
    /the id of the clip is unknown/,
  ],
  'a clip of no source': [
    [TRACK, [number('clip.created'), 0, null, 1, 1, 7, 0, 0, 1]],
    /the id of the source is unknown/,
  ],
  'a source twice': [[SOURCE, SOURCE], /the id of the source is already in use/],
  'a source that comes back': [
    [SOURCE, [number('source.removed'), 0, null, 7], SOURCE],
    /the id of the source is already in use/,
  ],
  'a source made of itself': [
    [SOURCE, [number('source.derived'), 0, null, 7, 7, 0, null]],
    /derived from itself/,
  ],
  'a take twice': [[TAKE, TAKE], /the id of the take is already in use/],
  'a take that ends twice': [
    [TAKE, [number('recording.discarded'), 0, null, 1], [number('recording.discarded'), 0, null, 1]],
    /take has already ended/,
  ],
  'a plug-in that is not there': [
    [[number('plugin.removed'), 0, null, 1]],
    /the id of the plugin is unknown/,
  ],
};

t.test('a signed part is refused with the place when it is not a trace', async (t) => {
  for (const [name, [events, message]] of Object.entries(REFUSED)) {
    const text = await outcome(opened(forged(...events)));
    t.match(text, /^unprocessable trace_malformed: The trace is malformed: segment 0, event \d: /, name);
    t.match(text, message, name);
  }
});

t.test('a value has one encoding', async (t) => {
  const saved = [0x93, 2];
  const encodings: Readonly<Record<string, readonly number[]>> = {
    'a long integer': [...saved, 0xcc, 0x05, 0xc0],
    'a long array head': [0xdc, 0, 3, 2, 0, 0xc0],
    'a float in place of an integer': [...saved, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0],
    'a whole place as a float': [0x94, 12, 0, 0xc0, 0xcb, 0x40, 0, 0, 0, 0, 0, 0, 0],
    'an array that promises 4 billion members': [0xdd, 0xff, 0xff, 0xff, 0xff],
    'a map that promises 4 billion members': [0xdf, 0xff, 0xff, 0xff, 0xff],
    'bytes that promise gigabytes': [...saved, 0xc6, 0xff, 0xff, 0xff, 0xff],
    'an event that ends amid a number': [...saved, 0xcf, 0],
  };
  for (const [name, bytes] of Object.entries(encodings)) {
    const forge = new Forge();
    const trace = Buffer.concat([forge.header, forge.segment(Uint8Array.from(bytes), 0), forge.sign(true)]);
    t.match(await outcome(opened(trace)), /^unprocessable trace_malformed/, name);
  }
});

t.test('what does not start with a header of the version is refused', async (t) => {
  const { publicKey, ...keyless } = headerMap();
  const headers: Readonly<Record<string, unknown>> = {
    'a list': [1, 2, 3],
    'no version': { adapter: 'forged' },
    'an unknown member': headerMap({ title: 'a name' }),
    'a key that is none': headerMap({ publicKey: new Uint8Array(44) }),
    'a key of another algorithm': headerMap({ algorithm: 'ES256' }),
    'another order': { ...keyless, publicKey, version: 1, extra: undefined },
    'free text': headerMap({ adapter: 'My Song' }),
    'a release that is a name': headerMap({ dawVersion: '7.3 by Ann' }),
    'a channel too few': headerMap({ channels: { session: 'supported' } }),
    'a channel without a word': headerMap({
      channels: { ...(headerMap()['channels'] as object), midi: 'yes' },
    }),
    'a short id': headerMap({ traceId: new Uint8Array(15) }),
    'a time before 1970': headerMap({ startedAt: -1 }),
  };
  for (const [name, header] of Object.entries(headers)) {
    const forge = new Forge(encode(header));
    t.match(
      await outcome(opened(Buffer.concat([forge.header, forge.sign(true)]))),
      /^unprocessable trace_malformed/,
      name,
    );
  }
  const later = new Forge(encode(headerMap({ version: 2 })));
  t.match(await outcome(opened(later.header)), /^unprocessable trace_version_unknown/);
  const forge = new Forge();
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.from('RIFF and more'),
    forge.segment(body(TRACK), 0),
    forge.sign(true),
    forge.header.subarray(0, 40),
  ])
    t.match(await outcome(opened(bytes)), /trace_malformed: .* does not start with a header/);
});

t.test('a segment that counts its events wrongly is refused', async (t) => {
  const forge = new Forge();
  const trace = [forge.header, forge.segment(body(TRACK), 0), forge.segment(body(CLIP), 5), forge.sign(true)];
  t.match(
    await outcome(opened(Buffer.concat(trace))),
    /segment 1 does not continue the numbers of the events/,
  );
});

t.test('time that runs backwards is a finding, with its extent', async (t) => {
  const saved = (at: number) => [number('session.saved'), at, null];
  const trace = await readTrace(opened(forged(saved(5), saved(9), saved(4), saved(8), saved(9))));
  t.strictSame(trace.findings, []);
  for await (const _ of trace.events());
  t.strictSame(trace.findings, [
    { code: 'trace_time_backwards', values: { count: 2, event: 2, microseconds: 5 } },
  ]);
});

t.test('frames out of order are findings', async (t) => {
  const forge = new Forge();
  const first = [forge.header, forge.segment(body(TRACK), 0), forge.sign(false)];
  const again = forge.sign(false);
  const skipping = forge.segment(body(CLIP), 1, 5);
  const tail = 'trace_unsigned_tail, 1 events';
  const text = (...more: readonly Uint8Array[]) => outcome(opened(Buffer.concat([...first, ...more])));
  t.equal(await text(), 'trace_truncated, 1 events');
  t.equal(await text(again), `trace_sequence_gap, ${tail}`, 'a flush that signs nothing');
  t.equal(await text(skipping), `trace_sequence_gap, ${tail}`);
  t.equal(await text(forge.header), `trace_damaged, ${tail}`, 'a second header');
  t.equal(await text(Buffer.of(0xc1)), `trace_damaged, ${tail}`);
  const sealed = forged(TRACK);
  const after = (more: Uint8Array) => outcome(opened(Buffer.concat([sealed, more])));
  t.equal(await outcome(opened(sealed)), '1 events');
  for (const more of [Buffer.of(0xc1), again, Buffer.of(0x94)]) t.equal(await after(more), tail);
});

t.test('a trace that is too long in any way is refused in bounded memory', async (t) => {
  const forge = new Forge();
  const endless = (frame: () => Uint8Array, first: readonly Uint8Array[] = []): OpenTrace =>
    async function* () {
      yield* first;
      for (;;) yield frame();
    };
  const hostile: Readonly<Record<string, readonly [OpenTrace, RegExp]>> = {
    'a header of 16 MiB': [
      endless(() => Buffer.alloc(MIB), [Buffer.of(0x92, 0, 0xc6, 1, 0, 0, 0)]),
      /trace_malformed: .* does not start with a header/,
    ],
    'a segment that promises 4 GiB': [
      endless(
        () => Buffer.alloc(MIB),
        [forge.header, Buffer.of(0x94, 1, 0, 0, 0xc6, 0xff, 0xff, 0xff, 0xff)],
      ),
      /trace_too_large: .* more bytes/,
    ],
    'a stream without an end': [
      endless(() => Buffer.alloc(MIB), [forge.header]),
      /trace_too_large: .* bytes/,
    ],
  };
  for (const [name, [open, message]] of Object.entries(hostile)) {
    const { text, growth } = await measured(open);
    t.match(text, message, name);
    t.ok(growth < MEMORY, `${name}: ${Math.round(growth / MIB)} MiB`);
  }
});

t.test('a million segments are refused in bounded memory', { skip: onlyInFull() }, async (t) => {
  const tiny = new Forge();
  const segment = body([2, 0, null]);
  const segments = function* () {
    for (let first = 0; first < 1_000_000; first += 512)
      yield Buffer.concat(Array.from({ length: 512 }, (_, i) => tiny.segment(segment, first + i)));
  };
  const { text, growth } = await measured(async function* () {
    yield tiny.header;
    yield* segments();
  });
  t.match(text, /trace_too_large: .* more segments/);
  t.ok(growth < MEMORY, `a million segments: ${Math.round(growth / MIB)} MiB`);
});

t.test('ten million placements are refused in bounded memory', { skip: onlyInFull() }, async (t) => {
  const { text, growth } = await measured(lazily(10_000_000, withId(CLIP), [TRACK]));
  t.match(text, /trace_too_large: .* more bytes/);
  t.ok(growth < MEMORY, `${Math.round(growth / MIB)} MiB`);
});

/** Returns a function that gives the event another id of 32 bits at its fourth place for each index. */
function withId(event: readonly unknown[]): (index: number) => Buffer {
  const bytes = Buffer.from(encode(event.map((value, at) => (at === 3 ? 0xffff_ffff : value))));
  const at = bytes.indexOf(Buffer.of(0xce, 0xff, 0xff, 0xff, 0xff)) + 1;
  return (index) => {
    const own = Buffer.from(bytes);
    own.writeUInt32BE(0x1_0000 + index, at);
    return own;
  };
}

t.test('more placements than may live are refused in bounded memory', async (t) => {
  const some = await measured(lazily(TRACE_LIMITS.live.clips + 1, withId(CLIP), [TRACK]));
  t.match(some.text, /trace_malformed: .* more clips than allowed/);
  t.ok(some.growth < MEMORY, `placements up to the bound: ${Math.round(some.growth / MIB)} MiB`);
  for (const [event, most, what] of [
    [TRACK, TRACE_LIMITS.live.tracks, 'tracks'],
    [SOURCE, TRACE_LIMITS.live.sources, 'sources'],
    [TAKE, TRACE_LIMITS.live.takes, 'takes'],
    [[number('plugin.added'), 0, null, 1, null, 0], TRACE_LIMITS.live.plugins, 'plugins'],
  ] as const) {
    t.equal(await outcome(lazily(most, withId(event))), `${most} events`);
    t.match(await outcome(lazily(most + 1, withId(event))), new RegExp(`more ${what} than`));
  }
  const point = () => body([number('meter.point'), 0, null, 0, 4, 4]);
  t.match(await outcome(lazily(TRACE_LIMITS.live.tempoPoints + 1, point)), /more points than/);
});

/** Returns the whole number that V8 hashes to `hash`. It undoes the steps of V8 one after the other. */
function unhashed(hash: number): number {
  let x = Math.imul(hash ^ (hash >>> 16), 0xc8de0639) >>> 0;
  x = [4, 8, 12, 16, 20, 24, 28].reduce((found, by) => found ^ (x >>> by), x);
  x = Math.imul(x, 0xcccccccd) >>> 0;
  x ^= (x >>> 12) ^ (x >>> 24);
  return Math.imul(x + 1, 0xbfff7fff) >>> 0;
}

t.test('ids that collide in a map cost as little as others', async (t) => {
  const clips = 24_000;
  const colliding = Array.from({ length: 65_536 }, (_, at) => unhashed((at << 16) | 5))
    .filter((id) => id < 2 ** 31)
    .slice(0, clips);
  t.equal(colliding.length, clips);
  const spent = async (ids: readonly number[]): Promise<number> => {
    const changed = number('clip.changed');
    const trace = lazily(
      2 * clips,
      (at) =>
        at < clips
          ? body([number('clip.created'), 0, null, ids[at], 1, null, 0, 0, 1])
          : body([changed, 0, null, ids[at - clips], 0]),
      [TRACK],
    );
    const began = process.cpuUsage();
    t.equal((await replayTrace(trace)).session.events, 2 * clips + 1);
    return process.cpuUsage(began).user / 1000;
  };
  const ordinary = await spent(colliding.map((_, at) => 2 ** 30 + at));
  const hostile = await spent(colliding);
  t.ok(hostile < 8 * ordinary, `${Math.round(hostile)} ms, and ${Math.round(ordinary)} ms`);
});

t.test('many events are read in the memory of a segment and of what lives', async (t) => {
  const events = sized(2_000_000, 400_000);
  const deleted = withId([number('clip.deleted'), 0, null, 1]);
  const created = withId(CLIP);
  const open = lazily(events, (index) => (index % 2 === 0 ? created : deleted)(index >> 1), [TRACK]);
  const { text, growth } = await measured(open);
  t.equal(text, `${events + 1} events`);
  t.ok(growth < MEMORY, `${Math.round(growth / MIB)} MiB`);
});

t.test('one segment or signature beyond the limit is refused', async (t) => {
  const forge = new Forge();
  const frames = [
    forge.header,
    ...[0, 1, 2].flatMap((index) => [forge.segment(body([2, 0, null]), index), forge.sign(index === 2)]),
  ];
  const open: OpenTrace = async function* () {
    yield* frames;
  };
  const read = (segments: number, signatures: number) => readTrace(open, undefined, { segments, signatures });
  t.match(await read(3, 3), { segments: 3, signatures: 3, sealed: true, findings: [] });
  const refused = { code: 'unprocessable', reason: 'trace_too_large' };
  await t.rejects(read(2, 3), { ...refused, message: /more segments/ });
  await t.rejects(read(3, 2), { ...refused, message: /more signatures/ });
});

t.test('signatures beyond their bound are refused', { skip: onlyInFull() }, async (t) => {
  const open: OpenTrace = async function* () {
    const forge = new Forge();
    yield forge.header;
    for (let index = 0; index <= TRACE_LIMITS.signatures; index += 1)
      yield Buffer.concat([forge.segment(body([2, 0, null]), index), forge.sign(false)]);
  };
  t.match(await outcome(open), /trace_too_large: .* more signatures/);
});
