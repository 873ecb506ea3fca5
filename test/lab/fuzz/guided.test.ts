/** Tests that coverage finds a branch that random mutation does not find. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import type { Trial } from './nested-trial.js';

/**
 * Runs a trial in its own process. Reading coverage takes time for all loaded code, and here that would
 * include the test runner.
 */
async function trial(kind: string): Promise<Trial> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    new URL('./nested-trial.js', import.meta.url).pathname,
    kind,
  ]);
  return JSON.parse(stdout) as Trial;
}

t.test(
  'a branch that needs five right bytes in sequence is reached with coverage, and not without',
  async (t) => {
    const blind = await trial('blind');
    t.comment(`blind: depth ${blind.depth} after ${blind.inputs} inputs`);
    t.ok(blind.depth < 5, 'blind mutation of the same seed with the same numbers stays outside');
    const guided = await trial('guided');
    t.comment(`with coverage: depth ${guided.depth} after ${guided.inputs} inputs, ${guided.kept} kept`);
    t.equal(guided.depth, 5);
    t.ok(guided.inputs <= blind.inputs, 'with no more inputs');
    t.equal(guided.minimisedDepth, 5, 'the way in is kept');
  },
);

t.test('an input that makes the reader fail is reported', async (t) => {
  const { fault, depth } = await trial('failing');
  t.equal(fault, 'two deep');
  t.ok(depth >= 2);
});

t.test('a trial fails when coverage does not count the reader', async (t) => {
  t.match((await trial('uncounted')).fault, /the seeds reach nothing/);
});
