import { readFile } from 'node:fs/promises';
import t from 'tap';
import { configurationPage } from '../../src/service/config/page.js';

const ROOT = new URL('../../../', import.meta.url);

t.test('the page of settings is the one that the table of settings writes', async (t) => {
  const page = await readFile(new URL('docs/configuration.md', ROOT), 'utf8');
  t.equal(page, configurationPage(), 'npm run build:configuration writes it anew');
  t.ok([...page.matchAll(/^\| `TAKEMARK_/gm)].length > 50);
});
