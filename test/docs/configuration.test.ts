/** The page of settings is the list that `src/config.ts` reads. */
import { readFile } from 'node:fs/promises';
import t from 'tap';

const ROOT = new URL('../../../', import.meta.url);

t.test('every setting stands once in docs/configuration.md, and no other does', async (t) => {
  const config = await readFile(new URL('src/config.ts', ROOT), 'utf8');
  const page = await readFile(new URL('docs/configuration.md', ROOT), 'utf8');
  const known = [...config.matchAll(/^ {2}(TAKEMARK_[A-Z0-9_]+):/gm)].map(([, name]) => name!);
  const told = [...page.matchAll(/^\| `(TAKEMARK_[A-Z0-9_]+)` \|/gm)].map(([, name]) => name!);
  t.ok(known.length > 50, `${known.length} settings`);
  t.strictSame(told.sort(), known.sort());
});
