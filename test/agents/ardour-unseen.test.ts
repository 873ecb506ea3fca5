/** Ways for audio to enter an export out of the agent's sight, in the real Ardour, and what the report says of each. */
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { needs } from '../fixtures/tools.js';
import { floatWave, tone } from './ardour/forge.js';
import { SETTLED, watched } from './ardour/watched.js';

const skip = needs('ardour7-lua');
const NOT_TIED = 'export_not_tied_to_session';

/** Returns the path of the first audio file of a session. */
async function takeOf(directory: string): Promise<string> {
  const folder = join(directory, 'interchange/session/audiofiles');
  const [file] = (await readdir(folder)).filter((name) => name.endsWith('.wav'));
  return join(folder, file!);
}

t.test('an honest export is equal but for a fade at its start, and trim is reported', { skip }, async (t) => {
  const { values, session } = await watched(t, ({ ardour }) =>
    ardour('trim', 'save', 'take', 'save', 'export'),
  );
  t.match(session.counters, { takesRecorded: { value: 1 }, mixerChanges: { status: 'observed' } });
  for (const compared of values('export_rerender_differs'))
    t.ok(Number(compared?.['equal']) >= Number(compared?.['compared']) - 2, JSON.stringify(compared));
});

t.test('work under a snapshot is a gap, and no take is zero', { skip }, async (t) => {
  const { codes, session } = await watched(t, ({ ardour }) => ardour('switch', 'take', 'save', 'export'));
  t.strictSame(session.counters.takesRecorded, { status: 'unknown' });
  for (const code of ['channel_gaps', NOT_TIED]) t.ok(codes.includes(code), code);
});

t.test('a take, and then work under a snapshot that is exported', { skip }, async (t) => {
  const { codes, session } = await watched(t, ({ ardour }) =>
    ardour('take', 'save', 'switch', 'rearrange', 'save', 'export'),
  );
  t.match(session.counters.takesRecorded, { value: 1 });
  for (const code of ['channel_gaps', NOT_TIED]) t.ok(codes.includes(code), code);
});

t.test('unsaved work that is exported is not tied', { skip }, async (t) => {
  for (const render of [true, false]) {
    const { codes } = await watched(
      t,
      async ({ ardour }) => {
        await ardour('take', 'save');
        await ardour('rearrange', 'export');
      },
      { render },
    );
    t.ok(codes.includes(NOT_TIED));
  }
});

t.test('a file of a take that another program replaced ties no export', { skip }, async (t) => {
  const { codes, values } = await watched(t, async ({ directory, ardour }) => {
    await ardour('take', 'save');
    const path = await takeOf(directory);
    const { length } = await readFile(path);
    await writeFile(path, floatWave(tone(Math.floor((length - 400) / 4), 50)));
    await ardour('export');
  });
  t.ok(codes.includes(NOT_TIED));
  t.match(values('sources_rewritten_out_of_sight'), [{ sources: 1 }]);
});

t.test('a file that another program puts into the session makes takes unknown', { skip }, async (t) => {
  const { session } = await watched(t, async ({ directory, ardour }) => {
    await ardour('save');
    const folder = join(directory, 'interchange/session/audiofiles');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'stranger.wav'), floatWave(tone(48_000, 90)));
    await pause(SETTLED);
  });
  t.strictSame(session.counters.takesRecorded, { status: 'unknown' });
});

t.test('a file that somebody copies into the exports is not tied', { skip }, async (t) => {
  const { codes } = await watched(t, async ({ directory, ardour }) => {
    await ardour('take', 'save');
    await mkdir(join(directory, 'export'), { recursive: true });
    await copyFile(await takeOf(directory), join(directory, 'export/mix.wav'));
    await pause(2 * SETTLED);
  });
  t.ok(codes.includes(NOT_TIED));
});

t.test('an instrument may add sound, and a render with it asks for no review', { skip }, async (t) => {
  const { codes } = await watched(t, ({ ardour }) => ardour('synth', 'reverb', 'take', 'save', 'export'));
  t.ok(codes.includes('plugins_may_add_sound'));
  t.comment(codes.filter((code) => code.startsWith('export')).join());
});

t.test('a take that Ardour never ended is reported', { skip }, async (t) => {
  const { codes, session } = await watched(t, ({ ardour }) => ardour('die'));
  t.ok(codes.includes('takes_not_finished'));
  t.not(session.counters.takesRecorded.status, 'not_observed');
});

t.test('an agent that comes late finds a session that had begun', { skip }, async (t) => {
  const { codes, values, session } = await watched(t, ({ ardour }) => ardour('rearrange', 'save', 'export'), {
    before: ({ ardour }) => ardour('take', 'save'),
  });
  t.match(values('session_begun_before_agent'), [{ clips: 1, sources: 1 }]);
  t.strictSame(values('channel_gaps'), []);
  t.strictSame(session.counters.takesRecorded, { status: 'unknown' });
  t.notOk(codes.includes('takes_recorded_in_real_time'));
});
