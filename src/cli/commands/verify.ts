import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { createClient, type AudioSummary, type Verification } from '../../client/index.js';
import { sidecarBeside } from '../batch/find-audio.js';
import { FORMATS } from '../batch/row-formats.js';
import { verifyBatch } from '../batch/verify-batch.js';
import { EXIT, UsageError, type Arguments, type Command, type Surroundings } from '../command.js';
import { formatBytes, formatTime, printable, type Terminal } from '../terminal.js';
import { verdictWords } from '../verdict-words.js';
import { findApiKey } from './partner-account.js';

export const verify: Command = {
  name: 'verify',
  summary: 'Verify credentialed WAV/BWF files, pairs of audio and sidecar, or folders of them',
  details: [
    'Uploads each file and says the verdict. One file is explained in plain words; more than one,',
    'or a folder with all its subfolders, is a table, JSON lines or CSV, with a summary on stderr.',
    'song.sidecar beside song.mp3 is its sidecar. Hidden files of folders are left out.',
    '',
    'With --resume what has a verdict is remembered in a file as the batch goes, and a later run',
    'reports it without asking the service again, as long as path, size and time of the last',
    'change are the same. Failures are not remembered: the next run tries those files again.',
    'Cells of a CSV that a spreadsheet would take for a formula begin with an apostrophe.',
    '',
    'The exit code is 0 if every file is good, 1 if any verdict is another, 2 for wrong use, and',
    '3 where files or the service fail, so that some file has no verdict.',
    '',
    'TAKEMARK_API_KEY holds the key; TAKEMARK_URL the address (http://127.0.0.1:8080).',
  ],
  operands: ['file'],
  many: true,
  options: {
    sidecar: { value: 'file', help: 'the sidecar of a legacy pair, for one file' },
    'no-pairs': { help: 'judge each file by itself, whatever stands beside it' },
    json: { help: 'the result of one file as one line of JSON' },
    format: { value: 'format', help: `${FORMATS.join(', ')} (table for more than one file)` },
    concurrency: { value: 'n', help: 'files on their way at a time, 1 to 64 (4)' },
    ordered: { help: 'report in the order of the files, not in that of their completion' },
    resume: { value: 'file', help: 'remember what is finished here, and do not do it again' },
  },
  async run(given, surroundings) {
    const apiKey = findApiKey(surroundings.config);
    const operands = given.operandsFrom('file');
    const format = given.choice('format', FORMATS);
    const concurrency = given.count('concurrency', { min: 1, max: 64 }) ?? 4;
    const [path] = operands;
    const single = operands.length === 1 && path !== undefined && !(await isDirectory(path));
    if (single && format === undefined && given.text('resume') === undefined) return verifyOne(path, apiKey, given, surroundings);
    if (given.text('sidecar') !== undefined) throw new UsageError('--sidecar is for one file without --format or --resume; other sidecars stand beside their audio');
    if (given.flag('json')) throw new UsageError('--json is for one file; use --format jsonl');
    return verifyBatch({ operands, apiKey, pairs: !given.flag('no-pairs'), format: format ?? 'table', concurrency, ordered: given.flag('ordered'), resume: given.text('resume') }, surroundings);
  },
};

async function verifyOne(path: string, apiKey: string, given: Arguments, { terminal, config, signal }: Surroundings): Promise<number> {
  const sidecar = given.text('sidecar') ?? (given.flag('no-pairs') ? undefined : await sidecarBeside(path));
  const client = createClient({ baseUrl: config.url, apiKey });
  const bar = terminal.progressBar(basename(path));
  try {
    const result = await client.verifyFile(path, { sidecar, signal, onProgress: ({ sentBytes, totalBytes }) => bar.update(sentBytes, totalBytes) });
    bar.end();
    if (given.flag('json')) terminal.printJson(result);
    else explain(result, path, sidecar, terminal);
    return result.accepted ? EXIT.good : EXIT.notGood;
  } finally {
    bar.end();
    client.close();
  }
}

/** What is not there is no folder; reading it says what is wrong. */
async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then((info) => info.isDirectory(), () => false);
}

function explain(result: Verification, path: string, sidecar: string | undefined, terminal: Terminal): void {
  const { title, meaning, advice } = verdictWords(result.verdict);
  const colour = result.accepted ? 'green' : result.verdict === 'local_seal' ? 'yellow' : 'red';
  terminal.print(`${terminal.style(`${result.accepted ? '✔' : '✘'} ${printable(title)}`, 'bold', colour)}  ${printable(basename(path))}`);
  terminal.print(`  ${meaning}`);
  terminal.print(`  ${advice}`);
  const { decision } = result;
  // What was promised may still be missing in an answer: a plain line is better than no verdict.
  const audio = result.audio as AudioSummary | undefined;
  const facts: [string, string | undefined][] = [
    ['sidecar', sidecar],
    ['proof', result.proofId],
    ['issued', result.issuedAt === undefined ? undefined : formatTime(result.issuedAt)],
    ['audio', audio === undefined ? undefined : audioWords(audio)],
    ['sha256', audio?.sha256],
    ['decision', decision === undefined ? undefined : `${decision.status}, ${decision.recommendedAction}`],
    ['reasons', decision?.reasons.join(', ')],
    ['signed by', result.embeddedCredential === undefined ? undefined : signerWords(result.embeddedCredential)],
    ['request', result.requestId],
  ];
  for (const [name, value] of facts) {
    if (value !== undefined && value !== '') terminal.print(`  ${terminal.style(name.padEnd(9), 'dim')} ${printable(value)}`);
  }
}

function signerWords({ issuer, trust, integrity }: NonNullable<Verification['embeddedCredential']>): string {
  return `${issuer ?? 'unknown'} (integrity ${integrity}, trust ${trust})`;
}

function audioWords(audio: AudioSummary): string {
  const parts = [audio.container.toUpperCase()];
  if (audio.sampleRate !== undefined) parts.push(`${audio.sampleRate / 1000} kHz`);
  if (audio.bitsPerSample !== undefined) parts.push(`${audio.bitsPerSample} bit`);
  if (audio.channels !== undefined) parts.push(audio.channels === 1 ? 'mono' : audio.channels === 2 ? 'stereo' : `${audio.channels} channels`);
  if (audio.durationSeconds !== undefined) {
    const seconds = Math.round(audio.durationSeconds);
    parts.push(`${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`);
  }
  return [...parts, formatBytes(audio.bytes)].join(', ');
}
