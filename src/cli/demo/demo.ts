import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Context, defineCommand, EXIT, UsageError } from '../command.js';
import { aiff, broadcastWave } from '../specimens/audio-files.js';
import { renderRecording } from '../specimens/music.js';
import {
  type Fixtures,
  type Specimen,
  sealedCopy,
  specimens,
  writeSpecimens,
} from '../specimens/verdict-specimens.js';
import { formatBytes, printable, type Terminal, table } from '../terminal.js';
import { DemoPartner } from './demo-partner.js';
import { type ShownProduction, showProductions } from './productions.js';
import { ServiceProcess } from './service-process.js';

const TITLE = 'Late Train Home';

export const demo = defineCommand({
  name: 'demo',
  summary: 'Run a temporary service and show every verdict and two evidence reports',
  details: [
    'Uses a new temporary directory and free ports, and removes everything at the end. Exit code 1: a',
    'verdict or report differs from the expected one.',
  ],
  options: {
    keep: {
      value: 'directory',
      help: "write the demo's audio files and report pages here (created if missing; must be empty)",
    },
    force: { help: 'with --keep: allow a directory that is not empty, and replace files' },
    json: { help: 'print one line of JSON per file' },
  },
  async run(_operands, options, context) {
    const startedAt = performance.now();
    if (options.keep !== undefined && !options.force && !(await isFree(options.keep)))
      throw new UsageError(
        `${options.keep} is not empty; give --force to write there and replace files with the demo's names`,
      );
    const directory = await mkdtemp(join(tmpdir(), 'takemark-demo-'));
    const services: ServiceProcess[] = [];
    try {
      return await showVerdicts(
        { directory, services, startedAt, keep: options.keep, json: options.json },
        context,
      );
    } finally {
      await Promise.all(services.map((service) => service.stop()));
      await rm(directory, { recursive: true, force: true, maxRetries: 3 });
    }
  },
});

/** Returns true for an empty or missing directory. */
async function isFree(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.length === 0;
}

interface DemoRun {
  readonly directory: string;
  /** The started processes. They are stopped at the end. */
  readonly services: ServiceProcess[];
  readonly startedAt: number;
  readonly keep: string | undefined;
  readonly json: boolean;
}

interface Row {
  readonly specimen: Specimen;
  readonly got: string;
  readonly reason: string;
  readonly asExpected: boolean;
}

async function showVerdicts(demoRun: DemoRun, context: Context): Promise<number> {
  const { terminal, signal } = context;
  const say = (text: string): void => {
    if (!demoRun.json) terminal.print(text);
  };
  say(terminal.style('Takemark demo', 'bold'));
  // One after the other: in parallel the two would only compete for the same cores.
  const service = await start(demoRun, 'production', signal);
  const other = await start(demoRun, 'beta', signal);
  say(`  service    ${service.url}, and a second environment at ${other.url}`);
  const partner = await DemoPartner.create(service, signal);
  const stranger = await DemoPartner.create(other, signal);
  try {
    const fixtures = await prepare(demoRun, partner, stranger, context);
    say(
      `  recording  "${TITLE}", synthesised, 10 s, 44.1 kHz, 16 bit, stereo, ${formatBytes(fixtures.wav.length)}`,
    );
    say(`  issued     ${fixtures.embedded.proofId} (embedded), ${fixtures.pair.proofId} (sidecar)\n`);
    const list = specimens(fixtures);
    if (demoRun.keep !== undefined) {
      await mkdir(demoRun.keep, { recursive: true });
      await writeSpecimens(demoRun.keep, list);
    }
    const rows: Row[] = [];
    for (const specimen of list) rows.push(await judge(specimen, partner, signal));
    if (demoRun.json)
      for (const row of rows)
        terminal.printJson({
          file: row.specimen.fileName,
          done: row.specimen.story,
          expected: row.specimen.expected,
          got: row.got,
          reason: row.reason,
          asExpected: row.asExpected,
        });
    say(`${terminal.style('Evidence of two simulated sessions', 'bold')}, issued in the second environment:`);
    const productions = await showProductions(stranger, renderRecording(), {
      signal,
      ...(demoRun.json ? {} : { terminal }),
      ...(demoRun.keep === undefined ? {} : { keep: demoRun.keep }),
    });
    if (demoRun.json) for (const production of productions) terminal.printJson(production);
    else {
      printProductions(productions, terminal);
      // The table is the last part, so that the reports do not scroll it off the screen.
      terminal.print('');
      printRows(rows, terminal);
    }
    const wrong = [...rows, ...productions].filter((shown) => !shown.asExpected).length;
    const seconds = ((performance.now() - demoRun.startedAt) / 1000).toFixed(1);
    say(
      `\n${wrong === 0 ? terminal.style(`All ${rows.length} verdicts and ${productions.length} reports are as expected`, 'bold', 'green') : terminal.style(`${wrong} of ${rows.length + productions.length} verdicts and reports are not as expected`, 'bold', 'red')}, in ${seconds} s.`,
    );
    if (demoRun.keep !== undefined) say(`The files are in ${printable(demoRun.keep)}.`);
    return wrong === 0 ? EXIT.good : EXIT.notGood;
  } finally {
    partner.close();
    stranger.close();
  }
}

async function start(
  { directory, services }: DemoRun,
  environment: 'production' | 'beta',
  signal: AbortSignal,
): Promise<ServiceProcess> {
  const dataDir = join(directory, environment);
  await mkdir(dataDir);
  const service = await ServiceProcess.start(dataDir, environment, signal);
  services.push(service);
  return service;
}

async function prepare(
  { directory }: DemoRun,
  partner: DemoPartner,
  stranger: DemoPartner,
  { openSealer }: Context,
): Promise<Fixtures> {
  const recording = renderRecording();
  const wav = broadcastWave(recording, TITLE);
  const sealer = await openSealer(join(directory, 'device'));
  try {
    return {
      wav,
      embedded: await partner.issue(wav, TITLE, 'take.wav', 'embedded'),
      pair: await partner.issue(aiff(recording), TITLE, 'take.aiff', 'sidecar'),
      foreign: await stranger.issue(wav, TITLE, 'beta.wav', 'embedded'),
      sealed: await sealedCopy(sealer, wav),
    };
  } finally {
    await sealer.close();
  }
}

async function judge(specimen: Specimen, { client }: DemoPartner, signal: AbortSignal): Promise<Row> {
  const { verdict, accepted, decision } = await client.verifyFile(specimen.audio, {
    sidecar: specimen.sidecar,
    signal,
  });
  return {
    specimen,
    got: verdict,
    reason: decision?.reasons[0] ?? '',
    asExpected: verdict === specimen.expected && accepted === (specimen.expected === 'valid'),
  };
}

function printProductions(productions: readonly ShownProduction[], terminal: Terminal): void {
  terminal.print('');
  for (const { name, status, conflicts, asExpected, page } of productions)
    terminal.print(
      `${asExpected ? terminal.style('✔', 'green') : terminal.style('✘', 'red')}  ${name}  ${printable(status)}, ${conflicts} ${conflicts === 1 ? 'conflict' : 'conflicts'}${page === undefined ? '' : `  ${printable(page)}`}`,
    );
}

function printRows(rows: readonly Row[], terminal: Terminal): void {
  const cells = rows.map(({ specimen, got, reason, asExpected }) => [
    asExpected ? '✔' : '✘',
    specimen.fileName,
    specimen.story,
    specimen.expected,
    printable(got),
    printable(reason),
  ]);
  const lines = table(
    ['', 'file', 'what was done', 'expected', 'got', 'reason'],
    cells,
    (cell, row, column) => {
      if (row < 0) return terminal.style(cell, 'bold');
      const good = rows[row]?.asExpected === true;
      if (column === 0) return terminal.style(cell, good ? 'green' : 'red');
      if (column === 4)
        return terminal.style(cell, !good ? 'red' : rows[row]?.got === 'valid' ? 'green' : 'yellow');
      return column === 5 ? terminal.style(cell, 'dim') : cell;
    },
  );
  for (const line of lines) terminal.print(line);
}
