import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HOOK_SCRIPT } from './hook-script.js';

const NAME = 'takemark_witness.lua';

/** Returns Ardour 7's directory for user scripts. @param configuration the XDG configuration directory */
function scriptsIn(configuration: string): string {
  return join(configuration, 'ardour7', 'scripts');
}

/** Writes the script of the hook. @returns its path */
export async function installHook(configuration: string): Promise<string> {
  const folder = scriptsIn(configuration);
  await mkdir(folder, { recursive: true });
  const path = join(folder, NAME);
  await writeFile(path, HOOK_SCRIPT);
  return path;
}

/** Removes the script. Repeating it is harmless. @returns its path */
export async function removeHook(configuration: string): Promise<string> {
  const path = join(scriptsIn(configuration), NAME);
  await rm(path, { force: true });
  return path;
}
