/** Parses events that arrive from outside the process: from a bus or a file. */
import {
  type ErasureEvent,
  EXPIRY_NOTICE_SECONDS,
  proofErased,
  REVIEW_REMINDERS,
  type RetentionEvent,
  type ReviewReminderKind,
  reminderDue,
  reviewCreated,
  type ServiceEvent,
  type Topic,
  type UsageEvent,
  unitsCounted,
} from './events.js';

/** An event, or the fault of an invalid event. The fault contains nothing from the value. */
export type EventParseResult =
  | { readonly ok: true; readonly event: ServiceEvent }
  | { readonly ok: false; readonly fault: string };

type Shape = Readonly<Record<string, (value: unknown) => boolean>>;

const MAX_TEXT = 256;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

const isText = (value: unknown): boolean =>
  typeof value === 'string' && value.length > 0 && value.length <= MAX_TEXT;
const isWithin = (value: unknown, least: number, most: number): boolean =>
  Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
/**
 * Checks a count that a store accepts. An event with a number that the store refuses would be redelivered
 * endlessly.
 */
const isCount = (value: unknown): boolean => isWithin(value, 0, 2 ** 31 - 1);
const isTime = (value: unknown): boolean => isWithin(value, 0, 2 ** 32 - 1);
const isExpiry = (value: unknown): boolean => isWithin(value, EXPIRY_NOTICE_SECONDS, 2 ** 32 - 1);
const isDay = (value: unknown): boolean => typeof value === 'string' && DAY.test(value);

const ENVELOPE: Shape = { id: isText, kind: isText, key: isText, at: isTime, data: isRecord };
const USAGE_COUNT: Shape = { day: isDay, operation: isText, units: isCount };
const DATA: Readonly<Record<Topic, Shape>> = {
  erasure: { proofId: isText, partnerId: isText, erasedAt: isTime },
  usage: {
    partnerId: isText,
    source: isText,
    from: isCount,
    to: isCount,
    counts: (value) =>
      Array.isArray(value) &&
      value.every((count) => isRecord(count) && shapeFault(count, USAGE_COUNT) === undefined),
  },
  retention: { reviewId: isText, partnerId: isText, proofId: isText, expiresAt: isExpiry },
};

/** Parses `{ id, kind, key, at, data }` and accepts only what this service writes to the topic. */
export function parseEvent(topic: Topic, value: unknown): EventParseResult {
  if (!isRecord(value)) return { ok: false, fault: 'not an event' };
  const fault =
    shapeFault(value, ENVELOPE) ?? shapeFault(value['data'] as Record<string, unknown>, DATA[topic], 'data.');
  if (fault !== undefined) return { ok: false, fault };
  const event = made(topic, value['kind'] as string, value['at'] as number, value['data']);
  if (event === undefined) return { ok: false, fault: 'the topic has no events of this kind' };
  // These members are derived from the data. If one differs, this service did not make the event.
  const odd = (['id', 'key', 'at'] as const).find((member) => event[member] !== value[member]);
  return odd === undefined
    ? { ok: true, event }
    : { ok: false, fault: `${odd} does not match the value derived from data` };
}

function made(topic: Topic, kind: string, at: number, data: unknown): ServiceEvent | undefined {
  if (topic === 'erasure')
    return kind === 'proof_erased' ? proofErased(data as ErasureEvent['data']) : undefined;
  if (topic === 'usage')
    return kind === 'units_counted' ? unitsCounted(data as UsageEvent['data'], at) : undefined;
  const about = data as RetentionEvent['data'];
  if (kind === 'review_created') return reviewCreated({ ...about, createdAt: at });
  return (REVIEW_REMINDERS as readonly string[]).includes(kind)
    ? reminderDue({ ...about, kind: kind as ReviewReminderKind, dueAt: at })
    : undefined;
}

/** Returns the fault of a value, unless it has exactly the members of the shape with valid values. */
function shapeFault(value: Readonly<Record<string, unknown>>, shape: Shape, path = ''): string | undefined {
  for (const [name, check] of Object.entries(shape)) {
    if (!Object.hasOwn(value, name)) return `${path}${name} is missing`;
    if (!check(value[name])) return `${path}${name} is not valid`;
  }
  return Object.keys(value).length === Object.keys(shape).length
    ? undefined
    : `${path === '' ? 'the event' : 'data'} has an unknown member`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
  );
}
