import { basename } from 'node:path';
import { isDirectory, namedFile } from '../batch/find-audio.js';
import { identifyFolder, identifyList } from '../batch/identify-batch.js';
import { type Context, defineCommand, EXIT, UsageError } from '../command.js';
import { printable } from '../terminal.js';
import { withPartner } from './partner-account.js';

export const identify = defineCommand({
  name: 'identify',
  service: 'partner',
  summary: 'Find the issued recordings that match a file, a directory or a list of digests',
  details: [
    'Prints one line per match: the proof, what matches, and the confidence. A match means that the service',
    'knows the file. It does not mean that a credential in the file is valid; use `takemark verify` for that.',
    'If you own the proof and only something outside the samples changed, the line says why the file is unreadable.',
    '',
    'A file is sent to the service, and costs one unit for each 65 MiB begun. The files of a directory are not sent: their digests are',
    'computed on this machine, with the same core as in the service. --digests reads digests from a file: the',
    'output of sha256sum, or CSV with the columns sha256, of (file, bound or samples) and name. Every 100',
    'digests begun cost one unit.',
    '',
    'Exit code 1: a file or digest has no match. Exit code 3: a file could not be read.',
  ],
  operands: ['[path]'],
  options: {
    digests: { value: 'file', help: 'identify the digests in this file, without sending audio' },
    json: { help: 'print the matches as one line of JSON for each file' },
  },
  async run([path], { digests, json }, context) {
    if ((path === undefined) === (digests === undefined))
      throw new UsageError('name a file or a directory, or use --digests, but not both');
    if (digests !== undefined) return identifyList(digests, json, context);
    return (await isDirectory(path!))
      ? identifyFolder(path!, json, context)
      : identifyFile(path!, json, context);
  },
});

async function identifyFile(path: string, json: boolean, context: Context): Promise<number> {
  const { terminal, signal } = context;
  const bar = terminal.progressBar(basename(path));
  try {
    const file = await namedFile(path);
    const found = await withPartner(context, (client) =>
      client.identifyFile(file, {
        signal,
        onProgress: ({ sentBytes, totalBytes }) => bar.update(sentBytes, totalBytes),
      }),
    );
    bar.end();
    if (json) terminal.printJson(found);
    else if (found.matches.length === 0) terminal.note('no match');
    else
      for (const { proofId, type, confidence, unreadableBecause } of found.matches) {
        const reasons =
          unreadableBecause === undefined ? '' : `  unreadable: ${unreadableBecause.join(', ')}`;
        terminal.print(printable(`${proofId}  ${type}  ${confidence}${reasons}`));
      }
    return found.matches.length > 0 ? EXIT.good : EXIT.notGood;
  } finally {
    bar.end();
  }
}
