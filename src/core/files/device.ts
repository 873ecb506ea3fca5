import { stat } from 'node:fs/promises';

/** Reports whether two existing files or directories are on one device. */
export async function isOneDevice(one: string, other: string): Promise<boolean> {
  const [first, second] = await Promise.all([stat(one), stat(other)]);
  return first.dev === second.dev;
}
