import type { InspectedCredential, Inspection } from '../../core/domain/inspection.js';
import { defineCommand, EXIT } from '../command.js';
import { findingText, objectionText } from '../inspection-text.js';
import { openLocalFile } from '../local-file.js';
import { planNewOutput, writeOutput } from '../output-file.js';
import { printable, type Terminal } from '../terminal.js';

export const strip = defineCommand({
  name: 'strip',
  summary: 'Write a WAV file without its Takemark credential, offline',
  details: [
    'The output is the file as it was before its credential was embedded: every byte, the RIFF size and the',
    'pad bytes. Its SHA-256 is the originalSha256 of the proof. If --mend repaired the file at issuing, the',
    'output is the repaired file.',
    '',
    'The command removes a production record or a local seal in the form of Takemark, from an unchanged',
    'file. It writes nothing if the file changed after it was issued, or if its credential is of another',
    'program. The audio of a pair is the original as it is.',
    '',
    'The input stays as it is, and an existing file or link is never replaced. Exit code 1: nothing was',
    'written, because the file has no such credential.',
  ],
  operands: ['<audio>'],
  options: {
    out: { value: 'file', required: true, help: 'file to write' },
    json: { help: 'print the result as one line of JSON' },
  },
  async run([path], { out, json }, { terminal, signal, openFileKit }) {
    const file = await openLocalFile(path, signal);
    try {
      const output = await planNewOutput(out, [path]);
      const kit = await openFileKit();
      try {
        const inspection = await kit.inspect(() => file.read());
        const { credential } = inspection;
        if (credential?.originalSha256 === undefined) {
          printRefusal(path, inspection, terminal, json);
          return EXIT.notGood;
        }
        await writeOutput(
          output,
          kit.readOriginal(credential, () => file.read()),
        );
        const { offset: bytes, originalSha256: sha256 } = credential;
        if (json) terminal.printJson({ written: true, out, bytes, sha256, credential });
        else
          terminal.print(
            printable(`${out}  ${bytes} bytes  sha256 ${sha256}  ${nameOf(credential)} removed`),
          );
        return EXIT.good;
      } finally {
        await kit.close();
      }
    } finally {
      await file.close();
    }
  },
});

/** Returns a credential by its kind, and by the proof or the signer that it names. */
function nameOf({ statement, signer, report }: InspectedCredential): string {
  if (statement !== undefined)
    return 'proofId' in statement
      ? `production record ${statement.proofId}`
      : `local seal by ${statement.device}`;
  const by = signer ?? report?.generator;
  return by === undefined ? 'credential' : `credential of ${by}`;
}

/** Says why nothing was written. A program reads the reason from `--json`. */
function printRefusal(path: string, inspection: Inspection, terminal: Terminal, json: boolean): void {
  const { credential, objection, findings } = inspection;
  const broken = findings.filter(({ effect }) => effect === 'unreadable');
  // A broken file may have a credential that could not be found.
  const isMissing = credential === undefined && broken.length === 0;
  const reason = isMissing
    ? 'credential_missing'
    : credential?.kind === 'foreign'
      ? 'credential_foreign'
      : 'file_not_as_issued';
  if (json) terminal.printJson({ written: false, reason, credential, objection });
  const text = isMissing
    ? 'it has no credential in it. If its credential is a sidecar, the audio is the original as it is'
    : credential?.kind === 'foreign'
      ? `the ${nameOf(credential)} is not of Takemark and stays in the file`
      : `its credential is missing or not as it was issued: ${broken.length > 0 ? broken.map(findingText).join(', ') : objectionText(inspection)}`;
  terminal.note(printable(`takemark: ${path}: nothing was written, because ${text}`));
}
