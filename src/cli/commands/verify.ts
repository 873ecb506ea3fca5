import { stat } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import type { AudioSummary, Verification } from '../../client/index.js';
import { asksForReview } from '../batch/file-result.js';
import { findAudio, findOne, type Search } from '../batch/find-audio.js';
import { FORMATS } from '../batch/result-formats.js';
import { verifyBatch } from '../batch/verify-batch.js';
import { type Context, defineCommand, EXIT, RuntimeError, UsageError } from '../command.js';
import { formatBytes, formatTime, printable, type Terminal } from '../terminal.js';
import { verdictText } from '../verdict-texts.js';
import { findApiKey, PARTNER_DETAILS, withPartner } from './partner-account.js';

export const verify = defineCommand({
  name: 'verify',
  service: 'partner',
  summary: 'Verify credentialed WAV/BWF files, pairs of audio and sidecar, or folders of them',
  details: [
    'Uploads each file and says the verdict. One file is explained in plain words; more than one,',
    'or a folder with all its subfolders, is a table, JSON lines or CSV, with a summary on stderr.',
    'song.sidecar beside song.mp3 is its sidecar, and either may be named. Hidden files of folders,',
    'links to folders, and what has no name of audio are not looked at; the summary counts and names them, and with --strict',
    'each of them is a failure. A symbolic link that leads out of the folder is never followed',
    'without --follow-links.',
    '',
    'With --resume verdicts are remembered in a file as the batch goes, and a later run reports them',
    'without asking the service again: for the same contents (every file is read and hashed), under',
    'the same API key at the same service, for as long as --max-age says, and a good one only while',
    'its proof still has a record, which is asked for. Failures are not remembered: the next run',
    'tries those files again.',
    '',
    'Characters that are not seen or that steer a terminal are shown as \\u{hex}, in JSON as its',
    'escapes. Cells of a CSV that a spreadsheet would take for a formula begin with an apostrophe.',
    '',
    'The exit code is 0 if every file is good, 1 if any verdict is another, 2 for wrong use, 3 where',
    'files or the service fail, so that some file has no verdict, and 4 if every file is good and the',
    'evidence of some asks for the decision of a person.',
    '',
    ...PARTNER_DETAILS,
  ],
  operands: ['<file...>'],
  options: {
    sidecar: { value: 'file', help: 'the sidecar of a legacy pair, for one file' },
    'no-pairs': { help: 'judge each file by itself, whatever stands beside it' },
    json: { help: 'the result of one file as one line of JSON' },
    format: { value: 'format', choices: FORMATS, help: 'table for more than one file' },
    quiet: { help: 'report of more than one file only those that are not good or need review' },
    concurrency: { value: 'n', range: [1, 64], help: 'files on their way at a time, 1 to 64 (4)' },
    ordered: { help: 'report in the order of the files, not in that of their completion' },
    resume: { value: 'file', help: 'remember verdicts here, and do not ask for them again' },
    'max-age': {
      value: 'hours',
      range: [1, 8760],
      help: 'how long a remembered verdict is believed, 1 to 8760 (24)',
    },
    strict: { help: 'what is not looked at is a failure' },
    'follow-links': { help: 'follow symbolic links that lead out of the folder' },
  },
  async run([operands], options, context) {
    const apiKey = findApiKey(context.config);
    const { format, quiet, resume, pairs, followLinks, ordered, strict } = options;
    const { concurrency = 4, maxAge: maxAgeHours = 24 } = options;
    const [path] = operands;
    const search = { pairs, followLinks };
    const single = operands.length === 1 && path !== undefined && !(await isDirectory(path));
    if (single && format === undefined && resume === undefined)
      return verifyOne(
        options.sidecar === undefined ? await audioOf(path, search) : path,
        search,
        options,
        context,
      );
    if (options.sidecar !== undefined)
      throw new UsageError(
        '--sidecar is for one file without --format or --resume; other sidecars stand beside their audio',
      );
    if (options.json) throw new UsageError('--json is for one file; use --format jsonl');
    if (resume === undefined && options.maxAge !== undefined)
      throw new UsageError('--max-age is for --resume');
    return verifyBatch(
      {
        operands,
        apiKey,
        search,
        strict,
        format: format ?? 'table',
        quiet,
        concurrency,
        ordered,
        resume,
        maxAgeSeconds: maxAgeHours * 3600,
      },
      context,
    );
  },
});

async function verifyOne(
  path: string,
  search: Search,
  { sidecar: companion, json }: { readonly sidecar?: string; readonly json: boolean },
  context: Context,
): Promise<number> {
  const { terminal, signal } = context;
  const found = await findOne(path, companion === undefined ? search : { ...search, pairs: false });
  if ('problem' in found) throw new RuntimeError(`${path}: ${found.problem}`);
  const sidecar = companion ?? found.sidecar;
  const bar = terminal.progressBar(basename(path));
  try {
    const result = await withPartner(context, (client) =>
      client.verifyFile(path, {
        sidecar,
        signal,
        onProgress: ({ sentBytes, totalBytes }) => bar.update(sentBytes, totalBytes),
      }),
    );
    bar.end();
    if (json) terminal.printJson(result);
    else explain(result, path, sidecar, terminal);
    if (!result.accepted) return EXIT.notGood;
    return asksForReview(result) ? EXIT.needsReview : EXIT.good;
  } finally {
    bar.end();
  }
}

/**
 * Audio that a named sidecar stands beside; any other path is the audio itself.
 * @throws RuntimeError where there is none. UsageError where there is more than one
 */
async function audioOf(path: string, search: Search): Promise<string> {
  if (!search.pairs || extname(path).toLowerCase() !== '.sidecar') return path;
  const found: string[] = [];
  for await (const entry of findAudio([path], search)) {
    if ('problem' in entry) throw new RuntimeError(`${entry.path}: ${entry.problem}`);
    // `song.wav` beside `song.mp3` speaks for itself.
    if ('sidecar' in entry) found.push(entry.path);
  }
  const [audio, other] = found;
  if (audio === undefined || other !== undefined)
    throw new UsageError(`more than one audio file stands beside ${path}: name the one that is meant`);
  return audio;
}

/** False for a path that is not there: reading it says what is wrong. */
async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (info) => info.isDirectory(),
    () => false,
  );
}

function explain(result: Verification, path: string, sidecar: string | undefined, terminal: Terminal): void {
  const review = asksForReview(result);
  const { title, meaning, advice } = verdictText(result.verdict, result.decision);
  const colour = review || result.verdict === 'local_seal' ? 'yellow' : result.accepted ? 'green' : 'red';
  const mark = review ? '?' : result.accepted ? '✔' : '✘';
  terminal.print(
    `${terminal.style(`${mark} ${printable(title)}`, 'bold', colour)}  ${printable(basename(path))}`,
  );
  terminal.print(`  ${meaning}`);
  terminal.print(`  ${advice}`);
  const { decision } = result;
  // A promised member may still be missing in a response: a plain line is better than no verdict.
  const audio = result.audio as AudioSummary | undefined;
  const facts: [string, string | undefined][] = [
    ['sidecar', sidecar],
    ['proof', result.proofId],
    ['issued', result.issuedAt === undefined ? undefined : formatTime(result.issuedAt)],
    ['audio', audio === undefined ? undefined : audioText(audio)],
    ['sha256', audio?.sha256],
    ['decision', decision === undefined ? undefined : `${decision.status}, ${decision.recommendedAction}`],
    ['reasons', decision?.reasons.join(', ')],
    [
      'signed by',
      result.embeddedCredential === undefined ? undefined : signerText(result.embeddedCredential),
    ],
    ['request', result.requestId],
  ];
  for (const [name, value] of facts) {
    if (value !== undefined && value !== '')
      terminal.print(`  ${terminal.style(name.padEnd(9), 'dim')} ${printable(value)}`);
  }
}

function signerText({
  issuer,
  device,
  trust,
  integrity,
}: NonNullable<Verification['embeddedCredential']>): string {
  return `${device !== undefined ? `a device that calls itself ${device}` : (issuer ?? 'unknown')} (integrity ${integrity}, trust ${trust})`;
}

function audioText(audio: AudioSummary): string {
  // A RIFF file that was measured is of form WAVE.
  const parts = [audio.container === 'riff' ? 'WAV' : audio.container.toUpperCase()];
  if (audio.sampleRate !== undefined) parts.push(`${audio.sampleRate / 1000} kHz`);
  if (audio.bitsPerSample !== undefined) parts.push(`${audio.bitsPerSample} bit`);
  if (audio.channels !== undefined)
    parts.push(
      audio.channels === 1 ? 'mono' : audio.channels === 2 ? 'stereo' : `${audio.channels} channels`,
    );
  if (audio.durationSeconds !== undefined) {
    const seconds = Math.round(audio.durationSeconds);
    parts.push(`${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`);
  }
  return [...parts, formatBytes(audio.bytes)].join(', ');
}
