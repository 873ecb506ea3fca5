/** Traces whose size is small for the work that they demand. Each is a valid trace, signed by its device. */
import { TRACE_LIMITS } from '../../src/witness/domain/trace.js';
import { MAX_DERIVATIONS } from '../../src/witness/replay/source-map.js';
import { writeTrace } from '../capture/write-trace.js';
import { body, Forge } from './forge-trace.js';

const EXPORTED = 'ee'.repeat(32);
const FLUSH_EVENTS = 4096;

/** The sizes of the traces. The defaults are as large as they may be. */
export interface CostlySizes {
  /** Imports that all lead to every derived source. */
  readonly imports: number;
  readonly sources: number;
  readonly clips: number;
  readonly derivations: number;
}

const LARGEST: CostlySizes = {
  imports: 256,
  sources: TRACE_LIMITS.live.sources - 512,
  clips: TRACE_LIMITS.live.clips,
  derivations: MAX_DERIVATIONS,
};

/** Returns a trace in which every import leads to every derived source. Clips show each of these sources. */
export async function manyDescendants(sizes: Partial<CostlySizes> = {}): Promise<Buffer> {
  const { imports, sources, clips, derivations } = { ...LARGEST, ...sizes };
  const { bytes } = await writeTrace(async (writer) => {
    const flush = async (count: number): Promise<void> => {
      if (count % FLUSH_EVENTS === 0) await writer.flush();
    };
    writer.append({ kind: 'track.added', at: 0, track: 1, type: 'audio' });
    for (let source = 1; source <= imports; source += 1)
      writer.append({ kind: 'import.added', at: 1, source, manner: 'copied' });
    const first = imports + 1;
    let made = 0;
    const derive = async (source: number, from: number): Promise<void> => {
      if (made >= derivations) return;
      made += 1;
      writer.append({ kind: 'source.derived', at: 2, source, from, manner: 'combine' });
      await flush(made);
    };
    for (let from = 1; from <= imports; from += 1) await derive(first, from);
    for (let next = 1; next < sources; next += 1) await derive(first + next, first + next - 1);
    // The rest of the derivations closes circles of different lengths.
    for (let step = 2; made < derivations; step += 1)
      for (let next = 0; next < sources; next += 1)
        await derive(first + next, first + ((next + step) % sources));
    for (let clip = 1; clip <= clips; clip += 1) {
      const shown = { clip, track: 1, base: 'seconds', start: (clip * 7) % clips, length: 1.5 } as const;
      writer.append({ kind: 'clip.created', at: 3, source: first + (clip % sources), ...shown });
      await flush(clip);
    }
    await writer.seal();
  });
  return bytes;
}

/** Exports of an arrangement in beats under a tempo that ramps, with a change before each. */
export async function manyExports(exports = 990, clips = 20_000): Promise<Buffer> {
  const { bytes } = await writeTrace(async (writer) => {
    writer.append({ kind: 'tempo.map', at: 0 });
    for (let start = 0; start < 4096; start += 1)
      writer.append({ kind: 'tempo.point', at: 0, start, bpm: 60 + (start % 90), endBpm: 150 });
    writer.append({ kind: 'track.added', at: 0, track: 1, type: 'audio' });
    writer.append({ kind: 'import.added', at: 1, source: 1, manner: 'copied' });
    for (let clip = 1; clip <= clips; clip += 1) {
      const shown = { clip, track: 1, source: 1, base: 'beats', start: clip / 7, length: 1.3 } as const;
      writer.append({ kind: 'clip.created', at: 2, ...shown });
      if (clip % FLUSH_EVENTS === 0) await writer.flush();
    }
    for (let index = 1; index <= exports; index += 1) {
      writer.append({ kind: 'clip.moved', at: 2 + index, clip: 1, track: 1, start: index });
      writer.append({
        kind: 'export.finished',
        at: 2 + index,
        fileSha256: EXPORTED,
        frames: 48_000,
        rate: 48_000,
        rerender: 'matched',
      });
    }
    await writer.seal();
  });
  return bytes;
}

/** Returns a sealed trace of signatures over one event each. */
export function manySignatures(signatures: number): Buffer {
  const forge = new Forge();
  const frames: Uint8Array[] = [forge.header];
  const saved = body([2, 0, null]);
  for (let index = 0; index < signatures; index += 1)
    frames.push(forge.segment(saved, index), forge.sign(index === signatures - 1));
  return Buffer.concat(frames);
}

/** Returns a sealed trace of events of the shortest kind. */
export function manyEvents(events: number): Buffer {
  const forge = new Forge();
  const saved = body([2, 0, null]);
  const most = Math.floor(TRACE_LIMITS.segmentBytes / saved.length);
  const frames: Uint8Array[] = [forge.header];
  for (let first = 0; first < events; first += most)
    frames.push(forge.segment(Buffer.alloc(Math.min(most, events - first) * saved.length, saved), first));
  return Buffer.concat([...frames, forge.sign(true)]);
}
