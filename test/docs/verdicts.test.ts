/** The README names each verdict that there is, once, and which of them is good. */
import { readFile } from 'node:fs/promises';
import t from 'tap';
import { VERDICTS } from '../../src/core/domain/verdicts.js';

t.test("the README's table of verdicts is the list of verdicts", async (t) => {
  const readme = await readFile(new URL('../../../README.md', import.meta.url), 'utf8');
  const rows = [...readme.matchAll(/^\| `([A-Za-z_]+)` \| (.+) \|$/gm)];
  t.strictSame(
    rows.map(([, verdict]) => verdict),
    VERDICTS,
  );
  t.strictSame(
    rows.filter(([, , says]) => says!.includes('`good: true`')).map(([, verdict]) => verdict),
    ['valid'],
  );
});
