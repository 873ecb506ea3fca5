import { createHash } from 'node:crypto';
import { type HashRun, slabOrder } from './kernel.js';

/** Hashes slabs as one stream with node:crypto. */
export function hashWithNode(slabs: readonly Uint8Array[], count: number): HashRun {
  const order = slabOrder(undefined, count);
  const start = performance.now();
  const hash = createHash('sha256');
  for (const slab of order) hash.update(slabs[slab]!);
  const digest = hash.digest('hex');
  const seconds = (performance.now() - start) / 1000;
  return {
    megabytesPerSecond: order.reduce((total, slab) => total + slabs[slab]!.length, 0) / seconds / 1e6,
    digests: [digest],
  };
}
