/**
 * Readers of different habits find the same audio in every file that the core accepts. The readers are small
 * models of real ones, each with the habit in which that one differs.
 */
import t from 'tap';
import type { StructureFinding } from '../../src/core/domain/findings.js';
import { isHarmless } from '../../src/core/domain/findings.js';
import { chunk, fmtChunk, noise, riff } from '../fixtures/wav.js';
import { listChunk, longFmt, WRITERS } from '../fixtures/writers.js';
import { CoreUnderTest, randomNumbers } from './core-under-test.js';

interface Habits {
  /** The last data chunk replaces an earlier one (libsndfile, scipy). */
  readonly lastData?: boolean;
  /** A pad byte is skipped only if it is zero (TagLib). */
  readonly peeksAtPad?: boolean;
  /** The pad byte of the fmt chunk is never skipped (SoX). */
  readonly fmtWithoutPad?: boolean;
  /** A data chunk of 0 bytes extends to the end of the file (ffmpeg). */
  readonly emptyToEnd?: boolean;
  /** The chunks end where the RIFF size says. */
  readonly obeysRiffSize?: boolean;
  /** The id `data` at the place of a list's member is the audio (libsndfile). */
  readonly dataInList?: boolean;
}

const READERS: Readonly<Record<string, Habits>> = {
  'Python wave': {},
  scipy: { lastData: true, obeysRiffSize: true },
  TagLib: { peeksAtPad: true },
  SoX: { fmtWithoutPad: true },
  ffmpeg: { emptyToEnd: true },
  libsndfile: { lastData: true, dataInList: true },
};

type Extent = readonly [offset: number, size: number];

/** Returns the audio that a reader finds, or undefined if it finds none. */
function find(file: Buffer, habits: Habits): Extent | undefined {
  const stated = file.readUInt32LE(4) + 8;
  const end = habits.obeysRiffSize === true ? Math.min(stated, file.length) : file.length;
  let found: Extent | undefined;
  const take = (at: number): boolean => {
    const size = file.readUInt32LE(at + 4);
    const rest = file.length - at - 8;
    found = [at + 8, size === 0 && habits.emptyToEnd === true ? rest : Math.min(size, rest)];
    return habits.lastData !== true;
  };
  for (let at = 12; at + 8 <= end; ) {
    const id = file.toString('latin1', at, at + 4);
    const size = file.readUInt32LE(at + 4);
    if (id === 'data' && take(at)) break;
    if (id === 'LIST' && habits.dataInList === true) {
      const inside = dataMember(file, at + 8, Math.min(at + 8 + size, file.length));
      if (inside !== undefined) {
        take(inside);
        break;
      }
    }
    at += 8 + size;
    const skips = !(id === 'fmt ' && habits.fmtWithoutPad === true);
    if (size % 2 === 1 && skips && (habits.peeksAtPad !== true || file[at] === 0)) at += 1;
  }
  return found;
}

/** Returns the offset of an id `data` where a member of the list, or its type, can be. */
function dataMember(file: Buffer, from: number, to: number): number | undefined {
  for (let at = from; at + 8 <= to; ) {
    const id = file.toString('latin1', at, at + 4);
    if (id === 'data') return at;
    if (at === from) at += 4;
    else {
      const size = file.readUInt32LE(at + 4);
      at += 8 + size + (size % 2);
    }
  }
  return undefined;
}

const accepts = (findings: readonly { slug: StructureFinding; offset: number }[]): boolean =>
  findings.every((found) => isHarmless(found) && found.slug !== 'data_in_list');

const under = await CoreUnderTest.load();

/** Returns what is wrong with an accepted file, or undefined. */
function disagreement(file: Buffer): string | undefined {
  const { container, findings, data } = under.measure(file);
  if (container !== 'riff' || !accepts(findings)) return undefined;
  for (const [reader, habits] of Object.entries(READERS)) {
    const found = find(file, habits);
    // A reader that finds no audio reports an error. It does not read other audio.
    if (found === undefined && reader === 'SoX') continue;
    if (found?.[0] !== data?.offset || found?.[1] !== data?.size)
      return `${reader} finds ${found}, the core ${data?.offset},${data?.size}`;
  }
  return undefined;
}

t.test('readers agree on every file of the writers that is accepted', async (t) => {
  for (const { writer, deviation, file, outcome } of WRITERS) {
    t.equal(disagreement(file), undefined, `${writer}: ${deviation}`);
    const accepted = accepts(under.measure(file).findings);
    t.equal(
      accepted,
      outcome === 'issued' || outcome === 'container_needs_sidecar',
      `${writer}: ${deviation}`,
    );
  }
});

t.test('readers agree on every accepted file among mutations', async (t) => {
  const random = randomNumbers(2026);
  const pick = <Value>(from: readonly Value[]): Value => from[random(from.length)]!;
  const ids = ['fmt ', 'data', 'LIST', 'JUNK', 'C2PA', 'fact', 'bext', 'INFO', 'DATA', '\0\0\0\0'];
  const sizes = [0, 1, 2, 3, 8, 16, 17, 20, 24, 40, 0x7fff_f000, 0xffff_1000, 0xffff_ffff];
  const part = (): Buffer =>
    pick([
      () => fmtChunk({ channels: 1 + random(2) }),
      () => longFmt({}, Buffer.alloc(random(12))),
      () => chunk({ id: 'data', data: noise(random(9) * 4, 1 + random(99)) }),
      () => chunk({ id: pick(ids), data: noise(random(20), 1 + random(99)), pad: pick([0, 0, 0, 1, null]) }),
      () => listChunk('INFO', chunk({ id: pick(ids), data: noise(random(9)), pad: pick([0, 1, null]) })),
      () => listChunk(pick(ids), noise(random(9)), chunk({ id: pick(ids), data: noise(random(9)) })),
    ])();
  let accepted = 0;
  let refused = 0;
  for (let run = 0; run < 20_000; run += 1) {
    const parts = [fmtChunk(), chunk({ id: 'data', data: noise(40, 1 + random(99)) })];
    for (let i = random(3); i > 0; i -= 1)
      parts.splice(random(parts.length + 1), random(8) === 0 ? 1 : 0, part());
    const file = riff(parts);
    const change = random(3);
    if (change === 0) file.writeUInt32LE(pick(sizes), 12 + 4 * random((file.length - 16) >> 2));
    else if (change === 1) file[4 + random(file.length - 4)]! ^= 1 << random(8);
    if (accepts(under.measure(file).findings)) accepted += 1;
    else refused += 1;
    const wrong = disagreement(file);
    if (wrong !== undefined) t.fail(`run ${run}: ${wrong}: ${file.toString('hex').slice(0, 400)}`);
  }
  t.ok(accepted > 2000 && refused > 2000, `${accepted} accepted, ${refused} refused`);
});
