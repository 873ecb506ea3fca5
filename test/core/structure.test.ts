import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { isHarmless, STRUCTURE_FINDINGS, type StructureFinding } from '../../src/core/domain/findings.js';
import { readMeasurement } from '../../src/core/engine/core.js';
import { chunk, fmtChunk, id3Tag, noise, riff, wav } from '../fixtures/wav.js';
import { CoreUnderTest, everyByte } from './core-under-test.js';

const under = await CoreUnderTest.load(24 << 20);
const MAX = 0xffff_ffff;

const fmt = fmtChunk();
const data = chunk({ id: 'data', data: noise(64) });
const credential = chunk({ id: 'C2PA', data: noise(50) });
const junk = (size: number): Buffer => chunk({ id: 'JUNK', data: Buffer.alloc(size) });
const empty = (id: string): Buffer => chunk({ id, data: Buffer.alloc(0) });
const list = (type: string, members: readonly Uint8Array[]): Buffer =>
  chunk({ id: 'LIST', data: Buffer.concat([Buffer.from(type), ...members]) });
const info = list('INFO', [chunk({ id: 'ISFT', data: Buffer.from('Lavf60.16.100\0') })]);
const bytes = (size: number, fill: (view: DataView) => void = () => undefined): Buffer => {
  const buffer = Buffer.alloc(size);
  fill(new DataView(buffer.buffer, buffer.byteOffset, size));
  return buffer;
};
const bext = (version: number, size = 602): Buffer =>
  chunk({ id: 'bext', data: bytes(size, (view) => view.setUint16(346, version, true)) });

interface Ds64Spec {
  readonly riffSize?: bigint;
  readonly dataSize?: bigint;
  readonly table?: readonly { id: string; size: bigint }[];
  readonly entries?: number;
  readonly size?: number;
}

function ds64Chunk({
  riffSize = 0n,
  dataSize = 64n,
  table = [],
  entries = table.length,
  size = 28 + table.length * 12,
}: Ds64Spec): Buffer {
  const body = bytes(Math.max(size, 28 + table.length * 12), (view) => {
    view.setBigUint64(0, riffSize, true);
    view.setBigUint64(8, dataSize, true);
    view.setBigUint64(16, 32n, true);
    view.setUint32(24, entries, true);
  });
  table.forEach((entry, i) => {
    body.write(entry.id, 28 + i * 12, 'latin1');
    body.writeBigUInt64LE(entry.size, 32 + i * 12);
  });
  return chunk({ id: 'ds64', data: body.subarray(0, size) });
}

/** Returns an RF64 file whose ds64 has the right sizes by default. */
function rf64(
  rest: readonly Uint8Array[],
  spec: Ds64Spec = {},
  { magic = 'RF64', riffField = MAX } = {},
): Buffer {
  const length = 4 + ds64Chunk(spec).length + rest.reduce((sum, each) => sum + each.length, 0);
  return riff([ds64Chunk({ riffSize: BigInt(length), ...spec }), ...rest], { magic, riffSize: riffField });
}
const openData = (size = MAX): Buffer => chunk({ id: 'data', data: noise(64), size });

function fmtOf(fields: {
  tag?: number;
  channels?: number;
  rate?: number;
  byteRate?: number;
  blockAlign?: number;
  bits?: number;
  extension?: Buffer;
  size?: number;
}): Buffer {
  const { tag = 1, channels = 1, rate = 44_100, bits = 16 } = fields;
  const { blockAlign = channels * Math.ceil(bits / 8) } = fields;
  const { byteRate = rate * blockAlign, extension = Buffer.alloc(0) } = fields;
  const body = bytes(16 + extension.length, (view) => {
    view.setUint16(0, tag, true);
    view.setUint16(2, channels, true);
    view.setUint32(4, rate, true);
    view.setUint32(8, byteRate, true);
    view.setUint16(12, blockAlign, true);
    view.setUint16(14, bits, true);
  });
  extension.copy(body, 16);
  return chunk({ id: 'fmt ', data: body.subarray(0, fields.size ?? body.length) });
}
const extensible = (
  tag: number,
  validBits: number,
  { suffix = '000000001000800000aa00389b71', cbSize = 22 } = {},
): Buffer => {
  const extension = Buffer.alloc(24);
  extension.writeUInt16LE(cbSize, 0);
  extension.writeUInt16LE(validBits, 2);
  extension.writeUInt32LE(3, 4);
  extension.writeUInt16LE(tag, 8);
  extension.write(suffix, 10, 'hex');
  return extension;
};

function findings(file: Uint8Array): StructureFinding[] {
  return under.measure(file).findings.map(({ slug }) => slug);
}

/** Returns nested lists, `depth` deep, around `core`. */
function nested(depth: number, core: Uint8Array): Buffer {
  return depth === 0 ? Buffer.from(core) : list('INFO', [nested(depth - 1, core)]);
}

const HOSTILE: Partial<
  Record<
    StructureFinding,
    readonly (readonly [what: string, file: Uint8Array, also?: readonly StructureFinding[]])[]
  >
> = {
  header_truncated: [
    ['empty file', Buffer.alloc(0)],
    ['eleven bytes', riff([]).subarray(0, 11)],
  ],
  form_not_wave: [['an AVI', riff([fmt, data], { form: 'AVI ' })]],
  riff_size_streaming: [
    ['all ones', riff([fmt, data], { riffSize: MAX })],
    ['zero', riff([fmt, data], { riffSize: 0 })],
  ],
  riff_size_past_eof: [['two bytes too many', riff([fmt, data], { riffSize: 102 })]],
  bytes_after_riff_end: [
    ['a credential after the end', Buffer.concat([riff([fmt, data]), credential])],
    ['one byte', Buffer.concat([riff([fmt, data]), Buffer.alloc(1)])],
  ],
  chunk_past_end: [
    [
      '8 + 0xFFFFFFF8 wraps to 0',
      riff([fmt, data, chunk({ id: 'JUNK', data: noise(4), size: 0xffff_fff8 })]),
    ],
    [
      'the RIFF end',
      Buffer.concat([riff([fmt, data, chunk({ id: 'JUNK', data: noise(8), size: 10 })]), Buffer.alloc(4)]),
      ['bytes_after_riff_end'],
    ],
    ['a truncated file', riff([fmt, data]).subarray(0, 80), ['riff_size_past_eof']],
    ['a credential without its end', riff([fmt, data, credential]).subarray(0, 120), ['riff_size_past_eof']],
  ],
  chunk_header_truncated: [1, 2, 3, 4, 5, 6, 7].map(
    (left) => [`${left} bytes left`, riff([fmt, data, Buffer.from('JUNK\0\0\0').subarray(0, left)])] as const,
  ),
  pad_missing: [
    ['at the end of the file', riff([fmtOf({ bits: 8 }), chunk({ id: 'data', data: noise(63), pad: null })])],
    [
      'an odd list',
      riff([
        fmt,
        data,
        chunk({
          id: 'LIST',
          data: Buffer.concat([Buffer.from('INFO'), empty('ISFT'), Buffer.from('ICMT\x01\0\0\0x')]),
          pad: null,
        }),
      ]),
    ],
    [
      'outside the RIFF',
      riff([fmt, data, chunk({ id: 'JUNK', data: noise(5) })], { riffSize: 4 + 24 + 72 + 13 }),
      ['bytes_after_riff_end'],
    ],
  ],
  pad_nonzero: [['a chunk', riff([fmt, data, chunk({ id: 'JUNK', data: noise(5), pad: 0x51 })])]],
  chunk_id_invalid: [' BAD', 'BA D', '    ', 'BAD\x7f', 'BAD\0', 'B\u00c4D '].map(
    (id) => [JSON.stringify(id), riff([fmt, data, empty(id)])] as const,
  ),
  too_many_chunks: [['4,097', riff([fmt, data, ...Array.from({ length: 4095 }, () => empty('JUNK'))])]],
  duplicate_fmt: [['second format', riff([fmt, fmtOf({ channels: 2 }), data])]],
  duplicate_data: [['second data', riff([fmt, data, chunk({ id: 'data', data: noise(32) })])]],
  duplicate_ds64: [['second ds64', rf64([ds64Chunk({ riffSize: 1n }), fmt, openData()])]],
  duplicate_bext: [['second bext', riff([bext(1), fmt, data, bext(1)])]],
  duplicate_fact: [
    [
      'second fact',
      riff([fmt, chunk({ id: 'fact', data: bytes(4) }), chunk({ id: 'fact', data: bytes(4) }), data]),
    ],
  ],
  fmt_missing: [['no fmt', riff([data]), ['data_before_fmt']]],
  fmt_malformed: [
    ['15 bytes', riff([chunk({ id: 'fmt ', data: bytes(15) }), data])],
    ['17 bytes', riff([fmtOf({ extension: Buffer.alloc(1) }), data])],
    ['19 bytes with a cbSize of 18', riff([fmtOf({ extension: Buffer.alloc(3) }), data])],
    ['more than 64 KiB', riff([fmtOf({ extension: Buffer.alloc(65_522) }), data])],
    ['extensible without its extension', riff([fmtOf({ tag: 0xfffe }), data])],
    [
      'extensible of 30 bytes',
      riff([fmtOf({ tag: 0xfffe, extension: extensible(1, 16).subarray(0, 14) }), data]),
    ],
    [
      'extensible with cbSize 21',
      riff([fmtOf({ tag: 0xfffe, extension: extensible(1, 16, { cbSize: 21 }) }), data]),
    ],
  ],
  fmt_inconsistent: [
    ['no channels', riff([fmtOf({ channels: 0, blockAlign: 2 }), data])],
    ['1,025 channels', riff([fmtOf({ channels: 1025, bits: 8 }), chunk({ id: 'data', data: noise(2050) })])],
    ['no rate', riff([fmtOf({ rate: 0 }), data])],
    ['absurd rate', riff([fmtOf({ rate: 100_000_000 }), data])],
    ['no block', riff([fmtOf({ blockAlign: 0 }), data])],
    ['block of another width', riff([fmtOf({ channels: 2, blockAlign: 2 }), data])],
    ['byte rate', riff([fmtOf({ byteRate: 1 }), data])],
    [
      'byte rate that wraps at 32 bits',
      riff([
        fmtOf({ channels: 1024, bits: 64, rate: 2 ** 19, byteRate: 0, blockAlign: 8192 }),
        chunk({ id: 'data', data: noise(8192) }),
      ]),
    ],
    ['no bits', riff([fmtOf({ bits: 0, blockAlign: 2 }), data])],
    ['16-bit float', riff([fmtOf({ tag: 3, bits: 16 }), data])],
    ['more valid bits than bits', riff([fmtOf({ tag: 0xfffe, extension: extensible(1, 20) }), data])],
  ],
  codec_unsupported: [
    ['A-law', riff([fmtOf({ tag: 6, bits: 8, extension: Buffer.alloc(2) }), data])],
    [
      'extensible with a foreign GUID',
      riff([
        fmtOf({ tag: 0xfffe, extension: extensible(1, 16, { suffix: '00002107d3118644c8c1ca000000' }) }),
        data,
      ]),
    ],
  ],
  data_missing: [['no data', riff([fmt, junk(4)])]],
  data_before_fmt: [['data first', riff([data, fmt])]],
  data_size_streaming: [
    ['ffmpeg to a pipe', riff([fmt, openData()], { riffSize: MAX }), ['riff_size_streaming']],
    ...[0xffff_1000, 0x7fff_f000].flatMap((size) => [
      [`${size} in a RIFF of the right size`, riff([fmt, openData(size)])] as const,
      [
        `${size} in a RIFF that counts it`,
        riff([fmt, openData(size)], { riffSize: (size + 36) % 2 ** 32 }),
        ['riff_size_streaming'],
      ] as const,
      [`${size} in both`, riff([fmt, openData(size)], { riffSize: size }), ['riff_size_streaming']] as const,
      [
        `${size} before blocks of three bytes`,
        riff([fmtOf({ bits: 24 }), chunk({ id: 'data', data: noise(66), size })]),
      ] as const,
    ]),
    ['0 before samples', riff([fmt, openData(0)])],
    ['0 before silence', riff([fmt, chunk({ id: 'data', data: Buffer.alloc(64), size: 0 })])],
    ['0 in both', riff([fmt, openData(0)], { riffSize: 0 }), ['riff_size_streaming']],
    ['0 before four bytes', riff([fmt, chunk({ id: 'data', data: Buffer.alloc(4), size: 0 })])],
  ],
  data_empty: [
    ['then a chunk', riff([fmt, empty('data'), junk(4)])],
    ['then a list and a credential', riff([fmt, empty('data'), info, credential])],
  ],
  data_not_aligned: [['odd 16-bit data', riff([fmt, chunk({ id: 'data', data: noise(63) })])]],
  ds64_missing: [['none', riff([fmt, data], { magic: 'RF64' })]],
  ds64_not_first: [
    ['second', riff([fmt, ds64Chunk({ riffSize: 136n }), data], { magic: 'BW64' })],
    ['late in a RIFF', riff([fmt, data, ds64Chunk({ riffSize: 136n })])],
  ],
  ds64_malformed: [
    ['23 bytes', rf64([fmt, openData()], { size: 23 }), ['riff_size_streaming', 'data_size_streaming']],
    ['26 bytes', rf64([fmt, data], { size: 26 }, { riffField: 4 + 34 + 24 + 72 })],
    ['table beyond the chunk', rf64([fmt, data], { entries: 1 }, { riffField: 4 + 36 + 24 + 72 })],
    [
      'entries that wrap at 32 bits',
      rf64([fmt, data], { entries: 0x1555_5556 }, { riffField: 4 + 36 + 24 + 72 }),
    ],
    [
      'more entries than we keep',
      rf64(
        [fmt, data],
        { table: Array.from({ length: 17 }, () => ({ id: 'axml', size: 1n })) },
        { riffField: 4 + 36 + 204 + 24 + 72 },
      ),
    ],
    ['beyond 2^53', rf64([fmt, data], { dataSize: 1n << 53n }, { riffField: 4 + 36 + 24 + 72 })],
    [
      'entry beyond 2^53',
      rf64([fmt, data], { table: [{ id: 'axml', size: 1n << 63n }] }, { riffField: 4 + 36 + 12 + 24 + 72 }),
    ],
  ],
  ds64_mismatch: [
    ['data', rf64([fmt, data], { dataSize: 62n })],
    ['RIFF', rf64([fmt, data], {}, { riffField: 100 })],
    ['table', rf64([fmt, openData(), junk(4)], { table: [{ id: 'JUNK', size: 6n }] })],
  ],
  bext_malformed: [['601 bytes', riff([bext(1, 601), fmt, data])]],
  bext_version_unknown: [['version 8', riff([bext(8), fmt, data])]],
  list_malformed: [
    ['no type', riff([fmt, data, chunk({ id: 'LIST', data: noise(2) })])],
    ['empty', riff([fmt, data, empty('LIST')])],
    ['a member too long', riff([fmt, data, list('INFO', [chunk({ id: 'ISFT', data: noise(4), size: 6 })])])],
    [
      'a member that wraps',
      riff([fmt, data, list('INFO', [chunk({ id: 'ISFT', data: noise(4), size: 0xffff_fff8 })])]),
    ],
    ['bytes left', riff([fmt, data, list('INFO', [empty('ISFT'), Buffer.alloc(6)])])],
    ['an id that is none', riff([fmt, data, list('INFO', [empty('\0\0\0\0')])])],
  ],
  list_too_deep: [['nine', riff([fmt, data, nested(9, empty('ISFT'))])]],
  credential_duplicate: [['two', riff([fmt, data, credential, credential]), ['credential_not_last']]],
  credential_id_variant: ['c2pa', 'C2Pa', 'c2PA'].flatMap((id) => [
    [id, riff([fmt, data, chunk({ id, data: noise(4) })])] as const,
    [`${id} in a list`, riff([fmt, data, list('INFO', [chunk({ id, data: noise(4) })])])] as const,
  ]),
  credential_in_list: [
    ['alone', riff([fmt, data, list('INFO', [credential])])],
    ['eight deep', riff([fmt, data, nested(8, credential)])],
    ['nine deep', riff([fmt, data, nested(9, credential)]), ['list_too_deep']],
    [
      'after a member aligned to four bytes',
      riff([fmt, data, list('INFO', [chunk({ id: 'ICMT', data: noise(5) }), Buffer.alloc(2), credential])]),
      ['list_malformed'],
    ],
    [
      'across the header that makes no sense',
      riff([fmt, data, list('INFO', [Buffer.alloc(3), credential, Buffer.alloc(1)])]),
      ['list_malformed'],
    ],
    ['and a proper one', riff([fmt, data, list('zzzz', [credential]), credential])],
  ],
  credential_not_last: [['in the middle', riff([fmt, credential, data])]],
  credential_too_large: [
    ['one byte more', riff([fmt, data, chunk({ id: 'C2PA', data: Buffer.alloc((1 << 20) + 1) })])],
  ],
  fmt_size_mismatch: [
    ['Audition: PCM of 20 bytes', riff([fmtOf({ extension: Buffer.alloc(4) }), data])],
    ['PCM of 24 bytes', riff([fmtOf({ extension: Buffer.alloc(8) }), data])],
    ['PCM of 64 KiB', riff([fmtOf({ extension: Buffer.alloc(65_520) }), data])],
    ['Pro Tools: float of 40 bytes', riff([fmtOf({ tag: 3, bits: 32, extension: Buffer.alloc(24) }), data])],
    [
      'float whose extension disagrees',
      riff([fmtOf({ tag: 3, bits: 32, extension: Buffer.from([9, 0]) }), data]),
    ],
    [
      'extensible with cbSize 24 in 40 bytes',
      riff([fmtOf({ tag: 0xfffe, extension: extensible(1, 16, { cbSize: 24 }) }), data]),
    ],
    [
      'extensible with bytes after the extension',
      riff([fmtOf({ tag: 0xfffe, extension: Buffer.concat([extensible(1, 16), Buffer.alloc(8)]) }), data]),
    ],
  ],
  list_pad_nonzero: [
    ['a member', riff([fmt, data, list('INFO', [chunk({ id: 'ICMT', data: noise(3), pad: 1 })])])],
    [
      'Sound Forge: pads that count',
      riff([
        fmt,
        list(
          'INFO',
          [1, 2, 3].map((pad) => chunk({ id: 'IART', data: noise(3), pad })),
        ),
        data,
      ]),
    ],
  ],
  data_in_list: [
    ['a member', riff([fmt, data, list('adtl', [chunk({ id: 'data', data: noise(8) })])])],
    ['the type of the list', riff([fmt, data, list('data', [])])],
    ['after invalid bytes', riff([fmt, list('adtl', [Buffer.alloc(9), data]), data]), ['list_malformed']],
    ['nine deep', riff([fmt, data, nested(9, data)]), ['list_too_deep']],
  ],
  tag_before_riff: [
    ['a WAV', Buffer.concat([id3Tag(), riff([fmt, data])])],
    ['a WAV with a credential', Buffer.concat([id3Tag(1), riff([fmt, data, credential])])],
    ['two tags', Buffer.concat([id3Tag(3), id3Tag(0), riff([fmt, data])])],
    ['an RF64', Buffer.concat([id3Tag(), riff([fmt, data], { magic: 'RF64' })])],
  ],
};

t.test('every structural finding is found, whole and byte by byte', async (t) => {
  t.strictSame(Object.keys(HOSTILE), [...STRUCTURE_FINDINGS]);
  for (const slug of STRUCTURE_FINDINGS) {
    for (const [what, file, also = []] of HOSTILE[slug]!) {
      const expected = STRUCTURE_FINDINGS.filter((each) => each === slug || also.includes(each));
      t.strictSame(findings(file), expected, `${slug}: ${what}`);
      if (file.length < 5000)
        t.strictSame(
          under.measure(file, everyByte(1, file.length)),
          under.measure(file),
          `${slug}: ${what}, byte by byte`,
        );
    }
  }
});

t.test('findings carry the offset of their first occurrence', async (t) => {
  const file = riff([
    fmt,
    data,
    chunk({ id: 'JUNK', data: noise(5), pad: 7 }),
    chunk({ id: 'JUNK', data: noise(5), pad: 7 }),
    data,
  ]);
  t.strictSame(under.measure(file).findings, [
    { slug: 'pad_nonzero', offset: 12 + 24 + 72 + 13 },
    { slug: 'duplicate_data', offset: 12 + 24 + 72 + 28 },
  ]);
});

t.test('shrink and inject: a second data chunk in the freed part of the credential is found', async (t) => {
  const injected = Buffer.concat([
    chunk({ id: 'C2PA', data: noise(30) }),
    chunk({ id: 'data', data: noise(12) }),
  ]);
  t.equal(injected.length, credential.length);
  t.strictSame(findings(riff([fmt, data, injected])), ['duplicate_data', 'credential_not_last']);
});

t.test('layouts of real writers have no findings', async (t) => {
  const text = (id: string, size: number): Buffer => chunk({ id, data: noise(size) });
  const cue = chunk({ id: 'cue ', data: bytes(28, (view) => view.setUint32(0, 1, true)) });
  const adtl = list('adtl', [
    chunk({ id: 'labl', data: Buffer.from('\x01\0\0\0Marker\0') }),
    chunk({ id: 'note', data: bytes(6) }),
  ]);
  const layouts: Record<string, Uint8Array> = {
    'Pro Tools': riff([
      junk(92),
      bext(1),
      fmtOf({ extension: Buffer.alloc(24) }),
      text('minf', 16),
      text('elm1', 15_574),
      data,
      text('FLLR', 31_532),
      text('regn', 92),
      text('umid', 24),
      text('DGDA', 1139),
    ]),
    Nuendo: riff([junk(28), bext(2, 802), text('Fake', 2), fmt, data, text('iXML', 1001)]),
    'Logic Pro X': riff([junk(28), fmt, data, cue, adtl, bext(1, 603)]),
    'Apple loop': riff([fmt, text('PAD ', 12_236), data, text('LGWV', 38), text('ID3 ', 100)]),
    'Core Audio': riff([fmt, text('FLLR', 4044), data]),
    REAPER: riff([fmt, bext(1), text('junk', 74), data, cue, text('smpl', 60), info]),
    'REAPER RF64': rf64([fmt, data]),
    Audacity: riff([fmt, data, info, text('id3 ', 55)]),
    Audition: riff([
      fmtOf({ extension: Buffer.alloc(2) }),
      data,
      info,
      text('DISP', 20),
      text('iXML', 400),
      text('_PMX', 3001),
    ]),
    ffmpeg: riff([fmt, info, data]),
    '702T': riff([bext(1, 858), text('iXML', 5226), fmt, data]),
    'Zoom F8': riff([bext(1, 1114), text('iXML', 5226), fmt, text('PAD ', 124_664), data]),
    'Zoom H4n': riff([
      bext(1, 858),
      fmt,
      data,
      chunk({ id: 'list', data: Buffer.concat([Buffer.from('INFO'), noise(20)]) }),
    ]),
    ADM: riff([junk(28), fmt, text('chna', 84), text('axml', 2000), data]),
    'BW64 with axml beyond 32 bits': rf64(
      [fmt, openData(), chunk({ id: 'axml', data: noise(40), size: MAX })],
      { table: [{ id: 'axml', size: 40n }] },
      { magic: 'BW64' },
    ),
    'RF64 with room for a table': rf64([fmt, openData()], { size: 40 }),
    'RF64 without a table length': rf64([fmt, openData()], { size: 24 }),
    'extensible 24 in 32': riff([
      fmtOf({ tag: 0xfffe, channels: 2, bits: 24, blockAlign: 8, extension: extensible(1, 24) }),
      data,
    ]),
    'extensible float': riff([fmtOf({ tag: 0xfffe, bits: 32, extension: extensible(3, 32) }), data]),
    float: riff([
      fmtOf({ tag: 3, bits: 64, extension: Buffer.alloc(2) }),
      chunk({ id: 'fact', data: bytes(4) }),
      data,
    ]),
    'no samples': riff([fmt, empty('data')]),
    'eight lists': riff([fmt, data, nested(8, empty('ISFT'))]),
    'an odd last member without pad': riff([
      fmt,
      data,
      chunk({ id: 'LIST', data: Buffer.from('INFOICMT\x03\0\0\0abc') }),
    ]),
    '4,096 chunks': riff([fmt, data, ...Array.from({ length: 4094 }, () => empty('JUNK'))]),
    '1 MiB of credential': riff([fmt, data, chunk({ id: 'C2PA', data: Buffer.alloc(1 << 20) })]),
    'odd credential': riff([fmt, data, chunk({ id: 'C2PA', data: noise(51) })]),
  };
  for (const [name, file] of Object.entries(layouts)) {
    const whole = under.measure(file);
    t.strictSame(whole.findings, [], name);
    if (file.length < 10_000)
      t.strictSame(under.measure(file, everyByte(1, file.length)), whole, `${name}, byte by byte`);
  }
});

t.test('what readers ignore is accepted, and read like the plain file', async (t) => {
  const plain = under.measure(riff([fmt, data]));
  const zeros = chunk({ id: 'LIST', data: Buffer.alloc(3931) });
  const aligned = list('INFO', [
    chunk({ id: 'IART', data: noise(5) }),
    Buffer.alloc(2),
    chunk({ id: 'INAM', data: noise(6) }),
  ]);
  const layouts: Readonly<Record<string, readonly [file: Uint8Array, ...harmless: StructureFinding[]]>> = {
    'Adobe Audition': [riff([fmtOf({ extension: Buffer.alloc(4) }), data]), 'fmt_size_mismatch'],
    'Zoom R24: a list of zeros': [riff([fmt, zeros, data]), 'list_malformed'],
    'members aligned to four bytes': [riff([fmt, aligned, data]), 'list_malformed'],
    'a bext of version 8': [riff([bext(8), fmt, data]), 'bext_version_unknown'],
    'a short bext': [riff([bext(1, 400), fmt, data]), 'bext_malformed'],
    'two bext, two fact': [
      riff([bext(1), bext(1), fmt, empty('fact'), empty('fact'), data]),
      'duplicate_bext',
      'duplicate_fact',
    ],
  };
  for (const [name, [file, ...harmless]] of Object.entries(layouts)) {
    const { findings: found, frames, format, data: extent } = under.measure(file);
    t.strictSame(
      found.map(({ slug }) => slug),
      harmless,
      name,
    );
    t.ok(found.every(isHarmless), `${name}: harmless`);
    t.strictSame({ frames, format }, { frames: plain.frames, format: plain.format }, name);
    t.strictSame(
      file.subarray(extent!.offset, extent!.offset + extent!.size),
      data.subarray(8),
      `${name}: the audio`,
    );
  }
});

t.test('a search of a list sees an id however it is cut', async (t) => {
  const file = riff([fmt, data, list('INFO', [Buffer.alloc(11), Buffer.from('C2PA'), Buffer.from('datum')])]);
  for (let cut = 108; cut <= file.length; cut += 1)
    t.strictSame(
      under.measure(file, [cut]).findings,
      [
        { slug: 'list_malformed', offset: 108 },
        { slug: 'credential_in_list', offset: 131 },
      ],
      `cut at ${cut}`,
    );
});

t.test('compressed audio is well-formed, and its last block may be short', async (t) => {
  const compressed: Readonly<Record<string, Buffer>> = {
    'A-law': fmtOf({ tag: 6, bits: 8, extension: Buffer.alloc(2) }),
    'mu-law': fmtOf({ tag: 7, bits: 8, extension: Buffer.alloc(2) }),
    'IMA ADPCM': fmtOf({ tag: 0x11, bits: 4, blockAlign: 256, extension: Buffer.from([2, 0, 249, 1]) }),
    GSM: fmtOf({ tag: 0x31, bits: 0, blockAlign: 65, extension: Buffer.from([2, 0, 64, 1]) }),
    MP3: fmtOf({
      tag: 0x55,
      bits: 0,
      blockAlign: 1152,
      extension: Buffer.from('0c00010002000000800401000000', 'hex'),
    }),
  };
  for (const [name, format] of Object.entries(compressed)) {
    const { findings: found, frames } = under.measure(riff([format, chunk({ id: 'data', data: noise(66) })]));
    t.ok(found.every(isHarmless), `${name}: ${found.map(({ slug }) => slug).join(', ')}`);
    t.ok(
      found.some(({ slug }) => slug === 'codec_unsupported'),
      name,
    );
    t.equal(frames, undefined, `${name}: a block is not a frame`);
  }
});

t.test('a file is accepted in exactly one order of fmt, data and credential', async (t) => {
  const parts: Readonly<Record<string, Buffer>> = {
    fmt,
    data,
    credential,
    junk: junk(4),
    list: chunk({ id: 'LIST', data: Buffer.alloc(20) }),
  };
  const names = Object.keys(parts);
  const orders = (length: number): string[][] =>
    length === 0 ? [[]] : orders(length - 1).flatMap((order) => names.map((name) => [...order, name]));
  const count = (order: readonly string[], name: string): number =>
    order.filter((each) => each === name).length;
  for (const order of [1, 2, 3, 4, 5].flatMap(orders)) {
    const accepted =
      count(order, 'fmt') === 1 &&
      count(order, 'data') === 1 &&
      order.indexOf('fmt') < order.indexOf('data') &&
      count(order, 'credential') <= 1 &&
      [-1, order.length - 1].includes(order.indexOf('credential'));
    const { findings: found } = under.measure(riff(order.map((name) => parts[name]!)));
    if (found.every(isHarmless) !== accepted)
      t.fail(`${order.join(' ')}: ${found.map(({ slug }) => slug).join(', ')}`);
  }
});

t.test('a plain file is measured field by field', async (t) => {
  const file = riff([
    fmtOf({ tag: 0xfffe, channels: 2, rate: 96_000, bits: 24, extension: extensible(1, 20) }),
    chunk({ id: 'data', data: noise(63) }),
    info,
    credential,
  ]);
  const binding = file.subarray(0, file.length - credential.length);
  const { sha256, bindingSha256, ...rest } = under.measure(file);
  t.equal(sha256, createHash('sha256').update(file).digest('hex'));
  t.equal(bindingSha256, createHash('sha256').update(binding).digest('hex'));
  t.strictSame(rest, {
    bytes: file.length,
    container: 'riff',
    format: {
      encoding: 'pcm',
      formatTag: 0xfffe,
      extensible: true,
      channels: 2,
      sampleRate: 96_000,
      byteRate: 576_000,
      blockAlign: 6,
      bitsPerSample: 24,
      validBitsPerSample: 20,
      channelMask: 3,
    },
    frames: 10,
    data: { offset: 68, size: 63 },
    chunks: [
      { id: 'fmt ', offset: 12, size: 40 },
      { id: 'data', offset: 60, size: 63 },
      { id: 'LIST', offset: 132, size: 26 },
      { id: 'C2PA', offset: 166, size: 50 },
    ],
    chunkCount: 4,
    credential: { offset: 166, length: 58 },
    findings: [{ slug: 'data_not_aligned', offset: 60 }],
  });
});

t.test('the chunk table is bounded, the count is not cut', async (t) => {
  const { chunks, chunkCount } = under.measure(
    riff([fmt, data, ...Array.from({ length: 998 }, () => empty('JUNK'))]),
  );
  t.equal(chunks.length, 256);
  t.equal(chunkCount, 1000);
});

t.test('bext is read in its versions 0, 1 and 2', async (t) => {
  const history = `A=PCM,F=48000,W=24,M=stereo,T=\u00e9\r\n${'x'.repeat(5000)}`;
  const of = (version: number): ReturnType<CoreUnderTest['measure']>['bext'] => {
    const body = bytes(602 + history.length, (view) => {
      view.setBigUint64(338, 0x1_2345_6789_abcdn, true);
      view.setUint16(346, version, true);
      [-2315, 1234, -101, 0x7fff, 0].forEach((value, i) => view.setInt16(412 + i * 2, value, true));
    });
    body.write(`${'D'.repeat(256)}Pro Tools`, 0, 'latin1');
    body.write('REF-1', 288, 'latin1');
    body.write('2026-11-2109:30:59', 320, 'latin1');
    noise(64, 9).copy(body, 348);
    body.write(history, 602, 'latin1');
    const file = riff([chunk({ id: 'bext', data: body }), fmt, data]);
    t.strictSame(under.measure(file, everyByte(1, file.length)), under.measure(file));
    return under.measure(file).bext;
  };
  const common = {
    description: 'D'.repeat(256),
    originator: 'Pro Tools',
    originatorReference: 'REF-1',
    originationDate: '2026-11-21',
    originationTime: '09:30:59',
    timeReference: 0x1_2345_6789_abcdn,
    codingHistory: history.slice(0, 4096),
    codingHistoryBytes: history.length,
  };
  const umid = noise(64, 9).toString('hex');
  t.strictSame(of(0), { version: 0, ...common });
  t.strictSame(of(1), { version: 1, ...common, umid });
  t.strictSame(of(2), {
    version: 2,
    ...common,
    umid,
    loudnessValue: -23.15,
    loudnessRange: 12.34,
    maxTruePeakLevel: -1.01,
    maxShortTermLoudness: 0,
  });
});

t.test('ds64 resolves sizes beyond 32 bits', async (t) => {
  const slab = 8 << 20;
  const size = 2 ** 32 + 2 * slab;
  const head = rf64([fmt, chunk({ id: 'data', data: Buffer.alloc(0), size: MAX })], {
    dataSize: BigInt(size),
    riffSize: BigInt(4 + 36 + 24 + 8 + size + 14),
  });
  const tail = chunk({ id: 'JUNK', data: noise(5) });
  const context = under.context(1);
  under.core.init(context);
  const feed = (slice: Uint8Array): void =>
    under.core.parse({ context, address: under.place(slice), length: slice.length });
  feed(head);
  const address = under.place(Buffer.alloc(slab));
  for (let left = size; left > 0; left -= slab)
    under.core.parse({ context, address, length: Math.min(slab, left) });
  feed(tail);
  under.core.finish(context);
  const {
    findings: found,
    frames,
    data: extent,
    ds64,
    bytes: length,
    chunks,
  } = readMeasurement(under.memory, context);
  t.strictSame(found, []);
  t.strictSame(
    { frames, extent, length },
    { frames: size / 2, extent: { offset: head.length, size }, length: head.length + size + 14 },
  );
  t.strictSame(ds64, {
    riffSize: BigInt(head.length + size + 14 - 8),
    dataSize: BigInt(size),
    sampleCount: 32n,
    tableLength: 0,
  });
  t.strictSame(chunks.at(-1), { id: 'JUNK', offset: head.length + size, size: 5 });
});

/** The first bytes of a file of each container that is named and not parsed. */
const NAMED: Readonly<Record<string, Uint8Array>> = {
  rifx: riff([fmt, data], { magic: 'RIFX' }),
  w64: Buffer.from('726966662e91cf11a5d628db04c10000', 'hex'),
  aiff: Buffer.from('FORM\0\0\0\x04AIFF'),
  aifc: Buffer.from('FORM\0\0\0\x04AIFC'),
  caf: Buffer.from('caff\0\x01\0\0desc'),
  mp3: Buffer.concat([Buffer.from('fffb9064', 'hex'), Buffer.alloc(20)]),
  mp4: Buffer.from('\0\0\0\x20ftypM4A '),
  flac: Buffer.from('fLaC\0\0\0\x22\x10\0\x10\0'),
  ogg: Buffer.from('OggS\0\x02\0\0\0\0\0\0'),
  aac: Buffer.from('fff15080043ffcde02004c61', 'hex'),
  wavpack: Buffer.from('wvpk\x40\0\0\0\x10\x04\0\0', 'latin1'),
  unknown: Buffer.from('oggs00000000'),
};

t.test('the core names a container that it does not parse', async (t) => {
  for (const [container, file] of Object.entries(NAMED))
    t.match(under.measure(file), { container, findings: [], chunkCount: 0 }, container);
  t.equal(under.measure(wav(100)).container, 'riff');
});

t.test('the core names the container after an ID3v2 tag', async (t) => {
  const tags: Readonly<Record<string, Uint8Array>> = {
    'an empty tag': id3Tag(0),
    'a tag of one byte': id3Tag(1),
    'a tag of version 2': id3Tag(300, { version: 2 }),
    'a tag with a footer': Buffer.concat([
      id3Tag(20, { flags: 0x10 }),
      Buffer.from('3DI\x04\0\x10\0\0\0\x14'),
    ]),
    'a tag and zeros': Buffer.concat([id3Tag(20_000), Buffer.alloc(517)]),
    'two tags': Buffer.concat([id3Tag(7), id3Tag(128)]),
  };
  for (const [what, tag] of Object.entries(tags))
    for (const [container, start] of Object.entries(NAMED)) {
      // An MP4 file starts with its size, whose first bytes are zeros like the padding.
      if (container === 'mp4' && what === 'a tag and zeros') continue;
      const file = Buffer.concat([tag, start]);
      const measured = under.measure(file);
      t.match(measured, { container, findings: [], chunkCount: 0 }, `${container} after ${what}`);
      t.equal(measured.sha256, createHash('sha256').update(file).digest('hex'));
      if (file.length < 1000)
        t.strictSame(under.measure(file, everyByte(1, file.length)), measured, `${container} after ${what}`);
    }
});

t.test('the core names no container when the first bytes only look like a tag or a frame', async (t) => {
  const files: Readonly<Record<string, Uint8Array>> = {
    'a text that starts with ID3': Buffer.from('ID3 tags are written by many programs.'),
    'a tag without audio': id3Tag(200),
    'a tag before a text': Buffer.concat([id3Tag(10), Buffer.from('# A page about audio')]),
    'a tag that is longer than the file': id3Tag(200).subarray(0, 100),
    'a tag with a size of eight bits': Buffer.concat([
      Buffer.from('ID3\x04\0\0\0\0\x80\0', 'latin1'),
      NAMED['flac']!,
    ]),
    'a tag of version 5': Buffer.concat([id3Tag(0, { version: 5 }), NAMED['flac']!]),
    'a footer without its flag': Buffer.concat([
      id3Tag(4),
      Buffer.from('3DI\x04\0\0\0\0\0\x04'),
      NAMED['flac']!,
    ]),
    'a frame with the reserved version': Buffer.from('ffeb90640000000000000000', 'hex'),
    'a frame of layer II': Buffer.from('fffd90640000000000000000', 'hex'),
    'a frame with the reserved bit rate': Buffer.from('fffbf0640000000000000000', 'hex'),
    'a frame with the reserved sample rate': Buffer.from('fffb9c640000000000000000', 'hex'),
    'a frame with the reserved emphasis': Buffer.from('fffb90660000000000000000', 'hex'),
    'an AAC frame with the reserved sample rate': Buffer.from('fff17480043ffcde02004c61', 'hex'),
    'an AAC frame that is shorter than its header': Buffer.from('fff15080003ffcde02004c61', 'hex').fill(
      0,
      4,
      6,
    ),
    'a text in UTF-16': Buffer.from('\ufeffA text of one line.', 'utf16le'),
    'a JPEG': Buffer.from('ffd8ffe000104a4649460001', 'hex'),
  };
  for (const [what, file] of Object.entries(files))
    t.match(under.measure(file), { container: 'unknown', findings: [], chunkCount: 0 }, what);
});

t.test('the page about the core names each place of each finding', async (t) => {
  const page = readFileSync('assembly/README.md', 'utf8');
  for (const file of ['walk.ts', 'list.ts', 'fields.ts', 'outcome.ts']) {
    const source = readFileSync(`assembly/${file}`, 'utf8');
    const row = page.split('\n').find((line) => line.startsWith(`| \`${file}\` | \``)) ?? '';
    const slugs = (text: string, form: RegExp) =>
      [...new Set([...text.matchAll(form)].map(([, slug]) => slug))].sort();
    t.strictSame(
      slugs(row.slice(file.length + 6), /`([a-z0-9_]+)`/g),
      slugs(source, /Finding\.([a-z0-9_]+)/g),
      file,
    );
  }
});
