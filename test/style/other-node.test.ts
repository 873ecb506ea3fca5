import { existsSync, readFileSync } from 'node:fs';
import t from 'tap';

t.test('the files that are run on another release of Node are there, each named once', async (t) => {
  const named = readFileSync('.ci/on-other-node', 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  t.ok(named.length > 10, 'the list is seen');
  t.strictSame(
    named.filter((file) => !/^test\/.*\.test\.ts$/.test(file) || !existsSync(file)),
    [],
  );
  t.strictSame([...new Set(named)], named);
});
