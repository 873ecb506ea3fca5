import t from 'tap';
import { collectOrphans } from '../../src/background/collect.js';
import type { Proof } from '../../src/domain/proof.js';

/** A bucket with these deliverables, and a registry that knows some of them. */
function setUp(names: readonly string[], states: Readonly<Record<string, string>>) {
  const left = new Set(names);
  const assets = {
    collectOrphans: async (keep: (proofId: string) => Promise<boolean>) => {
      for (const name of [...left]) if (!(await keep(name))) left.delete(name);
      return names.length - left.size;
    },
  };
  const stores = {
    getProof: async (proofId: string) =>
      states[proofId] === undefined ? undefined : ({ state: states[proofId] } as Proof),
  };
  return { left, collect: (shared: boolean) => collectOrphans({ stores, assets, shared }) };
}

const many = (count: number, name: string) => Array.from({ length: count }, (_, i) => `${name}_${i}`);

t.test('deliverables of no proof go, those of proofs and of reserved ids stay', async (t) => {
  for (const shared of [true, false]) {
    const { left, collect } = setUp(['prf_1', 'prf_2', 'prf_3', 'prf_4'], {
      prf_1: 'issued',
      prf_2: 'pending',
      prf_3: 'erased',
    });
    await collect(shared);
    t.strictSame([...left], ['prf_1', 'prf_2']);
  }
});

t.test('a bucket of another registry, or a registry that was put back: nothing is removed', async (t) => {
  const own = Object.fromEntries(many(2000, 'own').map((name) => [name, 'issued']));
  for (const names of [
    many(4, 'foreign'),
    [...many(10, 'own'), ...many(14, 'foreign')],
    [...Object.keys(own), ...many(1001, 'foreign')],
  ]) {
    const { left, collect } = setUp(names, own);
    await t.rejects(collect(true), /another registry's.*nothing was removed/);
    t.equal(left.size, names.length);
  }
  const { left, collect } = setUp([...many(1500, 'own'), ...many(1000, 'orphan')], own);
  await collect(true);
  t.equal(left.size, 1500, 'as many as kills can leave');
  const alone = setUp(many(10, 'orphan'), {});
  await alone.collect(false);
  t.equal(alone.left.size, 0, 'a directory is the store’s own');
});
