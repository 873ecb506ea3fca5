import t from 'tap';
import { ARDOUR_CHANNELS } from '../../src/agents/ardour/follow.js';
import { observedProduction } from '../../src/domain/observed-production.js';
import type { Channel, ChannelSupport, TraceEvent } from '../../src/domain/trace.js';
import { writeProcessNote } from '../../src/evidence/process-note.js';
import { ALL_SUPPORTED } from '../capture/write-trace.js';
import { EXPORTED, factsOf, reportOf, sessionOf } from './sessions.js';

const NOT_TIED = 'export_not_tied_to_session';
const TRACK: TraceEvent = { kind: 'track.added', at: 0, track: 1, type: 'audio' };
const IMPORT: TraceEvent = { kind: 'import.added', at: 1, source: 1, manner: 'copied' };
const CLIP: TraceEvent = {
  kind: 'clip.created',
  at: 2,
  clip: 1,
  track: 1,
  source: 1,
  base: 'seconds',
  start: 0,
  length: 60,
};
const MOVED: TraceEvent = { kind: 'clip.moved', at: 4, clip: 1, track: 1, start: 1 };
const read = (clips: number): TraceEvent => ({ kind: 'sourceMap.completed', at: 3, sources: 1, clips });
const exported = (rerender: 'matched' | 'differed' | 'not_tried'): TraceEvent => ({
  kind: 'export.finished',
  at: 5,
  fileSha256: EXPORTED,
  frames: 60,
  rate: 1,
  rerender,
});
const gap = (scope: Channel): TraceEvent => ({
  kind: 'capture.gap',
  at: 4,
  since: 3,
  scope,
  reason: 'unreadable',
});

/** Sessions of one placed import, with whether their export is tied. */
const SESSIONS: Readonly<
  Record<string, readonly [Readonly<Record<Channel, ChannelSupport>>, readonly TraceEvent[], boolean]>
> = {
  'every change was watched': [ALL_SUPPORTED, [exported('not_tried')], true],
  'every change was watched, and rendering again gave other audio': [
    ALL_SUPPORTED,
    [exported('differed')],
    false,
  ],
  'clips were out of sight': [ALL_SUPPORTED, [gap('clips'), exported('not_tried')], false],
  'sources were out of sight': [ALL_SUPPORTED, [gap('sourceMap'), exported('not_tried')], false],
  'playback was out of sight': [ALL_SUPPORTED, [gap('transport'), exported('not_tried')], true],
  'the state that was read gave the same audio': [ARDOUR_CHANNELS, [read(1), exported('matched')], true],
  'the state was read, and not rendered again': [ARDOUR_CHANNELS, [read(1), exported('not_tried')], false],
  'equal states were read before and after the export': [
    ARDOUR_CHANNELS,
    [read(1), exported('not_tried'), read(1)],
    false,
  ],
  'the state gave other audio': [ARDOUR_CHANNELS, [read(1), exported('differed')], false],
  'a change followed the state that was read': [
    ARDOUR_CHANNELS,
    [read(1), MOVED, exported('matched')],
    false,
  ],
  'the state that was read has clips that nobody reported': [
    ARDOUR_CHANNELS,
    [read(2), exported('matched')],
    false,
  ],
};

t.test('an export is tied only when it was shown to follow from the session', async (t) => {
  for (const [name, [channels, events, isTied]] of Object.entries(SESSIONS)) {
    const facts = factsOf(sessionOf([TRACK, IMPORT, CLIP, ...events], channels));
    const gaps = facts.facts.filter(({ code }) => code === NOT_TIED);
    t.strictSame(
      gaps,
      isTied ? [] : [{ code: NOT_TIED, contentClass: 'unverifiable_coverage_gap', status: 'unverifiable' }],
      name,
    );
    const { importedSeconds, exportSeconds } = facts.inputs;
    t.strictSame(
      { importedSeconds, exportSeconds },
      isTied
        ? { importedSeconds: 60, exportSeconds: 60 }
        : { importedSeconds: undefined, exportSeconds: undefined },
      `${name}: the cover of the export`,
    );
    const lines = writeProcessNote(reportOf(facts)).lines.map(({ code }) => code);
    t.equal(lines.includes('export_not_tied'), !isTied, `${name}: the note`);
  }
});

t.test('a take is not stated of an export that is not tied', async (t) => {
  const SECOND = 1_000_000;
  const take: readonly TraceEvent[] = [
    { kind: 'recording.started', at: 0, take: 1, track: 1, input: 'hardware' },
    ...[1, 2, 3, 4].map(
      (second): TraceEvent => ({
        kind: 'recording.grew',
        at: second * SECOND,
        take: 1,
        frames: second * 48_000,
      }),
    ),
    {
      kind: 'recording.finished',
      at: 5 * SECOND,
      take: 1,
      source: 1,
      frames: 5 * 48_000,
      rate: 48_000,
    },
    { ...CLIP, at: 5 * SECOND },
    { ...read(1), at: 5 * SECOND },
  ];
  const observed = (rerender: 'matched' | 'not_tried') =>
    observedProduction(
      factsOf(sessionOf([TRACK, ...take, { ...exported(rerender), at: 6 * SECOND }], ARDOUR_CHANNELS)),
    );
  t.match(observed('matched'), { takes: 1, edits: 1 });
  t.strictSame(observed('not_tried'), { complete: false, captured: false, imports: [] });
});
