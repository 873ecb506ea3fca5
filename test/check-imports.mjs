/**
 * Runs the import rules on `src/` of the working directory, and compares the lines of each building with its limit.
 * It also fails if it finds next to nothing, as a checker without a parser would.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { cruise } from 'dependency-cruiser';

const FEWEST_MODULES = 10;
const { forbidden, options, lines } = createRequire(import.meta.url)('./imports.config.cjs');

const seen = existsSync('src')
  ? (await cruise(['src'], { ruleSet: { forbidden }, validate: true, ...options })).output
  : undefined;
const modules = seen?.modules.filter(({ source }) => source.startsWith('src/')) ?? [];
const imports = modules.flatMap(({ dependencies }) => dependencies).length;
if (modules.length < FEWEST_MODULES || imports < FEWEST_MODULES) {
  console.error(`no modules to speak of: ${modules.length} with ${imports} imports`);
  process.exit(2);
}
for (const { rule, from, to } of seen.summary.violations) console.log(`error ${rule.name}: ${from} -> ${to}`);
console.log(`${modules.length} modules, ${imports} imports, ${seen.summary.violations.length} violations`);
let tooLong = 0;
for (const [building, most] of Object.entries(lines)) {
  const count = linesOf(join('src', building));
  console.log(`${building}: ${count} of at most ${most} lines`);
  if (count > most) tooLong += 1;
}
process.exit(seen.summary.violations.length + tooLong === 0 ? 0 : 1);

/** Returns the number of lines of the TypeScript files of a folder. */
function linesOf(folder) {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder, { recursive: true })
    .filter((file) => /\.c?ts$/.test(file))
    .map((file) => readFileSync(join(folder, file), 'utf8').split('\n').length - 1)
    .reduce((sum, count) => sum + count, 0);
}
