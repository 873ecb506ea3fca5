/**
 * Smallest agent: follows a folder of recordings as another program writes them. Run it with
 * `node capture-agent.mjs FOLDER OUT.trace KEY.pem [SECONDS]`; FOLDER holds raw samples, 16 bits, mono, 48 kHz.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { CHANNELS, createDeviceKey, loadDeviceKey, openTrace } from 'takemark/capture';

const [folder, out, keyFile, seconds = '3600'] = process.argv.slice(2);

// The key is made once. What the operator enrols is its public half.
const key = await loadDeviceKey(keyFile).catch((error) => {
  if (error.code === 'ENOENT') return createDeviceKey(keyFile);
  throw error;
});
console.log(`device ${key.deviceId}, public key ${Buffer.from(key.publicKey).toString('base64')}`);

// An agent says of each channel what it can see of it. This one sees files grow, and nothing else.
const unsupported = Object.fromEntries(CHANNELS.map((channel) => [channel, 'unsupported']));
const trace = await openTrace({
  to: out,
  key,
  header: {
    adapter: 'folder-example',
    adapterVersion: '1.0',
    channels: { ...unsupported, session: 'supported', recording: 'partial' },
  },
});

// The session clock counts microseconds from the start, by a clock that is never set.
const start = process.hrtime.bigint();
const now = () => Number((process.hrtime.bigint() - start) / 1000n);
const takes = new Map();

trace.append({ kind: 'session.opened', at: now() });
while (now() < Number(seconds) * 1_000_000) {
  for (const name of await readdir(folder)) {
    const frames = (await stat(join(folder, name))).size >> 1;
    const take = takes.get(name) ?? { id: takes.size + 1, frames: 0, open: true };
    // What was there before the first look was not seen to be recorded.
    if (!takes.has(name) && frames === 0)
      trace.append({ kind: 'recording.started', at: now(), take: take.id, input: 'unknown' });
    else if (!takes.has(name)) take.open = false;
    if (take.open && frames > take.frames)
      trace.append({ kind: 'recording.grew', at: now(), take: take.id, frames });
    takes.set(name, { ...take, frames });
  }
  // Each flush is signed and on the disk: a crash costs what came after the last one.
  await trace.flush();
  await pause(500);
}
for (const { id, frames, open } of takes.values())
  if (open)
    trace.append({ kind: 'recording.finished', at: now(), take: id, source: id, frames, rate: 48_000 });
trace.append({ kind: 'session.closed', at: now() });
await trace.seal();
