/**
 * Records the commit of the sources in `dist/build.json`, as the last step of `npm run build`. A commit with
 * changes that are not committed gets the ending `-changed`. Without a Git repository nothing is recorded.
 */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';

const git = (...words) =>
  execFileSync('git', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();

const FILE = new URL('../dist/build.json', import.meta.url);

rmSync(FILE, { force: true });
try {
  const commit = git('rev-parse', '--short=12', 'HEAD');
  const changed = git('status', '--porcelain', '--untracked-files=no') === '' ? '' : '-changed';
  writeFileSync(FILE, `${JSON.stringify({ commit: commit + changed })}\n`);
} catch {
  console.log('The sources are not in a Git repository, so the build records no commit.');
}
