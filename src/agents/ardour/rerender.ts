/**
 * The last saved state of a session, rendered by Ardour once more: an export whose samples are the same follows from
 * it. Ardour works on a copy of the session, which is removed.
 */
import { spawn } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compareWindows, digestAudio } from './audio-file.js';
import type { FinishedExport } from './exports.js';
import type { RenderedSession, Rerendered } from './follow.js';
import { namesIn } from './takes.js';

/** Time to render in; Ardour hangs now and then at the end of an export, whose file is whole by then. */
const TIME = { leastMs: 60_000, timesLength: 10 } as const;

/** Presets of Ardour's own that give WAVE at the rate of the session, by what they write; the default is for CDs. */
const PRESETS: readonly {
  readonly bits: number;
  readonly isFloat: boolean;
  readonly rate?: number;
  readonly preset: string;
}[] = [
  { bits: 16, isFloat: false, rate: 44_100, preset: '' },
  { bits: 24, isFloat: false, preset: '75969a1c-3133-4694-864b-a1fa50e43348' },
  { bits: 32, isFloat: true, preset: '75969a1c-3133-4694-864b-a1fa50e43348' },
  { bits: 16, isFloat: false, preset: '75969a1c-3133-4694-864b-a1fa50e43348' },
];

const NOT_TRIED: Rerendered = { outcome: 'not_tried' };

/** Times that one extent is rendered where Ardour aborts. */
const ATTEMPTS = 3;

const SCRIPT = `
local directory, name, out, preset, frames = arg[1], arg[2], arg[3], arg[4], tonumber(arg[5])
local engine = AudioEngine:set_backend("None (Dummy)", "", "")
local session = assert(load_session(directory, name))
local export = session:simple_export()
if preset ~= "" then assert(export:set_preset(preset)) end
export:set_name("again")
export:set_folder(out)
if frames ~= nil then export:set_range(0, frames) end
local done = export:run_export()
close_session()
if not done then os.exit(1) end
`;

/**
 * Compares an export with the session. `not_tried` where the export is of a form, or of a range, that cannot be known
 * from the folder: no length from the arrangement's start, or from that of the session's own range, gives its length.
 */
export async function rerenderArdour(
  session: RenderedSession,
  { digest, path }: FinishedExport,
): Promise<Rerendered> {
  const { bits, isFloat, rate, frames, samplesSha256 } = digest;
  if (samplesSha256 === undefined || rate === undefined || frames === undefined) return NOT_TRIED;
  const preset = PRESETS.find(
    (each) => each.bits === bits && each.isFloat === isFloat && (each.rate ?? session.sampleRate) === rate,
  );
  if (preset === undefined) return NOT_TRIED;
  const scratch = await mkdtemp(join(tmpdir(), 'takemark-render-'));
  try {
    const copy = join(scratch, 'session');
    await cp(session.directory, copy, { recursive: true, filter: (from) => from !== path });
    const script = join(scratch, 'render.lua');
    await writeFile(script, SCRIPT);
    const range = Math.round((frames * session.sampleRate) / rate);
    const limit = Math.round(TIME.leastMs + TIME.timesLength * 1000 * (frames / rate));
    for (const extent of [String(range), ''])
      for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
        const out = join(scratch, `out${extent}-${attempt}`);
        const parameters = [script, copy, session.name, out, preset.preset, extent];
        const hasAborted = await run('ardour7-lua', parameters, limit);
        // Sources that Ardour makes anew may lie beside it.
        const file = namesIn(out).find((name) => /^again\.wav$/i.test(name));
        const again = file === undefined ? undefined : await digestAudio(join(out, file));
        if (again?.samplesSha256 === samplesSha256) return { outcome: 'matched' };
        // Ardour aborts now and then in its own memory: what it renders then says nothing else, and is rendered again.
        if (hasAborted) continue;
        // A render of another length is of another range, and says nothing.
        if (file !== undefined && again?.frames === frames && extent === '')
          return { outcome: 'differed', ...(await compareWindows(path, join(out, file))) };
        break;
      }
    return NOT_TRIED;
  } catch {
    return NOT_TRIED;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** @returns true where a signal ended the program */
function run(command: string, args: readonly string[], timeout: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'ignore', timeout });
    child.once('error', reject);
    child.once('close', (code) => resolve(code === null));
  });
}
