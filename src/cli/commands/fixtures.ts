import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { FixturePart } from '../../client/index.js';
import { defineCommand, EXIT, RuntimeError, UsageError } from '../command.js';
import { type PlannedOutput, planOutput, writeOutput } from '../output-file.js';
import { printable } from '../terminal.js';
import { PARTNER_DETAILS, withPartner } from './partner-account.js';

/** Name of a file in the folder: what a service says is no path. */
const SAFE_NAME = /^[a-z0-9][a-z0-9_]{0,63}\.[a-z0-9]{1,10}$/;

export const fixtures = defineCommand({
  name: 'fixtures',
  service: 'partner',
  summary: 'Write the files of the sandbox, each with the answer that verify gives; in beta',
  details: [
    'Writes one file for each verdict and reason, and fixtures.json with the announced answers, into a',
    'folder that is there. `takemark verify <folder>` then verifies them.',
    '',
    ...PARTNER_DETAILS,
  ],
  operands: [],
  options: {
    out: { value: 'folder', required: true, help: 'where the files are written' },
    force: { help: 'replace files that exist' },
    json: { help: 'the list as one line of JSON' },
  },
  async run(_operands, { out, force, json }, context) {
    const { terminal, signal } = context;
    if (
      !(await stat(out).then(
        (found) => found.isDirectory(),
        () => false,
      ))
    )
      throw new UsageError(`${out} is not a folder that is there`);
    return withPartner(context, async (client) => {
      const list = await client.sandboxFixtures({ signal });
      const planned: { name: string; part: FixturePart; output: PlannedOutput }[] = [];
      // All of them before the first is written: nothing is left half done for a file that exists.
      const summary = await planOutput(join(out, 'fixtures.json'), force, []);
      for (const { name, files } of list.fixtures)
        for (const { part, fileName } of files) {
          if (!SAFE_NAME.test(fileName))
            throw new RuntimeError('the service names a file that cannot be written here; update takemark');
          planned.push({ name, part, output: await planOutput(join(out, fileName), force, []) });
        }
      for (const { name, part, output } of planned) {
        const file = await client.readSandboxFile(name, { part, signal });
        try {
          await writeOutput(output, file.body);
        } finally {
          file.close();
        }
      }
      await writeOutput(summary, [Buffer.from(`${JSON.stringify(list, null, 2)}\n`)]);
      if (json) terminal.printJson(list);
      else terminal.note(printable(`wrote ${planned.length} files and fixtures.json to ${out}`));
      return EXIT.good;
    });
  },
});
