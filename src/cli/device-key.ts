import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { makeDirectory } from '../core/files/make-directory.js';
import { createDeviceKey, type DeviceKey, loadDeviceKey } from '../witness/capture/index.js';

/**
 * Loads this machine's key for signing traces, or creates one.
 * @param file by default in the home directory
 */
export async function openDeviceKey(
  file = join(homedir(), '.takemark', 'device', 'trace-key.pem'),
): Promise<DeviceKey> {
  try {
    return await loadDeviceKey(file);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    await makeDirectory(dirname(file));
    return createDeviceKey(file);
  }
}
