/** A session of the real Ardour that is worked on in steps, while the agent follows it. */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Test } from 'tap';
import { rerenderArdour } from '../../../src/agents/ardour/rerender.js';
import { DeviceKey } from '../../../src/witness/capture/index.js';
import { reportOf } from './report.js';
import { follow, makeHome, runLua } from './studio.js';

/** The time in milliseconds in which the agent reads a save and reports an export. */
export const SETTLED = 1600;

export interface Studio {
  readonly directory: string;
  /** Opens the session, takes these steps of work.lua, and closes it without saving. */
  readonly ardour: (...steps: readonly string[]) => Promise<void>;
}

export interface WatchOptions {
  /** The work that is done before the agent starts. */
  readonly before?: (studio: Studio) => Promise<void>;
  readonly render?: boolean;
  readonly key?: DeviceKey;
}

/** A session that was worked on, and its report. */
export interface Watched extends Awaited<ReturnType<typeof reportOf>> {
  readonly directory: string;
  readonly trace: string;
}

/** The most sessions that are played for one report. */
const MOST_SESSIONS = 3;

/**
 * Follows the work on a new session, and returns its report. Ardour aborts now and then in its own memory, also before
 * it has written the header of an export: the session is then played anew.
 */
export async function watched(
  t: Test,
  work: (studio: Studio) => Promise<void>,
  { before, render = true, key = DeviceKey.generate() }: WatchOptions = {},
): Promise<Watched> {
  const scratch = t.testdir();
  for (let played = 1; ; played += 1) {
    const folder = join(scratch, String(played));
    const home = join(folder, 'home');
    await makeHome(home);
    const directory = join(folder, 'session');
    let hasAborted = false;
    const studio: Studio = {
      directory,
      ardour: async (...steps) => {
        const { code, output } = await runLua(home, 'work.lua', [directory, 'session', ...steps]);
        if (code === null) hasAborted = true;
        else t.equal(code, steps.includes('die') ? 3 : 0, output);
        await pause(SETTLED);
      },
    };
    await before?.(studio);
    const trace = join(folder, 'a.trace');
    const options = { directory, countsDummy: true, ...(render ? { rerender: rerenderArdour } : {}) };
    await follow(trace, options, () => work(studio), key);
    if (!hasAborted || played === MOST_SESSIONS) return { directory, trace, ...(await reportOf(trace)) };
    t.comment('given up: Ardour aborted, and the session is played anew');
  }
}
