import { TroubleError } from './command.js';
import type { Sealer } from './sealer.js';

/**
 * SUPPLIED BY COMPOSE. Opens the device in a directory, making its key (mode 0600) on first use. The one place where the
 * command line reaches past the service; loaded when it is needed, so that every other command starts without the engine.
 */
export async function openSealer(directory: string): Promise<Sealer> {
  throw new TroubleError(`this build cannot seal (device ${directory})`);
}
