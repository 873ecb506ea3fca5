import { homedir } from 'node:os';
import { join } from 'node:path';
import { installHook, removeHook } from '../../agents/ardour/install-hook.js';
import { defineCommand, EXIT } from '../command.js';
import { printable } from '../terminal.js';

export const captureArdourHook = defineCommand({
  name: 'capture ardour-hook',
  summary: 'Give Ardour the script by which playback is seen, or take it away',
  details: [
    "Writes a Lua script into Ardour's own folder of scripts. In Ardour's window it is switched on once, under",
    'Edit > Lua Scripts > Script Manager > Action Hooks, and stays on. It appends lines to a file in the folder',
    'of each session that is open; takemark capture ardour --hook follows them.',
  ],
  operands: [],
  options: {
    remove: { help: 'take the script away; switch it off in Ardour as well' },
    configuration: { value: 'directory', help: 'folder of configuration, where it is not ~/.config' },
  },
  async run(_operands, options, { terminal }) {
    const folder = options.configuration ?? join(homedir(), '.config');
    if (options.remove) terminal.print(printable(`removed ${await removeHook(folder)}`));
    else terminal.print(printable(`wrote ${await installHook(folder)}`));
    return EXIT.good;
  },
});
