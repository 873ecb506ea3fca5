/**
 * Events of a trace in MessagePack, by the table of `src/witness/domain/trace.ts`: what is written is what is read. Each value has
 * one encoding: the shortest integer where a number is whole, else a float of 64 bits.
 */
import {
  EVENTS,
  type EventKind,
  type FieldType,
  TRACE_LIMITS,
  type TraceEvent,
  TraceFault,
} from '../domain/trace.js';

/** The limit of an event in bytes. */
export const MAX_EVENT_BYTES = 256;

/** Fields before those of the event's own kind: number, at, since. */
const COMMON_FIELDS = 3;
const DIGEST_BYTES = 32;

interface Field {
  readonly name: string;
  readonly optional: boolean;
  readonly type: FieldType;
}

interface Shape {
  readonly kind: EventKind;
  readonly number: number;
  readonly fields: readonly Field[];
  /** Names that the event's object may have. */
  readonly members: ReadonlySet<string>;
}

const SHAPES: readonly Shape[] = (Object.keys(EVENTS) as EventKind[]).map((kind) => {
  const { number, fields: shape } = EVENTS[kind];
  const fields = Object.entries<FieldType>(shape).map(([name, type]) =>
    name.endsWith('?') ? { name: name.slice(0, -1), optional: true, type } : { name, optional: false, type },
  );
  return {
    kind,
    number,
    fields,
    members: new Set(['kind', 'at', 'since', ...fields.map(({ name }) => name)]),
  };
});
const BY_KIND: ReadonlyMap<string, Shape> = new Map(SHAPES.map((shape) => [shape.kind, shape]));
/** The shapes, each at the index of its number. */
const BY_NUMBER: readonly (Shape | undefined)[] = SHAPES.reduce<(Shape | undefined)[]>((found, shape) => {
  found[shape.number] = shape;
  return found;
}, []);

/** The types of whole numbers, with their least and greatest value. */
const WHOLE: Readonly<Partial<Record<string, readonly [number, number]>>> = {
  id: [0, 0xffff_ffff],
  count: [0, 0xffff_ffff],
  frames: [0, Number.MAX_SAFE_INTEGER],
  rate: [1, 6_144_000],
  small: [1, 256],
};
const MAX_TEMPO = 10_000;

/**
 * Writes an event at `at`. `MAX_EVENT_BYTES` must be free there.
 * @returns the position after it
 * @throws TraceFault if the event is not in the vocabulary
 */
export function encodeTraceEvent(event: TraceEvent, into: Buffer, at: number): number {
  const shape = BY_KIND.get(event.kind);
  if (shape === undefined) throw new TraceFault('an event has an unknown kind');
  const values = event as unknown as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(values))
    if (!shape.members.has(name)) throw new TraceFault(`${shape.kind}: a member is unknown`);
  into[at] = 0x90 | (shape.fields.length + COMMON_FIELDS);
  let end = putWhole(into, at + 1, shape.number);
  end = putWhole(into, end, wholeValue(shape, 'at', event.at, 0, TRACE_LIMITS.time));
  if (event.since === undefined) into[end++] = 0xc0;
  else end = putWhole(into, end, wholeValue(shape, 'since', event.since, 0, event.at));
  for (const { name, optional, type } of shape.fields) {
    const value = values[name];
    if (value !== undefined) end = putField(into, end, shape, name, type, value);
    else if (optional) into[end++] = 0xc0;
    else throw new TraceFault(`${shape.kind}: ${name} is missing`);
  }
  return end;
}

function putField(
  into: Buffer,
  at: number,
  shape: Shape,
  name: string,
  type: FieldType,
  value: unknown,
): number {
  if (typeof type !== 'string') {
    const index = type.indexOf(value as string);
    if (index < 0) throw new TraceFault(`${shape.kind}: ${name} is not one of the allowed words`);
    return putWhole(into, at, index);
  }
  if (type === 'flag') {
    if (typeof value !== 'boolean') throw new TraceFault(`${shape.kind}: ${name} is neither true nor false`);
    into[at] = value ? 0xc3 : 0xc2;
    return at + 1;
  }
  if (type === 'sha256') {
    if (typeof value !== 'string' || !/^[0-9a-f]{64}$/.test(value))
      throw new TraceFault(`${shape.kind}: ${name} is not a SHA-256 in lower-case hex`);
    into[at] = 0xc4;
    into[at + 1] = DIGEST_BYTES;
    return at + 2 + into.write(value, at + 2, 'hex');
  }
  const whole = WHOLE[type];
  if (whole !== undefined) return putWhole(into, at, wholeValue(shape, name, value, ...whole));
  const number = checkReal(shape, name, type, value);
  if (Number.isInteger(number)) return putWhole(into, at, number === 0 ? 0 : number);
  into[at] = 0xcb;
  return into.writeDoubleBE(number, at + 1);
}

function putWhole(into: Buffer, at: number, value: number): number {
  if (value < 0x80) return into.writeUInt8(value, at);
  if (value < 0x100) {
    into[at] = 0xcc;
    return into.writeUInt8(value, at + 1);
  }
  if (value < 0x1_0000) {
    into[at] = 0xcd;
    return into.writeUInt16BE(value, at + 1);
  }
  if (value < 0x1_0000_0000) {
    into[at] = 0xce;
    return into.writeUInt32BE(value, at + 1);
  }
  into[at] = 0xcf;
  into.writeUInt32BE(Math.floor(value / 0x1_0000_0000), at + 1);
  return into.writeUInt32BE(value % 0x1_0000_0000, at + 5);
}

/** Returns the number that an event has for an id. Two ids never share one. */
export type IdOf = (id: number) => number;

/**
 * Reads the events of a segment's body, in order.
 * @param idOf gives ids other numbers; by default they stay as they are
 * @throws TraceFault at bytes that `encodeTraceEvent` would not have written
 */
export function* decodeTraceEvents(
  body: Buffer,
  idOf: IdOf = (id) => id,
): Generator<TraceEvent, void, undefined> {
  const cursor = new Cursor(body);
  while (cursor.at < body.length) yield decodeEvent(cursor, idOf);
}

function decodeEvent(cursor: Cursor, idOf: IdOf): TraceEvent {
  const head = cursor.byte();
  if (head < 0x90 + COMMON_FIELDS || head > 0x9f)
    throw new TraceFault('an event is not an array of the expected length');
  const shape = BY_NUMBER[cursor.whole('number', 0xffff)];
  if (shape === undefined) throw new TraceFault('an event has an unknown number');
  const { kind, fields } = shape;
  if (head !== (0x90 | (fields.length + COMMON_FIELDS)))
    throw new TraceFault(`${kind}: the event has the wrong number of fields`);
  const at = cursor.whole('at', TRACE_LIMITS.time);
  const event: Record<string, unknown> = { kind, at };
  if (!cursor.takeNull()) event['since'] = cursor.whole('since', at);
  for (const { name, optional, type } of fields) {
    if (optional && cursor.takeNull()) continue;
    const value = takeField(cursor, shape, name, type);
    event[name] = type === 'id' ? idOf(value as number) : value;
  }
  return event as unknown as TraceEvent;
}

function takeField(cursor: Cursor, shape: Shape, name: string, type: FieldType): unknown {
  if (typeof type !== 'string') return type[cursor.whole(name, type.length - 1)];
  if (type === 'sha256') return cursor.digest(name);
  if (type === 'flag') return cursor.flag(name);
  const whole = WHOLE[type];
  if (whole !== undefined) return wholeValue(shape, name, cursor.whole(name, whole[1]), ...whole);
  return checkReal(shape, name, type, cursor.number(name));
}

function wholeValue(shape: Shape, name: string, value: unknown, least: number, most: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least || value > most)
    throw new TraceFault(`${shape.kind}: ${name} is not a whole number in the allowed range`);
  return value;
}

function checkReal(shape: Shape, name: string, type: string, value: unknown): number {
  const most = type === 'tempo' ? MAX_TEMPO : TRACE_LIMITS.place;
  // NaN fails each comparison.
  if (typeof value !== 'number' || !(value >= 0 && value <= most) || (type === 'tempo' && value === 0))
    throw new TraceFault(`${shape.kind}: ${name} is not a number in the allowed range`);
  return value;
}

/** A reader of single values that never reads past its bytes. */
class Cursor {
  at = 0;

  constructor(readonly bytes: Buffer) {}

  byte(): number {
    return this.bytes[this.#take(1)]!;
  }

  takeNull(): boolean {
    if (this.bytes[this.at] !== 0xc0) return false;
    this.at += 1;
    return true;
  }

  flag(name: string): boolean {
    const head = this.byte();
    if (head !== 0xc2 && head !== 0xc3) throw new TraceFault(`${name} is neither true nor false`);
    return head === 0xc3;
  }

  digest(name: string): string {
    if (this.byte() !== 0xc4 || this.byte() !== DIGEST_BYTES)
      throw new TraceFault(`${name} is not a SHA-256`);
    const start = this.#take(DIGEST_BYTES);
    return this.bytes.toString('hex', start, start + DIGEST_BYTES);
  }

  /** Reads a whole number from 0 to `most` in its shortest form. */
  whole(name: string, most: number): number {
    const head = this.byte();
    const value = head < 0x80 ? head : this.#long(head, name);
    if (value > most) throw new TraceFault(`${name} is not a whole number in the allowed range`);
    return value;
  }

  /** Reads a number, whose form is a float only if the number is not whole. */
  number(name: string): number {
    if (this.bytes[this.at] !== 0xcb) return this.whole(name, Number.MAX_SAFE_INTEGER);
    this.at += 1;
    const value = this.bytes.readDoubleBE(this.#take(8));
    if (Number.isInteger(value)) throw new TraceFault(`${name} is not in its shortest form`);
    return value;
  }

  #long(head: number, name: string): number {
    let value: number;
    let least: number;
    if (head === 0xcc) [value, least] = [this.byte(), 0x80];
    else if (head === 0xcd) [value, least] = [this.bytes.readUInt16BE(this.#take(2)), 0x100];
    else if (head === 0xce) [value, least] = [this.bytes.readUInt32BE(this.#take(4)), 0x1_0000];
    else if (head === 0xcf) {
      const start = this.#take(8);
      value = this.bytes.readUInt32BE(start) * 0x1_0000_0000 + this.bytes.readUInt32BE(start + 4);
      least = 0x1_0000_0000;
    } else throw new TraceFault(`${name} is not a number from 0`);
    if (value < least) throw new TraceFault(`${name} is not in its shortest form`);
    return value;
  }

  #take(count: number): number {
    const start = this.at;
    if (start + count > this.bytes.length)
      throw new TraceFault('an event extends beyond the end of its segment');
    this.at = start + count;
    return start;
  }
}
