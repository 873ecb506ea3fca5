import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { SAMPLES_REASONS } from '../../src/core/domain/audio.js';
import { CoreUnderTest } from './core-under-test.js';

const root = new URL('../../../', import.meta.url);
const page = readFileSync(new URL('docs/samples-digest.md', root), 'utf8');

interface Vectors {
  readonly VECTORS: readonly { readonly name: string; readonly file: Buffer; readonly samples: string }[];
  readonly table: () => string;
}

t.test('the published vectors are those of the generator, and of the core', async (t) => {
  const generator = new URL('docs/examples/samples-vectors.mjs', root).href;
  const { VECTORS, table } = (await import(generator)) as Vectors;
  const under = await CoreUnderTest.load(1 << 20);
  t.equal(VECTORS.length, 12);
  t.ok(page.includes(`\n${table()}\n`), 'the page has the table of the generator');
  for (const { name, file, samples } of VECTORS) {
    const measured = under.measure(file, [], { samples: true });
    t.strictSame(measured.samples, { sha256: samples }, name);
    t.equal(measured.sha256, createHash('sha256').update(file).digest('hex'), name);
  }
});

t.test('the page names every reason why a file has no digest', async (t) => {
  const named = [...page.matchAll(/^\| `([a-z_]+)` \| [A-Z]/gm)].map(([, reason]) => reason);
  t.strictSame(named, [...SAMPLES_REASONS]);
});
