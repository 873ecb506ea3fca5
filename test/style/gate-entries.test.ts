import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';

/** Every start of a process costs the gate about two seconds. */
const MOST_ENTRIES = 60;

t.test('every test file is imported by exactly one entry of the gate', async (t) => {
  const entries = readdirSync('test/gate');
  t.ok(entries.length > 10 && entries.length <= MOST_ENTRIES, `${entries.length} entries`);
  const imported = entries.flatMap((entry) =>
    [...readFileSync(`test/gate/${entry}`, 'utf8').matchAll(/^import '\.\.\/(.+)\.js';$/gm)].map(
      ([, path]) => `${path}.ts`,
    ),
  );
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.test.ts'),
  );
  t.strictSame(imported.toSorted(), files.toSorted());
});
