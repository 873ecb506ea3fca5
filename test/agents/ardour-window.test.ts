/** Tests work in Ardour's window: an import and its placements, undo, redo, a bounce, a compound and an export. */
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { rerenderArdour } from '../../src/agents/ardour/rerender.js';
import type { TraceEvent } from '../../src/witness/domain/trace.js';
import { concludeFromDeclarations, concludeFromTrace } from '../../src/witness/report/rules.js';
import { again } from '../fixtures/again.js';
import { needs } from '../fixtures/tools.js';
import { floatWave, shortWave, tone } from './ardour/forge.js';
import { reportOf } from './ardour/report.js';
import { follow, makeHome, runLua } from './ardour/studio.js';
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

const importing = (file: string, position: number, tempo: string): string =>
  `local files = C.StringVector() files:push_back("${file}")
  Editor:do_import(files, Editing.ImportDistinctFiles, Editing.ImportAsTrack, ARDOUR.SrcQuality.SrcBest, ARDOUR.MidiTrackNameSource.SMFTrackName, ARDOUR.MidiTempoMapDisposition.${tempo}, Temporal.timepos_t(${position}), ARDOUR.PluginInfo(), ARDOUR.Track(), false)`;

/** The agent reads a save before the next one. */
const SAVE = 'Session:save_state("")';
const SETTLED = 1600;

/** Opens a session in the window, works in it, and closes it. @param work is given what saves the session */
async function inWindow(
  home: string,
  session: string,
  work: (window: Window, save: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const window = await Window.open(home, session);
  try {
    await work(window, async () => {
      await window.run(SAVE);
      await pause(SETTLED);
    });
  } finally {
    await window.close();
  }
}

/** The error for a trace without an export for which the session was rendered again. */
class NotRendered extends Error {}

t.test(
  'an import, undo, redo, a bounce, a compound and an export in the window of Ardour',
  {
    skip: needs('ardour', 'ardour7-lua', 'Xvfb'),
  },
  async (t) => {
    const scratch = t.testdir({ home: { spool: {} }, originals: {} });
    const home = join(scratch, 'home');
    await makeHome(home);
    const samples = tone(96_000, 120);
    const original = shortWave(samples);
    const originals = join(scratch, 'originals');
    await writeFile(join(originals, 'loop.wav'), original);

    let runs = 0;
    // Ardour aborts now and then in its own memory, while it exports or while it renders the session again.
    const { trace, events } = await again(
      async () => {
        runs += 1;
        const directory = join(scratch, `session-${runs}`);
        const trace = join(scratch, `a-${runs}.trace`);
        const created = await runLua(home, 'create.lua', [directory, 'session']);
        t.strictSame(created.code, 0, created.output);
        const options = { directory, originals, rerender: rerenderArdour };
        const { events } = await follow(trace, options, async () => {
          await inWindow(home, join(directory, 'session.ardour'), async (window, save) => {
            await save();
            await window.run(importing(join(originals, 'loop.wav'), 96_000, 'SMFTempoIgnore'));
            await window.run(
              `${PRELUDE} rearrange(track("loop"), function(playlist) playlist:add_region(ARDOUR.RegionFactory.clone_region(first(track("loop")), true, false), at(240000), 1, false) end)`,
            );
            await save();
            await window.run('Editor:undo(1)');
            await save();
            await window.run('Editor:redo(1)');
            await save();
            await window.run(
              `${PRELUDE} track("loop"):bounce_range(96000, 192000, ARDOUR.InterThreadInfo(), ARDOUR.LuaAPI.nil_proc(), false, "bounced")`,
            );
            await save();
            await window.run(`${PRELUDE} local chosen = ArdourUI.SelectionList()
            for region in track("loop"):playlist():region_list():iter() do chosen:push_back(Editor:regionview_from_region(region)) end
            Editor:set_selection(chosen, ArdourUI.SelectionOp.Set)
            Editor:access_action("Region", "combine-regions")`);
            await save();
          });
          // Where it aborts as it ends, the export is there all the same.
          await runLua(home, 'export-saved.lua', [directory, 'session', '336000']);
          await pause(SETTLED);
        });
        if (!events.some(({ kind }) => kind === 'export.rendered')) throw new NotRendered();
        return { trace, events };
      },
      (error) => error instanceof NotRendered,
    );

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
    const derived = events.flatMap((event) => (event.kind === 'source.derived' ? [event] : []));
    t.strictSame(
      derived.map(({ manner, from }) => [manner, from]),
      ['bounce', 'combine'].map((manner) => [manner, imports[0]?.source]),
      'a bounce and a compound are made of the import',
    );
    t.strictSame(
      events.filter(({ kind }) => /^recording\.(started|finished)/.test(kind)),
      [],
      'and nothing of it was recorded',
    );

    const { session, values } = await reportOf(trace);
    t.match(session.counters, {
      importsAdded: { status: 'observed', value: 1 },
      undoneSteps: { status: 'observed', value: 1 },
      sourcesDerived: { status: 'observed', value: 2 },
    });
    t.not(session.counters.takesRecorded.status, 'observed');
    t.strictSame(
      values('imported_material_derived'),
      [{ sources: 2 }],
      'bounce and compound are reported as imported material',
    );
    t.match(values('imports_observed'), [{ imports: 1 }]);
    for (const code of ['derived_material_of_unknown_origin', 'takes_recorded_in_real_time'])
      t.strictSame(values(code), [], code);
    t.match(session.exports.at(-1), { rerender: 'matched' });
    const declared = {
      surveyVersion: '1',
      submissionId: 'sub_1',
      subject: 'creator_1',
      submittedAt: 1,
      answers: { manualWork: 'entire' },
    } as const;
    t.match(
      [...concludeFromTrace(session.inputs), ...concludeFromDeclarations(session.inputs, [declared])],
      [
        { code: 'placements_without_recording_or_midi_entry', values: { placements: 1 } },
        { code: 'imports_cover_most_of_export', values: { importedSeconds: 5, exportSeconds: 7 } },
        { code: 'edits_only_of_imported_material' },
        { code: 'declared_manual_work_vs_witnessed_input' },
      ],
      'an agent that sees channels in part shows that the export is an import',
    );
  },
);

/** A MIDI file with two notes of one beat each, at 100 beats per minute. */
const RIFF = Buffer.from(
  '4d54686400000006000000010060 4d54726b0000001b 00ff51030927c0 00903c6460803c00 0090405a60804000 00ff2f00'.replaceAll(
    ' ',
    '',
  ),
  'hex',
);

t.test(
  'a tempo that is edited, notes that are imported at a time and their unlinking in the window of Ardour',
  {
    skip: needs('ardour', 'ardour7-lua', 'Xvfb'),
  },
  async (t) => {
    // The folder has another name than the session, as after a renaming.
    const scratch = t.testdir({
      home: { spool: {} },
      'riff.mid': RIFF,
      'loop.wav': shortWave(tone(96_000, 120)),
    });
    const home = join(scratch, 'home');
    const directory = join(scratch, 'song-final');
    await makeHome(home);
    const created = await runLua(home, 'create.lua', [directory, 'session']);
    t.strictSame(created.code, 0, created.output);
    const { events } = await follow(join(scratch, 'a.trace'), { directory }, async () => {
      await inWindow(home, join(directory, 'session.ardour'), async (window, save) => {
        await save();
        await window.run(importing(join(scratch, 'loop.wav'), 0, 'SMFTempoIgnore'));
        await window.run(importing(join(scratch, 'riff.mid'), 96_000, 'SMFTempoUse'));
        await save();
        await window.run(`${PRELUDE} local notes
        for route in Session:get_tracks():iter() do if route:to_track():to_midi_track():isnil() == false then notes = route:to_track() end end
        local chosen = ArdourUI.SelectionList() chosen:push_back(Editor:regionview_from_region(first(notes)))
        Editor:set_selection(chosen, ArdourUI.SelectionOp.Set)
        Editor:access_action("Region", "fork-region")`);
        await save();
      });
    });
    const done = events.filter(({ at, since }) => since !== at);
    const tempo = done.filter(({ kind }) => kind.startsWith('tempo.'));
    t.match(tempo, [{ kind: 'tempo.map' }, { kind: 'tempo.point', start: 0, bpm: 100 }]);
    t.ok(
      tempo.every(({ since }) => since === undefined),
      'when it happened',
    );
    const imports = done.flatMap((event) => (event.kind === 'import.added' ? [event] : []));
    t.strictSame(
      imports.map(({ manner, since }) => [manner, since]),
      [
        ['copied', undefined],
        ['midi', undefined],
      ],
    );
    const placed = done.flatMap((event) => (event.kind === 'clip.created' ? [event] : []));
    t.match(placed, [
      { source: imports[0]?.source, base: 'seconds', start: 0, length: 2 },
      { source: imports[1]?.source, base: 'beats' },
    ]);
    t.ok(Math.abs((placed[1]?.start ?? 0) - 10 / 3) < 1e-9, 'two seconds at 100 beats a minute');
    const fork = done.flatMap((event) => (event.kind === 'source.derived' ? [event] : []));
    t.match(fork, [{ manner: 'copy', from: imports[1]?.source }], 'the unlinked notes are of the import');
    t.match(
      done.filter(({ kind }) => kind === 'clip.replaced'),
      [{ clip: placed[1]?.clip, source: fork[0]?.source }],
    );
    const { session, values } = await reportOf(join(scratch, 'a.trace'));
    t.strictSame(session.counters.tempoChanges, { status: 'observed', value: 1 });
    t.strictSame(values('imported_material_derived'), [{ sources: 1 }]);
  },
);
