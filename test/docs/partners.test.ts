/**
 * The blocks of docs/partners.md and of the pages of its tasks: each runs as its page shows it, and each JSON has the
 * form of a real response. The flows run in test/service/transcript.test.ts.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
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

const blocksOf = (text: string) =>
  [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, code]) => ({
    language: language!,
    code: code!,
  }));
const blocksOfPages = async (...names: readonly string[]) =>
  (
    await Promise.all(
      names.map(async (name) => blocksOf(await readFile(join(ROOT, 'docs', `${name}.md`), 'utf8'))),
    )
  ).flat();
/** The pages whose blocks continue one program, in an order that erases the proof last. */
const STEPS = ['verify-a-file', 'retries', 'appeals', 'proofs'];
const FOR_CLIENT = ['clients', 'sandbox'];
const blocks = await blocksOfPages(...STEPS.map((name) => `partners/${name}`));
const blocksForClient = await blocksOfPages(...FOR_CLIENT.map((name) => `partners/${name}`));
const [oneCall, ...others] = await blocksOfPages('partners');
const codeOf = (language: string) =>
  blocks.filter((block) => block.language === language).map(({ code }) => code);

async function partnerWithFile(t: Test) {
  const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
  t.teardown(() => service.stop());
  const { partnerId, apiKey } = await service.partner();
  const { file, proofId } = await service.issue(partnerId, wav(96_000));
  await service.issue(partnerId, wav(48_000));
  const directory = t.testdir();
  await writeFile(join(directory, 'song.wav'), file);
  const environment = {
    TAKEMARK_URL: service.partnerUrl,
    TAKEMARK_API_KEY: apiKey,
    PYTHONPATH: join(ROOT, 'deploy/python'),
    PYTHONDONTWRITEBYTECODE: '1',
  };
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
  const program = [...codeOf('python'), 'import json', 'print(json.dumps(found))'].join('\n');
  await writeFile(join(directory, 'flow.py'), program);
  const { code, out, err } = await run('python3', 'flow.py');
  t.strictSame([code, err], [0, '']);
  const lines = out.trim().split('\n');
  const found = lines.pop()!;
  t.strictSame(lines, [
    'valid verified_binding True',
    'valid verified_binding True',
    'held',
    '2',
    'exact_file 1',
    "['exact_file']",
  ]);
  const shown = blocks.filter(
    ({ language }, at) => language === 'json' && blocks[at - 1]!.language === 'python',
  );
  t.strictSame(
    shown.map(({ code }) => differences(JSON.parse(code), JSON.parse(found))),
    [[]],
  );
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

t.test('the first block verifies a file in one call', { skip: needs('curl') }, async (t) => {
  const { directory, proofId, run } = await partnerWithFile(t);
  await writeFile(join(directory, 'call.sh'), oneCall!.code.replace('curl', 'curl --noproxy "*" --silent'));
  const { code, out, err } = await run('sh', '-eu', 'call.sh');
  t.strictSame([code, err], [0, '']);
  t.match(JSON.parse(out), { verdict: 'valid', good: true, proofId });
});

t.test('the blocks for the client run as one program', async (t) => {
  const { directory, proofId, run } = await partnerWithFile(t);
  const [verify, ...rest] = blocksForClient;
  t.strictSame(
    blocksForClient.map(({ language }) => language),
    ['ts', 'ts', 'ts'],
  );
  const client = join(ROOT, 'dist/src/client/index.js');
  const program = `import assert from 'node:assert/strict';
import { buffer } from 'node:stream/consumers';
const seen: unknown[] = [];
const accept = (id: string | undefined) => seen.push(id);
const show = (title: string) => seen.push(title);
let state: import('${client}').RotationState | undefined;
const readState = async () => state;
const writeStateDurably = async (next: NonNullable<typeof state>) => void (state = next);
${verify!.code.replace("'takemark'", `'${client}'`).replace("'http://127.0.0.1:8080'", 'process.env.TAKEMARK_URL!')}
${rest.map(({ code }) => code).join('\n')}
takemark.close();
console.log(JSON.stringify([seen, apiKey === state?.rotated?.apiKey]));
`;
  await writeFile(join(directory, 'credentialed.wav'), await readFile(join(directory, 'song.wav')));
  await writeFile(join(directory, 'flow.mts'), program);
  t.equal(compile(join(directory, 'flow.mts'), { directory }), '');
  const { code, out, err } = await run(process.execPath, 'flow.mjs');
  t.strictSame([code, err], [0, '']);
  t.strictSame(JSON.parse(out), [[proofId, 'Take one', 'Take one'], true]);
});

t.test('the Go block verifies the file', { skip: needs('go') }, async (t) => {
  const { directory, run } = await partnerWithFile(t);
  await writeFile(join(directory, 'flow.go'), codeOf('go')[0]!);
  const { code, out, err } = await run('go', 'run', 'flow.go');
  t.strictSame([code, out, err], [0, 'valid verified_binding true\n', '']);
});

t.test('each block of the pages for partners has a test', async (t) => {
  t.strictSame(others, []);
  const languages = [...new Set(blocks.map(({ language }) => language))].toSorted();
  t.strictSame(languages, ['go', 'json', 'python', 'sh', 'typescript']);
  t.strictSame([codeOf('go').length, codeOf('typescript').length], [1, 1]);
  const pages = (await readdir(join(ROOT, 'docs/partners'))).map((name) => name.replace(/\.md$/, ''));
  const further = pages.filter((name) => ![...STEPS, ...FOR_CLIENT].includes(name)).toSorted();
  t.strictSame(further, ['evidence-reports', 'flows', 'keys']);
  const untested = await blocksOfPages('partners/evidence-reports', 'partners/keys');
  t.strictSame(untested, []);
  t.strictSame((await blocksOfPages('partners/flows')).length, 1, 'test/service/transcript.test.ts runs it');
});
