/**
 * The last saved state of a session, rendered by Ardour once more: an export whose samples are the same follows from
 * it. Ardour works on a copy of the session, which is removed.
 */
import { spawn } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AudioDigest, compareWindows, digestAudio } from './audio-file.js';
import type { FinishedExport } from './exports.js';
import type { RenderedSession, Rerendered } from './follow.js';
import { namesIn } from './takes.js';

/** The time limit of a render. Ardour sometimes hangs at the end of an export, when the file is already whole. */
const TIME = { leastMs: 60_000, timesLength: 10 } as const;

/** The presets of Ardour for WAVE at the rate of the session, by what they write. The default preset is for CDs. */
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

/**
 * States of a session that is rendered. Ardour fades each track in for 0.1 s when an export starts, except tracks that
 * were armed since the session was loaded. Reverbs carry the difference on.
 */
const STATES = ['armed', 'loaded'] as const;

/** The most attempts to render one extent if Ardour aborts. */
const ATTEMPTS = 3;

const SCRIPT = `
local directory, name, out, preset, frames, times = arg[1], arg[2], arg[3], arg[4], tonumber(arg[5]), tonumber(arg[6])
local engine = AudioEngine:set_backend("None (Dummy)", "", "")
local session = assert(load_session(directory, name))
local function arm(value)
  for at = 7, #arg do
    local route = session:route_by_name(arg[at])
    if not route:isnil() and not route:to_track():isnil() then
      route:to_track():rec_enable_control():set_value(value, PBD.GroupControlDisposition.NoGroup)
    end
  end
  if #arg >= 7 then sleep(0.5) end
end
arm(1)
arm(0)
local done = true
for time = 1, times do
  local export = session:simple_export()
  if preset ~= "" then assert(export:set_preset(preset)) end
  export:set_name("again" .. time)
  export:set_folder(out)
  if frames ~= nil then export:set_range(0, frames) end
  done = done and export:run_export()
  -- The header of the file is written when the export is collected.
  export = nil
  collectgarbage()
end
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
    // The dither of 16 bits continues from one export of a process to the next, so earlier exports come first.
    const times = bits === 16 ? 1 + session.exportsBefore : 1;
    const limit = Math.round(TIME.leastMs + TIME.timesLength * 1000 * (frames / rate) * times);
    /** Renders, and returns the first render that is equal to the export. Otherwise returns the last render. */
    const render = async (
      name: string,
      extent: string,
      armed: readonly string[],
    ): Promise<Render | undefined> => {
      for (let attempt = 1; attempt <= ATTEMPTS && Date.now() < session.deadline; attempt += 1) {
        const out = join(scratch, `out-${name}-${attempt}`);
        const parameters = [copy, session.name, out, preset.preset, extent, String(times), ...armed];
        const hasAborted = await run('ardour7-lua', [script, ...parameters], limit);
        let last: Render | undefined;
        // Sources that Ardour makes anew may be beside the renders.
        for (const file of namesIn(out)
          .filter((each) => /^again\d+\.wav$/i.test(each))
          .toSorted()) {
          last = { path: join(out, file), digest: await digestAudio(join(out, file)) };
          if (last.digest.samplesSha256 === samplesSha256) return last;
        }
        // Ardour aborts now and then in its own memory. What it renders then counts only if it is equal.
        if (!hasAborted) return last;
      }
      return undefined;
    };
    let differed: Rerendered | undefined;
    for (const state of STATES) {
      if (state === 'armed' && session.armed.length === 0) continue;
      for (const extent of [String(range), '']) {
        const rendered = await render(`${state}${extent}`, extent, state === 'armed' ? session.armed : []);
        if (rendered?.digest.samplesSha256 === samplesSha256) return { outcome: 'matched' };
        // A render of another length is of another range, and says nothing.
        if (rendered?.digest.frames !== frames || extent !== '') continue;
        const compared = { outcome: 'differed', ...(await compareWindows(path, rendered.path)) } as const;
        if ((compared.equalWindows ?? 0) >= (differed?.equalWindows ?? 0)) differed = compared;
      }
    }
    return differed ?? NOT_TRIED;
  } catch {
    return NOT_TRIED;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

interface Render {
  readonly path: string;
  readonly digest: AudioDigest;
}

/** @returns true where a signal ended the program */
function run(command: string, args: readonly string[], timeout: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'ignore', timeout });
    child.once('error', reject);
    child.once('close', (code) => resolve(code === null));
  });
}
