import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { needs } from '../fixtures/tools.js';
import { setUp } from './bench.js';

const run = promisify(execFile);

/** Makes a directory with the script of a shell and, beside it, the completions of paths. */
async function completion(test: Test, shell: string): Promise<{ script: string; cwd: string }> {
  const { takemark } = await setUp(test);
  const cwd = await mkdtemp(join(tmpdir(), 'takemark-completion-'));
  test.teardown(() => rm(cwd, { recursive: true }));
  await mkdir(join(cwd, 'take folder'));
  await writeFile(join(cwd, 'take one.wav'), '');
  const { code, out } = await takemark('completion', shell);
  test.equal(code, 0);
  const script = join(cwd, `.completion.${shell}`);
  await writeFile(script, out);
  return { script, cwd };
}

/** Words typed so far, the last of them begun, and what they may be completed to. */
const CASES: readonly (readonly [words: readonly string[], completions: readonly string[]])[] = [
  [['op'], ['operator']],
  [
    ['operator', 'key', ''],
    ['create', 'list', 'revoke'],
  ],
  [['operator', 'key', 'cr'], ['create']],
  [
    ['completion', ''],
    ['bash', 'fish', 'zsh'],
  ],
  [
    ['verify', '--format', ''],
    ['csv', 'jsonl', 'table'],
  ],
  [['verify', '--format', 'c'], ['csv']],
  [['operator', 'dlq', 'replay', '--li'], ['--limit']],
  [['operator', 'key', 'create', '--partner', ''], []],
  [
    ['verify', 'take'],
    ['take folder', 'take one.wav'],
  ],
  [
    ['verify', '--sidecar', 'take'],
    ['take folder', 'take one.wav'],
  ],
  [['seal', '--device-dir', 'take'], ['take folder']],
  ...[['identify'], ['report'], ['identify', '--digests']].map(
    (words) =>
      [
        [...words, 'take'],
        ['take folder', 'take one.wav'],
      ] as const,
  ),
  [['fixtures', '--out', 'take'], ['take folder']],
];

t.test('bash completes commands, options, their values and paths', { skip: needs('bash') }, async (t) => {
  const { script, cwd } = await completion(t, 'bash');
  const complete = async (...words: readonly string[]): Promise<readonly string[]> => {
    const ask =
      // biome-ignore lint/suspicious/noTemplateCurlyInString: bash takes it apart
      '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _takemark; printf "%s\\n" "${COMPREPLY[@]}"';
    const { stdout } = await run('bash', ['-c', ask, 'bash', script, 'takemark', ...words], { cwd });
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .sort();
  };
  for (const [words, completions] of CASES)
    t.strictSame(await complete(...words), completions, words.join(' '));
  t.strictSame(await complete('verify', '--format', '='), ['csv', 'jsonl', 'table'], 'bash parts at =');
  t.strictSame(await complete('verify', '--format', '=', 'c'), ['csv']);
});

t.test('fish completes commands, options, their values and paths', { skip: needs('fish') }, async (t) => {
  const { script, cwd } = await completion(t, 'fish');
  for (const [words, completions] of CASES) {
    const { stdout } = await run(
      'fish',
      ['-c', 'source $argv[1]; complete -C $argv[2]', script, `takemark ${words.join(' ')}`],
      {
        cwd,
        env: { ...process.env, HOME: cwd },
      },
    );
    const names = stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.split('\t')[0]!.replaceAll('\\ ', ' ').replace(/\/$/, ''));
    // A value of a directory is completed by any path there.
    if (/--(?:device-dir|out)/.test(words.join(' '))) t.ok(names.includes('take folder'), words.join(' '));
    else t.strictSame(names.sort(), completions, words.join(' '));
  }
});

/**
 * Types at a zsh of its own terminal, asks for the list of completions, and reads until each one came. Before
 * the prompt, the key that asks would be the terminal's end of input.
 */
const ZSH_DRIVER = `zmodload zsh/zpty
zpty shell env TERM=dumb COLUMNS=200 zsh -f -i
zpty -w shell "autoload -Uz compinit; compinit -u -D; source $1; LISTMAX=1000 PS1=PRO''MPT"
zpty -r shell seen '*PROMPT*'
zpty -n -w shell "$2"$'\\C-d'
for completion in "\${@:3}"; do zpty -r shell seen "*$completion*"; done
print -r -- "$seen"
`;

t.test('zsh completes commands, options, their values and paths', { skip: needs('zsh') }, async (t) => {
  const { script, cwd } = await completion(t, 'zsh');
  const driver = join(cwd, '.driver.zsh');
  await writeFile(driver, ZSH_DRIVER);
  // In the order of the list.
  for (const [words, completions] of [
    [
      ['operator', 'key', ''],
      ['create', 'list', 'revoke'],
    ],
    [
      ['verify', '--format', ''],
      ['csv', 'jsonl', 'table'],
    ],
    [
      ['operator', 'dlq', 'replay', '--'],
      ['--json', '--limit', '--topic'],
    ],
    [
      ['verify', 'take'],
      ['folder/', 'one.wav'],
    ],
  ] as const)
    await t.resolves(
      run('zsh', ['-f', driver, script, `takemark ${words.join(' ')}`, ...completions], {
        cwd,
        timeout: 20_000,
      }),
      words.join(' '),
    );
});
