/** Ardour's window on a display of its own, driven by Lua that it runs itself. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ended, homeEnvironment, makeHome, runLua } from './studio.js';

const CONFIG = `<?xml version="1.0" encoding="UTF-8"?>
<Ardour>
  <Config>
    <Option name="try-autostart-engine" value="1"/><Option name="hide-dummy-backend" value="0"/>
    <Option name="save-history" value="1"/><Option name="history-depth" value="5000"/><Option name="save-history-depth" value="5000"/>
  </Config>
  <Extra><AudioMIDISetup><EngineStates>
    <State backend="None (Dummy)" driver="Normal Speed" device="Silence" input-device="" output-device="" sample-rate="48000" buffer-size="1024" n-periods="0" input-latency="0" output-latency="0" lm-input="" lm-output="" active="1" use-buffered-io="0" midi-option="1 in, 1 out, Silence" lru="1795363812"><MIDIDevices/></State>
  </EngineStates></AudioMIDISetup></Extra>
</Ardour>
`;

/** Seconds within which a window that is slow to come, and a command, have to answer. */
const PATIENCE = 60;

export class Window {
  readonly #display: ChildProcess;
  readonly #program: ChildProcess;
  readonly #ended: Promise<{ code: number | null; output: string }>;
  readonly #spool: string;
  #turn = 0;

  private constructor(display: ChildProcess, program: ChildProcess, spool: string) {
    this.#display = display;
    this.#program = program;
    this.#ended = ended(program);
    this.#spool = spool;
  }

  /**
   * Opens a session.
   * @param home folder with a `spool` in it
   * @param hook script that is switched on as a hook
   */
  static async open(home: string, session: string, hook?: string): Promise<Window> {
    await makeHome(home);
    const spool = join(home, 'spool');
    await writeFile(join(home, 'config/ardour7/config'), CONFIG);
    await writeFile(join(home, 'config/ardour7/.a7'), '');
    const hooks = await runLua(home, 'remote.lua', [
      join(home, 'config/ardour7/ui_scripts'),
      spool,
      ...(hook === undefined ? [] : [hook]),
    ]);
    if (hooks.code !== 0) throw new Error(hooks.output);
    // Devices that are named here and are not those of the configuration make Ardour ask.
    await writeFile(session, (await readFile(session, 'utf8')).replace(/<EngineHints[^>]*\/>/, ''));
    const display = spawn('Xvfb', ['-displayfd', '3', '-screen', '0', '1280x800x24', '-nolisten', 'tcp'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    });
    const number = await new Promise<string>((resolve, reject) => {
      display.once('error', reject);
      display.stdio[3]?.once('data', (text: Buffer) => resolve(text.toString().trim()));
    });
    const program = spawn('ardour', ['-n', '-a', '-O', session], {
      env: {
        ...homeEnvironment(home),
        DISPLAY: `:${number}`,
        ARDOUR_TRY_AUTOSTART_ENGINE: '1',
        NO_AT_BRIDGE: '1',
        GTK_MODULES: '',
      },
      detached: true,
    });
    const window = new Window(display, program, spool);
    try {
      await window.run('return 1');
    } catch (error) {
      await window.close();
      throw error;
    }
    return window;
  }

  /** Runs Lua inside the program. @returns what it returns */
  async run(lua: string): Promise<string> {
    this.#turn += 1;
    const path = join(this.#spool, String(this.#turn));
    await writeFile(`${path}.new`, lua);
    await rename(`${path}.new`, `${path}.lua`);
    for (let tries = 0; tries < PATIENCE * 10; tries += 1) {
      await pause(100);
      const answer = await readFile(`${path}.out`, 'utf8').catch(() => undefined);
      if (answer?.startsWith('done ')) return answer.slice('done '.length);
      if (answer !== undefined) throw new Error(answer);
      if (this.#program.exitCode !== null) throw new Error((await this.#ended).output);
    }
    throw new Error('the window does not answer');
  }

  /** Ends the program and its display. */
  async close(): Promise<void> {
    // It is a shell script that starts the program: both are one group.
    if (this.#program.pid !== undefined && this.#program.exitCode === null)
      try {
        process.kill(-this.#program.pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    await this.#ended.catch(() => undefined);
    this.#display.kill();
  }
}
