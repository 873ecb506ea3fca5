import { isUtf8 } from 'node:buffer';
import { open } from 'node:fs/promises';
import { TakemarkError } from '../../client/errors.js';
import { defineCommand, EXIT, RuntimeError } from '../command.js';
import type { BodyAt, OperatorClient } from '../operator-client.js';
import { printable } from '../terminal.js';
import { withOperator } from './call-command.js';

/** The largest JSON body that the service accepts, in bytes. */
const MAX_LINE_BYTES = 65_536;

export const importLegacy = defineCommand({
  name: 'operator legacy import',
  service: 'operator',
  summary: 'Import proofs from an earlier registry',
  details: [
    'The file holds one JSON object per line: proofId, partnerId, createdAt (unix seconds), kid, carrier,',
    'song { title }, originalSha256, boundAudioSha256, credentialSha256,',
    'asset { bytes, sha256, fileName, mediaType } and, if known, classification, grade and interpretation.',
    'The partner must already exist here. The audio files are not imported.',
    '',
    'A proof that is registered already is counted and left unchanged, so you can repeat a run. A refused',
    'line is reported, and the run continues; the exit code is then 1. Imported files verify only if the',
    'certificate that signed them is in signing/<environment>/known/.',
  ],
  operands: ['<file>'],
  options: { json: { help: 'print one line of JSON per proof' } },
  async run([path], options, context) {
    const { terminal } = context;
    const counts = { imported: 0, already_imported: 0, refused: 0 };
    await withOperator(context, async (client) => {
      for await (const { line, bytes } of linesOf(path)) {
        context.signal.throwIfAborted();
        const result = await importLine(client, line, bytes);
        counts[result.outcome] += 1;
        if (options.json) terminal.printJson(result);
        else if (result.outcome === 'refused') terminal.note(printable(`line ${line}: ${result.error}`));
      }
    });
    if (!options.json)
      terminal.print(
        `${counts.imported} imported, ${counts.already_imported} already imported, ${counts.refused} refused`,
      );
    return counts.refused === 0 ? EXIT.good : EXIT.notGood;
  },
});

type LineResult =
  | { readonly line: number; readonly proofId: string; readonly outcome: 'imported' | 'already_imported' }
  | { readonly line: number; readonly outcome: 'refused'; readonly error: string };

async function importLine(client: OperatorClient, line: number, bytes: Buffer): Promise<LineResult> {
  const refused = (error: string) => ({ line, outcome: 'refused', error }) as const;
  if (bytes.length > MAX_LINE_BYTES) return refused(`is longer than ${MAX_LINE_BYTES} bytes`);
  // A title in another encoding would lose letters, and a registered title cannot be corrected.
  if (!isUtf8(bytes)) return refused('is not UTF-8');
  let proof: unknown;
  try {
    proof = JSON.parse(bytes.toString('utf8'));
  } catch {
    return refused('is not JSON');
  }
  if (typeof proof !== 'object' || proof === null || Array.isArray(proof))
    return refused('is not a JSON object');
  try {
    const { proofId, outcome } = await client.call('POST legacy-proofs', {
      // The service checks the members.
      json: proof as BodyAt<'POST legacy-proofs'>,
    });
    return { line, proofId, outcome };
  } catch (error) {
    // Any other failure is of the service or the network, and would hit the next line too.
    if (!(error instanceof TakemarkError) || error.status === undefined || error.status >= 500) throw error;
    if (error.status === 403 || error.status === 429) throw error;
    return refused(error.reason === undefined ? error.message : `${error.message} (${error.reason})`);
  }
}

/** Yields the lines that are not blank, with their numbers. @throws RuntimeError */
async function* linesOf(path: string): AsyncGenerator<{ readonly line: number; readonly bytes: Buffer }> {
  const file = await open(path);
  try {
    if (!(await file.stat()).isFile()) throw new RuntimeError(`${path} is not a regular file`);
    let line = 0;
    // latin1 keeps every byte. Decoding as UTF-8 would lose invalid bytes.
    for await (const text of file.readLines({ encoding: 'latin1' })) {
      line += 1;
      if (text.trim() !== '') yield { line, bytes: Buffer.from(text, 'latin1') };
    }
  } finally {
    await file.close();
  }
}
