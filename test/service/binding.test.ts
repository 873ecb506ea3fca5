/** Tests the effect of every single-byte change on an issued file, and on every pair of the corpus. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { corpusFiles, NO_CORPUS } from '../fixtures/corpus.js';
import { sampled, sized } from '../fixtures/sampling.js';
import { inParallel, seeded, TestService } from '../fixtures/service.js';
import { chunk, fmtChunk, noise, riff, wav } from '../fixtures/wav.js';

const SEED = Number(process.env['TAKEMARK_SEED'] ?? 20_261_121);
/** The number of changed places of a large file. */
const OFFSETS = sized(20_000, 60);
/** The distance between changed places of a small file, and of the store inside it, in the gate. */
const PLACE_STEP = 5;
const STORE_STEP = 37;
/**
 * The bytes that identify a store: the superbox header and the type of the description box. With a change
 * here it is not a store.
 */
const STORE_HEAD = 8 + 38;

t.test('no single-byte change of an issued WAV is verified as good', async (t) => {
  t.comment(`seed ${SEED}`);
  for (const algorithm of ['Ed25519', 'ES256']) {
    const service = await TestService.start({
      TAKEMARK_SIGNING_ALGORITHM: algorithm,
      TAKEMARK_MAX_UPLOADS: '64',
    });
    t.teardown(() => service.stop());
    const { partnerId, caller } = await service.partner();
    const random = seeded(SEED);

    const flipAt = async (name: string, plain: Buffer, offsets: (length: number) => Iterable<number>) => {
      const { file } = await service.issue(partnerId, plain);
      t.match(await service.verify(caller, file), { verdict: 'valid', good: true }, `${name}: as issued`);
      // Everything before the chunk, and its 8-byte header, is read as container and audio.
      const store = plain.length;
      const verdicts = new Map<string, number>();
      const wrong: unknown[] = [];
      await inParallel(offsets(file.length), 32, async (offset) => {
        const changed = Buffer.from(file);
        changed[offset] = changed[offset]! ^ (1 + Math.floor(random() * 255));
        const { verdict, good, decision } = await service.verify(caller, changed);
        verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
        const inStore = offset >= store + STORE_HEAD && offset < file.length - 1;
        if (
          good ||
          verdict === 'valid' ||
          !['tampered', 'unreadable'].includes(verdict) ||
          (inStore && verdict !== 'tampered') ||
          (offset < store && verdict !== 'unreadable')
        ) {
          wrong.push({ offset, verdict, reasons: decision.reasons });
        }
      });
      t.strictSame(
        wrong.slice(0, 10),
        [],
        `${name}, ${algorithm}: ${[...verdicts].map(([verdict, count]) => `${count} ${verdict}`).join(', ')}`,
      );
    };

    const small = riff([
      fmtChunk({ bits: 8 }),
      chunk({ id: 'LIST', data: Buffer.from('INFOISFT\x04\0\0\0abc\0', 'latin1') }),
      chunk({ id: 'data', data: noise(301) }),
    ]);
    await flipAt('a small file', small, (length) => {
      const [isTried, isTriedInside] = [sampled(PLACE_STEP), sampled(STORE_STEP)];
      return Array.from({ length }, (_, offset) => offset).filter((offset) =>
        offset < small.length + STORE_HEAD || offset >= length - 64 ? isTried() : isTriedInside(),
      );
    });
    if (algorithm === 'Ed25519') {
      await flipAt(`a large file, ${OFFSETS} offsets`, wav(600_000, { channels: 2 }), (length) =>
        Array.from({ length: OFFSETS }, (_, i) =>
          i < OFFSETS / 2 ? length - 1 - i * 10 : Math.floor(random() * length),
        ),
      );
    }
  }
});

t.test(
  'every file of the corpus as a legacy pair',
  { skip: corpusFiles() === undefined && NO_CORPUS },
  async (t) => {
    const service = await TestService.start({ TAKEMARK_MAX_UPLOADS: '64' });
    t.teardown(() => service.stop());
    const { partnerId, caller } = await service.partner();
    const random = seeded(SEED);
    t.comment(`seed ${SEED}`);
    for (const { name, path } of corpusFiles()!) {
      const audio = readFileSync(path);
      const { file, sidecar } = await service.issue(partnerId, audio, {
        carrier: 'sidecar',
        fileName: name,
        allowUnknownContainer: true,
      });
      t.ok(file.equals(audio), `${name}: the audio of a pair is untouched`);
      t.match(
        await service.verify(caller, audio, sidecar),
        { verdict: 'valid', good: true },
        `${name}: valid with its own sidecar`,
      );
      const wrong: unknown[] = [];
      const offsets =
        audio.length <= 128
          ? [...audio.keys()].filter(sampled(5))
          : Array.from({ length: sized(24, 6) }, (_, i) =>
              i === 0 ? 0 : i === 1 ? audio.length - 1 : Math.floor(random() * audio.length),
            );
      await inParallel(offsets, 16, async (offset) => {
        const changed = Buffer.from(audio);
        changed[offset] = changed[offset]! ^ (1 + Math.floor(random() * 255));
        const { verdict, good } = await service.verify(caller, changed, sidecar);
        if (verdict !== 'audioChanged' || good) wrong.push({ offset, verdict });
      });
      t.strictSame(wrong, [], `${name}: audioChanged after any single-byte change`);
    }
  },
);
