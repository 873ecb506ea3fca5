import { homedir } from 'node:os';
import { join } from 'node:path';
import { installHook, removeHook } from '../../agents/ardour/install-hook.js';
import { defineCommand, EXIT } from '../command.js';
import { printable } from '../terminal.js';

export const captureArdourHook = defineCommand({
  name: 'capture ardour-hook',
  summary: 'Install or remove the Ardour script that records playback',
  details: [
    "Writes a Lua script into Ardour's scripts directory. Enable it once in Ardour, under Edit > Lua Scripts >",
    'Script Manager > Action Hooks; it stays enabled. The script appends lines to a file in the directory of',
    'each open session, and takemark capture ardour --hook reads them.',
  ],
  options: {
    remove: { help: 'remove the script; disable it in Ardour as well' },
    configuration: { value: 'directory', help: 'configuration directory (~/.config)' },
  },
  async run(_operands, options, { terminal }) {
    const folder = options.configuration ?? join(homedir(), '.config');
    if (options.remove) terminal.print(printable(`removed ${await removeHook(folder)}`));
    else terminal.print(printable(`wrote ${await installHook(folder)}`));
    return EXIT.good;
  },
});
