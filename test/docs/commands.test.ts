/** Tests that the commands in a page exist. */
import { readFile } from 'node:fs/promises';
import t from 'tap';
import { setUp } from '../cli/bench.js';
import { pages, ROOT } from './pages.js';

/**
 * Returns the names of `takemark` commands in a page's code: the lower-case words before the first argument.
 */
function takemarkCommands(page: string): readonly string[] {
  return [
    ...page.matchAll(
      /(?<=^ *(?:[A-Z_]+=\S+ )*|`|= |\| |npx |npx --no -- |["'\])] )takemark((?: [a-z]+(?:-[a-z]+)*(?=\s|`|$))+)/gm,
    ),
  ].map(([, words]) => words!.trim());
}

async function distinct(find: (page: string) => readonly string[]): Promise<readonly string[]> {
  const texts = await Promise.all((await pages()).map((page) => readFile(`${ROOT}${page}`, 'utf8')));
  return [...new Set(texts.flatMap(find))].sort();
}

t.test('every takemark command on a page has a help of its own', async (t) => {
  const commands = await distinct(takemarkCommands);
  t.ok(commands.length > 20, `${commands.length} commands`);
  const { takemark } = await setUp(t);
  for (const command of commands) {
    const { out } = await takemark(...command.split(' '), '--help');
    t.match(out, `takemark ${command}`, command);
  }
});

t.test('every npm script on a page is a script', async (t) => {
  const { scripts } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const named = await distinct((page) =>
    [...page.matchAll(/npm run (?:--silent )?([a-z][a-z:-]*[a-z])/g)].map(([, name]) => name!),
  );
  t.ok(named.length > 10, `${named.length} scripts`);
  t.strictSame(
    named.filter((name) => scripts[name] === undefined),
    [],
  );
});

t.test('words of a command end at its first argument', async (t) => {
  t.strictSame(
    takemarkCommands(
      '`takemark keys revoke KEY_ID`, takemark says\nnpx takemark verify a.wav\n`takemark <command>`\n`takemark capture ardour-hook --remove`\n   takemark usage\n   A=b C=d takemark health',
    ),
    ['keys revoke', 'verify', 'capture ardour-hook', 'usage', 'health'],
  );
});
