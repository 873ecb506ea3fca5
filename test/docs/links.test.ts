/** Pages that lead nowhere mislead: every file that they name is there. */
import { access, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import t from 'tap';
import { pages, ROOT } from './pages.js';

/** Targets of relative links, and files and folders of the project named as code. */
function namedFiles(page: string, text: string): readonly string[] {
  const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, target]) =>
    join(dirname(page), target!),
  );
  const code = [
    ...text.matchAll(/`((?:src|test|bench|deploy|assembly|docs)\/(?:[\w./-]+(?:\.\w+|\/))?)`/g),
  ].map(([, target]) => target!);
  return [...links, ...code];
}

t.test('every file that a page names is there', async (t) => {
  let named = 0;
  const missing: string[] = [];
  for (const page of await pages()) {
    for (const file of namedFiles(page, await readFile(join(ROOT, page), 'utf8'))) {
      named += 1;
      await access(join(ROOT, file)).catch(() => missing.push(`${page}: ${file}`));
    }
  }
  t.ok(named > 100, `${named} files are named`);
  t.strictSame(missing, []);
});

t.test('a page that names a file that is gone is found', async (t) => {
  t.strictSame(
    namedFiles(
      'docs/page.md',
      '[one](decisions/0001-x.md#part), [two](https://example.com/x), `src/gone.ts`, `src/gone/`, `npm run x`',
    ),
    ['docs/decisions/0001-x.md', 'src/gone.ts', 'src/gone/'],
  );
});
