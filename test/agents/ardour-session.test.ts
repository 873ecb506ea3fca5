/** A whole session in the real Ardour, without a window, held against what its script says that it did. */
import { createReadStream } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { digestAudio } from '../../src/agents/ardour/audio-file.js';
import { rerenderArdour } from '../../src/agents/ardour/rerender.js';
import { DeviceKey } from '../../src/witness/capture/index.js';
import type { Channel, TraceEvent } from '../../src/witness/domain/trace.js';
import { replayTrace } from '../../src/witness/replay/replay-trace.js';
import { again } from '../fixtures/again.js';
import { collect, TestService } from '../fixtures/service.js';
import { needs } from '../fixtures/tools.js';
import { growthOf, isTruePace } from './ardour/growth.js';
import { type Ended, type Followed, follow, makeHome, runLua } from './ardour/studio.js';

interface Act {
  readonly op: string;
  readonly start?: number;
  readonly length?: number;
  readonly bpm?: number;
  readonly kind?: string;
  readonly added?: number;
  readonly points?: number;
}

type Precision = 'exact' | 'interval';
type Kind = TraceEvent['kind'];

interface Expectation {
  readonly channel: Channel;
  readonly kind?: Kind;
  /** Absent where the act is missed. */
  readonly precision?: Precision;
  readonly values?: Readonly<Record<string, unknown>>;
}

const seconds = (samples: number): number => samples / 48_000;

/** Returns what the trace should have of an act. */
function expected({ op, start = 0, length = 0, bpm, kind, added, points }: Act): Expectation {
  const exact = (channel: Channel, event: Kind, values = {}): Expectation => ({
    channel,
    kind: event,
    precision: 'exact',
    values,
  });
  const interval = (channel: Channel, event: Kind, values = {}): Expectation => ({
    channel,
    kind: event,
    precision: 'interval',
    values,
  });
  switch (op) {
    case 'session.save':
      return exact('session', 'session.saved');
    case 'tempo.set':
      // The second of two tempos between the same saves is kept; the first one leaves nothing.
      return bpm === 111 ? { channel: 'tempo' } : interval('tempo', 'tempo.point', { bpm });
    case 'track.add':
      return interval('tracks', 'track.added', { type: kind });
    case 'track.rename':
      return interval('tracks', 'track.changed', { property: 'name' });
    case 'record.start':
      return exact('recording', 'recording.started', { input: 'hardware' });
    case 'record.stop':
      return exact('recording', 'recording.finished');
    case 'clip.trim':
      return exact('clips', 'clip.trimmed', { start: seconds(start), length: seconds(length) });
    case 'clip.split':
      return exact('clips', 'clip.split', { start: seconds(start) });
    case 'clip.move':
      return exact('clips', 'clip.moved', { start: seconds(start) });
    case 'clip.copy':
      return exact('clips', 'clip.copied', { start: seconds(start) });
    case 'clip.delete':
      return exact('clips', 'clip.deleted');
    case 'clip.gain':
      return exact('clips', 'clip.changed', { property: 'gain' });
    case 'clip.rename':
      return exact('clips', 'clip.changed', { property: 'name' });
    case 'clip.stretch':
      return exact('clips', 'clip.replaced');
    case 'clip.bounce':
      return interval('sourceMap', 'source.derived', { manner: 'bounce' });
    case 'clip.copy.unlogged':
    case 'clip.delete.unlogged':
      return { channel: 'clips' };
    case 'mixer.gain':
    case 'mixer.pan':
    case 'mixer.mute':
      return interval('mixer', 'mixer.changed', { control: op.slice('mixer.'.length) });
    case 'mixer.solo':
      return { channel: 'mixer' };
    case 'transport.play':
    case 'transport.stop':
      return { channel: 'transport' };
    case 'plugin.add':
      return interval('plugins', 'plugin.added');
    case 'plugin.param':
      return interval('plugins', 'plugin.changed', { property: 'parameter' });
    case 'plugin.bypass':
      return interval('plugins', 'plugin.changed', { property: 'bypass' });
    case 'plugin.add.short':
    case 'plugin.remove.short':
      return { channel: 'plugins' };
    case 'automation.points':
      return exact('automation', 'automation.edited', { added: points, removed: 0, changed: 0 });
    case 'automation.mode':
      return interval('automation', 'automation.mode', { mode: 'play' });
    case 'midi.notes':
      return exact('midi', 'midi.edited', { added });
    case 'marker.add':
      return interval('session', 'marker.changed', { act: 'added' });
    case 'export':
      return { channel: 'export', kind: 'export.finished' };
    default:
      throw new Error(`an act without an expectation: ${op}`);
  }
}

function isSeen({ kind, precision, values = {} }: Expectation, event: TraceEvent): boolean {
  if (event.kind !== kind || event.since === event.at) return false;
  if (precision !== undefined && (event.since === undefined) !== (precision === 'exact')) return false;
  const fields: Readonly<Record<string, unknown>> = { ...event };
  return Object.entries(values).every(([name, value]) =>
    typeof value === 'number' ? Math.abs(Number(fields[name]) - value) < 1e-6 : fields[name] === value,
  );
}

/** The error for a run of Ardour that a signal ended. */
class Aborted extends Error {}

t.test(
  'a session in Ardour is written event by event, and what was missed is in a channel that says so',
  {
    skip: needs('ardour7-lua'),
  },
  async (t) => {
    const scratch = t.testdir({ home: {} });
    const home = join(scratch, 'home');
    await makeHome(home);
    const key = DeviceKey.generate();
    let runs = 0;
    // Ardour aborts now and then in its own memory (`free(): invalid pointer`): such a session is played anew.
    const { directory, trace, truth, exit, header, events, findings } = await again(
      async () => {
        const run = join(scratch, `run-${String((runs += 1))}`);
        await mkdir(run);
        const [directory, trace, truth] = ['session', 'take.trace', 'truth.jsonl'].map((name) =>
          join(run, name),
        ) as [string, string, string];
        let exit: Ended | undefined;
        const followed: Followed = await follow(
          trace,
          { directory, countsDummy: true, rerender: rerenderArdour },
          async () => {
            exit = await runLua(home, 'scenario.lua', [directory, 'session', truth]);
            if (exit.code === null) throw new Aborted(exit.output.slice(-200));
          },
          key,
        );
        return { directory, trace, truth, exit, ...followed };
      },
      (error) => error instanceof Aborted,
    );
    t.strictSame(exit?.code, 0, exit?.output ?? 'the script ran');
    t.strictSame(findings, [{ code: 'trace_simulated' }], 'a trial says that it is one');
    t.strictSame(header.dawVersion, '7.3.0');

    const acts = (await readFile(truth, 'utf8'))
      .trim()
      .split('\n')
      .map((line): Act => JSON.parse(line) as Act);
    const used = new Set<TraceEvent>();
    const missed: Record<string, string[]> = {};
    for (const act of acts) {
      const expectation = expected(act);
      const event = events.find((each) => !used.has(each) && isSeen(expectation, each));
      if (event !== undefined) used.add(event);
      if (event === undefined) (missed[expectation.channel] ??= []).push(act.op);
    }
    t.strictSame(missed, {
      clips: ['clip.copy.unlogged', 'clip.delete.unlogged'],
      mixer: ['mixer.gain', 'mixer.solo', 'mixer.solo'],
      tempo: ['tempo.set'],
      transport: ['transport.play', 'transport.stop'],
      plugins: ['plugin.add.short', 'plugin.remove.short'],
    });
    for (const channel of Object.keys(missed) as Channel[])
      t.not(header.channels[channel], 'supported', `${channel} does not claim to see every act`);

    // What the trace reports of clips, takes and exports beyond the script's acts would be invented.
    const extra = events.filter(
      (event) =>
        !used.has(event) &&
        event.since === undefined &&
        !/^(session|sourceMap|recording\.grew|export\.rendered)/.test(event.kind),
    );
    t.strictSame(
      extra.map(({ kind }) => kind).sort(),
      ['clip.created', 'clip.created', 'clip.trimmed', 'midi.recorded'],
      'the clips of the two takes, the length of the stretched clip, the take of notes',
    );
    const take = events.find((event) => event.kind === 'recording.finished');
    const notes = events.find((event) => event.kind === 'midi.recorded');
    t.match(notes, { notes: 2 });
    const file = await digestAudio(join(directory, 'interchange/session/audiofiles/Take1_Vox-1.wav'));
    t.match(take, { samplesSha256: file.samplesSha256, frames: file.frames, rate: 48_000 });
    const grown = events.flatMap((event) => (event.kind === 'recording.grew' ? event.frames : []));
    t.ok(grown.length >= 3 && grown.at(-1) === file.frames, 'a take is seen to grow, to its last sample');
    const mix = await digestAudio(join(directory, 'export/mix.wav'));
    t.match(
      events.filter(({ kind }) => kind === 'export.finished'),
      [
        {
          fileSha256: mix.fileSha256,
          samplesSha256: mix.samplesSha256,
          frames: 96_000,
          channels: 2,
          rerender: 'not_tried',
        },
      ],
    );
    t.match(
      events.filter(({ kind }) => kind === 'export.rendered'),
      [{ fileSha256: mix.fileSha256, outcome: 'matched' }],
      'the export is what the session renders',
    );

    const { session } = await replayTrace(() => createReadStream(trace));
    const done = (op: RegExp) => ({
      status: 'observed',
      value: acts.filter((act) => op.test(act.op)).length,
    });
    t.match(
      session.counters,
      {
        saves: done(/^session\.save$/),
        playbacks: { status: 'unsupported' },
        tracksAdded: done(/^track\.add$/),
        clipsMoved: done(/^clip\.move$/),
        clipsSplit: done(/^clip\.split$/),
        clipsCopied: done(/^clip\.copy$/),
        clipsDeleted: done(/^clip\.delete$/),
        midiNotesEntered: { status: 'observed', value: 2 },
        midiNotesRecorded: { status: 'observed', value: 2 },
        takesRecorded: done(/^record\.start$/),
        automationEdits: { status: 'observed', value: 2 },
        exportsFinished: done(/^export$/),
        importsAdded: { status: 'unknown' },
      },
      'a report counts what the script did',
    );
    t.notOk('value' in session.counters.playbacks, 'what is not watched is no zero');
    // The steps show whether the machine was too busy for the device to keep time; ardour-takes.test.ts insists.
    const growth = growthOf(events, take?.kind === 'recording.finished' ? take.take : 0, 48_000);
    const realTime = isTruePace(growth) ? 'observed' : 'unknown';
    t.comment(`the take is ${realTime} at ${growth.whole.toFixed(2)} of the rate`);
    t.match(session.recordings, [{ input: 'hardware', realTime, growthSteps: grown.length }]);
    t.equal(session.counters.takesRecordedInRealTime.status, realTime);
    t.match(session.exports.at(-1), { fileSha256: mix.fileSha256, rerender: 'matched' });

    // The export is issued with the trace, and a verifier reads the same.
    const service = await TestService.start({ TAKEMARK_ENVIRONMENT: 'beta' });
    t.teardown(() => service.stop());
    const { operator } = service.service.operations;
    await operator.enrolDevice({ deviceId: key.deviceId });
    const { partnerId, caller } = await service.partner();
    const { proofId } = await operator.issueProof({
      partnerId,
      songTitle: 'Mix',
      fileName: 'mix.wav',
      carrier: 'embedded',
      audio: createReadStream(join(directory, 'export/mix.wav')),
      evidence: { trace: createReadStream(trace) },
    });
    const issued = await collect(await (await operator.readAsset(proofId, 'audio')).read());
    const { verdict, evidenceReport } = await service.verify(caller, issued);
    t.equal(verdict, 'valid');
    const evidence = evidenceReport?.session?.evidence;
    t.strictSame(evidence?.counters, session.counters, 'a report has what the script did');
    t.strictSame(evidence?.coverage, session.coverage);
    t.match(evidence?.export, { fileSha256: mix.fileSha256, issuedAudio: 'matches', rerender: 'matched' });
    t.match(evidence?.device, { standing: 'enrolled' });
  },
);
