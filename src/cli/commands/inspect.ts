import { defineCommand, EXIT } from '../command.js';
import { printInspection } from '../inspection-text.js';
import { openLocalFile } from '../local-file.js';

export const inspect = defineCommand({
  name: 'inspect',
  summary: 'Show the structure and the credential of a file, offline',
  details: [
    'Shows the container, the chunks with their offsets and sizes, the credential with its signer, the',
    'digests, and what in the file a verify would refuse. The command reads with the same core and the same',
    'credential reader as the service, and sends nothing.',
    '',
    'Inspecting is not verifying. A file alone does not show whether the service signed its credential and',
    'knows its proof. Use `takemark verify` before you accept a file.',
    '',
    'Exit code 0: the file could be read. docs/cli.md describes the output of --json.',
  ],
  operands: ['<file>'],
  options: { json: { help: 'print the result as one line of JSON' } },
  async run([path], { json }, { terminal, signal, openFileKit }) {
    const file = await openLocalFile(path, signal);
    try {
      const kit = await openFileKit();
      try {
        const inspection = await kit.inspect(() => file.read());
        if (json) terminal.printJson({ file: path, ...inspection });
        else printInspection(path, inspection, terminal);
      } finally {
        await kit.close();
      }
    } finally {
      await file.close();
    }
    return EXIT.good;
  },
});
