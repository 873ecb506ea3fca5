import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { TakemarkError } from '../../client/errors.js';
import { isTransient } from '../../client/retry.js';
import { audioSource } from '../../client/source.js';
import type { Progress } from '../../client/transport.js';
import { defined } from '../../core/domain/defined.js';
import { namedFile } from '../batch/find-audio.js';
import { defineCommand, EXIT, RuntimeError, UsageError } from '../command.js';
import { type CredentialOutputs, planOutputs, writtenPaths } from '../credential-outputs.js';
import type { EvidenceFiles } from '../issuing-form.js';
import type { IssuedProof, OperatorClient } from '../operator-client.js';
import { writeOutput } from '../output-file.js';
import { formatTime, printable } from '../terminal.js';
import { withOperator } from './call-command.js';

export const issue = defineCommand({
  name: 'operator issue',
  service: 'operator',
  summary: 'Issue a credential for a recording',
  details: [
    'Without --sidecar-out, --out is a WAV/BWF file with the credential embedded. With --sidecar-out, the',
    'credential is a sidecar beside audio of any format, and --out, if given, is an unchanged copy of that',
    'audio.',
    '',
    'A WAV file is refused if two readers could disagree about which bytes of it are audio. --mend repairs a',
    'break that has exactly one repair: a missing pad byte at the end, a RIFF size that is wrong by one, a',
    'byte rate of 0. The output lists each changed byte. The digest of the original is then that of the',
    'mended file, and the report of a trace says that the export is other audio.',
    '',
    'A file in a format that the service does not know is refused, because it may not be audio. With',
    '--allow-unknown-container and --sidecar-out it is issued. The proof is then marked, and every decision',
    'about it has the reason container_unknown.',
    '',
    'With --large, a file above 65 MiB is issued. The largest one has 2 GiB, unless the service has another',
    'limit. Partners verify it with an upload slot of the purpose verify_large, as takemark verify does.',
  ],
  operands: ['<audio>'],
  options: {
    partner: { value: 'partnerId', required: true, help: 'partner that owns the proof' },
    song: { value: 'title', required: true, help: 'title in the production record' },
    artist: { value: 'name', help: 'artist to declare in the production record' },
    release: { value: 'title', help: 'release to declare in the production record' },
    isrc: { value: 'code', help: 'ISRC to declare, 12 characters without hyphens' },
    out: { value: 'file', help: 'credentialed file to write' },
    trace: { value: 'file', help: 'capture trace of the session that exported the audio' },
    summary: { value: 'file', help: "JSON file of the client's session summary; needs --trace" },
    detections: { value: 'file', help: 'JSON file of detector results about imports; needs --trace' },
    'sidecar-out': { value: 'file', help: 'sidecar file to write' },
    'allow-unknown-container': {
      help: 'state that a file in a format that the service does not know is audio; needs --sidecar-out',
    },
    'idempotency-key': {
      value: 'key',
      help: '16 to 128 characters; repeating the same call with the same key returns the same proof',
    },
    large: { help: 'issue a file above 65 MiB' },
    mend: { help: 'repair a broken WAV file that has exactly one repair' },
    force: { help: 'replace existing files' },
    json: { help: 'print the result as one line of JSON' },
  },
  async run([path], options, context) {
    const { terminal } = context;
    const { allowUnknownContainer } = options;
    if (allowUnknownContainer && options.sidecarOut === undefined)
      throw new UsageError('--allow-unknown-container needs --sidecar-out');
    const outputs = await planOutputs(options, path);
    if (options.mend && outputs.sidecar !== undefined)
      throw new UsageError('--mend repairs a file that will contain its credential: omit --sidecar-out');
    const audio = await audioSource(await namedFile(path));
    const evidence = await evidenceFiles(options);
    const idempotencyKey = options.idempotencyKey ?? randomUUID();
    const bar = terminal.progressBar(basename(path));
    try {
      await withOperator(context, async (client) => {
        const call = {
          query: {
            partnerId: options.partner,
            song: options.song,
            artist: options.artist,
            release: options.release,
            isrc: options.isrc,
            fileName: basename(path),
            carrier: outputs.sidecar === undefined ? 'embedded' : 'sidecar',
            // An older service does not know the following parameters.
            mend: options.mend ? 'true' : undefined,
            large: options.large ? 'true' : undefined,
            unknownContainer: allowUnknownContainer ? 'allow' : undefined,
          },
          idempotencyKey,
          audio,
          evidence,
          onProgress: ({ sentBytes, totalBytes }: Progress) => bar.update(sentBytes, totalBytes),
        };
        // An interruption prints its own line after this one.
        const noteIfInterrupted = (text: string): void => {
          bar.end();
          if (context.signal.aborted) terminal.note(`takemark: ${printable(text)}`);
        };
        const proof = await client.issue(call).catch((error: unknown) => {
          noteIfInterrupted(retryHint(idempotencyKey));
          throw mayHaveIssued(error) ? withRetryHint(error, idempotencyKey) : error;
        });
        bar.end();
        await fetchDeliverables(client, proof, outputs).catch((cause: unknown) => {
          // The proof exists although its files do not: the message says how to fetch them.
          const reason = cause instanceof Error ? cause.message : String(cause);
          const text = `${proof.proofId} was issued but not written (${reason}); run again with --idempotency-key ${idempotencyKey}`;
          noteIfInterrupted(text);
          throw new RuntimeError(text);
        });
        const written = writtenPaths(outputs);
        if (options.json) terminal.printJson({ ...proof, ...written });
        else {
          terminal.print(
            `${proof.proofId}  issued ${formatTime(proof.issuedAt)}  ${printable(Object.values(written).join(', '))}`,
          );
          for (const line of deviations(proof)) terminal.print(printable(line));
          if (proof.asset.uploadPurpose !== undefined)
            terminal.note(
              `takemark: verifying this file needs an upload slot of the purpose ${printable(proof.asset.uploadPurpose)}`,
            );
          if (proof.unknownContainer === true)
            terminal.note(
              'takemark: the service does not know the format of this file; the proof is marked as unknownContainer',
            );
        }
      });
    } finally {
      bar.end();
    }
    return EXIT.good;
  },
});

/** Describes what the service mended, and the harmless deviations that it accepted. */
function deviations({ originalSha256, mended, warnings = [] }: IssuedProof): readonly string[] {
  const lines = warnings.map(({ code, offset }) => `warning: ${code} at byte ${offset}`);
  if (mended === undefined) return lines;
  const hex = (byte: number): string => `0x${byte.toString(16).padStart(2, '0')}`;
  return [
    ...mended.changes.map(({ offset, from, to }) =>
      from === undefined
        ? `mended: appended byte ${offset}, ${hex(to)}`
        : `mended: byte ${offset}, ${hex(from)} to ${hex(to)}`,
    ),
    `mended: the original is the mended file, SHA-256 ${originalSha256}; the sent file has ${mended.sentSha256}`,
    ...lines,
  ];
}

async function evidenceFiles({
  trace,
  summary,
  detections,
}: {
  readonly trace?: string;
  readonly summary?: string;
  readonly detections?: string;
}): Promise<EvidenceFiles | undefined> {
  if (trace === undefined) {
    if (summary !== undefined || detections !== undefined)
      throw new UsageError('--summary and --detections need --trace');
    return undefined;
  }
  return defined({
    trace: await audioSource(trace),
    summary: summary === undefined ? undefined : await readFile(summary),
    detections: detections === undefined ? undefined : await readFile(detections),
  });
}

/**
 * Returns true for an unreadable response too: a proxy may have sent it after the service issued the proof.
 */
function mayHaveIssued(error: unknown): error is TakemarkError {
  return isTransient(error) || (error instanceof TakemarkError && error.code === 'bad_response');
}

function retryHint(idempotencyKey: string): string {
  return `to avoid issuing it twice, run again with --idempotency-key ${idempotencyKey}`;
}

/**
 * Adds the idempotency key to an error. Without a response the client cannot know whether a proof was issued,
 * and the key makes a retry safe.
 */
function withRetryHint(error: TakemarkError, idempotencyKey: string): TakemarkError {
  const { code, status, reason, requestId, retryAfterSeconds } = error;
  return new TakemarkError(code, `${error.message}; ${retryHint(idempotencyKey)}`, {
    status,
    reason,
    requestId,
    retryAfterSeconds,
    cause: error,
  });
}

async function fetchDeliverables(
  client: OperatorClient,
  proof: IssuedProof,
  outputs: CredentialOutputs,
): Promise<void> {
  const { audio, sidecar } = outputs;
  if (audio !== undefined)
    await client.readAsset(proof.proofId, 'audio', (body) => writeOutput(audio, checked(body, proof.asset)));
  if (sidecar !== undefined)
    await client.readAsset(proof.proofId, 'sidecar', (body) => writeOutput(sidecar, body));
}

/** Throws after the last byte, and so leaves no file, if the bytes are not the issued bytes. */
async function* checked(
  body: AsyncIterable<Uint8Array>,
  expected: IssuedProof['asset'],
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  for await (const chunk of body) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest('hex') !== expected.sha256)
    throw new RuntimeError('the downloaded file differs from the issued file');
}
