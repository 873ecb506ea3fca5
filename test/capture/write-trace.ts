import { MemorySink } from '../../src/cli/specimens/memory-sink.js';
import { DeviceKey, openTrace, type TraceWriter } from '../../src/witness/capture/index.js';
import type { Channel, ChannelSupport, TraceEvent } from '../../src/witness/domain/trace.js';
import { CHANNELS } from '../../src/witness/domain/trace.js';

export const ALL_SUPPORTED = Object.fromEntries(CHANNELS.map((channel) => [channel, 'supported'])) as Record<
  Channel,
  ChannelSupport
>;

export interface Written {
  readonly bytes: Buffer;
  readonly key: DeviceKey;
}

/** Returns the trace that `write` filled, in memory. */
export async function writeTrace(
  write: (writer: TraceWriter) => Promise<void> | void,
  options: { readonly key?: DeviceKey; readonly channels?: Partial<Record<Channel, ChannelSupport>> } = {},
): Promise<Written> {
  const key = options.key ?? DeviceKey.generate();
  const sink = new MemorySink();
  const writer = await openTrace({
    to: sink,
    key,
    header: {
      adapter: 'test',
      adapterVersion: '1.0',
      startedAt: 1_700_000_000,
      channels: { ...ALL_SUPPORTED, ...options.channels },
    },
  });
  await write(writer);
  return { bytes: sink.bytes(), key };
}

/** Returns a trace of one track with this many consecutive clips of one second. */
export function writeClips(count: number, options?: Parameters<typeof writeTrace>[1]): Promise<Written> {
  return writeTrace(async (writer) => {
    writer.append({ kind: 'session.opened', at: 0, sampleRate: 48_000 });
    writer.append({ kind: 'track.added', at: 1, track: 1, type: 'audio' });
    for (let clip = 1; clip <= count; clip += 1) {
      const shown = { clip, track: 1, base: 'seconds', start: clip, length: 1 } as const;
      writer.append({ kind: 'clip.created', at: clip, ...shown });
      if (clip % 4096 === 0) await writer.flush();
    }
    await writer.seal();
  }, options);
}

/** Opens bytes as a stream of chunks with these lengths. The last length is repeated. */
export function opened(bytes: Uint8Array, ...lengths: readonly number[]): () => AsyncIterable<Uint8Array> {
  return async function* () {
    let at = 0;
    for (let i = 0; at < bytes.length; i += 1) {
      const length = lengths[Math.min(i, lengths.length - 1)] ?? 65_536;
      yield bytes.subarray(at, at + length);
      at += length;
    }
  };
}

/** A small session with an event of most kinds, in order. */
export const SESSION: readonly TraceEvent[] = [
  { kind: 'session.opened', at: 0, sampleRate: 48_000 },
  { kind: 'tempo.map', at: 10 },
  { kind: 'tempo.point', at: 10, start: 0, bpm: 120.5 },
  { kind: 'meter.point', at: 10, start: 0, beats: 4, unit: 4 },
  { kind: 'track.added', at: 20, track: 1, type: 'audio' },
  { kind: 'plugin.added', at: 30, plugin: 1, track: 1, type: 'effect' },
  {
    kind: 'import.added',
    at: 1_000_000,
    source: 1,
    manner: 'copied',
    samplesSha256: 'ab'.repeat(32),
    frames: 480_000,
    rate: 48_000,
    channels: 1,
  },
  {
    kind: 'clip.created',
    at: 1_000_001,
    clip: 1,
    track: 1,
    source: 1,
    base: 'seconds',
    start: 0.25,
    length: 10,
  },
  { kind: 'recording.started', at: 2_000_000, take: 1, track: 1, input: 'hardware' },
  { kind: 'recording.grew', at: 3_000_000, take: 1, frames: 48_000 },
  { kind: 'recording.finished', at: 4_000_000, take: 1, source: 2, frames: 96_000, rate: 48_000 },
  { kind: 'clip.split', at: 5_000_000, clip: 1, right: 2, start: 5 },
  { kind: 'clip.moved', at: 6_000_000, since: 5_000_000, clip: 2, track: 1, start: 20.125 },
  { kind: 'midi.edited', at: 7_000_000, source: 3, added: 12, removed: 0, changed: 300 },
  { kind: 'mixer.changed', at: 8_000_000, control: 'gain' },
  { kind: 'capture.gap', at: 9_000_000, since: 8_000_000, scope: 'mixer', reason: 'overflow' },
  { kind: 'sourceMap.completed', at: 10_000_000, sources: 3, clips: 2 },
  { kind: 'session.saved', at: 10_000_000 },
  { kind: 'export.finished', at: 11_000_000, fileSha256: 'cd'.repeat(32), rerender: 'not_tried' },
];
