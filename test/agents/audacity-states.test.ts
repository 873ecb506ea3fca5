/** What the states of an Audacity project become in a trace. */
import t from 'tap';
import { AUDACITY_CHANNELS } from '../../src/agents/audacity/follow-project.js';
import { ProjectComparer, type SampleReader } from '../../src/agents/audacity/project-comparer.js';
import { DocumentError } from '../../src/agents/audacity/project-document.js';
import type { ClipState, ProjectState } from '../../src/agents/audacity/project-state.js';
import type { TraceEvent } from '../../src/witness/domain/trace.js';
import { TraceReferences } from '../../src/witness/domain/trace-references.js';
import { factsOf, sessionOf } from '../evidence/sessions.js';

/** Each clip has the samples of a file that may be imported. */
const SAMPLES: SampleReader = {
  samplesOf: async ({ blocks }) => blocks.map((channel) => Buffer.from(channel.join())),
  originalOf: async () => 'ab'.repeat(32),
};

const clip = (block: number): ClipState => ({
  start: 5 * block,
  length: 4,
  trimLeft: 0,
  trimRight: 0,
  frames: 4,
  rate: 1,
  blocks: [[block]],
  envelope: [],
});

const project = (blocks: readonly number[], gain = 1, effects = 0): ProjectState => ({
  version: '3.2.4',
  rate: 48_000,
  labels: [],
  tracks: [
    {
      name: 'A',
      channels: 1,
      effects,
      clips: blocks.map(clip),
      controls: { gain, pan: 0, mute: 0, solo: 0 },
    },
  ],
});

t.test('what an agent finds in a project is state, and what follows is an act', async (t) => {
  const events: TraceEvent[] = [];
  const comparer = new ProjectComparer();
  const take = async (state: ProjectState, since: number, at: number): Promise<readonly TraceEvent[]> => {
    const found = await comparer.take(state, SAMPLES, { since, at });
    events.push(...found);
    return found;
  };
  const acts = (found: readonly TraceEvent[]): readonly string[] =>
    found.filter(({ at, since }) => since !== undefined && since < at).map(({ kind }) => kind);
  const found = await take(project([1, 2]), 7, 7);
  t.strictSame(acts(found), []);
  t.match(
    found.filter(({ kind }) => kind === 'source.appeared'),
    [{ claims: 'import' }, { claims: 'import' }],
  );
  const second = await take(project([1, 2, 3], 2, 1), 7, 9);
  t.strictSame(
    acts(second),
    ['import.added', 'clip.created'],
    'mixer and effects may have been changed before the agent',
  );
  const third = await take(project([1, 2, 3], 3, 2), 9, 12);
  t.strictSame(acts(third), ['mixer.changed', 'plugin.added']);

  const facts = factsOf(sessionOf(events, AUDACITY_CHANNELS));
  const { counters } = facts.session;
  t.match(counters, {
    importsAdded: { status: 'observed', value: 1 },
    clipsCreated: { status: 'observed', value: 1 },
    tracksAdded: { status: 'unknown' },
  });
  const gap = facts.facts.find(({ code }) => code === 'session_begun_before_agent');
  t.strictSame(gap?.values, { tracks: 1, clips: 2, sources: 2 });
  t.equal(facts.importedSourceCount, 1, 'imports that were found are not listed as witnessed');
});

t.test('a state whose samples cannot be read leaves nothing, and the next is reported whole', async (t) => {
  const comparer = new ProjectComparer();
  const references = new TraceReferences();
  let unreadable = 4;
  const samples: SampleReader = {
    ...SAMPLES,
    async samplesOf(clip) {
      if (clip.blocks[0]?.[0] === unreadable) throw new DocumentError('a clip is too large');
      return SAMPLES.samplesOf(clip);
    },
  };
  const take = async (state: ProjectState, at: number): Promise<readonly string[]> => {
    const found = await comparer.take(state, samples, { since: at - 1, at });
    for (const event of found) references.take(event);
    return found.map(({ kind }) => kind);
  };
  await take(project([1, 2]), 2);
  // One track without its clips, and one that is new: its first clip can be read, its second cannot.
  const [track] = project([3, 4]).tracks;
  const next: ProjectState = { ...project([]), tracks: [...project([]).tracks, { ...track!, name: 'B' }] };
  for (const at of [3, 4]) await t.rejects(take(next, at), new DocumentError('a clip is too large'));
  unreadable = 0;
  t.strictSame(await take(next, 5), [
    'clip.deleted',
    'clip.deleted',
    'track.added',
    ...['import.added', 'clip.created', 'import.added', 'clip.created'],
    'sourceMap.completed',
  ]);
  t.strictSame(await take(next, 6), ['sourceMap.completed']);
});
