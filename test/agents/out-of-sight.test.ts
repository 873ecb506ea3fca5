/** What the agent for Ardour writes about work that it cannot follow. */
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { digestAudio } from '../../src/agents/ardour/audio-file.js';
import { followArdour } from '../../src/agents/ardour/follow.js';
import { openLedger } from '../../src/agents/ardour/ledger.js';
import { OtherSaves } from '../../src/agents/ardour/other-saves.js';
import { contentOf, SourceFiles, stampOf } from '../../src/agents/ardour/source-files.js';
import { Takes } from '../../src/agents/ardour/takes.js';
import type { TraceOutput } from '../../src/agents/ardour/trace-queue.js';
import { TraceFullError } from '../../src/witness/capture/index.js';
import type { TraceEvent } from '../../src/witness/domain/trace.js';
import { wav } from '../fixtures/wav.js';
import { sessionXml } from './ardour/session-xml.js';

/** Writes a file with a time of modification. @param seconds of the wall clock */
function write(path: string, seconds: number, content: string | Uint8Array = ''): void {
  writeFileSync(path, content);
  utimesSync(path, seconds, seconds);
}

/** Returns the output of a trace that is not written. */
const outputTo = (append: (event: TraceEvent) => void): TraceOutput => ({
  append,
  flush: async () => {},
  seal: async () => {},
  bufferedBytes: 0,
});

t.test('work under another name in the directory is a gap until the session is saved again', (t) => {
  const directory = t.testdir();
  const at = (name: string) => join(directory, name);
  const events: TraceEvent[] = [];
  const others = new OtherSaves(
    directory,
    'song',
    openLedger((event) => events.push(event)),
  );
  const look = (readAt: number, now: number): readonly TraceEvent[] => {
    events.length = 0;
    others.look(readAt, now);
    return events.map((event) => ({ ...event }));
  };
  const gap = (since: number, now: number): TraceEvent => ({
    kind: 'capture.gap',
    reason: 'other',
    at: now,
    since,
  });
  write(at('older.ardour'), 100);
  write(at('song.ardour'), 200);
  write(at('song.pending'), 300);
  t.strictSame(look(1, 2), [], 'an older session and the own files');
  write(at('other.ardour'), 400);
  t.strictSame(look(1, 3), [gap(1, 3)], 'from the last save that was read');
  t.strictSame(look(1, 4), []);
  write(at('other.pending'), 500);
  t.strictSame(look(1, 5), [gap(3, 5)], 'a take under the other name');
  write(at('song.ardour'), 600);
  t.strictSame(look(1, 6), [gap(5, 6)]);
  t.strictSame(look(6, 7), [], 'the session is followed again');
  others.end(8);
  t.strictSame(events, []);
  write(at('other.ardour'), 700);
  t.strictSame(look(6, 9), [gap(6, 9)]);
  events.length = 0;
  others.end(10);
  t.strictSame(events, [gap(9, 10)], 'up to the end');
  t.end();
});

t.test('a file that no save has named makes takes unknown', async (t) => {
  const directory = t.testdir({ interchange: { song: { audiofiles: {}, midifiles: {} } } });
  const at = (name: string) => join(directory, 'interchange/song/audiofiles', name);
  const gaps = async (work: (takes: Takes, poll: () => Promise<void>) => Promise<void>) => {
    const events: TraceEvent[] = [];
    let now = 0;
    const takes = new Takes({
      ledger: openLedger((event) => events.push(event)),
      directory,
      name: 'song',
      clock: () => now,
      clockOf: () => now,
      countsDummy: false,
    });
    const poll = async (): Promise<void> => {
      now += 10;
      await takes.poll();
    };
    await poll();
    await work(takes, poll);
    takes.end();
    return events;
  };
  t.strictSame(await gaps(async () => {}), []);
  t.strictSame(
    await gaps(async (takes, poll) => {
      writeFileSync(at('named.wav'), wav(100));
      await poll();
      takes.settle(['named.wav']);
      await poll();
    }),
    [],
  );
  t.strictSame(
    await gaps(async (_takes, poll) => {
      writeFileSync(at('unnamed.wav'), wav(100));
      await poll();
    }),
    [{ kind: 'capture.gap', scope: 'recording', reason: 'other', at: 20, since: 10 }],
  );
});

t.test('a source whose samples were replaced is reported, and one with a new header is not', async (t) => {
  const path = join(t.testdir(), 'take.wav');
  const events: TraceEvent[] = [];
  const ledger = openLedger((event) => events.push(event));
  const files = new SourceFiles(ledger);
  const samples = wav(1000);
  writeFileSync(path, samples);
  files.add('20', path, (await digestAudio(path)).samplesSha256!, stampOf(path));
  ledger.sources.set('20', { source: 7, origin: 'recording' });
  await files.check({ at: 5, since: 1 }, true);
  const renamed = Buffer.concat([samples, Buffer.from('LIST\0\0\0\0')]);
  renamed.writeUInt32LE(renamed.length - 8, 4);
  write(path, 1, renamed);
  await files.check({ at: 6, since: 5 }, true);
  t.strictSame(events, []);
  const other = Buffer.from(samples);
  other[other.length - 1]! ^= 1;
  write(path, 1, other);
  await files.check({ at: 7, since: 6 }, true);
  await files.check({ at: 8, since: 7 }, true);
  t.match(events, [{ kind: 'source.derived', source: 7, manner: 'unknown', at: 7, since: 6 }]);
  t.equal(events.length, 1, 'once');
});

t.test('a file of notes that was changed after the last save is reported', async (t) => {
  const path = join(t.testdir(), 'notes.mid');
  const events: TraceEvent[] = [];
  const ledger = openLedger((event) => events.push(event));
  const files = new SourceFiles(ledger);
  write(path, 1, 'one');
  files.add('20', path, await contentOf(path, true), stampOf(path), true);
  ledger.sources.set('20', { source: 7, origin: 'recording' });
  const before = files.stamp();
  write(path, 2, 'two');
  t.not(files.stamp(), before);
  await files.check({ at: 5, since: 1 }, true);
  t.strictSame(events, [], 'Ardour writes notes with a save');
  write(path, 3, 'three');
  await files.check({ at: 6, since: 5 }, false);
  t.strictSame(events, [{ kind: 'source.derived', source: 7, manner: 'unknown', at: 6, since: 5 }]);
});

t.test('a session is observed from its start if it comes while the agent waits for it', async (t) => {
  /** Follows a session of two saves, and returns the change of its gain between them. */
  const changeOf = async (isThere: boolean): Promise<TraceEvent | undefined> => {
    const directory = join(t.testdir(), isThere ? 'there' : 'comes');
    const path = join(directory, 'song.ardour');
    const create = (): void => {
      mkdirSync(directory);
      // Away from the time at which the agent starts, because file systems round times.
      write(path, Date.now() / 1000 + (isThere ? -1 : 0.1), sessionXml());
    };
    const events: TraceEvent[] = [];
    const over = new AbortController();
    if (isThere) create();
    const following = followArdour({
      directory,
      signal: over.signal,
      open: async () =>
        outputTo((event) => {
          events.push(event);
          if (event.kind === 'session.opened') write(path, Date.now() / 1000, sessionXml({ gain: 0.5 }));
          if (event.kind === 'session.saved') over.abort();
        }),
    });
    if (!isThere) create();
    t.equal(await following, 'sealed');
    return events.find(({ kind }) => kind === 'mixer.changed');
  };
  const came = (await changeOf(false))!;
  t.ok(came.since! < came.at, 'the change was made between the saves');
  const found = (await changeOf(true))!;
  t.equal(found.since, found.at, 'an unsaved change may be older than the agent');
});

t.test('a save of a file server whose clock is ahead is read', async (t) => {
  const directory = t.testdir();
  const path = join(directory, 'song.ardour');
  const ahead = Date.now() / 1000 + 3600;
  write(path, ahead, sessionXml());
  const kinds: string[] = [];
  const over = new AbortController();
  setTimeout(() => over.abort(), 10_000).unref();
  await followArdour({
    directory,
    signal: over.signal,
    open: async () =>
      outputTo(({ kind }) => {
        kinds.push(kind);
        if (kind === 'session.opened') write(path, ahead + 1, sessionXml({ gain: 0.5 }));
        if (kind === 'session.saved') over.abort();
      }),
  });
  t.ok(kinds.includes('mixer.changed'), kinds.join());
});

t.test('a save that is not read is a gap since the last one that was', async (t) => {
  const directory = t.testdir();
  const path = join(directory, 'song.ardour');
  write(path, Date.now() / 1000 - 1, sessionXml());
  const events: TraceEvent[] = [];
  const over = new AbortController();
  let writing: NodeJS.Timeout | undefined;
  await followArdour({
    directory,
    signal: over.signal,
    open: async () =>
      outputTo((event) => {
        events.push(event);
        if (event.kind === 'session.opened') write(path, Date.now() / 1000, 'unreadable');
        if (event.kind !== 'capture.gap' || writing !== undefined) return;
        // A file that is written until the end is never whole.
        writing = setInterval(() => write(path, Date.now() / 1000, sessionXml()), 20);
        over.abort();
      }),
  });
  clearInterval(writing);
  const gap = { kind: 'capture.gap', reason: 'unreadable', since: events[0]!.at };
  t.match(
    events.filter(({ kind }) => kind === 'capture.gap'),
    [gap, gap],
  );
});

t.test('a full trace is sealed without the rest of the session', async (t) => {
  const directory = t.testdir({ 'song.ardour': sessionXml() });
  for (const isOver of [false, true]) {
    const written: string[] = [];
    const over = new AbortController();
    if (isOver) setTimeout(() => over.abort(), 50);
    const captured = await followArdour({
      directory,
      signal: over.signal,
      open: async () => ({
        ...outputTo(({ kind }) => {
          if (written.length === 2) throw new TraceFullError('full');
          written.push(kind);
        }),
        seal: async () => {
          written.push('seal');
        },
      }),
    });
    t.equal(captured, 'full');
    t.strictSame(written, ['session.opened', 'tempo.map', 'seal']);
  }
});
