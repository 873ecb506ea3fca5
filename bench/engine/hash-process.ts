/**
 * Child process: node:crypto under an environment of its own, for instance with the CPU's SHA instructions
 * hidden from it.
 */
import { answerCalls } from '../service/child.js';
import { hashSlabs } from './kernel.js';
import { hashWithNode } from './node-hash.js';

const slabs = hashSlabs();
const methods = { hash: (count: number) => hashWithNode(slabs, count) };
export type HashProcess = typeof methods;

answerCalls(methods);
