import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { TakemarkError } from '../../client/errors.js';
import { isTransient } from '../../client/retry.js';
import { audioSource } from '../../client/source.js';
import type { Progress } from '../../client/transport.js';
import { defined } from '../../domain/defined.js';
import { defineCommand, EXIT, RuntimeError, UsageError } from '../command.js';
import { type CredentialOutputs, planOutputs, writtenPaths } from '../credential-outputs.js';
import type { EvidenceFiles } from '../issuing-form.js';
import type { IssuedProof, OperatorClient } from '../operator-client.js';
import { writeOutput } from '../output-file.js';
import { formatTime, printable } from '../terminal.js';
import { OPERATOR_DETAILS, withOperator } from './operator-accounts.js';

export const issue = defineCommand({
  name: 'operator issue',
  service: 'operator',
  summary: 'Issue a credential for a recording',
  details: [
    'Without --sidecar-out, --out receives a WAV/BWF with the credential embedded.',
    'With --sidecar-out the credential is a sidecar beside audio of any kind, and --out, where',
    'it is given, receives that audio as it is.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: ['<audio>'],
  options: {
    partner: { value: 'partnerId', required: true, help: 'whose proof it is' },
    song: { value: 'title', required: true, help: 'title in the production record' },
    out: { value: 'file', help: 'where the credentialed file goes' },
    trace: { value: 'file', help: 'capture trace of the session that the audio was exported from' },
    summary: { value: 'file', help: "client's summary of the session as JSON; comes with a trace" },
    detections: { value: 'file', help: 'results of detectors about imports as JSON; come with a trace' },
    'sidecar-out': { value: 'file', help: 'where the sidecar of a pair goes' },
    'idempotency-key': {
      value: 'key',
      help: '16 to 128 characters; the same call under it is answered again',
    },
    force: { help: 'replace files that exist' },
    json: { help: 'the result as one line of JSON' },
  },
  async run([path], options, context) {
    const { terminal } = context;
    const outputs = await planOutputs(options, path);
    const audio = await audioSource(path);
    const evidence = await evidenceFiles(options);
    const idempotencyKey = options.idempotencyKey ?? randomUUID();
    const bar = terminal.progressBar(basename(path));
    try {
      await withOperator(context, async (client) => {
        const call = {
          partnerId: options.partner,
          song: options.song,
          fileName: basename(path),
          carrier: outputs.sidecar === undefined ? 'embedded' : 'sidecar',
          idempotencyKey,
          audio,
          evidence,
          onProgress: ({ sentBytes, totalBytes }: Progress) => bar.update(sentBytes, totalBytes),
        } as const;
        // An interruption has a line of its own, behind this one.
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
          // Issued is issued: the message has what fetches the files after all.
          const reason = cause instanceof Error ? cause.message : String(cause);
          const text = `${proof.proofId} was issued but not written (${reason}); run again with --idempotency-key ${idempotencyKey}`;
          noteIfInterrupted(text);
          throw new RuntimeError(text);
        });
        const written = writtenPaths(outputs);
        if (options.json) terminal.printJson({ ...proof, ...written });
        else
          terminal.print(
            `${proof.proofId}  issued ${formatTime(proof.issuedAt)}  ${printable(Object.values(written).join(', '))}`,
          );
      });
    } finally {
      bar.end();
    }
    return EXIT.good;
  },
});

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
      throw new UsageError('--summary and --detections come with --trace');
    return undefined;
  }
  return defined({
    trace: await audioSource(trace),
    summary: summary === undefined ? undefined : await readFile(summary),
    detections: detections === undefined ? undefined : await readFile(detections),
  });
}

/** True of an answer that is none, too: what sent it may stand behind a service that has issued. */
function mayHaveIssued(error: unknown): error is TakemarkError {
  return isTransient(error) || (error instanceof TakemarkError && error.code === 'bad_response');
}

function retryHint(idempotencyKey: string): string {
  return `to issue it once only, run again with --idempotency-key ${idempotencyKey}`;
}

/** Adds the idempotency key: without a response nobody here knows whether a proof was issued, and the key makes
 * it safe to ask again. */
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

/** Ends in an error, and so without a file, where the bytes are not those that were issued. */
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
    throw new RuntimeError('the file that arrived is not the one that was issued');
}
