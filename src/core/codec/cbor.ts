import { decode, encode, rfc8949EncodeOptions } from 'cborg';
import type { DecodeOptions, EncodeOptions, TagDecodeControl } from 'cborg/interface';
import type { CodecFault, Decoded } from './decoded.js';

/** A decoded CBOR value. Maps are always `Map`: keys of COSE headers are numbers, and `__proto__` is only a key. */
export type CborValue =
  | null
  | undefined
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly CborValue[]
  | ReadonlyMap<CborValue, CborValue>
  | CborTag;

export class CborTag {
  constructor(
    readonly tag: number,
    readonly value: CborValue,
  ) {}
}

export interface CborBudget {
  /** The largest size of the whole item in bytes. */
  readonly bytes: number;
  /** The largest depth of arrays, maps and tags inside each other. */
  readonly depth: number;
  /** The largest number of data items, keys and containers included. */
  readonly items: number;
}

const MAX_MAP_MEMBERS = 1024;
/**
 * The largest number of keys of a map that are numbers, or short texts that begin with a digit. V8 hashes both
 * without a seed, so that anybody can choose keys that collide, and a map costs the square of such keys. A store may
 * hold very many maps. C2PA names its members by texts, and COSE numbers only a few.
 */
const MAX_NUMBER_KEYS = 64;
/** The length of the largest array index, 4294967294, which V8 hashes as a number. */
const MAX_INDEX_DIGITS = 10;

const STRICT_BUDGET: CborBudget = { bytes: 64 * 1024, depth: 16, items: 4096 };

/**
 * Encodes by core deterministic encoding, RFC 8949 section 4.2.1: shortest heads, definite lengths, keys in
 * bytewise order.
 */
export function encodeCbor(value: CborValue): Uint8Array {
  return encode(value, rfc8949EncodeOptions as EncodeOptions);
}

/**
 * Decodes what `encodeCbor` wrote and nothing else. The value is encoded again and must give the same bytes,
 * which decides on key order, duplicates, long heads and indefinite lengths at once. No tags, no floats that
 * are not finite.
 */
export function decodeCborStrict(bytes: Uint8Array): Decoded<CborValue> {
  const over = budgetFault(bytes, STRICT_BUDGET);
  if (over !== undefined) return { ok: false, fault: over };
  try {
    const value = decode(bytes, {
      strict: true,
      useMaps: true,
      allowIndefinite: false,
      allowUndefined: false,
      allowNaN: false,
      allowInfinity: false,
      rejectDuplicateMapKeys: true,
    }) as CborValue;
    // The encoder refuses arrays and maps as keys.
    return Buffer.compare(encodeCbor(value), bytes) === 0
      ? { ok: true, value }
      : { ok: false, fault: 'not_canonical' };
  } catch {
    return { ok: false, fault: 'malformed' };
  }
}

/**
 * Decodes what other writers made: any key order, long heads, indefinite arrays and maps, unknown tags. A
 * duplicate key is malformed here too: two readers could disagree about which one counts (RFC 8949 section
 * 5.6).
 */
export function decodeCborTolerant(bytes: Uint8Array, budget: CborBudget): Decoded<CborValue> {
  const over = budgetFault(bytes, budget);
  if (over !== undefined) return { ok: false, fault: over };
  try {
    return {
      ok: true,
      value: decode(bytes, { useMaps: true, rejectDuplicateMapKeys: true, tags: ANY_TAG }) as CborValue,
    };
  } catch {
    return { ok: false, fault: 'malformed' };
  }
}

/**
 * The table of decoders by tag number. cborg looks up each number that it meets, and this table has a decoder for
 * every number.
 */
const ANY_TAG = new Proxy<NonNullable<DecodeOptions['tags']>>(
  {},
  { get: (_table, tag) => (content: TagDecodeControl) => new CborTag(Number(tag), content() as CborValue) },
);

/**
 * Counts items and depth before anything recursive or allocating sees the bytes. Malformed bytes may pass:
 * the decoder refuses them, and goes no deeper or further than was counted here.
 */
function budgetFault(bytes: Uint8Array, budget: CborBudget): CodecFault | undefined {
  if (bytes.length > budget.bytes) return 'over_budget';
  const open: Container[] = [];
  let items = 0;
  let at = 0;
  while (at < bytes.length) {
    const initial = bytes[at]!;
    const major = initial >> 5;
    const minor = initial & 31;
    if (initial === 0xff) {
      const ended = open.pop();
      // The decoder would take it for a value.
      if (ended === undefined || ended.owed !== Infinity || (ended.isMap && ended.items % 2 === 1))
        return 'malformed';
      at += 1;
    } else {
      const head = headAt(bytes, at, minor);
      if (head === undefined) return undefined;
      items += 1;
      if (items > budget.items) return 'over_budget';
      at = head.end;
      const within = open.at(-1);
      if (within !== undefined) {
        within.owed -= 1;
        within.items += 1;
        if (within.isMap && within.items % 2 === 1) {
          if (isNumberKey(bytes, major, head)) within.numberKeys += 1;
          if (within.items > 2 * MAX_MAP_MEMBERS || within.numberKeys > MAX_NUMBER_KEYS) return 'over_budget';
        }
      }
      if (major === 2 || major === 3) at += minor === 31 ? 0 : head.argument;
      if (major === 4 || major === 5)
        open.push({
          owed: minor === 31 ? Infinity : head.argument * (major - 3),
          items: 0,
          numberKeys: 0,
          isMap: major === 5,
        });
      if (major === 6) open.push({ owed: 1, items: 0, numberKeys: 0, isMap: false });
      if (open.length > budget.depth) return 'over_budget';
    }
    while (open.length > 0 && open.at(-1)!.owed <= 0) open.pop();
  }
  return undefined;
}

/** An item that is not at its end yet. */
interface Container {
  /** The number of its items that are still to come. Infinity until a break (RFC 8949 section 3.2). */
  owed: number;
  items: number;
  numberKeys: number;
  readonly isMap: boolean;
}

interface Head {
  readonly argument: number;
  readonly end: number;
}

/** Reports whether a key is a number (or null, true or false), or a text that may be an array index. */
function isNumberKey(bytes: Uint8Array, major: number, { argument, end }: Head): boolean {
  if (major !== 3) return major === 0 || major === 1 || major === 7;
  const first = bytes[end] ?? 0;
  return argument <= MAX_INDEX_DIGITS && first >= 0x30 && first <= 0x39;
}

function headAt(bytes: Uint8Array, at: number, minor: number): Head | undefined {
  if (minor < 24) return { argument: minor, end: at + 1 };
  if (minor === 31) return { argument: 0, end: at + 1 };
  if (minor > 27) return undefined;
  const width = 1 << (minor - 24);
  if (at + 1 + width > bytes.length) return undefined;
  let argument = 0;
  for (let i = 0; i < width; i += 1) argument = argument * 256 + bytes[at + 1 + i]!;
  return { argument, end: at + 1 + width };
}
