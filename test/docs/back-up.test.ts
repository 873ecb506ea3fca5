/** The order in which a backup of a cluster copies tables: page, reference and laboratory agree, and no table is missing. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { SNAPSHOTS } from '../lab/cluster/snapshots.js';
import { ROOT } from './pages.js';

const MIGRATIONS = 'deploy/cassandra';
/** Tables that the command `migrate` creates without a migration. */
const OF_MIGRATE = ['schema_migration', 'topology'];

const read = (path: string): Promise<string> => readFile(join(ROOT, path), 'utf8');

/** Returns the definition of each table of the migrations. */
async function tables(): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(join(ROOT, MIGRATIONS))).filter((name) => name.endsWith('.cql'));
  const texts = await Promise.all(names.map((name) => read(join(MIGRATIONS, name))));
  return new Map(
    texts.flatMap((text) =>
      [...text.matchAll(/^CREATE TABLE IF NOT EXISTS (\w+) \(([^;]*);/gm)].map(
        ([, name, definition]) => [name!, definition!] as const,
      ),
    ),
  );
}

/** Returns the tables of each snapshot, as the section of the reference lists them. */
async function listed(): Promise<ReadonlyMap<string, readonly string[]>> {
  const text = await read(`${MIGRATIONS}/README.md`);
  const section = text.slice(text.indexOf('### The order of a backup')).split(/\n##/)[0]!;
  const found = new Map<string, string[]>();
  for (const [, tag, names] of section.matchAll(/^\| `(\w+)` \| ([^|]*) \|/gm)) {
    const ofTag = found.get(tag!) ?? [];
    ofTag.push(...[...names!.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
    found.set(tag!, ofTag);
  }
  return found;
}

t.test('each table is listed for one snapshot, with the reason', async (t) => {
  const all = [...(await tables()).keys(), ...OF_MIGRATE];
  t.ok(all.length > 25, `${all.length} tables`);
  t.strictSame([...(await listed()).values()].flat().sort(), all.sort());
});

t.test('a table with acts is copied before the pointers', async (t) => {
  const withActs = [...(await tables())].filter(([, definition]) => /\bact blob\b/.test(definition));
  t.ok(withActs.length > 3, `${withActs.length} tables`);
  t.strictSame(
    withActs.map(([name]) => name).filter((name) => !SNAPSHOTS.decided.some((each) => each === name)),
    [],
  );
});

t.test('the page and the laboratory copy the listed tables in the listed order', async (t) => {
  const page = await read('docs/operating/back-up.md');
  const commands = [...page.matchAll(/nodetool snapshot -t (\w+)(?: \\\n)? +(?:-kt (\S+)|\$K)/g)].map(
    ([, tag, names = '']) => [tag, [...names.matchAll(/\$K\.(\w+)/g)].map(([, name]) => name)],
  );
  t.strictSame(commands, Object.entries(SNAPSHOTS));
  const reference = await listed();
  t.strictSame([...reference.keys()], Object.keys(SNAPSHOTS));
  for (const tag of ['decided', 'pointers'] as const)
    t.strictSame([...reference.get(tag)!].sort(), [...SNAPSHOTS[tag]].sort(), tag);
});
