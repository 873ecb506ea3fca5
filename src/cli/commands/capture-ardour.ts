import { followArdour, type SessionStart } from '../../agents/ardour/follow.js';
import { rerenderArdour } from '../../agents/ardour/rerender.js';
import { defined } from '../../core/domain/defined.js';
import { openTrace } from '../../witness/capture/index.js';
import { defineCommand, EXIT } from '../command.js';
import { openDeviceKey } from '../device-key.js';
import { planOutput } from '../output-file.js';
import { printable } from '../terminal.js';

export const captureArdour = defineCommand({
  name: 'capture ardour',
  summary: 'Follow an Ardour 7 session and write its capture trace',
  details: [
    'Runs beside Ardour until you interrupt it or the process of --pid ends, then seals the trace. It',
    'reads the session directory and changes nothing in it. docs/capture-ardour.md lists what each',
    'channel can and cannot record.',
  ],
  options: {
    session: { value: 'directory', required: true, help: 'session directory; it need not exist yet' },
    out: { value: 'file', required: true, help: 'file to write the trace to' },
    key: {
      value: 'file',
      help: 'device key (~/.takemark/device/trace-key.pem; created on first use)',
    },
    originals: {
      value: 'directory',
      help: 'directory of files that the session may import; an import is recognised by its samples',
    },
    exports: {
      value: 'directory',
      help: "directory that Ardour exports to, in addition to the session's export directory",
    },
    pid: { value: 'id', range: [1, 4_194_304], help: 'Ardour process id; the session ends when it exits' },
    hook: { help: "wait for Ardour's hook (takemark capture ardour-hook) and record playback" },
    rerender: { help: 'at the end, render the session again and compare it with the last export' },
    'trial-input': { help: "treat Ardour's dummy device as hardware; the trace is marked as simulated" },
  },
  async run(_operands, options, { terminal, signal, version }) {
    const output = await planOutput(options.out, undefined, []);
    const key = await openDeviceKey(options.key);
    terminal.note(`takemark: device ${key.deviceId}`);
    const { pid } = options;
    const captured = await followArdour(
      defined({
        directory: options.session,
        signal,
        originals: options.originals,
        exports: options.exports === undefined ? undefined : [options.exports],
        countsDummy: options.trialInput,
        hook: options.hook,
        hasEnded: pid === undefined ? undefined : () => !isRunning(pid),
        rerender: options.rerender ? rerenderArdour : undefined,
        open: async ({ startedAt, dawVersion, channels }: SessionStart) => {
          terminal.note('takemark: following the session');
          return openTrace({
            to: output.path,
            key,
            header: {
              adapter: 'ardour',
              adapterVersion: /^[0-9.]{1,32}/.exec(version)?.[0] ?? '0',
              dawVersion,
              startedAt,
              simulated: options.trialInput,
              channels,
            },
          });
        },
      }),
    );
    if (captured === 'full')
      terminal.note('takemark: the trace is full: the rest of the session is not in it');
    if (captured === 'absent') terminal.note('takemark: no session was found');
    else terminal.print(`sealed ${printable(output.path)}`);
    return captured === 'sealed' ? EXIT.good : EXIT.runtimeError;
  },
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // The process exists but belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
