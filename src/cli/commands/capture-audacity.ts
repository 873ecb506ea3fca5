import { AUDACITY_CHANNELS, followAudacity } from '../../agents/audacity/follow-project.js';
import { openTrace } from '../../capture/index.js';
import { defined } from '../../domain/defined.js';
import { defineCommand, EXIT } from '../command.js';
import { openDeviceKey } from '../device-key.js';
import { planOutput } from '../output-file.js';
import { printable } from '../terminal.js';

export const captureAudacity = defineCommand({
  name: 'capture audacity',
  summary: 'Follow a project of Audacity 3.2 and write a capture trace of it',
  details: [
    'It runs beside Audacity until it is interrupted, and then seals the trace. It reads copies of the',
    'project and changes nothing in it. What it sees of each channel, and what it cannot see, is in',
    'docs/capture-audacity.md.',
  ],
  operands: [],
  options: {
    project: { value: 'file', required: true, help: 'the .aup3 file that Audacity has open' },
    out: { value: 'file', required: true, help: 'the new trace' },
    key: { value: 'file', help: "the device's key (~/.takemark/device/trace-key.pem; made on first use)" },
    originals: {
      value: 'directory',
      help: 'folder of files that may be imported, to know them by their samples',
    },
    exports: { value: 'directory', help: 'folder to which is exported' },
  },
  async run(_operands, options, { terminal, signal, version }) {
    const { project, originals, exports } = options;
    const output = await planOutput(options.out, false, [project]);
    const key = await openDeviceKey(options.key);
    terminal.note(`takemark: device ${key.deviceId}`);
    const followed = await followAudacity(
      defined({
        project,
        originals,
        exports,
        signal,
        open: async ({ startedAt, dawVersion }: { startedAt: number; dawVersion?: string }) => {
          terminal.note('takemark: following the project');
          return openTrace({
            to: output.path,
            key,
            header: {
              adapter: 'audacity',
              adapterVersion: /^[0-9.]{1,32}/.exec(version)?.[0] ?? '0',
              dawVersion,
              startedAt,
              channels: AUDACITY_CHANNELS,
            },
          });
        },
      }),
    );
    if (followed) terminal.print(`sealed ${printable(output.path)}`);
    else terminal.note('takemark: no project could be read');
    return followed ? EXIT.good : EXIT.runtimeError;
  },
});
