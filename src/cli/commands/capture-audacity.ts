import { AUDACITY_CHANNELS, followAudacity } from '../../agents/audacity/follow-project.js';
import { defined } from '../../core/domain/defined.js';
import { openTrace } from '../../witness/capture/index.js';
import { defineCommand, EXIT } from '../command.js';
import { openDeviceKey } from '../device-key.js';
import { planOutput } from '../output-file.js';
import { printable } from '../terminal.js';

export const captureAudacity = defineCommand({
  name: 'capture audacity',
  summary: 'Follow an Audacity 3.2 project and write its capture trace',
  details: [
    'Runs beside Audacity until you interrupt it, then seals the trace. It reads copies of the project',
    'and changes nothing in it. docs/capture-audacity.md lists what each channel can and cannot record.',
  ],
  options: {
    project: { value: 'file', required: true, help: 'the .aup3 file that Audacity has open' },
    out: { value: 'file', required: true, help: 'file to write the trace to' },
    key: {
      value: 'file',
      help: 'device key (~/.takemark/device/trace-key.pem; created on first use)',
    },
    originals: {
      value: 'directory',
      help: 'directory of files that the session may import; an import is recognised by its samples',
    },
    exports: { value: 'directory', help: 'directory that Audacity exports to' },
  },
  async run(_operands, options, { terminal, signal, version }) {
    const { project, originals, exports } = options;
    const output = await planOutput(options.out, undefined, [project]);
    const key = await openDeviceKey(options.key);
    terminal.note(`takemark: device ${key.deviceId}`);
    const captured = await followAudacity(
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
    if (captured === 'full')
      terminal.note('takemark: the trace is full: the rest of the session is not in it');
    if (captured === 'absent') terminal.note('takemark: no project could be read');
    else terminal.print(`sealed ${printable(output.path)}`);
    return captured === 'sealed' ? EXIT.good : EXIT.runtimeError;
  },
});
