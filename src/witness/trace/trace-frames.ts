/** Frames of a trace: the MessagePack arrays that the file is a sequence of. Each frame has one encoding. */
import { TRACE_LIMITS } from '../domain/trace.js';
import { SIGNATURE_BYTES } from './trace-chain.js';

const HEAD_BYTES = 32;
/** The limit of a frame in bytes: its two heads, two integers of 9 bytes, the body's head and the body. */
export const MAX_FRAME_BYTES = TRACE_LIMITS.segmentBytes + 32;
/** The limit of a signature's frame in bytes. */
export const MAX_SIGNATURE_FRAME_BYTES = 2 + 9 + 2 + HEAD_BYTES + 2 + SIGNATURE_BYTES;

/** A frame whose bytes are views. They are valid until the next frame is asked for. */
export type TraceFrame =
  | { readonly kind: 'header'; readonly bytes: Buffer }
  | {
      readonly kind: 'segment';
      readonly sequence: number;
      readonly firstEvent: number;
      readonly body: Buffer;
    }
  | {
      readonly kind: 'signature';
      readonly final: boolean;
      /** The number of segments that it covers, from the start on. */
      readonly segments: number;
      /** The head of the chain after these segments. */
      readonly head: Buffer;
      readonly signature: Buffer;
    };

export function encodeHeaderFrame(header: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(0x92, 0), binHead(header.length), header]);
}

export function encodeSegmentFrame(sequence: number, firstEvent: number, body: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(0x94, 1), whole(sequence), whole(firstEvent), binHead(body.length), body]);
}

export function encodeSignatureFrame(
  final: boolean,
  segments: number,
  head: Uint8Array,
  signature: Uint8Array,
): Buffer {
  return Buffer.concat([
    Buffer.of(0x94, final ? 3 : 2),
    whole(segments),
    binHead(head.length),
    head,
    binHead(signature.length),
    signature,
  ]);
}

function binHead(length: number): Buffer {
  if (length < 0x100) return Buffer.of(0xc4, length);
  if (length < 0x1_0000) return Buffer.of(0xc5, length >> 8, length & 0xff);
  return Buffer.of(0xc6, 0, length >> 16, (length >> 8) & 0xff, length & 0xff);
}

function whole(value: number): Buffer {
  if (value < 0x80) return Buffer.of(value);
  const bytes = Buffer.alloc(9);
  bytes.writeBigUInt64BE(BigInt(value), 1);
  for (const { head, width, below } of WIDTHS)
    if (value < below) {
      bytes[8 - width] = head;
      return bytes.subarray(8 - width);
    }
  throw new RangeError('a number in a frame is too large');
}

/** The heads of long integers, each with the first value that needs a longer one. */
const WIDTHS = [
  { head: 0xcc, width: 1, below: 0x100 },
  { head: 0xcd, width: 2, below: 0x1_0000 },
  { head: 0xce, width: 4, below: 0x1_0000_0000 },
  { head: 0xcf, width: 8, below: Number.MAX_SAFE_INTEGER + 1 },
] as const;

/**
 * Splits a stream of any chunks into frames. A frame's length is judged from its head, before anything of it is kept;
 * the memory is that of the longest frame.
 */
export class FrameSplitter {
  readonly #buffer = Buffer.allocUnsafeSlow(MAX_FRAME_BYTES);
  #length = 0;
  /** The number of bytes of the frame that have to be there before it is looked at again. */
  #wanted = 1;
  #end = 0;
  #damaged = false;

  /** The position in the stream after the last whole frame. */
  get end(): number {
    return this.#end;
  }

  /** True once bytes came that are no frame; the position is `end`. Nothing is read any more. */
  get damaged(): boolean {
    return this.#damaged;
  }

  *push(chunk: Uint8Array): Generator<TraceFrame, void, undefined> {
    let at = 0;
    while (at < chunk.length && !this.#damaged) {
      const count = Math.min(this.#wanted - this.#length, chunk.length - at);
      this.#buffer.set(chunk.subarray(at, at + count), this.#length);
      this.#length += count;
      at += count;
      if (this.#length < this.#wanted) return;
      const step = new FrameHead(this.#buffer.subarray(0, this.#length)).read();
      if (step === undefined) this.#damaged = true;
      else if (typeof step === 'number') this.#wanted = step;
      else {
        this.#end += this.#length;
        this.#length = 0;
        this.#wanted = 1;
        yield step;
      }
    }
  }
}

/** The signals within this file alone: the frame wants so many bytes, or the bytes are no frame (`NoFrame`). */
class Incomplete {
  constructor(readonly wanted: number) {}
}
class NoFrame {}

class FrameHead {
  #at = 0;

  constructor(private readonly bytes: Buffer) {}

  /** @returns the frame, or the bytes that it takes to go on, or undefined where this is none */
  read(): TraceFrame | number | undefined {
    try {
      const frame = this.#frame();
      return this.#at === this.bytes.length ? frame : undefined;
    } catch (thrown) {
      if (thrown instanceof Incomplete) return thrown.wanted;
      if (thrown instanceof NoFrame) return undefined;
      throw thrown;
    }
  }

  #frame(): TraceFrame {
    const members = this.#byte();
    if (members !== 0x92 && members !== 0x94) throw new NoFrame();
    const kind = this.#byte();
    if (members === 0x92) {
      if (kind !== 0) throw new NoFrame();
      return { kind: 'header', bytes: this.#bin(1, TRACE_LIMITS.headerBytes) };
    }
    if (kind === 1)
      return {
        kind: 'segment',
        sequence: this.#whole(),
        firstEvent: this.#whole(),
        body: this.#bin(1, TRACE_LIMITS.segmentBytes),
      };
    if (kind !== 2 && kind !== 3) throw new NoFrame();
    return {
      kind: 'signature',
      final: kind === 3,
      segments: this.#whole(),
      head: this.#bin(HEAD_BYTES, HEAD_BYTES),
      signature: this.#bin(SIGNATURE_BYTES, SIGNATURE_BYTES),
    };
  }

  #whole(): number {
    const first = this.#byte();
    if (first < 0x80) return first;
    const form = WIDTHS.find(({ head }) => head === first);
    if (form === undefined) throw new NoFrame();
    const start = this.#take(form.width);
    let value = 0;
    for (let i = 0; i < form.width; i += 1) value = value * 256 + this.bytes[start + i]!;
    const least = form.width === 1 ? 0x80 : 256 ** (form.width / 2);
    if (value < least || !Number.isSafeInteger(value)) throw new NoFrame();
    return value;
  }

  /** Reads a byte string in its shortest form, and refuses it by its head if its length is out of bounds. */
  #bin(least: number, most: number): Buffer {
    const head = this.#byte();
    if (head < 0xc4 || head > 0xc6) throw new NoFrame();
    const width = 1 << (head - 0xc4);
    const at = this.#take(width);
    const length = this.bytes.readUIntBE(at, width);
    if (length < least || length > most || (width > 1 && length < 256 ** (width / 2))) throw new NoFrame();
    const start = this.#take(length);
    return this.bytes.subarray(start, start + length);
  }

  #byte(): number {
    return this.bytes[this.#take(1)]!;
  }

  #take(count: number): number {
    const start = this.#at;
    if (start + count > this.bytes.length) throw new Incomplete(start + count);
    this.#at = start + count;
    return start;
  }
}
