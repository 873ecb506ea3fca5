import t from 'tap';
import {
  CHANNELS,
  type Channel,
  type ChannelSupport,
  type TraceEvent,
} from '../../src/witness/domain/trace.js';
import { Replayer } from '../../src/witness/replay/replayer.js';

t.test('an edit that may have come before the export is not said to have come after it', async (t) => {
  const channels = Object.fromEntries(CHANNELS.map((channel) => [channel, 'partial'])) as Record<
    Channel,
    ChannelSupport
  >;
  const replayer = new Replayer({ channels });
  const events: readonly TraceEvent[] = [
    { kind: 'export.finished', at: 10, fileSha256: '0'.repeat(64), rerender: 'not_tried' },
    { kind: 'mixer.changed', at: 20, since: 5, control: 'gain' },
    { kind: 'mixer.changed', at: 21, since: 12, control: 'gain' },
    { kind: 'mixer.changed', at: 22, control: 'gain' },
  ];
  for (const event of events) replayer.take(event);
  t.strictSame(replayer.finish(true).inputs.editsAfterExport, 2);
});
