/** What needs Ardour's window: an import and its placements, undo and redo, a compound of regions. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import type { TraceEvent } from '../../src/domain/trace.js';
import { replayTrace } from '../../src/evidence/replay/replay-trace.js';
import { floatWave, shortWave, tone } from './ardour/forge.js';
import { follow, lacks, makeHome, runLua } from './ardour/studio.js';
import { Window } from './ardour/window.js';

const PRELUDE = `
local at = Temporal.timepos_t
local function track(name) for route in Session:get_tracks():iter() do if route:name() == name then return route:to_track() end end end
local function first(of) for region in of:playlist():region_list():iter() do return region end end
local function rearrange(of, change)
  local playlist = of:playlist()
  Session:begin_reversible_command("edit") playlist:to_stateful():clear_changes()
  change(playlist)
  Session:add_stateful_diff_command(playlist:to_statefuldestructible()) Session:commit_reversible_command(nil)
end
`;

/** The agent reads a save before the next one. */
const SAVE = 'Session:save_state("")';
const SETTLED = 1600;

t.test(
  'an import, undo, redo and a compound in the window of Ardour',
  {
    skip: lacks('ardour', 'ardour7-lua', 'Xvfb'),
  },
  async (t) => {
    const scratch = t.testdir({ home: { spool: {} }, originals: {} });
    const home = join(scratch, 'home');
    const directory = join(scratch, 'session');
    await makeHome(home);
    const samples = tone(96_000, 120);
    const original = shortWave(samples);
    const originals = join(scratch, 'originals');
    await writeFile(join(originals, 'loop.wav'), original);
    const created = await runLua(home, 'create.lua', [directory, 'session']);
    t.strictSame(created.code, 0, created.output);

    const { events } = await follow(join(scratch, 'a.trace'), { directory, originals }, async () => {
      const window = await Window.open(home, join(directory, 'session.ardour'));
      const save = async () => {
        await window.run(SAVE);
        await pause(SETTLED);
      };
      try {
        await save();
        await window.run(`local files = C.StringVector() files:push_back("${join(originals, 'loop.wav')}")
        Editor:do_import(files, Editing.ImportDistinctFiles, Editing.ImportAsTrack, ARDOUR.SrcQuality.SrcBest, ARDOUR.MidiTrackNameSource.SMFTrackName, ARDOUR.MidiTempoMapDisposition.SMFTempoIgnore, Temporal.timepos_t(96000), ARDOUR.PluginInfo(), ARDOUR.Track(), false)`);
        await window.run(
          `${PRELUDE} rearrange(track("loop"), function(playlist) playlist:add_region(ARDOUR.RegionFactory.clone_region(first(track("loop")), true, false), at(240000), 1, false) end)`,
        );
        await save();
        await window.run('Editor:undo(1)');
        await save();
        await window.run('Editor:redo(1)');
        await save();
        await window.run(`${PRELUDE} local chosen = ArdourUI.SelectionList()
        for region in track("loop"):playlist():region_list():iter() do chosen:push_back(Editor:regionview_from_region(region)) end
        Editor:set_selection(chosen, ArdourUI.SelectionOp.Set)
        Editor:access_action("Region", "combine-regions")`);
        await save();
      } finally {
        await window.close();
      }
    });

    const samplesSha256 = createHash('sha256').update(floatWave(samples).subarray(44)).digest('hex');
    const originalSha256 = createHash('sha256').update(original).digest('hex');
    const imports = events.flatMap((event) => (event.kind === 'import.added' ? [event] : []));
    t.match(
      imports,
      [{ manner: 'copied', samplesSha256, originalSha256, frames: 96_000, rate: 48_000, channels: 1 }],
      'an import is bound to the samples of its original',
    );
    const is = (kind: TraceEvent['kind']) =>
      events.filter((event) => event.kind === kind && event.since !== event.at);
    t.match(
      is('clip.created')[0],
      { source: imports[0]?.source, start: 2, length: 2 },
      'where it was placed',
    );
    t.match(is('clip.copied')[0], { start: 5 }, 'and where again');
    t.match(is('session.undone'), [{ steps: 1 }]);
    t.match(is('session.redone'), [{ steps: 1 }]);
    const compound = events.flatMap((event) => (event.kind === 'source.derived' ? [event] : []));
    t.match(compound, [{ manner: 'combine', from: imports[0]?.source }], 'a compound is made of the import');
    t.strictSame(
      events.filter(({ kind }) => /^recording\.(started|finished)/.test(kind)),
      [],
      'and nothing of it was recorded',
    );

    const { session } = await replayTrace(() => createReadStream(join(scratch, 'a.trace')));
    t.match(session.counters, {
      importsAdded: { status: 'observed', value: 1 },
      undoneSteps: { status: 'observed', value: 1 },
      sourcesDerived: { status: 'observed', value: 1 },
    });
    t.not(session.counters.takesRecorded.status, 'observed');
    t.match(session.sources, { derivedOfImports: 1 }, 'the compound is known to be of an import');
  },
);
