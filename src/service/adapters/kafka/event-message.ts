import type { Authenticator } from '../../../core/codec/authenticator.js';
import {
  decodeMessagePackStrict,
  encodeMessagePack,
  type MessagePackValue,
} from '../../../core/codec/messagepack.js';
import type { ServiceEvent, Topic } from '../../domain/events.js';
import { type EventParseResult, parseEvent } from '../../domain/parse-event.js';
import { headersOf, type Message } from './client.js';

type ReceivedMessage = Pick<Message, 'value' | 'headers'> & { readonly key?: Message['key'] };

/** The version of the message's document, as docs/events.md describes it. */
export const SCHEMA_VERSION = 1;

/** The most bytes of a message. A usage event of 256 counts fits, and nested array heads do not fill the memory. */
const MAX_BYTES = 32_768;
const MAX_MEMBERS = 256;

/** Encodes an event as MessagePack: `{ v, id, kind, key, at, data }`. */
export function encodeEvent({ id, kind, key, at, data }: ServiceEvent): Buffer {
  const bytes = encodeMessagePack({
    v: SCHEMA_VERSION,
    id,
    kind,
    key,
    at,
    data,
  } as unknown as MessagePackValue);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The header of the message authentication code. */
export const MAC_HEADER = 'mac';
/**
 * The reason of a dead letter that this installation did not write, or that was altered.
 */
export const UNAUTHENTICATED =
  'the message is not authenticated: it has no code (MAC) made with a secret of this installation';

/** Returns the headers of an event's message. The code covers its topic and the whole value. */
export function eventHeaders(
  authenticator: Authenticator,
  { topic, id }: ServiceEvent,
  value: Uint8Array,
): Readonly<Record<string, string>> {
  return {
    'schema-version': String(SCHEMA_VERSION),
    'event-id': id,
    [MAC_HEADER]: authenticator.sign(macLabel(topic), value),
  };
}

export interface EventReader {
  readonly authenticator: Authenticator;
  /** Messages without a code are accepted too, while processes of an earlier version still run. */
  readonly acceptWithoutMac: boolean;
}

/**
 * Returns the event that `encodeEvent` wrote for this topic under this key, with the code of `eventHeaders`. Anything
 * else is a fault.
 */
export function decodeEvent(
  { authenticator, acceptWithoutMac }: EventReader,
  topic: Topic,
  message: ReceivedMessage,
): EventParseResult {
  const { value, key } = message;
  // An empty value is sent as none where Node gives empty memory no address, as Node 20 does.
  if (value === null || value.length === 0) return { ok: false, fault: 'the message has no value' };
  const mac = headersOf(message)[MAC_HEADER];
  // Before anything else: bytes that strangers wrote are not even parsed.
  if (mac === undefined ? !acceptWithoutMac : !authenticator.verify(macLabel(topic), value, mac))
    return { ok: false, fault: UNAUTHENTICATED };
  const document = decodeMessagePackStrict(value, MAX_BYTES, MAX_MEMBERS);
  if (!document.ok)
    return {
      ok: false,
      fault: `the value is not a MessagePack document that this service would write: ${document.fault}`,
    };
  if (typeof document.value !== 'object' || document.value === null || !('v' in document.value))
    return { ok: false, fault: 'the schema version is missing' };
  const { v, ...event } = document.value;
  if (v !== SCHEMA_VERSION) return { ok: false, fault: 'the schema version is unknown' };
  const reading = parseEvent(topic, event);
  return reading.ok && reading.event.key !== key?.toString()
    ? { ok: false, fault: "the key of the message differs from the event's key" }
    : reading;
}

function macLabel(topic: Topic): string {
  return `event/${topic}`;
}

/** Returns the id and the kind that a dead letter gives itself, if it can be read at all. */
export function namesOf(value: Uint8Array | null): { readonly id?: string; readonly kind?: string } {
  const document = value === null ? undefined : decodeMessagePackStrict(value, MAX_BYTES, MAX_MEMBERS);
  if (document?.ok !== true || typeof document.value !== 'object' || document.value === null) return {};
  const { id, kind } = document.value as { readonly [name: string]: MessagePackValue };
  return { ...(typeof id === 'string' ? { id } : {}), ...(typeof kind === 'string' ? { kind } : {}) };
}
