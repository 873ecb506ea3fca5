import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { test } from 'tap';
import {
  AUDACITY_CHANNELS,
  followAudacity,
  ProjectFollower,
} from '../../src/agents/audacity/follow-project.js';
import { DeviceKey, openTrace } from '../../src/witness/capture/index.js';
import type { TraceEvent } from '../../src/witness/domain/trace.js';
import { replayTrace } from '../../src/witness/replay/replay-trace.js';
import { needs } from '../fixtures/tools.js';
import { chunk, fmtChunk, riff } from '../fixtures/wav.js';
import { RealAudacity } from './audacity/real-audacity.js';

const RATE = 44_100;

/** Returns noise of a seed as 16-bit WAV, so that no two cuts of it are alike. */
function noise(seconds: number, channels: number, seed: number): Buffer {
  const data = Buffer.alloc(seconds * RATE * channels * 2);
  let state = seed;
  for (let at = 0; at < data.length; at += 2) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    data.writeInt16LE((state >>> 17) - 16_384, at);
  }
  return riff([fmtChunk({ channels, sampleRate: RATE }), chunk({ id: 'data', data })]);
}

const real = { skip: needs('audacity', 'Xvfb') };

test('a session in the real Audacity fills the channels of a trace', real, async (t) => {
  const directory = t.testdir({ home: {}, originals: {}, exports: {} });
  const at = (...names: readonly string[]): string => join(directory, ...names);
  const voice = noise(3, 1, 7);
  const band = noise(2, 2, 11);
  await writeFile(at('originals', 'voice.wav'), voice);
  await writeFile(at('originals', 'band.wav'), band);
  await mkdir(at('elsewhere'));
  await writeFile(at('elsewhere', 'stranger.wav'), noise(1, 1, 13));
  const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

  const audacity = await RealAudacity.start(at('home'));
  const events: TraceEvent[] = [];
  let clock = 0;
  const project = at('p.aup3');
  const follower = new ProjectFollower({
    project,
    originals: at('originals'),
    exports: at('exports'),
    clock: () => (clock += 1000),
    write: (event) => events.push(event),
  });
  /** Runs commands, waits until the project has their events, and returns the events. */
  const witness = async (
    commands: readonly string[],
    areWritten: (events: readonly TraceEvent[]) => boolean,
  ): Promise<readonly TraceEvent[]> => {
    const from = events.length;
    for (const command of commands) await audacity.send(command);
    for (let look = 0; look < 300 && !areWritten(events.slice(from)); look += 1) {
      await follower.look();
      await pause(100);
    }
    return events.slice(from);
  };
  const has =
    (kind: TraceEvent['kind'], count = 1) =>
    (seen: readonly TraceEvent[]): boolean =>
      seen.filter((event) => event.kind === kind).length >= count;
  const ofKind = <Kind extends TraceEvent['kind']>(
    seen: readonly TraceEvent[],
    kind: Kind,
  ): readonly Extract<TraceEvent, { kind: Kind }>[] =>
    seen.filter((event): event is Extract<TraceEvent, { kind: Kind }> => event.kind === kind);

  // The agent as the command runs it, beside the follower that the test steps itself.
  const over = new AbortController();
  const trace = at('take.trace');
  const following = followAudacity({
    project,
    originals: at('originals'),
    exports: at('exports'),
    signal: over.signal,
    open: ({ startedAt, dawVersion }) =>
      openTrace({
        to: trace,
        key: DeviceKey.generate(),
        header: {
          adapter: 'audacity',
          adapterVersion: '1.0.0',
          dawVersion,
          startedAt,
          channels: AUDACITY_CHANNELS,
        },
      }),
  });
  try {
    const opened = await witness([`SaveProject2: Filename=${project}`], has('session.opened'));
    t.match(ofKind(opened, 'session.opened'), [{ sampleRate: RATE }]);
    t.match(String(follower.version), /^3\.\d+\.\d+$/);

    const imported = await witness(
      [`Import2: Filename=${at('originals', 'voice.wav')}`],
      has('clip.created'),
    );
    t.equal(ofKind(imported, 'track.added').length, 1);
    t.match(ofKind(imported, 'import.added'), [
      { manner: 'copied', originalSha256: sha256(voice), frames: 3 * RATE, channels: 1 },
    ]);
    t.match(ofKind(imported, 'clip.created'), [{ base: 'seconds', start: 0, length: 3 }]);
    t.ok(
      imported.every(
        (event) =>
          event.kind === 'session.opened' || 'since' in event || event.kind === 'sourceMap.completed',
      ),
    );

    const stereo = await witness([`Import2: Filename=${at('originals', 'band.wav')}`], has('clip.created'));
    t.match(ofKind(stereo, 'import.added'), [
      { originalSha256: sha256(band), channels: 2, frames: 2 * RATE },
    ]);

    const stranger = await witness(
      [`Import2: Filename=${at('elsewhere', 'stranger.wav')}`],
      has('clip.created'),
    );
    t.strictSame(ofKind(stranger, 'import.added'), [], 'what no original has is not called an import');
    t.match(ofKind(stranger, 'source.appeared'), [{ claims: 'nothing' }]);

    const [voiceClip] = ofKind(imported, 'clip.created');
    const split = await witness(
      ['Select: Start=1 End=2 Track=0 TrackCount=1', 'Split:'],
      has('clip.split', 2),
    );
    t.match(ofKind(split, 'clip.split'), [{ clip: voiceClip?.clip, start: 1 }, { start: 2 }]);
    t.strictSame(ofKind(split, 'clip.deleted'), []);

    const middle = ofKind(split, 'clip.split')[0]?.right;
    const removed = await witness(
      ['Select: Start=1 End=2 Track=0 TrackCount=1', 'SplitDelete:'],
      has('clip.deleted'),
    );
    t.strictSame(
      ofKind(removed, 'clip.deleted').map(({ clip }) => clip),
      [middle],
    );

    const copied = await witness(
      [
        'Select: Start=0 End=1 Track=0 TrackCount=1',
        'Copy:',
        'Select: Start=8 End=8 Track=0 TrackCount=1',
        'Paste:',
      ],
      (seen) => has('clip.copied')(seen) || has('clip.created')(seen),
    );
    const added = [...ofKind(copied, 'clip.copied'), ...ofKind(copied, 'clip.created')];
    t.equal(added.length, 1);
    t.equal(Math.round(added[0]?.start ?? 0), 8);

    // Audacity writes mixer, names and effects to the project at the next edit or at a save.
    const saved = await witness(
      [
        'SetTrackAudio: Track=0 Mute=1 Gain=-6',
        'SetTrackStatus: Track=0 Name=Lead',
        'Select: Start=0 End=1 Track=2 TrackCount=1',
        'Reverse:',
        'Save:',
      ],
      (seen) => has('session.saved')(seen) && has('source.derived')(seen),
    );
    t.strictSame(
      ofKind(saved, 'mixer.changed')
        .map(({ control }) => control)
        .sort(),
      ['gain', 'mute'],
    );
    t.match(ofKind(saved, 'track.changed'), [{ property: 'name' }]);
    t.match(ofKind(saved, 'source.derived'), [
      { from: ofKind(stranger, 'source.appeared')[0]?.source, manner: 'other' },
    ]);
    t.equal(ofKind(saved, 'clip.replaced').length, 1);
    t.ok(has('session.saved')(saved));

    const exported = await witness(
      [`Export2: Filename=${at('exports', 'mix.wav')} NumChannels=2`],
      has('export.finished'),
    );
    t.match(ofKind(exported, 'export.finished'), [
      { fileSha256: sha256(await readFile(at('exports', 'mix.wav'))), channels: 2, rerender: 'not_tried' },
    ]);

    t.equal(has('capture.gap')(events), false);

    // The trace has no event of a channel that the header does not claim.
    const channels = new Set(events.map(({ kind }) => kind.split('.')[0]));
    for (const silent of ['transport', 'midi', 'recording', 'tempo'] as const) {
      t.not(AUDACITY_CHANNELS[silent], 'supported');
      t.equal(channels.has(silent), false, `${silent} is not reported`);
    }
    over.abort();
    t.equal(await following, 'sealed');
    const { session: replayed, findings, sealed, header } = await replayTrace(() => createReadStream(trace));
    t.strictSame([findings, sealed, header.dawVersion], [[], true, follower.version]);
    t.match(replayed.counters, {
      importsAdded: { status: 'observed', value: 2 },
      exportsFinished: { status: 'observed', value: 1 },
      takesRecorded: { status: 'unknown' },
      midiNotesEntered: { status: 'unsupported' },
      tempoChanges: { status: 'unsupported' },
    });
    for (const name of ['takesRecorded', 'midiNotesEntered', 'tempoChanges', 'playbacks'] as const)
      t.notOk('value' in replayed.counters[name], `${name} is not zero`);
    t.match(
      replayed.importedSources.map(({ originalSha256 }) => originalSha256),
      [sha256(voice), sha256(band)],
    );
  } finally {
    over.abort();
    await audacity.stop();
    await following;
  }
});
