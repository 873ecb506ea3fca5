import { followArdour, type SessionStart } from '../../agents/ardour/follow.js';
import { rerenderArdour } from '../../agents/ardour/rerender.js';
import { openTrace } from '../../capture/index.js';
import { defined } from '../../domain/defined.js';
import { defineCommand, EXIT } from '../command.js';
import { openDeviceKey } from '../device-key.js';
import { planOutput } from '../output-file.js';
import { printable } from '../terminal.js';

export const captureArdour = defineCommand({
  name: 'capture ardour',
  summary: 'Follow a session of Ardour 7 and write a capture trace of it',
  details: [
    'It runs beside Ardour until it is interrupted or the program of --pid ends, and then seals the',
    'trace. It reads the folder of the session and changes nothing in it. What it sees of each',
    'channel, and what it cannot see, is in docs/capture-ardour.md.',
  ],
  operands: [],
  options: {
    session: { value: 'directory', required: true, help: 'folder of the session; it may not be there yet' },
    out: { value: 'file', required: true, help: 'the new trace' },
    key: { value: 'file', help: "the device's key (~/.takemark/device/trace-key.pem; made on first use)" },
    originals: {
      value: 'directory',
      help: 'folder of files that may be imported, to know them by their samples',
    },
    exports: { value: 'directory', help: "folder to which is exported, beside the session's own" },
    pid: { value: 'id', range: [1, 4_194_304], help: 'process of Ardour, whose end is that of the session' },
    hook: { help: "wait for Ardour's hook (takemark capture ardour-hook), and tell of playback" },
    rerender: { help: 'render the session again at the end and compare with the last export' },
    'trial-input': { help: "take Ardour's dummy device for hardware; the trace is marked as simulated" },
  },
  async run(_operands, options, { terminal, signal, version }) {
    const output = await planOutput(options.out, false, []);
    const key = await openDeviceKey(options.key);
    terminal.note(`takemark: device ${key.deviceId}`);
    const { pid } = options;
    const followed = await followArdour(
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
    if (followed) terminal.print(`sealed ${printable(output.path)}`);
    else terminal.note('takemark: no session was there');
    return followed ? EXIT.good : EXIT.runtimeError;
  },
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of somebody else: it is there.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
