import { decode, encode } from '@msgpack/msgpack';
import type { Decoded } from './decoded.js';

/** A decoded MessagePack value. Map keys are text. */
export type MessagePackValue =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly MessagePackValue[]
  | { readonly [key: string]: MessagePackValue };

/** Encodes with shortest heads; maps keep the order of their members. */
export function encodeMessagePack(value: MessagePackValue): Uint8Array {
  return encode(value, { maxDepth: 8 });
}

/**
 * The largest number of members of an array or map. The library reserves an array's memory when it reads the
 * array's head, so a nest of heads that promise much would fill the memory.
 */
const MAX_MEMBERS = 64;

/**
 * Decodes what `encodeMessagePack` wrote and nothing else. The library by itself takes duplicate keys and
 * long integers, so the value is encoded again and must give the same bytes.
 * @param maxBytes refused unread above it
 * @param maxMembers of an array or map
 */
export function decodeMessagePackStrict(
  bytes: Uint8Array,
  maxBytes: number,
  maxMembers = MAX_MEMBERS,
): Decoded<MessagePackValue> {
  if (bytes.length > maxBytes) return { ok: false, fault: 'over_budget' };
  try {
    const value = decode(bytes, {
      maxStrLength: maxBytes,
      maxBinLength: maxBytes,
      maxArrayLength: maxMembers,
      maxMapLength: maxMembers,
      maxExtLength: 0,
    }) as MessagePackValue;
    // Extension types decode to objects of their own classes, and deep nesting is refused, by the encoder
    // below.
    return Buffer.compare(encodeMessagePack(value), bytes) === 0
      ? { ok: true, value }
      : { ok: false, fault: 'not_canonical' };
  } catch {
    return { ok: false, fault: 'malformed' };
  }
}
