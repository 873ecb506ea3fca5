/**
 * Child process: node:crypto under an environment of its own, for instance with the CPU's SHA instructions
 * hidden from it, and eight lanes, whose compiler flag is set for the whole process.
 */
import { loadCore } from '../../src/core/engine/core.js';
import { mergeVectors, testModule } from '../../src/core/engine/lane-test.js';
import { answerCalls } from '../service/child.js';
import { hashSlabs, Kernel } from './kernel.js';
import { hashWithNode } from './node-hash.js';

const slabs = hashSlabs();
// Before a module is compiled.
mergeVectors();
const kernel = await Kernel.load();
const methods = {
  hash: (count: number) => hashWithNode(slabs, count),
  /** Tests the lanes as a worker does at its start. */
  testLanes: async () => testModule(await loadCore()),
  eightLanes: (count: number) => kernel.lanes(count, 8),
};
export type HashProcess = typeof methods;

answerCalls(methods);
