import { basename, extname } from 'node:path';
import type { AudioSummary, Verification } from '../../client/index.js';
import { sidecarBytes } from '../../client/source.js';
import { asksForReview, isOfUnknownFormat } from '../batch/file-result.js';
import {
  type FoundAudio,
  findAudio,
  findOne,
  isDirectory,
  type Search,
  type Unfit,
} from '../batch/find-audio.js';
import { FORMATS } from '../batch/result-formats.js';
import { verifyBatch } from '../batch/verify-batch.js';
import { AmbiguousError, type Context, defineCommand, EXIT, RuntimeError, UsageError } from '../command.js';
import { formatBytes, formatTime, printable, type Terminal } from '../terminal.js';
import { verdictText } from '../verdict-texts.js';
import { findApiKey, withPartner } from './partner-account.js';

export const verify = defineCommand({
  name: 'verify',
  service: 'partner',
  summary: 'Verify credentialed WAV/BWF files, audio with a sidecar, or whole directories',
  details: [
    'Uploads each file and reports its verdict. A single file gets an explanation in plain words. A file',
    'above 65 MiB costs one unit of the quota for each 65 MiB begun. The largest file is 2 GiB, unless',
    'the service has another limit.',
    'Several files, or a directory with its subdirectories, give a table, JSON lines or CSV, and a',
    'summary on stderr. If song.sidecar is beside song.mp3, they are verified as a pair, and you can',
    'name either of them. Names are compared in Unicode form NFC. If song.flac is there too, the sidecar',
    'may belong to either file: both are reported as ambiguous and not verified. The same holds if the',
    'name of the sidecar differs from the name of the audio only in case.',
    '',
    'Within a directory, hidden files, linked directories and files without an audio extension are',
    'skipped. The summary counts and names the skipped files; with --strict each one is a failure. A',
    'symbolic link that leads out of the directory is not followed without --follow-links.',
    '',
    '--resume saves each verdict to a file. A later run reports a saved verdict without a new call if',
    'the contents (every file is read and hashed), the API key and the service are the same and the',
    'verdict is not older than --max-age. Before a saved good verdict is reported, the service is asked',
    'whether the proof still has a record. Failures are not saved: the next run tries those files again.',
    '',
    'Invisible and control characters are printed as \\u{hex}, in JSON as JSON escapes. A CSV cell that',
    'a spreadsheet would read as a formula starts with an apostrophe.',
    '',
    'Exit codes: 0 every file is good; 1 at least one verdict is not good; 2 wrong usage; 3 a file or',
    'the service failed, so that a file has no verdict; 4 every file is good, but the evidence of at',
    'least one needs a review by a person; 5 the other files are good, but the sidecar of at least one',
    'file is ambiguous; 130 the run was interrupted; 141 the reader of the output ended early.',
  ],
  operands: ['<file...>'],
  options: {
    sidecar: { value: 'file', help: 'the sidecar of a legacy pair (one file only)' },
    'no-pairs': { help: 'verify each file alone and ignore sidecars beside it' },
    json: { help: 'print the result as one line of JSON (one file only)' },
    format: { value: 'format', choices: FORMATS, help: 'output format for several files (table)' },
    quiet: { help: 'with several files, report only files that are not good or need a review' },
    concurrency: { value: 'n', range: [1, 64], help: 'files to verify in parallel, 1 to 64 (4)' },
    ordered: { help: 'report in input order instead of completion order' },
    resume: { value: 'file', help: 'save verdicts to this file and reuse them in later runs' },
    'max-age': {
      value: 'hours',
      range: [1, 8760],
      help: 'maximum age of a saved verdict in hours, 1 to 8760 (24)',
    },
    strict: { help: 'treat skipped files as failures' },
    'follow-links': { help: 'follow symbolic links that lead out of the directory' },
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
        options.sidecar === undefined
          ? await audioOf(path, search)
          : await foundAt(path, { ...search, pairs: false }),
        options,
        context,
      );
    if (options.sidecar !== undefined)
      throw new UsageError(
        '--sidecar works only with a single file, and not with --format or --resume; for several files, put each sidecar beside its audio',
      );
    if (options.json) throw new UsageError('--json needs a single file; use --format jsonl');
    if (resume === undefined && options.maxAge !== undefined)
      throw new UsageError('--max-age needs --resume');
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
  found: FoundAudio,
  { sidecar: companion, json }: { readonly sidecar?: string; readonly json: boolean },
  context: Context,
): Promise<number> {
  const { terminal, signal } = context;
  const { path, place, sidecarPlace } = found;
  const sidecar = companion ?? found.sidecar;
  const bar = terminal.progressBar(basename(path));
  try {
    const result = await withPartner(context, async (client) =>
      client.verifyFile(place === undefined ? path : { path: place }, {
        sidecar: sidecarPlace === undefined ? sidecar : await sidecarBytes({ path: sidecarPlace }),
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

async function foundAt(path: string, search: Search): Promise<FoundAudio> {
  const found = await findOne(path, search);
  if ('problem' in found) throw unfitError(found);
  return found;
}

function unfitError({ path, problem, ambiguous }: Unfit): RuntimeError {
  const message = `${path}: ${problem}`;
  return ambiguous ? new AmbiguousError(message) : new RuntimeError(message);
}

/**
 * Returns the audio file beside a named sidecar. Any other path is the audio itself.
 * @throws RuntimeError if there is no audio file. AmbiguousError if there are several
 */
async function audioOf(path: string, search: Search): Promise<FoundAudio> {
  if (!search.pairs || extname(path).toLowerCase() !== '.sidecar') return foundAt(path, search);
  let audio: FoundAudio | undefined;
  for await (const entry of findAudio([path], search)) {
    if ('problem' in entry) throw unfitError(entry);
    // `song.wav` beside `song.mp3` speaks for itself.
    if ('sidecar' in entry) audio = entry;
  }
  if (audio === undefined) throw new RuntimeError(`${path}: no audio beside this sidecar`);
  return audio;
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
  if (isOfUnknownFormat(result))
    terminal.print(
      `  ${terminal.style('The service does not know the format of this file, and cannot say whether it is audio.', 'yellow')}`,
    );
  const { decision } = result;
  // A promised member of a response may be absent. The verdict is still worth printing.
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
  return `${device !== undefined ? `a device with the self-declared name ${device}` : (issuer ?? 'unknown')} (integrity ${integrity}, trust ${trust})`;
}

function audioText(audio: AudioSummary): string {
  // The service measures RIFF files of form WAVE only.
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
