/**
 * Fuzzes a reader in a process that may end or hang. Arguments: name, seconds, seed, file of the current
 * input, keep.
 */
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { randomNumbers } from '../../core/core-under-test.js';
import { readCorpus, writeCorpus } from './corpus.js';
import { fuzz, minimise } from './guided.js';
import { TARGETS } from './targets.js';

export interface Report {
  readonly inputs: number;
  readonly features: number;
  readonly kept: number;
  readonly fault?: { readonly input: string; readonly error: string };
}

const [name, seconds, seed, current, keep] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
];
const send = (message: Report | 'alive'): void => void process.send!(message);
const target = await TARGETS[name]!();
const file = openSync(current, 'w');
const began = performance.now();
let sentAt = began;
const salt = [...name].reduce((sum, letter) => Math.imul(sum, 31) + letter.charCodeAt(0), Number(seed));
const result = await fuzz(
  { ...target, seeds: [...target.seeds, ...(await readCorpus(name))] },
  {
    coverage: target.coverage,
    random: randomNumbers(salt),
    before: (input) => {
      ftruncateSync(file, 0);
      writeSync(file, input, 0, input.length, 0);
    },
    enough: () => {
      const at = performance.now();
      if (at - sentAt > 1000) {
        send('alive');
        sentAt = at;
      }
      return at - began > Number(seconds) * 1000;
    },
  },
);
closeSync(file);
const { inputs, features, corpus, fault } = result;
if (keep === 'true' && fault === undefined)
  await writeCorpus(name, await minimise(target, corpus, target.coverage));
send({
  inputs,
  features,
  kept: corpus.length,
  ...(fault === undefined
    ? {}
    : {
        fault: {
          input: Buffer.from(fault.input).toString('base64'),
          error:
            fault.error instanceof Error ? (fault.error.stack ?? fault.error.message) : String(fault.error),
        },
      }),
});
target.coverage.close();
await target.close();
process.disconnect();
