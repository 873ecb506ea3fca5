/** The child of the crash test. It appends known events without end, and reports each completed flush. */
import { loadDeviceKey, openTrace } from '../../src/witness/capture/index.js';
import { ALL_SUPPORTED } from './write-trace.js';

const [file, key] = process.argv.slice(2);
const writer = await openTrace({
  to: file!,
  key: await loadDeviceKey(key!),
  header: { adapter: 'test', adapterVersion: '1', startedAt: 0, channels: ALL_SUPPORTED },
});
for (let flush = 1; ; flush += 1) {
  // Some flushes have several segments.
  for (let i = 0; i < (flush % 7 === 0 ? 20_000 : 50); i += 1)
    writer.append({ kind: 'session.saved', at: writer.events });
  await writer.flush();
  process.stdout.write(`${writer.events}\n`);
}
