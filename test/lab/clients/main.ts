/**
 * `npm run check:clients`: checks the clients that are generated from the OpenAPI document, and the Python
 * package. They send a file, and read the current responses and those that a later version may send. It
 * downloads generators, so `npm test` does not run it.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { openApiDocument } from '../../../src/service/contract/openapi.js';
import { runProgram } from '../../docs/run-program.js';
import { noise } from '../../fixtures/wav.js';
import { serve } from './answer-server.js';
import { LANGUAGES, type Language } from './languages.js';
import { firstDifference, notFed, OpenValues } from './open-values.js';
import { isPlant, PLANTS, planted } from './plants.js';
import { type Answers, realAnswers } from './real-answers.js';

const USAGE = `npm run check:clients -- [options]
  --only <language>  ${LANGUAGES.map(({ name }) => name).join(', ')}; may be given more than once
  --plant <fault>    a fault of the document, which must fail: ${Object.keys(PLANTS).join(', ')}`;

const { values } = parseArgs({
  options: { only: { type: 'string', multiple: true }, plant: { type: 'string' } },
});
const { only, plant } = values;
if (
  only?.some((wanted) => !LANGUAGES.some(({ name }) => name === wanted)) ||
  (plant !== undefined && !isPlant(plant))
) {
  process.stderr.write(`${USAGE}\n`);
  process.exit(2);
}

const document = openApiDocument();
/** Bytes that are not text, and that a form reader could take for the end of the file. */
const file = Buffer.concat([Buffer.from('RIFF\r\n--\r\n\0\xff', 'latin1'), noise(100_000)]);
const directory = await mkdtemp(join(tmpdir(), 'takemark-clients-'));
let passed = 0;
const failures: string[] = [];
try {
  const known = await realAnswers();
  const open = new OpenValues(document);
  const later: Answers = new Map(
    [...known].map(([name, { status, body }]) => [
      name,
      { status, body: open.later(name.split(' ')[0]!, status, body) },
    ]),
  );
  note('every value that may grow was fed', notFed(document, open, known));
  await writeFile(join(directory, 'song.wav'), file);
  const given = join(directory, 'openapi.json');
  await writeFile(given, JSON.stringify(plant === undefined ? document : planted(document, plant)));
  for (const language of LANGUAGES.filter(({ name }) => only?.includes(name) ?? true))
    await read(language, given, { known, later });
} finally {
  await rm(directory, { recursive: true, force: true });
}
process.stdout.write(`${passed} passed, ${failures.length} failed\n`);
process.exitCode = failures.length === 0 ? 0 : 1;

/** Prints one line if nothing is wrong, otherwise each fault, and counts the comparisons. */
function note(what: string, faults: readonly string[], looked = 1): void {
  failures.push(...faults);
  passed += Math.max(0, looked - faults.length);
  const lines = faults.map((fault) => `  ${fault}\n`).join('');
  process.stdout.write(`${faults.length === 0 ? 'ok' : 'FAILED'}: ${what}\n${lines}`);
}

/** Generates and compiles a client, and compares what it reads with what was served. */
async function read(
  { name, unable = [], prepare }: Language,
  given: string,
  passes: Readonly<Record<'known' | 'later', Answers>>,
): Promise<void> {
  const began = performance.now();
  const seconds = () => `${((performance.now() - began) / 1000).toFixed(0)} s`;
  const own = await mkdtemp(join(directory, `${name}-`));
  let command: readonly [string, ...string[]];
  try {
    command = await prepare({ document: given, directory: own, answers: passes });
  } catch (error) {
    const output = (error as Error).message.split('\n').slice(-40).join('\n  ');
    return note(`${name}: no client (${seconds()})`, [output]);
  }
  for (const [pass, all] of Object.entries(passes)) {
    const answers = new Map([...all].filter(([call]) => !unable.includes(call)));
    const server = await serve(document, answers, file);
    try {
      const { out, err } = await runProgram(command[0], [
        ...command.slice(1),
        server.url,
        join(directory, 'song.wav'),
      ]);
      const faults = faultsOf(out, answers);
      if (faults.length > 0 && err !== '') process.stderr.write(err.slice(-2000));
      note(`${name}: ${answers.size} ${pass} answers (${seconds()})`, faults, answers.size);
    } finally {
      server.stop();
    }
  }
}

function faultsOf(out: string, answers: Answers): readonly string[] {
  const lines = new Map(
    out
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Line)
      .map((line) => [line.call, line]),
  );
  return [...answers].flatMap(([call, { status, body }]) => {
    const line = lines.get(call);
    if (line === undefined) return [`${call}: not called`];
    if (line.error !== undefined) return [`${call}: ${line.error}`];
    if (line.status !== status) return [`${call}: read as ${line.status}, served as ${status}`];
    return isDeepStrictEqual(line.body, body) ? [] : [`${call}: ${firstDifference(line.body, body)}`];
  });
}

/** A program's line for a call: the answer as its client read it, or the error that the client threw. */
interface Line {
  readonly call: string;
  readonly status?: number;
  readonly body?: unknown;
  readonly error?: string;
}
