/**
 * Compiles the core to dist/core.wasm, where something that it is made of is newer: optimising takes five seconds, and
 * every command builds first. Run by `npm run build:core`.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const root = new URL('../', import.meta.url);
const changed = (path) => statSync(new URL(path, root), { throwIfNoEntry: false })?.mtimeMs;
const sources = readdirSync(new URL('assembly', root)).map((name) => `assembly/${name}`);
const made = changed('dist/core.wasm') ?? 0;
// An installation that writes nothing anew has the same compiler.
const madeOf = [...sources, 'asconfig.json', 'package-lock.json'].map(changed);

if (madeOf.some((time) => time === undefined || time >= made)) {
  const compiler = createRequire(import.meta.url).resolve('assemblyscript/package.json');
  execFileSync(
    process.execPath,
    [join(dirname(compiler), 'bin/asc.js'), '--config', 'asconfig.json', '--target', 'release'],
    { cwd: root, stdio: 'inherit' },
  );
}
