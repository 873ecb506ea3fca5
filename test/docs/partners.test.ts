/** The blocks of docs/partners.md: each runs as the page shows it, and each JSON has the form of a real response. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { TestService } from '../fixtures/service.js';
import { needs } from '../fixtures/tools.js';
import { wav } from '../fixtures/wav.js';
import { compile } from './compile.js';
import { ROOT } from './pages.js';
import { runProgram } from './run-program.js';

/** Divides the output of one block from that of the next. */
const MARK = '--- next block ---';

const page = await readFile(join(ROOT, 'docs/partners.md'), 'utf8');
const part = page.slice(
  page.indexOf('\n## One file, step by step'),
  page.indexOf('\n## Three partner flows'),
);
const blocks = [...part.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, code]) => ({
  language: language!,
  code: code!,
}));
const codeOf = (language: string) =>
  blocks.filter((block) => block.language === language).map(({ code }) => code);

async function partnerWithFile(t: Test) {
  const service = await TestService.start();
  t.teardown(() => service.stop());
  const { partnerId, apiKey } = await service.partner();
  const { file, proofId } = await service.issue(partnerId, wav(96_000));
  await service.issue(partnerId, wav(48_000));
  const directory = t.testdir();
  await writeFile(join(directory, 'song.wav'), file);
  const environment = { TAKEMARK_URL: service.partnerUrl, TAKEMARK_API_KEY: apiKey };
  const run = (...command: readonly string[]) =>
    runProgram('sh', ['-c', 'cd "$0" && exec "$@"', directory, ...command], environment);
  return { directory, proofId, run };
}

/** Returns where a shown value has a member that the real one lacks, or has with another type. */
function differences(shown: unknown, real: unknown, where = ''): readonly string[] {
  if (typeof shown !== typeof real || Array.isArray(shown) !== Array.isArray(real)) return [where];
  if (Array.isArray(shown))
    return shown.length > 0 && Array.isArray(real) ? differences(shown[0], real[0], `${where}[0]`) : [];
  if (typeof shown !== 'object' || shown === null || typeof real !== 'object' || real === null) return [];
  return Object.entries(shown).flatMap(([name, value]) =>
    differences(value, (real as Record<string, unknown>)[name], `${where}.${name}`),
  );
}

t.test(
  'the shell blocks run in order, and each response has the members that the page shows',
  {
    skip: needs('curl', 'jq'),
  },
  async (t) => {
    const { directory, proofId, run } = await partnerWithFile(t);
    await writeFile(join(directory, 'flow.sh'), codeOf('sh').join(`echo '${MARK}'\n`));
    const { code, out, err } = await run('sh', '-eu', 'flow.sh');
    t.strictSame([code, err], [0, ''], out);
    const outputs = out.split(`${MARK}\n`);
    t.equal(outputs.length, codeOf('sh').length);
    let shell = -1;
    let compared = 0;
    for (const [at, { language, code }] of blocks.entries()) {
      if (language === 'sh') shell += 1;
      if (language !== 'json' || blocks[at - 1]!.language !== 'sh') continue;
      t.strictSame(differences(JSON.parse(code), JSON.parse(outputs[shell]!)), [], code);
      compared += 1;
    }
    t.equal(compared, 10, 'responses that the page shows');
    t.match(JSON.parse(outputs.at(-1)!), { proofId, outcome: 'erased' });
  },
);

t.test('the Python blocks run as one program', { skip: needs('python3') }, async (t) => {
  const { directory, run } = await partnerWithFile(t);
  await writeFile(join(directory, 'flow.py'), codeOf('python').join('\n'));
  const { code, out, err } = await run('python3', 'flow.py');
  t.strictSame([code, err], [0, '']);
  t.strictSame(out.trim().split('\n'), ['valid verified_binding True', '2', 'held', 'exact_file 1']);
});

t.test('the TypeScript block compiles, and verifies the file', async (t) => {
  const { directory, run } = await partnerWithFile(t);
  const [program] = codeOf('typescript');
  const client = join(ROOT, 'dist/src/client/index.js');
  await writeFile(join(directory, 'flow.mts'), program!.replace("'takemark'", `'${client}'`));
  t.equal(compile(join(directory, 'flow.mts'), { directory }), '');
  const { code, out, err } = await run(process.execPath, 'flow.mjs');
  t.strictSame([code, out, err], [0, 'valid verified_binding true\n', '']);
});

t.test('the Go block verifies the file', { skip: needs('go') }, async (t) => {
  const { directory, run } = await partnerWithFile(t);
  await writeFile(join(directory, 'flow.go'), codeOf('go')[0]!);
  const { code, out, err } = await run('go', 'run', 'flow.go');
  t.strictSame([code, out, err], [0, 'valid verified_binding true\n', '']);
});
