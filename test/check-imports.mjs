/**
 * Runs the import rules on `src/` of the working directory; fails as well when it sees next to nothing, as a
 * checker without a parser would.
 */

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cruise } from 'dependency-cruiser';

const FEWEST_MODULES = 10;
const { forbidden, options } = createRequire(import.meta.url)('./imports.config.cjs');

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
process.exit(seen.summary.violations.length === 0 ? 0 : 1);
