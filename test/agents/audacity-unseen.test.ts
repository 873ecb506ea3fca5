/** Ways for audio to enter an export unseen, in the real Audacity, and what the report says of each. */
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { AUDACITY_CHANNELS, ProjectFollower } from '../../src/agents/audacity/follow-project.js';
import { DeviceKey, openTrace } from '../../src/witness/capture/index.js';
import type { TraceEvent } from '../../src/witness/domain/trace.js';
import { needs } from '../fixtures/tools.js';
import { chunk, fmtChunk, riff, noise as someBytes } from '../fixtures/wav.js';
import { reportOf } from './ardour/report.js';
import { RealAudacity } from './audacity/real-audacity.js';

/** Returns some seconds of noise of one channel as 16-bit WAV. */
function noise(seconds: number, seed: number, sampleRate = 44_100): Buffer {
  const data = someBytes(seconds * sampleRate * 2, seed);
  return riff([fmtChunk({ channels: 1, sampleRate }), chunk({ id: 'data', data })]);
}

const LOOKS = 300;

t.test('ways of audio into an export of Audacity', { skip: needs('audacity', 'Xvfb') }, async (t) => {
  const directory = t.testdir({ home: {}, originals: {}, elsewhere: {} });
  const at = (...names: readonly string[]): string => join(directory, ...names);
  const voice = at('originals', 'voice.wav');
  const slow = at('originals', 'slow.wav');
  const stranger = at('elsewhere', 'stranger.wav');
  await writeFile(voice, noise(3, 7));
  await writeFile(slow, noise(3, 9, 48_000));
  await writeFile(stranger, noise(2, 13));
  const audacity = await RealAudacity.start(at('home'));
  t.teardown(() => audacity.stop());
  const send = async (...commands: readonly string[]): Promise<void> => {
    for (const command of commands) await audacity.send(command);
  };

  let followers = 0;
  /** Saves the project under a new name, and removes its tracks. Audacity asks before it saves a project that became empty. */
  const open = (path: string): Promise<void> =>
    send('NewMonoTrack:', `SaveProject2: Filename=${path}`, 'SelectAll:', 'RemoveTracks:');
  /** Starts an agent that the test steps by hand. */
  const begin = async (project: string, exports: string) => {
    const trace = at(`${(followers += 1)}.trace`);
    const events: TraceEvent[] = [];
    let clock = 0;
    const follower = new ProjectFollower({
      project,
      originals: at('originals'),
      exports,
      clock: () => (clock += 1000),
      write: (event) => events.push(event),
    });
    const until = async (kind: TraceEvent['kind'], count = 1): Promise<void> => {
      const seen = (): number => events.filter((event) => event.kind === kind).length;
      for (let look = 0; look < LOOKS && seen() < count; look += 1) {
        await follower.look();
        await pause(100);
      }
      if (seen() < count) throw new Error(`no ${kind} among ${events.map((event) => event.kind).join()}`);
    };
    /** Writes the trace, and returns its report. */
    const report = async (isSealed = true) => {
      const channels = AUDACITY_CHANNELS;
      const header = { adapter: 'audacity', adapterVersion: '1.0.0', startedAt: 1_790_000_000, channels };
      const output = await openTrace({ to: trace, key: DeviceKey.generate(), header });
      for (const event of events) output.append(event);
      await output.flush();
      if (isSealed) await output.seal();
      return { kinds: events.map(({ kind }) => kind), ...(await reportOf(trace)) };
    };
    return { until, report };
  };

  type Agent = Awaited<ReturnType<typeof begin>>;
  interface Project {
    readonly agent: Agent;
    readonly exports: string;
    /** Exports the tracks, and waits until the agent has seen the file. */
    readonly exported: () => Promise<void>;
  }

  /** Follows a new project while it is worked on. @param before work from before the agent starts */
  const session = async (
    name: string,
    work: (project: Project) => Promise<void>,
    before: readonly string[] = [],
  ) => {
    const exports = at(`exports-${name}`);
    await mkdir(exports);
    const path = at(`${name}.aup3`);
    await open(path);
    await send(...before);
    const agent = await begin(path, exports);
    await agent.until('session.opened');
    const exported = async (): Promise<void> => {
      await send(`Export2: Filename=${join(exports, 'mix.wav')} NumChannels=1`);
      await agent.until('export.finished');
    };
    await work({ agent, exports, exported });
    const report = await agent.report();
    t.ok(report.codes.includes('export_not_tied_to_session'), `${name}: not tied`);
    t.strictSame(report.reviewed, [], `${name}: no review`);
    t.comment(name, report.kinds.join(), report.codes.join());
    return report;
  };

  const imports = (file: string): string => `Import2: Filename=${file}`;

  const rate = await session('rate', async ({ exported }) => {
    await send(imports(slow));
    await exported();
  });
  t.match(rate.session.counters.importsAdded, { status: 'observed', value: 1 }, 'a file of another rate');

  const late = await session(
    'late',
    async ({ agent, exported }) => {
      await send(imports(stranger));
      await agent.until('clip.created', 2);
      await exported();
    },
    [imports(voice), 'SetTrackAudio: Track=0 Gain=-6'],
  );
  t.match(late.values('session_begun_before_agent'), [{ tracks: 1, clips: 1, sources: 1 }]);
  t.match(late.session.counters, {
    importsAdded: { status: 'unknown' },
    clipsCreated: { status: 'observed', value: 1 },
    mixerChanges: { status: 'unknown' },
  });

  const copied = await session('copied', async ({ agent, exports }) => {
    await copyFile(stranger, join(exports, 'mix.wav'));
    await agent.until('export.finished');
  });
  t.match(copied.session.counters, { exportsFinished: { value: 1 }, clipsCreated: { status: 'unknown' } });

  const [first, second] = await (async () => {
    const exports = at('exports-two');
    await mkdir(exports);
    const path = at('two.aup3');
    await open(path);
    const one = await begin(path, exports);
    await one.until('session.opened');
    await send(imports(voice));
    await one.until('import.added');
    await send(imports(stranger));
    const two = await begin(path, exports);
    await two.until('session.opened');
    return [await one.report(false), await two.report()];
  })();
  t.ok(first.codes.includes('trace_truncated'), 'an agent that was ended by a signal');
  t.match(second.values('session_begun_before_agent'), [{ clips: 2, sources: 2 }]);
  t.strictSame(second.session.counters.importsAdded, { status: 'unknown' });

  const tone = await session('tone', async ({ exported }) => {
    await send(
      'NewMonoTrack:',
      'Select: Start=0 End=2 Track=0 TrackCount=1',
      'Tone: Frequency=440 Amplitude=0.5',
      'Save:',
    );
    await exported();
  });
  t.ok(tone.codes.includes('sources_of_unknown_origin'), 'a tone that is generated');

  const cut = await session('cut', async ({ agent, exported }) => {
    await send(imports(voice));
    await agent.until('import.added');
    await send('Select: Start=1 End=2 Track=0 TrackCount=1', 'Delete:', 'Save:');
    await exported();
  });
  t.ok(cut.codes.includes('imported_material_derived'), 'a stretch that is cut out');

  const mixed = await session('mixed', async ({ agent, exported }) => {
    await send(imports(voice), imports(stranger));
    await agent.until('clip.created', 2);
    await send('SelectAll:', 'MixAndRender:', 'Save:');
    await exported();
  });
  t.ok(mixed.codes.includes('sources_of_unknown_origin'), 'Mix and Render');

  const elsewhere = await session('elsewhere', async ({ exported }) => {
    await send('NewMonoTrack:', `SaveProject2: Filename=${at('other.aup3')}`, imports(stranger));
    await exported();
  });
  t.ok(elsewhere.codes.includes('sources_of_unknown_origin'), 'work after Save Project As');

  const other = await session('tracks', async ({ exported }) => {
    await send('NewTimeTrack:', imports(voice));
    await exported();
  });
  t.ok(other.codes.includes('channel_unsupported'), 'a time track');
  t.strictSame(other.session.counters.tempoChanges, { status: 'unsupported' });
});
