/**
 * Shows that the gate still finds old faults: reverts the part in `src` of commits that fix behaviour, one at a time, and
 * runs the gate's tests on each. Prints a row for every commit: what turned red.
 *
 * `node test/lab/reverted-fixes.mjs --out rows.jsonl [--count 12] [--last 60] [--seed 1] [--only <commit>]...`: takes
 * commits that `--seed` draws from the last `--last` ones that change code in `src`, and leaves out those that do not
 * revert cleanly or do not compile afterwards. Rows that `--out` has already are not played again, so the command can be
 * interrupted. The variables of the test servers are passed on. The test files that the commit itself touched run
 * first; only where they stay green does the whole gate run.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');
const SHOWN_TESTS = 3;
const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    count: { type: 'string', default: '12' },
    last: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', multiple: true },
  },
});
if (values.out === undefined) throw new Error('--out names the file that rows are appended to');

const git = (...args) => execFileSync('git', ['-C', ROOT, ...args], { encoding: 'utf8', maxBuffer: 1 << 28 });
const known = existsSync(values.out)
  ? readFileSync(values.out, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  : [];
const tree = mkdtempSync(`${ROOT.replace(/\/$/, '')}-reverted-`);
git('worktree', 'add', '--detach', '--quiet', tree, 'HEAD');
try {
  // Linked file by file: the process that reads strangers' credentials may follow no link to a folder elsewhere.
  execFileSync('cp', ['-al', join(ROOT, 'node_modules'), join(tree, 'node_modules')]);
  let played = 0;
  for (const commit of values.only ?? drawn()) {
    if (played === Number(values.count)) break;
    const row = known.find((each) => each.commit === commit) ?? play(commit);
    if (!known.includes(row)) appendFileSync(values.out, `${JSON.stringify(row)}\n`);
    if (row.tier === 'skipped') continue;
    played += 1;
    console.log(`${row.commit} ${row.subject}: ${row.tier}: ${row.found.join('; ')}`);
  }
} finally {
  git('worktree', 'remove', '--force', tree);
}

/** Returns commits with changes of code in `src`, in an order that follows from the seed. */
function drawn() {
  const commits = git('log', '--no-merges', '--format=%h', '--', 'src')
    .trim()
    .split('\n')
    .slice(0, Number(values.last));
  let state = Number(values.seed);
  const order = new Map(
    commits.map((commit) => [commit, (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0)]),
  );
  return commits.toSorted((a, b) => order.get(a) - order.get(b));
}

function play(commit) {
  const subject = git('log', '-1', '--format=%s', commit).trim();
  const skipped = (why) => ({ commit, subject, tier: 'skipped', found: [why] });
  const patch = git('show', '--format=', commit, '--', 'src');
  if (!patch.split('\n').some((line) => /^[+-](?![+-])\s*(?!\/?\*|\/\/)\S/.test(line)))
    return skipped('comments alone');
  const inTree = (program, ...args) =>
    spawnSync(program, args, { cwd: tree, encoding: 'utf8', maxBuffer: 1 << 28 });
  inTree('git', 'reset', '--quiet', '--hard', 'HEAD');
  inTree('git', 'clean', '-fdq', 'src', 'test');
  // A revert follows files that were moved since; only its part in `src` stays.
  inTree('git', 'revert', '--no-commit', commit);
  const conflicts = inTree('git', 'diff', '--name-only', '--diff-filter=U', '--', 'src').stdout;
  inTree('git', 'checkout', '--quiet', 'HEAD', '--', '.', ':!src');
  if (conflicts !== '' || inTree('git', 'diff', '--quiet', 'HEAD', '--', 'src').status === 0)
    return skipped('does not revert');
  if (inTree('npm', 'run', '--silent', 'build').status !== 0) return skipped('does not compile');
  const touched = git('show', '--format=', '--name-only', commit, '--', 'test')
    .split('\n')
    .map((path) => path.replace(/^test\//, '').replace(/\.test\.ts$/, ''));
  const entries = readdirSync(join(tree, 'test/gate')).filter((entry) => {
    const text = readFileSync(join(tree, 'test/gate', entry), 'utf8');
    return touched.some((path) => path !== '' && text.includes(`/${path.split('/').at(-1)}.test.js'`));
  });
  const near = entries.length > 0 ? redIn(entries.map((entry) => entry.replace(/\.ts$/, ''))) : [];
  const found = near.length > 0 ? near : redIn([]);
  return {
    commit,
    subject,
    tier: found.length > 0 ? 'gate' : 'not found',
    found: found.slice(0, SHOWN_TESTS),
  };

  function redIn(names) {
    const { status } = inTree('node', 'test/run.mjs', ...names);
    if (status === 0) return [];
    const output = readFileSync(join(tree, '.tap/last.tap'), 'utf8').split('\n');
    const red = output.flatMap((line) => {
      const name = /^ {4}not ok \d+ - (.*?)(?: # time=.*)?$/.exec(line)?.[1];
      return name === undefined ? [] : [name];
    });
    return red.length > 0 ? red : ['a file ended otherwise'];
  }
}
