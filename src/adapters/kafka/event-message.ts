import { decodeMessagePackStrict, encodeMessagePack, type MessagePackValue } from '../../codec/messagepack.js';
import { type EventReading, readEvent } from '../../domain/event-reading.js';
import type { ServiceEvent, Topic } from '../../domain/events.js';

/** Of the message's document; documented in deploy/kafka/README.md. */
export const SCHEMA_VERSION = 1;

/** A usage event of 256 counts fits; a nest of array heads in so few bytes does not fill the memory. */
const MAX_BYTES = 32_768;
const MAX_MEMBERS = 256;

/** `{ v, id, kind, key, at, data }` as MessagePack. */
export function encodeEvent({ id, kind, key, at, data }: ServiceEvent): Buffer {
  const bytes = encodeMessagePack({ v: SCHEMA_VERSION, id, kind, key, at, data } as unknown as MessagePackValue);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Takes what `encodeEvent` made for this topic under this key, and nothing else. */
export function decodeEvent(topic: Topic, value: Uint8Array | null, key: string | undefined): EventReading {
  if (value === null) return { ok: false, fault: 'a message without a value' };
  const document = decodeMessagePackStrict(value, MAX_BYTES, MAX_MEMBERS);
  if (!document.ok) return { ok: false, fault: `the value is not a MessagePack document of ours: ${document.fault}` };
  if (typeof document.value !== 'object' || document.value === null || !('v' in document.value)) return { ok: false, fault: 'the schema version is missing' };
  const { v, ...event } = document.value;
  if (v !== SCHEMA_VERSION) return { ok: false, fault: 'the schema version is not known' };
  const reading = readEvent(topic, event);
  return reading.ok && reading.event.key !== key ? { ok: false, fault: "the message's key is not the event's" } : reading;
}

/** What a dead letter says of itself, where it can be read at all. */
export function namesOf(value: Uint8Array | null): { readonly id?: string; readonly kind?: string } {
  const document = value === null ? undefined : decodeMessagePackStrict(value, MAX_BYTES, MAX_MEMBERS);
  if (document?.ok !== true || typeof document.value !== 'object' || document.value === null) return {};
  const { id, kind } = document.value as { readonly [name: string]: MessagePackValue };
  return { ...(typeof id === 'string' ? { id } : {}), ...(typeof kind === 'string' ? { kind } : {}) };
}
