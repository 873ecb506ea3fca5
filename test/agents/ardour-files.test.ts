/** Files around a session: takes that grow, audio, notes, inputs, exports. */
import { createHash } from 'node:crypto';
import { appendFile, mkdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { compareWindows, digestAudio, digestChannels } from '../../src/agents/ardour/audio-file.js';
import { Exports } from '../../src/agents/ardour/exports.js';
import { inputOf } from '../../src/agents/ardour/inputs.js';
import { openLedger } from '../../src/agents/ardour/ledger.js';
import { countNotesIn } from '../../src/agents/ardour/midi-file.js';
import { Originals } from '../../src/agents/ardour/originals.js';
import { readSession } from '../../src/agents/ardour/session-file.js';
import { Takes } from '../../src/agents/ardour/takes.js';
import { parseXml } from '../../src/agents/ardour/xml.js';
import type { TraceEvent } from '../../src/witness/domain/trace.js';
import { floatWave, shortWave, tone } from './ardour/forge.js';
import { type SessionSpec, sessionXml } from './ardour/session-xml.js';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Returns a folder of a session, a clock that the test turns, and what the ledger reports of takes. */
async function watched(directory: string) {
  const audio = join(directory, 'interchange/s/audiofiles');
  await mkdir(audio, { recursive: true });
  await writeFile(join(audio, 'Old-1.wav'), floatWave([0]));
  const events: TraceEvent[] = [];
  let now = 0;
  const ledger = openLedger((event) => events.push(event));
  const takes = new Takes({
    ledger,
    directory,
    name: 's',
    clock: () => now * 1e6,
    clockOf: (wall) => wall * 1000,
    countsDummy: false,
  });
  const at = async (seconds: number, path: string) => utimes(path, seconds, seconds);
  return {
    audio,
    events,
    ledger,
    takes,
    pending: join(directory, 's.pending'),
    async poll(seconds: number, ...written: readonly string[]) {
      now = seconds;
      for (const path of written) await at(seconds - 0.05, path);
      await takes.poll();
    },
  };
}

t.test('a take is written as it grows, from the copy of the session that begins it', async (t) => {
  const { audio, events, pending, poll } = await watched(t.testdir());
  await poll(1);
  await writeFile(pending, sessionXml());
  await poll(2, pending);
  const file = join(audio, 'Take1_Vox-1.wav');
  const whole = floatWave(tone(1000, 10));
  await writeFile(file, whole.subarray(0, 44 + 400));
  await poll(3, file);
  t.strictSame(events, [], 'one step may be any file that came whole');
  await appendFile(file, whole.subarray(444, 844));
  await poll(4, file);
  await poll(5);
  await appendFile(file, whole.subarray(844));
  await poll(6, file);
  t.strictSame(events, [
    { kind: 'recording.started', take: 1, input: 'hardware', at: 1.95e6 },
    { kind: 'recording.grew', take: 1, frames: 100, at: 2.95e6 },
    { kind: 'recording.grew', take: 1, frames: 200, at: 3.95e6 },
    { kind: 'recording.grew', take: 1, frames: 1000, at: 5.95e6 },
  ]);
  await rm(file);
  await poll(7);
  t.strictSame(events.at(-1), { kind: 'recording.discarded', take: 1, at: 7e6 });
});

t.test('takes that run at once are written in the order of time, each exactly', async (t) => {
  const { audio, events, pending, ledger, poll } = await watched(t.testdir());
  const controls = '<Controllable name="mute" value="0"/><Controllable name="rec-enable" value="1"/>';
  await writeFile(pending, sessionXml().replace('<Controllable name="mute" value="0"/>', controls));
  await poll(2, pending);
  // The hook's word of the same start.
  ledger.add({ kind: 'transport.started', start: 0 }, { at: 2.1e6 });
  const channels = ['L', 'R'].map((side) => join(audio, `Take1_Vox-1%${side}.wav`));
  for (const file of channels) await writeFile(file, floatWave(tone(100, 10)));
  await poll(3, ...channels);
  // A save amid the take.
  ledger.add({ kind: 'session.saved' }, { at: 3.5e6 });
  for (const file of channels) await appendFile(file, Buffer.alloc(400));
  await poll(4, ...channels);
  t.strictSame(
    events.filter(({ kind }) => kind.startsWith('recording.')),
    [
      ...[1, 2].map((take) => ({ kind: 'recording.started', take, input: 'hardware', at: 2.1e6 })),
      ...[1, 2].map((take) => ({ kind: 'recording.grew', take, frames: 100, at: 2.95e6 })),
      ...[1, 2].map((take) => ({ kind: 'recording.grew', take, frames: 200, at: 3.95e6 })),
    ],
  );
});

t.test('a take is found in the folder of a name that the session had before', async (t) => {
  const directory = t.testdir({ interchange: { before: { audiofiles: {} } } });
  const { events, takes, pending, poll } = await watched(directory);
  await writeFile(pending, sessionXml());
  await poll(2, pending);
  const file = join(directory, 'interchange/before/audiofiles/Take1_Vox-1.wav');
  await writeFile(file, floatWave(tone(100, 10)));
  await poll(3, file);
  takes.confirmTake('Take1_Vox-1.wav');
  t.match(events, [{ kind: 'recording.started' }, { kind: 'recording.grew', frames: 100 }]);
  t.match(takes.seen('Take1_Vox-1.wav', false), { path: file });
});

t.test('a file that grows while nothing is recorded, or was there before, is no take', async (t) => {
  const { audio, events, takes, poll } = await watched(t.testdir());
  const file = join(audio, 'loop.wav');
  await poll(1);
  await writeFile(file, floatWave(tone(100, 10)));
  await poll(2, file);
  await appendFile(file, Buffer.alloc(400));
  await poll(3, file);
  takes.confirmTake('loop.wav');
  t.strictSame(events, []);
  t.strictSame(takes.seen('loop.wav', false), { path: file });
  t.strictSame(takes.seen('Old-1.wav', false), undefined);
});

t.test('a write time outside of the two looks around it is not believed', async (t) => {
  const { audio, events, takes, pending, poll } = await watched(t.testdir());
  await writeFile(pending, sessionXml({ input: 'Sample/audio_out 1' }));
  await poll(2, pending);
  const file = join(audio, 'Take1_Vox-1.wav');
  await writeFile(file, floatWave(tone(100, 10)));
  await utimes(file, 9000, 9000);
  await poll(3);
  takes.confirmTake('Take1_Vox-1.wav');
  t.strictSame(events, [
    { kind: 'recording.started', take: 1, input: 'internal', at: 1.95e6 },
    { kind: 'recording.grew', take: 1, frames: 100, at: 3e6 },
  ]);
});

t.test('an input is hardware on a backend of sound cards alone', async (t) => {
  const input = (spec: SessionSpec, countsDummy = false) => {
    const session = readSession(parseXml(sessionXml(spec)));
    return inputOf(session.tracks.get('6')!, session, countsDummy);
  };
  t.strictSame(input({}), 'hardware');
  t.strictSame(input({ backend: 'Dummy' }), 'internal');
  t.strictSame(input({ backend: 'Dummy' }, true), 'hardware', 'in a trial');
  t.strictSame(input({ backend: 'JACK' }), 'unknown');
  t.strictSame(input({ input: 'Sample/audio_out 1' }, true), 'internal', 'in a trial too');
  t.strictSame(input({ input: 'firefox:output_1' }), 'unknown');
  const loopback = sessionXml().replace('input-device="card"', 'input-device="Loopback"');
  const session = readSession(parseXml(loopback));
  t.strictSame(inputOf(session.tracks.get('6')!, session, false), 'internal');
  const alone = readSession(parseXml(sessionXml().replace(/<IO .*<\/IO>/, '')));
  t.strictSame(inputOf(alone.tracks.get('6')!, alone, false), 'none');
});

t.test('audio is known by its samples, whatever its header says', async (t) => {
  const samples = tone(5000, 33);
  const [float, short] = [floatWave(samples), shortWave(samples)];
  const torn = Buffer.from(float);
  torn.writeUInt32LE(0xfffffff0, 40);
  const directory = t.testdir({
    'float.wav': float,
    'short.wav': short,
    'torn.wav': torn,
    'text.wav': 'no audio',
    deep: { 'a.txt': 'x' },
  });
  const samplesSha256 = sha256(float.subarray(44));
  t.match(await digestAudio(join(directory, 'float.wav')), {
    fileSha256: sha256(float),
    samplesSha256,
    frames: 5000,
    rate: 48_000,
    channels: 1,
  });
  t.match(await digestAudio(join(directory, 'torn.wav')), { samplesSha256, frames: 5000 });
  t.strictSame(await digestAudio(join(directory, 'text.wav')), {
    fileSha256: sha256(Buffer.from('no audio')),
  });
  t.strictSame(await digestChannels(join(directory, 'short.wav')), [samplesSha256]);
  t.strictSame(await digestChannels(join(directory, 'text.wav')), undefined);
  const originals = new Originals(directory);
  t.ok([sha256(float), sha256(short), sha256(torn)].includes((await originals.find(samplesSha256)) ?? ''));
  t.strictSame(await originals.find('0'.repeat(64)), undefined);
  t.strictSame(await new Originals(undefined).find(samplesSha256), undefined);
});

t.test(
  'windows of 16 bits are equal if they differ by dither alone, and windows of floats if they are the same',
  async (t) => {
    const frames = 5000;
    const changed = (file: Buffer, frame: number, bytes: number): Buffer => {
      const copy = Buffer.from(file);
      const at = file.length - (frames - frame) * bytes;
      if (bytes === 2) copy.writeInt16LE(copy.readInt16LE(at) + 8, at);
      else copy.writeFloatLE(copy.readFloatLE(at) + 8 / 32_768, at);
      return copy;
    };
    const [short, float] = [shortWave(tone(frames, 33)), floatWave(tone(frames, 33))];
    const dithered = changed(short, 4999, 2);
    const directory = t.testdir({
      'short.wav': short,
      'dithered.wav': dithered,
      'beyond.wav': changed(dithered, 4999, 2),
      'float.wav': float,
      'other.wav': changed(float, 4999, 4),
    });
    const compare = (one: string, other: string) =>
      compareWindows(join(directory, one), join(directory, other));
    t.strictSame(await compare('short.wav', 'dithered.wav'), { windows: 2, equalWindows: 2 });
    t.strictSame(await compare('short.wav', 'beyond.wav'), { windows: 2, equalWindows: 1 });
    t.strictSame(await compare('float.wav', 'float.wav'), { windows: 2, equalWindows: 2 });
    t.strictSame(await compare('float.wav', 'other.wav'), { windows: 2, equalWindows: 1 });
    t.strictSame(await compare('short.wav', 'float.wav'), undefined);
  },
);

t.test('notes are counted as they begin, and a torn file is no endless one', async (t) => {
  const track = Buffer.from([
    0, 0x90, 60, 100, 10, 62, 90, 10, 60, 0, 5, 0x80, 62, 0, 0, 0xc0, 1, 0, 0xff, 0x01, 2, 65, 66, 0, 0x91, 1,
    1, 0, 0xff, 0x2f, 0,
  ]);
  const head = Buffer.from([
    0x4d,
    0x54,
    0x68,
    0x64,
    0,
    0,
    0,
    6,
    0,
    0,
    0,
    1,
    0,
    96,
    0x4d,
    0x54,
    0x72,
    0x6b,
    0,
    0,
    0,
    track.length,
  ]);
  const file = Buffer.concat([head, track]);
  t.strictSame(countNotesIn(file), 3);
  for (let cut = 0; cut < file.length; cut += 1) t.ok((countNotesIn(file.subarray(0, cut)) ?? 0) <= 3);
  t.strictSame(countNotesIn(Buffer.from('RIFF and so on')), undefined);
});

t.test('an export is reported when writing to it has ended, and again when it is rewritten', async (t) => {
  const directory = t.testdir({ 'old.wav': floatWave([0]), 'notes.txt': 'x' });
  const exports = new Exports([directory, join(directory, 'absent')]);
  const mix = join(directory, 'mix.wav');
  t.strictSame(await exports.poll(0), []);
  await writeFile(mix, floatWave([0, 0]));
  t.strictSame(await exports.poll(0), [], 'the first look');
  t.match(await exports.poll(0), [{ path: mix, digest: { frames: 2 } }]);
  t.strictSame(await exports.poll(0), []);
  await pause(20);
  await writeFile(mix, floatWave([0, 0, 0]));
  t.strictSame(await exports.poll(0), []);
  t.match(await exports.poll(0), [{ path: mix, digest: { frames: 3 } }]);
});
