import { decode, encode } from '@msgpack/msgpack';

/** Encodes a value as MessagePack. Members that are undefined are left out. */
export function encodeDocument(value: unknown): Uint8Array {
  return encode(value, { ignoreUndefined: true });
}

/** @param bytes what `encodeDocument` wrote, proven by a digest: no hostile form is looked for */
export function decodeDocument(bytes: Uint8Array): unknown {
  return decode(bytes);
}
