import { createHash, type Hash } from 'node:crypto';
import t from 'tap';
import {
  type CoreMeasurement,
  credentialSpan,
  forkReport,
  readMeasurement,
} from '../../src/core/engine/core.js';
import { chunk, fmtChunk, noise, riff } from '../fixtures/wav.js';
import { CoreUnderTest, everyByte, randomCuts, randomNumbers } from './core-under-test.js';

const under = await CoreUnderTest.load(4 << 20);
const sha256 = (...parts: readonly Uint8Array[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
};

const data = (bytes: number): Buffer => chunk({ id: 'data', data: noise(bytes) });
const credential = (bytes: number): Buffer => chunk({ id: 'C2PA', data: noise(bytes, 5) });

/** Files with one credential, and its offset and length. */
const FILES = [
  { name: 'last, even', file: riff([fmtChunk(), data(130), credential(70)]), offset: 174, length: 78 },
  {
    name: 'last, odd: the pad byte is hashed',
    file: riff([fmtChunk(), data(130), credential(71)]),
    offset: 174,
    length: 79,
  },
  { name: 'first', file: riff([credential(90), fmtChunk(), data(200)]), offset: 12, length: 98 },
  { name: 'middle', file: riff([fmtChunk(), credential(200), data(300)]), offset: 36, length: 208 },
  { name: 'empty', file: riff([fmtChunk(), data(64), credential(0)]), offset: 108, length: 8 },
  {
    name: 'after ids that begin alike',
    file: riff([
      fmtChunk(),
      data(20),
      chunk({ id: 'C2PB', data: noise(2) }),
      chunk({ id: 'C2  ', data: noise(2) }),
      credential(33),
    ]),
    offset: 84,
    length: 41,
  },
];

function expectedOf({ file, offset, length }: { file: Buffer; offset: number; length: number }): {
  sha256: string;
  bindingSha256: string;
} {
  return {
    sha256: sha256(file),
    bindingSha256: sha256(file.subarray(0, offset), file.subarray(offset + length)),
  };
}

t.test('the binding digest is right for every cut around the credential', async (t) => {
  for (const each of FILES) {
    const { file, offset, length } = each;
    const whole = under.measure(file);
    t.match(whole, { ...expectedOf(each), credential: { offset, length } }, each.name);
    t.strictSame(under.measure(file, everyByte(1, file.length)), whole, `${each.name}, byte by byte`);
    const cuts = new Set<number>();
    for (let cut = 0; cut <= file.length; cut += 1) cuts.add(cut);
    let wrong = 0;
    for (const cut of cuts) if (under.measure(file, [cut]).bindingSha256 !== whole.bindingSha256) wrong += 1;
    for (let from = offset - 9; from <= offset + 9; from += 1) {
      for (let to = from; to <= Math.min(file.length, offset + length + 9); to += 1) {
        const found = under.measure(file, [Math.max(0, from), Math.max(0, to)]);
        if (found.bindingSha256 !== whole.bindingSha256 || found.sha256 !== whole.sha256) wrong += 1;
      }
    }
    t.equal(wrong, 0, `${each.name}, cuts`);
  }
});

t.test('lanes that fork and lanes that do not keep their digests apart', async (t) => {
  const random = randomNumbers(31);
  const plain = { name: 'none', file: riff([fmtChunk(), data(900)]), offset: 0, length: 0 };
  const large = {
    name: 'large',
    file: riff([fmtChunk(), data(70_001), credential(9000), data(5000)]),
    offset: 36 + 70_010,
    length: 9008,
  };
  let wrong = 0;
  for (let round = 0; round < 400; round += 1) {
    const uploads = Array.from({ length: random(4) + 1 }, (_, i) => {
      const each = [...FILES, plain, large][random(FILES.length + 2)]!;
      return {
        ...each,
        context: under.context(i),
        cuts: [...randomCuts(random, each.file.length, 6), each.file.length],
        from: 0,
      };
    });
    for (const { context } of uploads) under.core.init(context);
    for (let step = 0; step < 7; step += 1) {
      let at = 0;
      const slices = uploads
        .filter(({ cuts }) => step < cuts.length)
        .map((upload) => {
          const part = upload.file.subarray(upload.from, upload.cuts[step]);
          upload.from += part.length;
          const address = under.place(part, at);
          at += part.length;
          return { context: upload.context, address, length: part.length };
        });
      if (slices.length > 0) under.core.update(slices);
    }
    for (const upload of uploads) {
      under.core.finish(upload.context);
      const found = readMeasurement(under.memory, upload.context);
      const expected = upload.length === 0 ? { sha256: sha256(upload.file) } : expectedOf(upload);
      if (
        found.sha256 !== expected.sha256 ||
        found.bindingSha256 !== (expected as { bindingSha256?: string }).bindingSha256
      )
        wrong += 1;
    }
  }
  t.equal(wrong, 0);
});

/** Does the work of an engine that hashes with node:crypto. It parses the file, and follows the reports. */
function hashOutside(file: Buffer, cuts: readonly number[]): CoreMeasurement & { data: Buffer } {
  const context = under.context(5);
  const address = under.place(file);
  const whole = createHash('sha256');
  let binding: Hash | undefined;
  let hashed = 0;
  const kept: Buffer[] = [];
  under.core.init(context);
  let from = 0;
  for (const to of [...cuts, file.length]) {
    under.core.parse({ context, address: address + from, length: to - from });
    const span = credentialSpan(under.memory, context);
    if (span) kept.push(file.subarray(from + span.offset, from + span.offset + span.length));
    const { forkAt, resumeAt, heldBack } = forkReport(under.memory, context);
    if (forkAt !== undefined && binding === undefined) {
      whole.update(file.subarray(hashed, forkAt));
      hashed = forkAt;
      binding = whole.copy();
    }
    const until = to - heldBack;
    if (until > hashed) {
      whole.update(file.subarray(hashed, until));
      if (resumeAt !== undefined && resumeAt < until)
        binding?.update(file.subarray(Math.max(hashed, resumeAt), until));
      hashed = until;
    }
    from = to;
  }
  whole.update(file.subarray(hashed));
  under.core.finish(context);
  const digests = { sha256: whole.digest('hex'), ...(binding && { bindingSha256: binding.digest('hex') }) };
  return {
    ...readMeasurement(under.memory, context, digests),
    data: Buffer.concat(kept),
  } as CoreMeasurement & { data: Buffer };
}

t.test('the reports suffice to hash outside and to copy the credential', async (t) => {
  const random = randomNumbers(8);
  for (const each of FILES) {
    const { data: _, ...expected } = under.measure(each.file);
    let wrong = 0;
    for (let round = 0; round < 200; round += 1) {
      const cuts =
        round === 0 ? [...everyByte(1, each.file.length)] : randomCuts(random, each.file.length, 6);
      const { data: copied, ...found } = hashOutside(each.file, cuts);
      if (!copied.equals(each.file.subarray(each.offset + 8, each.offset + each.length))) wrong += 1;
      if (JSON.stringify(found) !== JSON.stringify(expected)) wrong += 1;
    }
    t.equal(wrong, 0, each.name);
  }
});

t.test('there is no binding digest without exactly one whole credential', async (t) => {
  const bodies = {
    none: riff([fmtChunk(), data(64)]),
    two: riff([fmtChunk(), data(64), credential(40), credential(40)]),
    'too large': riff([fmtChunk(), data(64), credential((1 << 20) + 2)]),
    'cut off': riff([fmtChunk(), data(64), credential(40)]).subarray(0, 140),
    'in a list': riff([
      fmtChunk(),
      data(64),
      chunk({ id: 'LIST', data: Buffer.concat([Buffer.from('INFO'), credential(40)]) }),
    ]),
  };
  for (const [name, file] of Object.entries(bodies)) {
    const found = under.measure(file);
    t.equal(found.bindingSha256, undefined, name);
    t.equal(found.sha256, sha256(file), name);
    t.equal(found.credential !== undefined, name === 'two', name);
  }
});
