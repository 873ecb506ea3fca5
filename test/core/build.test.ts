import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { CONTAINERS, SAMPLES_REASONS } from '../../src/core/domain/audio.js';
import { STRUCTURE_FINDINGS } from '../../src/core/domain/findings.js';
import { CONTEXT_BYTES, credentialSpan, loadCore, SCRATCH_BYTES } from '../../src/core/engine/core.js';
import { CORE_FINGERPRINT } from '../../src/core/engine/core-fingerprint.js';
import * as layout from '../../src/core/engine/core-layout.js';
import { CoreUnderTest } from './core-under-test.js';

const root = new URL('../../../', import.meta.url);
const wasm = readFileSync(new URL('dist/core.wasm', root));

/** Returns the section ids of a WebAssembly binary in order (core specification, 5.5.2). */
function sections(binary: Uint8Array): number[] {
  const ids: number[] = [];
  for (let at = 8; at < binary.length; ) {
    ids.push(binary[at++]!);
    let size = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = binary[at++]!;
      size += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    at += size;
  }
  return ids;
}

t.test('the checked-in fingerprint is that of the build', async (t) => {
  t.equal(createHash('sha256').update(wasm).digest('hex'), CORE_FINGERPRINT);
});

t.test('the module has no state of its own', async (t) => {
  const module = await loadCore();
  t.strictSame(WebAssembly.Module.imports(module), [{ module: 'env', name: 'memory', kind: 'memory' }]);
  t.strictSame(
    WebAssembly.Module.exports(module)
      .map(({ name, kind }) => `${kind} ${name}`)
      .sort(),
    ['function finish', 'function init', 'function parse', 'function samples', 'function update'],
  );
  const [memory, globals, start, dataCount, data] = [5, 6, 8, 12, 11];
  for (const id of [memory, globals, start, dataCount, data])
    t.notOk(sections(wasm).includes(id!), `section ${id}`);
});

t.test('the generated kernels are what the generator writes', async (t) => {
  const { GENERATED } = (await import(new URL('assembly/generate-sha256.mjs', root).href)) as {
    GENERATED: Record<string, () => string>;
  };
  for (const [name, write] of Object.entries(GENERATED))
    t.equal(readFileSync(new URL(`assembly/${name}`, root), 'utf8'), write(), name);
});

t.test('the core and the domain name findings, reasons and containers in the same order', async (t) => {
  const members = (file: string, name: string): string[] => {
    const source = readFileSync(new URL(`assembly/${file}`, root), 'utf8');
    const body = new RegExp(`enum ${name} \\{([^}]*)\\}`).exec(source)![1]!;
    return body
      .split(',')
      .map((each) => each.trim())
      .filter((each) => each !== '');
  };
  t.strictSame(members('findings.ts', 'Finding'), [...STRUCTURE_FINDINGS]);
  t.strictSame(members('samples-reason.ts', 'Reason'), [...SAMPLES_REASONS]);
  t.strictSame(
    members('container.ts', 'Container').map((name) => name.toLowerCase()),
    [...CONTAINERS],
  );
});

t.test('contexts and scratch can be laid side by side', async (t) => {
  t.equal(CONTEXT_BYTES % 64, 0);
  t.equal(SCRATCH_BYTES % 64, 0);
  t.ok(layout.BEXT + layout.BEXT_FIXED_BYTES + layout.CODING_HISTORY_LIMIT <= CONTEXT_BYTES);
  t.ok(layout.CHUNKS + layout.CHUNK_TABLE_LIMIT * layout.CHUNK_ENTRY_BYTES <= layout.BEXT);
  t.ok(layout.FINDING_OFFSETS + STRUCTURE_FINDINGS.length * 8 <= layout.CONTAINER_AT);
  t.ok(layout.DS64 + layout.DS64_BYTES <= layout.DS64_TABLE_LENGTH);
  t.equal(layout.DS64_BYTES, 28 + layout.DS64_TABLE_LIMIT * 12);
});

t.test(
  'a context of another build, a finished one and a fresh one are refused, and nothing is touched',
  async (t) => {
    const under = await CoreUnderTest.load(1024);
    const [good, finished, foreign, fresh] = [0, 1, 2, 3].map((i) => under.context(i)) as [
      number,
      number,
      number,
      number,
    ];
    const address = under.place(Buffer.alloc(64, 1));
    for (const context of [good, finished, foreign]) under.core.init(context);
    under.core.finish(finished);
    new DataView(under.memory.buffer).setUint32(foreign + layout.TAG, 12_345, true);
    const before = under.bytes.slice(0, layout.SCRATCH_BYTES * 4 + CONTEXT_BYTES * 4);
    for (const context of [finished, foreign, fresh]) {
      t.throws(
        () =>
          under.core.update([
            { context: good, address, length: 64 },
            { context, address, length: 64 },
          ]),
        { message: new RegExp(`: ${context}$`) },
      );
      t.throws(() => under.core.parse({ context, address, length: 64 }));
      t.throws(() => under.core.finish(context));
    }
    const after = under.bytes.slice(0, before.length);
    t.ok(Buffer.from(after.buffer, SCRATCH_BYTES * 4).equals(Buffer.from(before.buffer, SCRATCH_BYTES * 4)));
    t.equal(credentialSpan(under.memory, good), undefined);
    t.throws(() => under.core.update([]), RangeError);
  },
);
