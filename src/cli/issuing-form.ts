import { randomBytes } from 'node:crypto';
import type { AudioSource } from '../client/source.js';

/** The files that are sent beside the audio when a proof is issued. */
export interface EvidenceFiles {
  readonly trace: AudioSource;
  /** The summary as JSON (docs/evidence.md), like the detections. */
  readonly summary?: Uint8Array;
  readonly detections?: Uint8Array;
}

/** Returns the form of an issuing with a trace. It reads fields, trace and audio, in this order, as it is sent. */
export function issuingForm(
  { trace, summary, detections }: EvidenceFiles,
  audio: AudioSource,
): { readonly contentType: string; readonly source: AudioSource } {
  const boundary = `takemark-${randomBytes(16).toString('hex')}`;
  const head = (disposition: string, type: string): Buffer =>
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\nContent-Type: ${type}\r\n\r\n`,
    );
  const end = Buffer.from('\r\n');
  const fields = Object.entries({ summary, detections }).flatMap(([name, json]) =>
    json === undefined ? [] : [head(`name="${name}"`, 'application/json'), json, end],
  );
  const parts: readonly (Uint8Array | AudioSource)[] = [
    ...fields,
    head('name="trace"; filename="trace"', 'application/octet-stream'),
    trace,
    end,
    head('name="file"; filename="audio"', 'application/octet-stream'),
    audio,
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ];
  const lengths = parts.map((part) => (part instanceof Uint8Array ? part.length : part.bytes));
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    source: {
      bytes: lengths.some((length) => length === undefined)
        ? undefined
        : lengths.reduce<number>((sum, length = 0) => sum + length, 0),
      reopenable: trace.reopenable && audio.reopenable,
      open: () => joined(parts),
    },
  };
}

async function* joined(parts: readonly (Uint8Array | AudioSource)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    if (part instanceof Uint8Array) yield part;
    else yield* part.open();
  }
}
