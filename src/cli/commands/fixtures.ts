import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { FixturePart } from '../../client/index.js';
import { defineCommand, EXIT, RuntimeError, UsageError } from '../command.js';
import { type PlannedOutput, planOutput, writeOutput } from '../output-file.js';
import { printable } from '../terminal.js';
import { withPartner } from './partner-account.js';

/** A plain file name. The service must not choose a path. */
const SAFE_NAME = /^[a-z0-9][a-z0-9_]{0,63}\.[a-z0-9]{1,10}$/;

export const fixtures = defineCommand({
  name: 'fixtures',
  service: 'partner',
  summary: 'Download the sandbox files and the expected answer to each (beta only)',
  details: [
    'Writes one file for each verdict and reason, and fixtures.json with the expected answers, into an',
    'existing directory. `takemark verify <directory>` then verifies them.',
  ],
  options: {
    out: { value: 'directory', required: true, help: 'existing directory to write the files to' },
    force: { help: 'replace existing files' },
    json: { help: 'print the list as one line of JSON' },
  },
  async run(_operands, { out, force, json }, context) {
    const { terminal, signal } = context;
    if (
      !(await stat(out).then(
        (found) => found.isDirectory(),
        () => false,
      ))
    )
      throw new UsageError(`no such directory: ${out}`);
    return withPartner(context, async (client) => {
      const list = await client.sandboxFixtures({ signal });
      const planned: { name: string; part: FixturePart; output: PlannedOutput }[] = [];
      // Plan every output before the first write, so that an existing file stops the command early.
      const summary = await planOutput(join(out, 'fixtures.json'), force, []);
      for (const { name, files } of list.fixtures)
        for (const { part, fileName } of files) {
          if (!SAFE_NAME.test(fileName))
            throw new RuntimeError('the service sent a file name that this version rejects; update takemark');
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
