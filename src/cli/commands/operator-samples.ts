import { defineCommand, EXIT } from '../command.js';
import { printable } from '../terminal.js';
import { withOperator } from './call-command.js';

export const fillSamples = defineCommand({
  name: 'operator samples fill',
  service: 'operator',
  summary: 'Compute the samples digests of proofs of earlier versions from their files',
  details: [
    'Proofs issued by versions without samples digests are not found by their samples until this command has',
    'read their files. The service reads TAKEMARK_SAMPLES_FILL_MIB per second. After an interruption, run the',
    'command again, with the --from value of the last line or from the start: what is done is not repeated.',
    'Exit code 1: the file of at least one proof is missing or damaged.',
  ],
  options: {
    from: { value: 'place', help: 'continue an earlier run: the --from value that it printed' },
    json: { help: 'print one line of JSON per step' },
  },
  async run(_operands, options, context) {
    const { terminal, signal } = context;
    const sums = { looked: 0, filled: 0, without: 0, failed: 0 };
    await withOperator(context, async (client) => {
      let place = options.from;
      try {
        do {
          const step = await client.call('POST samples/fill', { query: { from: place } });
          sums.looked += step.looked;
          sums.filled += step.filled;
          sums.without += step.without;
          sums.failed += step.failed.length;
          if (options.json) terminal.printJson(step);
          else
            for (const proofId of step.failed)
              terminal.print(printable(`${proofId}  the file is missing or damaged`));
          place = step.next;
        } while (place !== undefined);
      } catch (error) {
        if (place !== undefined) terminal.note(printable(`continue with --from ${place}`));
        signal.throwIfAborted();
        throw error;
      }
    });
    const { looked, filled, without, failed } = sums;
    if (!options.json)
      terminal.print(
        `${looked} proofs: ${filled} filled, ${without} without a samples digest, ${failed} failed`,
      );
    return failed === 0 ? EXIT.good : EXIT.notGood;
  },
});
