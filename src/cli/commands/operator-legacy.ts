import { isUtf8 } from 'node:buffer';
import { open } from 'node:fs/promises';
import { TakemarkError } from '../../client/errors.js';
import { defineCommand, EXIT, RuntimeError } from '../command.js';
import type { OperatorClient } from '../operator-client.js';
import { printable } from '../terminal.js';
import { OPERATOR_DETAILS, withOperator } from './operator-accounts.js';

/** Largest JSON body that the service takes. */
const MAX_LINE_BYTES = 65_536;

export const importLegacy = defineCommand({
  name: 'operator legacy import',
  service: 'operator',
  summary: 'Register proofs of an earlier registry',
  details: [
    'The file holds one JSON object a line: proofId, partnerId, createdAt (unix seconds), kid,',
    'carrier, song { title }, originalSha256, boundAudioSha256, credentialSha256,',
    'asset { bytes, sha256, fileName, mediaType }, and, where they are known, classification,',
    'grade and interpretation. The partner exists here; the files themselves are not imported.',
    '',
    'What is registered already is counted and left as it is, so that a run may be repeated.',
    'A line that is refused is named, and the others go on; the exit code is 1 then. For files to',
    'verify, the certificate that signed them lies in signing/<environment>/known/.',
    '',
    ...OPERATOR_DETAILS,
  ],
  operands: ['<file>'],
  options: { json: { help: 'one line of JSON for each proof' } },
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
        `${counts.imported} imported, ${counts.already_imported} there already, ${counts.refused} refused`,
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
  // A title of another encoding would be registered with its letters lost, and for good.
  if (!isUtf8(bytes)) return refused('is not UTF-8');
  let proof: unknown;
  try {
    proof = JSON.parse(bytes.toString('utf8'));
  } catch {
    return refused('is not JSON');
  }
  if (typeof proof !== 'object' || proof === null || Array.isArray(proof))
    return refused('is no JSON object');
  try {
    const { proofId, outcome } = await client.importLegacy(proof);
    return { line, proofId, outcome };
  } catch (error) {
    // Every other failure is of the service or of the way to it, and would meet the next line, too.
    if (!(error instanceof TakemarkError) || error.status === undefined || error.status >= 500) throw error;
    if (error.status === 403 || error.status === 429) throw error;
    return refused(error.reason === undefined ? error.message : `${error.message} (${error.reason})`);
  }
}

/** Lines that hold anything, with their numbers. @throws RuntimeError */
async function* linesOf(path: string): AsyncGenerator<{ readonly line: number; readonly bytes: Buffer }> {
  const file = await open(path);
  try {
    if (!(await file.stat()).isFile()) throw new RuntimeError(`${path} is no file`);
    let line = 0;
    // Each byte as a character: what is decoded has lost what cannot be.
    for await (const text of file.readLines({ encoding: 'latin1' })) {
      line += 1;
      if (text.trim() !== '') yield { line, bytes: Buffer.from(text, 'latin1') };
    }
  } finally {
    await file.close();
  }
}
