import t from 'tap';
import {
  proofErased,
  reminderDue,
  remindersOf,
  reviewCreated,
  type ServiceEvent,
  unitsCounted,
} from '../../src/service/domain/events.js';
import { parseEvent } from '../../src/service/domain/parse-event.js';

const AT = 1_774_915_200;
const counts = [{ day: '2026-03-31', operation: 'verify', units: 2 }];
const usage = (over: object = {}) =>
  unitsCounted({ partnerId: 'ptr_1', source: 'billed/2026-03', from: 4, to: 6, counts, ...over }, AT);
const created = (over: object = {}) =>
  reviewCreated({
    reviewId: 'rev_1',
    partnerId: 'ptr_1',
    proofId: 'prf_1',
    createdAt: AT,
    expiresAt: AT + 180 * 86_400,
    ...over,
  });
const untopical = ({ topic: _, ...event }: ServiceEvent) => event;

void t.test('every event that is made here parses to itself', async (t) => {
  const own = [
    proofErased({ proofId: 'prf_1', partnerId: 'ptr_1', erasedAt: AT }),
    usage(),
    created(),
    ...remindersOf(created()).map(reminderDue),
  ];
  for (const event of own)
    t.strictSame(parseEvent(event.topic, untopical(event)), { ok: true, event }, event.kind);
});

void t.test('numbers that no store takes are refused', async (t) => {
  const refused: readonly (readonly [event: ServiceEvent, fault: string])[] = [
    [proofErased({ proofId: 'prf_1', partnerId: 'ptr_1', erasedAt: 2 ** 32 }), 'at is not valid'],
    [usage({ to: 2 ** 31 }), 'data.to is not valid'],
    [usage({ counts: [{ ...counts[0], units: 2 ** 31 }] }), 'data.counts is not valid'],
    [created({ expiresAt: 9e12 }), 'data.expiresAt is not valid'],
    [created({ expiresAt: 0 }), 'data.expiresAt is not valid'],
  ];
  for (const [event, fault] of refused)
    t.strictSame(parseEvent(event.topic, untopical(event)), { ok: false, fault }, `${event.kind}: ${fault}`);
});
