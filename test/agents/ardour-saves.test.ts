import t from 'tap';
import { readHistory } from '../../src/agents/ardour/history-file.js';
import { openLedger } from '../../src/agents/ardour/ledger.js';
import { SaveWriter } from '../../src/agents/ardour/save.js';
import { readSession } from '../../src/agents/ardour/session-file.js';
import type { SourceWitness } from '../../src/agents/ardour/sources.js';
import { parseXml, XML_LIMITS, XmlError } from '../../src/agents/ardour/xml.js';
import type { TraceEvent } from '../../src/witness/domain/trace.js';
import { TraceReferences } from '../../src/witness/domain/trace-references.js';
import { encodeTraceEvent, MAX_EVENT_BYTES } from '../../src/witness/trace/trace-events.js';
import {
  clocks,
  extentChange,
  historyXml,
  playlistDiff,
  regionDiff,
  type SessionSpec,
  sessionXml,
  tempoChange,
} from './ardour/session-xml.js';

type Transactions = Parameters<typeof historyXml>[0];

/** Saves at seconds of a clock that began at 0 of the wall clock, and what the trace received at each. */
function openSaves() {
  let events: TraceEvent[] = [];
  const ledger = openLedger((event) => events.push(event));
  const saves = new SaveWriter(ledger, (wall) => wall * 1000);
  return (
    seconds: number,
    spec: SessionSpec,
    transactions: Transactions = [],
    witnessed: ReadonlyMap<string, SourceWitness> = new Map(),
  ): readonly TraceEvent[] => {
    events = [];
    const session = readSession(parseXml(sessionXml(spec)));
    const history = readHistory(parseXml(historyXml(transactions)), session.tempo);
    saves.write({ session, history, savedAt: seconds * 1e6, witnessed });
    return events;
  };
}

/** Returns the events without those of every save. */
const acts = (events: readonly TraceEvent[]): readonly TraceEvent[] =>
  events.filter(({ kind }) => kind !== 'session.saved' && kind !== 'sourceMap.completed');

const TAKE = {
  id: 20,
  attributes: 'name="a.wav" type="audio" take-id="x" timestamp="3" captured-for="Vox" origin=""',
};
const IMPORT = { id: 30, attributes: 'name="loop.wav" type="audio" take-id="" origin=""' };

t.test('what is there when the agent begins to look is found, not done', async (t) => {
  const save = openSaves();
  const events = save(2, {
    sources: [TAKE],
    clips: [{ id: 21, source: 20, start: 0, length: 4, automatic: true }],
  });
  t.strictSame(
    events.filter(({ kind }) => !/session|gap|completed/.test(kind)).map(({ at, since }) => [at, since]),
    events.filter(({ kind }) => !/session|gap|completed/.test(kind)).map(() => [2e6, 2e6]),
  );
  t.strictSame(
    events.filter(({ kind }) => kind === 'source.appeared' || kind === 'capture.gap'),
    [{ kind: 'source.appeared', source: 1, claims: 'recording', at: 2e6, since: 2e6 }],
  );
});

t.test('what a save from before the agent lacks was found, and a later transaction was done', (t) => {
  const events: TraceEvent[] = [];
  const saves = new SaveWriter(
    openLedger((event) => events.push(event)),
    (wall) => wall * 1000,
    2e6,
  );
  const save = (savedAt: number, spec: SessionSpec, transactions: Transactions, isEarlier: boolean) => {
    events.length = 0;
    const session = readSession(parseXml(sessionXml(spec)));
    const history = readHistory(parseXml(historyXml(transactions)), session.tempo);
    saves.write({ session, history, savedAt, isEarlier, witnessed: new Map() });
    return acts(events).filter(({ kind }) => kind !== 'session.opened');
  };
  const sources = [TAKE];
  const clip = (id: number) => ({ id, source: 20, start: id, length: 4 });
  const transactions: Transactions = [
    [1, playlistDiff([1], [])],
    [5, playlistDiff([2], [])],
  ];
  save(2e6, { sources }, [], true);
  const unsaved = save(9e6, { sources, clips: [clip(1), clip(2), clip(3)] }, transactions, false);
  t.strictSame(
    unsaved.flatMap(({ kind, at, since }) => (kind.startsWith('clip') ? [[kind, at, since]] : [])),
    [
      ['clip.created', 2e6, 2e6],
      ['clip.copied', 5e6, undefined],
      ['clip.created', 9e6, 9e6],
    ],
    'a transaction from before the agent, one of its time, and a clip without one',
  );
  const later = save(12e6, { sources, clips: [clip(1), clip(2), clip(3), clip(4)] }, transactions, false);
  t.match(later, [{ kind: 'clip.copied', at: 12e6, since: 9e6 }]);
  t.end();
});

t.test(
  'edits of the history are written at their own times, with the shape that a clip had then',
  async (t) => {
    const save = openSaves();
    save(1, {});
    const transactions: Transactions = [
      [2, playlistDiff([21])],
      [3, regionDiff(21, extentChange([4, 0], [3, 0]))],
      [4, regionDiff(21, extentChange([3, 0], [3, 1]))],
      [5, playlistDiff([22, 23], [21])],
      [6, playlistDiff([24])],
      [7, regionDiff(22, '<scale-amplitude from="1" to="0.5"/><muted from="0" to="1"/>')],
      [8, playlistDiff([], [23])],
    ];
    const events = save(
      9,
      {
        sources: [TAKE],
        // The removed ones as Ardour keeps them.
        regions: [
          { id: 21, source: 20, start: 1, length: 3, automatic: true },
          { id: 23, source: 20, start: 2, length: 2, offset: 1 },
        ],
        clips: [
          { id: 22, source: 20, start: 1, length: 1, gain: 0.5 },
          { id: 24, source: 20, start: 8, length: 1 },
        ],
      },
      transactions,
      new Map([['20', { appeared: true, take: 1, frames: 192_000, rate: 48_000 }]]),
    );
    t.strictSame(acts(events), [
      { kind: 'recording.finished', take: 1, source: 1, frames: 192_000, rate: 48_000, at: 2e6 },
      { kind: 'clip.created', clip: 1, track: 2, base: 'seconds', start: 0, length: 4, source: 1, at: 2e6 },
      { kind: 'clip.trimmed', clip: 1, start: 0, length: 3, at: 3e6 },
      { kind: 'clip.moved', clip: 1, track: 2, start: 1, at: 4e6 },
      { kind: 'clip.split', clip: 1, right: 2, start: 2, at: 5e6 },
      { kind: 'clip.copied', from: 1, clip: 3, track: 2, start: 8, at: 6e6 },
      { kind: 'clip.changed', clip: 1, property: 'gain', at: 7e6 },
      { kind: 'clip.changed', clip: 1, property: 'mute', at: 7e6 },
      { kind: 'clip.deleted', clip: 2, at: 8e6 },
      // The history says muted, the file does not: the file has the last word.
      { kind: 'clip.changed', clip: 1, property: 'mute', at: 9e6, since: 1e6 },
    ]);
  },
);

t.test('what differs between two saves is written as an interval', async (t) => {
  const save = openSaves();
  const clip = { id: 21, source: 20, start: 0, length: 4 };
  save(1, { sources: [TAKE], clips: [clip] });
  const events = save(5, {
    sources: [TAKE],
    clips: [{ ...clip, start: 2 }],
    gain: 0.5,
    mute: 1,
    bpm: 96,
    trackName: 'Lead',
    gainPoints: [[0, 1]],
    markers: [[40, 3]],
    processors: '<Processor id="50" type="lv2" active="1"><Controllable symbol="g" value="1"/></Processor>',
  });
  t.strictSame(
    acts(events),
    [
      { kind: 'tempo.map' },
      { kind: 'tempo.point', start: 0, bpm: 96 },
      { kind: 'meter.point', start: 0, beats: 4, unit: 4 },
      { kind: 'marker.changed', act: 'added', start: 3 },
      { kind: 'track.changed', track: 2, property: 'name' },
      { kind: 'mixer.changed', track: 2, control: 'gain' },
      { kind: 'mixer.changed', track: 2, control: 'mute' },
      { kind: 'clip.moved', clip: 1, track: 2, start: 2 },
      { kind: 'plugin.added', plugin: 1, type: 'unknown', track: 2 },
      { kind: 'automation.edited', added: 1, removed: 0, changed: 0, track: 2 },
    ].map((event) => ({ ...event, at: 5e6, since: 1e6 })),
  );
  t.strictSame(
    acts(
      save(6, {
        sources: [TAKE],
        clips: [{ ...clip, start: 2 }],
        gain: 0.5,
        mute: 1,
        bpm: 96,
        trackName: 'Lead',
        gainPoints: [[0, 1]],
        markers: [[40, 3]],
        processors:
          '<Processor id="50" type="lv2" active="1"><Controllable symbol="g" value="1"/></Processor>',
      }),
    ),
    [],
  );
});

t.test('a tempo that was edited in the window is written when it happened', async (t) => {
  const save = openSaves();
  save(1, {});
  const change = (at: number, bpm: number) => [
    { kind: 'tempo.map', at },
    { kind: 'tempo.point', start: 0, bpm, at },
    { kind: 'meter.point', start: 0, beats: 4, unit: 4, at },
  ];
  t.strictSame(
    acts(
      save(9, { bpm: 90 }, [
        [2, tempoChange(120, 96)],
        [3, tempoChange(96, 90)],
      ]),
    ),
    [...change(2e6, 96), ...change(3e6, 90)],
    'each of two at its own time, and no difference at the save',
  );
});

t.test('notes at a time and audio at a beat lie where the tempo puts them', async (t) => {
  const save = openSaves();
  const sources = [TAKE, { id: 40, attributes: 'name="n.mid" type="midi" take-id="" origin=""' }];
  // Two beats of notes at 3 s, and 2 s of audio that is glued to beat 4.
  const notes = { id: 41, source: 40, start: 0, length: 0, midi: true, extent: `b3840@${clocks(3)}` };
  const glued = { id: 21, source: 20, start: 0, length: 0, extent: `${clocks(2)}@b7680` };
  save(1, { sources });
  const clips = [notes, glued];
  const placed = acts(save(2, { sources, clips })).flatMap((event) =>
    event.kind === 'clip.created' ? [[event.base, event.start, event.length]] : [],
  );
  t.strictSame(placed, [
    ['beats', 6, 2],
    ['seconds', 2, 2],
  ]);
  t.strictSame(
    acts(save(3, { sources, clips, bpm: 60 })).filter(({ kind }) => kind.startsWith('clip')),
    [],
    'another tempo moves them, and no user did',
  );
  const moved = { ...glued, extent: `${clocks(2)}@b9600` };
  const edit: Transactions = [[4, regionDiff(21, `<length from="${glued.extent}" to="${moved.extent}"/>`)]];
  t.strictSame(
    acts(save(5, { sources, clips: [notes, moved], bpm: 60 }, edit)),
    [{ kind: 'clip.moved', clip: 2, track: 2, start: 5, at: 4e6 }],
    'a move along the beats',
  );
  const unglued = { id: 21, source: 20, start: 5, length: 2 };
  t.strictSame(
    acts(save(6, { sources, clips: [notes, unglued], bpm: 60 }, edit)),
    [],
    'unglued at its place',
  );
});

t.test('a region of notes that is unlinked goes on, with a source that was made of its own', async (t) => {
  const save = openSaves();
  const midi = (id: number) => ({
    id,
    attributes: `name="${id}.mid" type="midi" take-id="" captured-for="" origin=""`,
  });
  const notes = { start: 0, length: 0, midi: true, extent: 'b3840@b0' };
  const linked = { ...notes, id: 41, source: 40 };
  const fork = { ...notes, id: 51, source: 50 };
  save(1, { sources: [midi(40)], clips: [linked] });
  const sources = [midi(40), midi(50)];
  const seen = new Map([['50', { appeared: true }]]);
  t.strictSame(
    acts(save(3, { sources, regions: [linked], clips: [fork] }, [[2, playlistDiff([51], [41])]], seen)),
    [
      { kind: 'source.derived', source: 2, from: 1, manner: 'copy', at: 2e6, since: 1e6 },
      { kind: 'clip.replaced', clip: 1, source: 2, at: 2e6 },
    ],
  );
});

t.test('undo takes transactions from the tail of the list, redo brings the same ones back', async (t) => {
  const save = openSaves();
  const clip = { id: 21, source: 20, start: 0, length: 4 };
  const sources = [TAKE];
  const edits: Transactions = [
    [2, regionDiff(21, extentChange([4, 0], [4, 1]))],
    [3, regionDiff(21, extentChange([4, 1], [4, 2]))],
  ];
  save(1, { sources, clips: [clip] });
  save(4, { sources, clips: [{ ...clip, start: 2 }] }, edits);
  t.strictSame(acts(save(5, { sources, clips: [{ ...clip, start: 1 }] }, edits.slice(0, 1))), [
    { kind: 'session.undone', steps: 1, at: 5e6, since: 4e6 },
    { kind: 'clip.moved', clip: 1, track: 2, start: 1, at: 5e6, since: 4e6 },
  ]);
  t.strictSame(acts(save(6, { sources, clips: [{ ...clip, start: 2 }] }, edits)), [
    { kind: 'session.redone', steps: 1, at: 6e6, since: 5e6 },
    { kind: 'clip.moved', clip: 1, track: 2, start: 2, at: 6e6, since: 5e6 },
  ]);
  // The program was started again: it handed out ids, and its list is a new one.
  t.strictSame(acts(save(7, { sources, clips: [{ ...clip, start: 2 }], idCounter: 900 })), []);
});

t.test('a list of transactions that was cut at its depth is a gap', async (t) => {
  const save = openSaves();
  const clip = { id: 21, source: 20, start: 0, length: 4 };
  const edit = (second: number): Transactions[number] => [second, regionDiff(21, '<muted from="0" to="1"/>')];
  save(1, { sources: [TAKE], clips: [clip] });
  save(50, { sources: [TAKE], clips: [clip] }, [edit(2), edit(3)]);
  const twenty = Array.from({ length: 20 }, (_, at) => edit(100 + at));
  const gaps = (events: readonly TraceEvent[]) => events.filter(({ kind }) => kind === 'capture.gap');
  t.strictSame(gaps(save(200, { sources: [TAKE], clips: [clip] }, twenty)), [
    { kind: 'capture.gap', scope: 'clips', reason: 'history_lost', at: 200e6, since: 50e6 },
  ]);
  const more = [...twenty.slice(10), ...Array.from({ length: 10 }, (_, at) => edit(210 + at))];
  t.strictSame(
    gaps(save(300, { sources: [TAKE], clips: [clip] }, more)),
    [],
    'a list that overlaps the last',
  );
});

t.test('what claims a source makes is kept apart from what was witnessed of it', async (t) => {
  const witness: SourceWitness = {
    appeared: true,
    samplesSha256: 'a'.repeat(64),
    frames: 5,
    rate: 48_000,
    channels: 1,
  };
  const digest = { samplesSha256: 'a'.repeat(64) };
  const region = { id: 31, source: 30, start: 0, length: 4, external: true };
  const written = (
    spec: SessionSpec,
    witnessed: SourceWitness | undefined,
    transactions: Transactions = [],
  ) => {
    const save = openSaves();
    save(1, { sources: [IMPORT], regions: [{ id: 99, source: 30, start: 0, length: 4, external: true }] });
    return acts(
      save(
        9,
        { ...spec, sources: [IMPORT, ...(spec.sources ?? [])] },
        transactions,
        new Map(witnessed === undefined ? [] : [['40', witnessed]]),
      ),
    ).filter(({ kind }) => /^(source|import|recording|midi)/.test(kind));
  };
  const late = { at: 9e6, since: 1e6 };
  const source = (attributes: string) => ({
    sources: [{ id: 40, attributes: `name="x.wav" type="audio" ${attributes}` }],
  });
  const take = source('take-id="x" timestamp="3" captured-for="Vox" origin=""');
  const clip = { ...region, id: 41, source: 40 };

  t.strictSame(
    written({ ...source('take-id="" origin=""'), clips: [clip] }, witness, [[2, playlistDiff([41])]]),
    [
      {
        kind: 'import.added',
        source: 2,
        manner: 'copied',
        ...digest,
        frames: 5,
        rate: 48_000,
        channels: 1,
        at: 2e6,
      },
    ],
    'an import that a transaction placed',
  );
  t.strictSame(
    written({ ...source('take-id="" origin=""'), clips: [clip] }, witness),
    [{ kind: 'source.appeared', source: 2, claims: 'import', ...digest, ...late }],
    'one that was written into the file',
  );
  t.strictSame(
    written({ ...take, clips: [{ ...clip, external: false, automatic: true }] }, witness, [
      [2, playlistDiff([41])],
    ]),
    [{ kind: 'source.appeared', source: 2, claims: 'recording', ...digest, ...late, since: 1e6, at: 2e6 }],
    'a take that was not seen to grow',
  );
  t.strictSame(
    written(
      {
        ...source('take-id="x" captured-for="Vox" origin=""'),
        clips: [{ ...clip, external: false }],
        regions: [{ id: 99, source: 30, start: 0, length: 4, external: true }],
      },
      witness,
    ),
    [{ kind: 'source.derived', source: 2, manner: 'bounce', ...digest, ...late }],
    'a bounce, which claims a take',
  );
  t.strictSame(
    written({ ...source('take-id="" origin=""'), clips: [{ ...clip, external: true, master: 30 }] }, witness),
    [{ kind: 'source.derived', source: 2, from: 1, manner: 'stretch', ...digest, ...late }],
    'a stretch names what it was made of',
  );
  t.strictSame(
    written({ clips: [{ ...clip, external: false, parts: [30] }] }, { appeared: true }),
    [{ kind: 'source.derived', source: 2, from: 1, manner: 'combine', ...late }],
    'and so does a compound, which says that it is no import',
  );
});

t.test('a trace takes every event of any session', async (t) => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  const some = (ids: readonly number[]) => ids.filter(() => random(2) === 0);
  const ids = [21, 22, 23, 24, 25, 26];
  const kinds = [
    'take-id="x" timestamp="3" captured-for="Vox"',
    'take-id="x" captured-for="Vox"',
    'take-id=""',
  ];
  let count = 0;
  for (let run = 0; run < 60; run += 1) {
    const references = new TraceReferences();
    const into = Buffer.alloc(MAX_EVENT_BYTES);
    const ledger = openLedger((event) => {
      encodeTraceEvent(event, into, 0);
      references.take(event);
      count += 1;
    });
    const saves = new SaveWriter(ledger, (wall) => wall * 1000);
    const take = ledger.next('take');
    ledger.add({ kind: 'recording.started', take, input: 'none' }, { at: 0 });
    let history: Transactions = [];
    for (let save = 1; save < 12; save += 1) {
      // Sources share one file and its take, compounds and stretches may be of what has gone.
      const sources = some([30, 31, 32, 33]).map((id) => ({
        id,
        attributes: `name="a.wav" type="audio" origin="" ${kinds[random(3)]}`,
      }));
      const clips = some(ids).map((id) => ({
        id,
        source: 30 + random(5),
        start: random(9),
        length: 1 + random(3),
        external: random(2) === 0,
        automatic: random(2) === 0,
        ...(random(4) === 0 ? { master: 30 + random(5) } : {}),
        ...(random(5) === 0 ? { parts: [30 + random(5)] } : {}),
      }));
      const edit = (): string =>
        [
          playlistDiff(some(ids), some(ids)),
          regionDiff(ids[random(6)]!, extentChange([1, random(9)], [1 + random(3), random(9)])),
          regionDiff(ids[random(6)]!, '<muted from="0" to="1"/>'),
          `<NoteDiffCommand midi-source="${30 + random(6)}"><AddedNotes><note/></AddedNotes></NoteDiffCommand>`,
        ][random(4)]!;
      history = [
        ...history.slice(random(3), history.length - random(2)),
        [save * 10 - random(9), edit() + edit()],
      ];
      const spec = {
        sources,
        clips,
        trackName: `t${random(3)}`,
        bpm: 90 + random(3),
        idCounter: 100 + save * random(100),
      };
      const xml =
        random(5) === 0 ? sessionXml(spec).replace(/<Route id="6"[\s\S]*?<\/Route>/, '') : sessionXml(spec);
      const witness: SourceWitness = { appeared: random(2) === 0, take, frames: 5, rate: 48_000 };
      const session = readSession(parseXml(xml));
      saves.write({
        session,
        history: readHistory(parseXml(historyXml(history)), session.tempo),
        savedAt: save * 10e6,
        witnessed: new Map([30, 31, 32, 33, 34].map((id) => [String(id), witness])),
      });
    }
  }
  t.ok(count > 5000, `${count} events`);
});

t.test('a document that is torn, hostile or beyond a bound is refused', async (t) => {
  const refused = (text: string, limits?: Partial<Record<keyof typeof XML_LIMITS, number>>) =>
    t.throws(() => parseXml(text, { ...XML_LIMITS, ...limits }), XmlError, text.slice(0, 40));
  const whole = sessionXml();
  for (let cut = 1; cut < whole.length - 1; cut += 97) refused(whole.slice(0, cut));
  refused('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>');
  refused('<a>&unknown;</a>');
  refused('<a>&#0;</a>');
  refused('<a>&#x110000;</a>');
  refused('<a b="1" b="2"/>');
  refused('<a b="<"/>');
  refused('<a></b>');
  refused('<a/><b/>');
  refused('<a/>x');
  refused('');
  refused('<a><a><a/></a></a>', { depth: 2 });
  refused('<a><b/><b/></a>', { elements: 2 });
  refused('<a b="1" c="2"/>', { attributes: 1 });
  refused('<abc/>', { nameCharacters: 2 });
  refused('<a>long</a>', { bytes: 4 });
  t.strictSame(parseXml('<a b="&lt;&#65;&#x42;">x<!-- y -->z<c/></a>').attributes.get('b'), '<AB');
  t.strictSame(parseXml('<a b="1">x<!-- y -->z<c/></a>').text, 'xz');
});

t.test('a session that a trace could not carry is refused, and ids and times are checked', async (t) => {
  const refused = (from: string, to: string) =>
    t.throws(
      () =>
        readSession(
          parseXml(sessionXml({ clips: [{ id: 21, source: 20, start: 0, length: 1 }] }).replace(from, to)),
        ),
      to,
    );
  refused('version="7002"', 'version="8001"');
  refused('sample-rate="48000"', 'sample-rate="0"');
  refused('<Route id="6"', '<Route id="x"');
  const far = readSession(
    parseXml(sessionXml({ clips: [{ id: 21, source: 20, start: 20_000_000, length: 1 }] })),
  );
  t.strictSame(far.clips.size, 0, 'a place beyond the bound of a trace');
  t.throws(() =>
    readHistory(parseXml('<UndoHistory><UndoTransaction tv-sec="-1" tv-usec="0"/></UndoHistory>'), far.tempo),
  );
});
