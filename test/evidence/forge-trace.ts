import { encode } from '@msgpack/msgpack';
import { DeviceKey } from '../../src/witness/capture/index.js';
import { CHANNELS, TRACE_LIMITS } from '../../src/witness/domain/trace.js';
import type { OpenTrace } from '../../src/witness/trace/read-trace.js';
import { headOfHeader, headOfSegment, signedMessage } from '../../src/witness/trace/trace-chain.js';
import {
  encodeHeaderFrame,
  encodeSegmentFrame,
  encodeSignatureFrame,
} from '../../src/witness/trace/trace-frames.js';

const KEY = DeviceKey.generate();

/** Returns the members of a header as a map, in order. */
export function headerMap(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    version: 1,
    traceId: new Uint8Array(16),
    adapter: 'forged',
    adapterVersion: '1',
    startedAt: 1_700_000_000,
    simulated: false,
    channels: Object.fromEntries(CHANNELS.map((channel) => [channel, 'supported'])),
    algorithm: 'Ed25519',
    publicKey: KEY.publicKey,
    ...changes,
  };
}

/** Encodes events that no writer of ours would write, given as the arrays of the file. */
export function body(...events: readonly unknown[]): Buffer {
  return Buffer.concat(events.map((event) => encode(event)));
}

/** Frames of a trace of any content, each rightly chained and signed. */
export class Forge {
  #head: Buffer;
  #segments = 0;
  readonly header: Buffer;

  constructor(header: Uint8Array = encode(headerMap())) {
    this.#head = headOfHeader(header);
    this.header = encodeHeaderFrame(header);
  }

  segment(bytes: Uint8Array, firstEvent: number, sequence = this.#segments): Buffer {
    this.#head = headOfSegment(this.#head, { sequence, firstEvent, body: bytes });
    this.#segments += 1;
    return encodeSegmentFrame(sequence, firstEvent, bytes);
  }

  sign(final: boolean): Buffer {
    const message = signedMessage(final, this.#segments, this.#head);
    return encodeSignatureFrame(final, this.#segments, this.#head, KEY.sign(message));
  }
}

/** Returns a sealed trace with one segment of these events. */
export function forged(...events: readonly unknown[]): Buffer {
  const forge = new Forge();
  return Buffer.concat([forge.header, forge.segment(body(...events), 0), forge.sign(true)]);
}

/** Returns a sealed trace of so many events, each made when it is read. Each reading gives the same bytes. */
export function lazily(
  count: number,
  event: (index: number) => Buffer,
  first: readonly unknown[] = [],
): OpenTrace {
  return async function* () {
    const forge = new Forge();
    yield forge.header;
    let firstEvent = 0;
    let parts = [body(...first)];
    let events = first.length;
    let bytes = parts[0]!.length;
    for (let index = 0; index < count; index += 1) {
      const part = event(index);
      if (bytes + part.length > TRACE_LIMITS.segmentBytes) {
        yield forge.segment(Buffer.concat(parts), firstEvent);
        firstEvent = events;
        parts = [];
        bytes = 0;
      }
      parts.push(part);
      bytes += part.length;
      events += 1;
    }
    yield forge.segment(Buffer.concat(parts), firstEvent);
    yield forge.sign(true);
  };
}
