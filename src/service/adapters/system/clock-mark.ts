import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../../core/files/durable.js';
import type { Clock } from '../../ports/system.js';
import { SteadyClock } from './steady-clock.js';

/** The file with the latest time that a process on the data directory has seen, in milliseconds since the epoch. */
export const CLOCK_MARK_FILE = 'clock';
/**
 * The error, in milliseconds, that the clock of a machine may have until it has asked for the time. The machine may
 * have no battery, or have moved between hosts.
 */
const TOLERANCE_MS = 300_000;

/**
 * Returns the service's clock, which continues from the latest time that was seen on a data directory.
 * @throws Error if the clock is earlier than that time by more than five minutes
 */
export async function openClock(directory: string, below: Clock): Promise<SteadyClock> {
  const path = join(directory, CLOCK_MARK_FILE);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '0';
    throw error;
  });
  const mark = /^\d{1,15}\n?$/.test(text) ? Number(text) : 0;
  const behind = mark - below.now();
  if (behind > TOLERANCE_MS) {
    throw new Error(
      `the clock shows ${timeWords(below.now())}, but an earlier process with this data directory already saw ${timeWords(mark)}. With a clock that was set back, expired keys would work again. Correct the clock. If the clock of the earlier process was wrong, remove ${path}`,
    );
  }
  return new SteadyClock(below, mark);
}

/** Keeps the clock's time for the next start. Whole or not at all; durable when it resolves. */
export async function keepClockMark(directory: string, clock: Clock): Promise<void> {
  await replaceFile(join(directory, CLOCK_MARK_FILE), `${clock.now()}\n`);
}

function timeWords(milliseconds: number): string {
  return new Date(milliseconds).toISOString().slice(0, 19).replace('T', ' ').concat(' UTC');
}
