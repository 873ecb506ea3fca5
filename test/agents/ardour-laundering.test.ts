/** Ways to make sound from outside look like a recording, in the real Ardour: each leaves its fact. */
import { join } from 'node:path';
import t from 'tap';
import { needs } from '../fixtures/tools.js';
import { forge, tone } from './ardour/forge.js';
import { reportOf } from './ardour/report.js';
import { follow, makeHome, runLua } from './ardour/studio.js';

t.test(
  'a bounce, an internal re-recording and a take that was written into the file are no recordings',
  {
    skip: needs('ardour7-lua'),
  },
  async (t) => {
    const scratch = t.testdir({ home: {} });
    const home = join(scratch, 'home');
    const directory = join(scratch, 'session');
    await makeHome(home);
    const run = async (step: string) => {
      const { code, output } = await runLua(home, 'launder.lua', [step, directory, 'session']);
      t.strictSame(code, 0, output);
    };
    // With the dummy device counted as hardware: what is not taken for a recording here never is.
    const { events } = await follow(join(scratch, 'a.trace'), { directory, countsDummy: true }, async () => {
      await run('create');
      await forge(directory, 'session', {
        file: 'loop.wav',
        samples: tone(96_000, 100),
        track: 'Sample',
        claim: 'import',
        start: 0,
      });
      await forge(directory, 'session', {
        file: 'forged-1.wav',
        samples: tone(480_000, 77),
        track: 'Again',
        claim: 'take',
        start: 20,
      });
      await run('work');
    });
    const sources = events.filter(({ kind }) =>
      /^(source\.(derived|appeared)|import|recording\.(started|finished|discarded))/.test(kind),
    );
    const placed = new Set(
      events.flatMap((event) => (event.kind === 'clip.created' ? (event.source ?? []) : [])),
    );

    const appeared = sources.flatMap((event) => (event.kind === 'source.appeared' ? [event] : []));
    t.strictSame(
      appeared.map(({ claims }) => claims).sort(),
      ['import', 'recording'],
      'what was written into the file appeared; what it claims is said to be a claim',
    );
    t.ok(appeared.every(({ source, samplesSha256 }) => placed.has(source) && samplesSha256 !== undefined));
    const loop = appeared.find(({ claims }) => claims === 'import')?.source;
    t.match(
      sources.filter(({ kind }) => kind === 'source.derived'),
      [{ manner: 'bounce', from: loop }],
      'a bounce is derived from the import, whatever the file claims of a take',
    );
    t.match(
      sources.filter(({ kind }) => kind === 'recording.started'),
      [{ input: 'internal' }],
      'one take was seen, and its input was another track',
    );
    t.strictSame(sources.filter(({ kind }) => kind === 'recording.finished').length, 1);
    t.strictSame(
      sources.filter(({ kind }) => kind === 'import.added'),
      [],
      'no import was witnessed',
    );

    const { session, placements, values } = await reportOf(join(scratch, 'a.trace'));
    t.not(session.counters.takesRecorded.status, 'observed');
    t.not(session.counters.takesRecordedInRealTime.status, 'observed');
    t.match(session.recordings, [{ input: 'internal', realTime: 'unknown' }]);
    t.strictSame(values('takes_recorded_in_real_time'), []);
    t.strictSame(
      placements.filter(({ origin }) => origin === 'recorded'),
      [],
      'nothing in the arrangement is said to be recorded',
    );
    t.strictSame(
      values('derived_material_of_unknown_origin'),
      [{ sources: 1 }],
      'the bounce: its import was not witnessed, so its source is unknown',
    );
    t.match(values('takes_from_internal_input'), [{ takes: 1, seconds: Number }], 'the re-recording');
    t.strictSame(
      values('recording_claim_not_witnessed'),
      [{ sources: 1 }],
      'the take that was written into the file',
    );
    t.strictSame(values('sources_of_unknown_origin'), [{ sources: 2 }], 'with the import, likewise');
  },
);
