/**
 * Tests how errors of servers, as the driver reports them, end a call, and what a damaged row ends. No server is used.
 */
import { type Client, errors, types } from 'cassandra-driver';
import t, { type Test } from 'tap';
import { recordDamaged } from '../../src/core/domain/errors.js';
import { keyRevocation } from '../../src/service/adapters/cassandra/accounts/key-revocation.js';
import type { KeyRows } from '../../src/service/adapters/cassandra/accounts/key-rows.js';
import { AuditLog } from '../../src/service/adapters/cassandra/commit/audit-log.js';
import type { Decisions } from '../../src/service/adapters/cassandra/commit/decisions.js';
import type { Outbox } from '../../src/service/adapters/cassandra/commit/outbox.js';
import type { Pointer, Pointers, Visited } from '../../src/service/adapters/cassandra/commit/pointers.js';
import { Blobs } from '../../src/service/adapters/cassandra/driver/blobs.js';
import type { Lease } from '../../src/service/adapters/cassandra/driver/lease.js';
import { connect, type Session } from '../../src/service/adapters/cassandra/driver/session.js';
import type { ProofRows } from '../../src/service/adapters/cassandra/proofs/proof-rows.js';
import { Reservations } from '../../src/service/adapters/cassandra/proofs/reservations.js';
import { ChargeEvents } from '../../src/service/adapters/cassandra/usage/charge-events.js';
import type { Consumption } from '../../src/service/adapters/cassandra/usage/consumption.js';
import type { PartnerKey } from '../../src/service/domain/partner.js';
import { authenticator } from '../fixtures/authentication.js';
import { NOW, partnerKey } from '../store-contract/samples.js';

const { localSerial } = types.consistencies;
const { writeTimeout, unavailableException } = types.responseErrorCodes;
const READ = 'SELECT act FROM record WHERE proof_id = ?';

/**
 * Returns a session whose client fails with these codes in turn and then answers with a row, and the
 * consistencies of its calls.
 */
async function sessionThatMeets(
  t: Test,
  codes: readonly number[],
): Promise<{ readonly session: Session; readonly asked: readonly (types.consistencies | undefined)[] }> {
  const left = [...codes];
  const asked: (types.consistencies | undefined)[] = [];
  const client = {
    connect: async () => undefined,
    shutdown: async () => undefined,
    execute: async (_query: string, _params: unknown, options: { consistency?: types.consistencies }) => {
      asked.push(options.consistency);
      const code = left.shift();
      if (code !== undefined) throw new errors.ResponseError(code, 'a server says so');
      return { rows: [{ act: 1 }] };
    },
  };
  const session = await connect({
    contactPoints: ['127.0.0.1:9'],
    localDataCenter: 'datacenter1',
    openClient: () => client as unknown as Client,
  });
  t.teardown(() => session.close());
  return { session, asked };
}

t.test('a serial read is sent again when it times out', async (t) => {
  const { session, asked } = await sessionThatMeets(t, [writeTimeout, writeTimeout]);
  t.strictSame(await session.serialReads().rows(READ, ['a']), [{ act: 1 }]);
  t.strictSame(asked, [localSerial, localSerial, localSerial]);
});

t.test('a serial read that no quorum can answer is refused at once', async (t) => {
  const { session, asked } = await sessionThatMeets(t, [unavailableException]);
  await t.rejects(session.serialReads().rows(READ, ['a']), {
    code: 'unavailable',
    reason: 'store_unavailable',
  });
  t.strictSame(asked, [localSerial]);
});

t.test('a plain read leaves it to the driver what is sent again', async (t) => {
  const { session, asked } = await sessionThatMeets(t, [writeTimeout]);
  await t.rejects(session.rows(READ, ['a']), { code: 'unavailable', reason: 'store_unavailable' });
  t.strictSame(asked, [undefined]);
});

const blobs = new Blobs(authenticator);
const DAMAGED_CELL = Buffer.from('damaged');
const damaged = { code: 'internal', reason: 'record_damaged' };

t.test('an audit entry whose request id is damaged is read without it', async (t) => {
  const entry = (sequence: number, request: Buffer | null) => ({
    sequence,
    action: 'key_created',
    happened_at: NOW,
    actor: 'operator',
    subjects: ['key_1'],
    request,
    mac: 'a'.repeat(64),
    op: `op_${sequence}`,
  });
  const rows = [
    entry(1, blobs.encode('audit/ptr_1/1', 'rq_1')),
    entry(2, DAMAGED_CELL),
    entry(3, blobs.encode('audit/ptr_1/1', 'rq_1')),
    entry(4, null),
  ];
  const session = {
    rows: async (_query: string, [, , from, limit]: readonly [string, number, number, number]) =>
      rows.filter(({ sequence }) => sequence >= from).slice(0, limit),
  } as unknown as Session;
  const heads = { record: async () => undefined, get: async () => undefined, close: async () => undefined };
  const log = new AuditLog(session, blobs, { key: new Uint8Array(32), heads: heads as never });
  t.strictSame(
    (await log.readAudit('ptr_1', 1, 10)).map(({ sequence, requestId }) => [sequence, requestId]),
    [
      [1, 'rq_1'],
      [2, 'damaged'],
      [3, 'damaged'],
      [4, undefined],
    ],
    'also an id of another entry',
  );
});

t.test('the damaged row of a revoked key stops the revocation of no other key', async (t) => {
  for (const last of [
    blobs.encode('key-revocation/ptr_1', { partnerId: 'ptr_1', keyId: 'key_1', at: NOW }),
    DAMAGED_CELL,
  ]) {
    const keys = new Map<string, PartnerKey>([['key_2', partnerKey('key_2', 'ptr_1')]]);
    const get = async (keyId: string) => ({ key_id: keyId, gen: 1, mac: 'a' });
    const rows = {
      get,
      getWhole: get,
      keyOf: ({ key_id: keyId }: { readonly key_id: string }) => {
        if (keyId === 'key_1') throw recordDamaged(undefined);
        return keys.get(keyId);
      },
      codeOf: () => 'b',
    } as unknown as KeyRows;
    const session = {
      serialReads: () => ({ first: async () => ({ gen: 3, revocation: last }) }),
    } as unknown as Session;
    const decided: unknown[] = [];
    const decisions = {
      operations: ({ kind }: { readonly kind: string }) => ({
        commit: async ({ key }: { readonly key: string }) => {
          decided.push([kind, key]);
          return { applied: true };
        },
      }),
    } as unknown as Decisions;
    const revoke = keyRevocation(session, decisions, blobs, {
      rows,
      rotations: { getRotation: async () => undefined },
      listKeys: async () => [],
    });
    t.strictSame(await revoke({ partnerId: 'ptr_1', keyId: 'key_2', at: NOW }), {
      outcome: 'revoked',
      keyIds: ['key_2'],
    });
    t.strictSame(decided, [['keys_revoked', 'ptr_1']]);
    await t.rejects(revoke({ partnerId: 'ptr_1', keyId: 'key_1', at: NOW }), damaged);
  }
});

t.test('an id that was given up says when it can be used again', async (t) => {
  const reserve = (state: 'void' | 'issued' | undefined) =>
    new Reservations(
      { put: async () => undefined } as unknown as Pointers,
      { head: async () => state && { state } } as unknown as ProofRows,
      {} as Lease,
    ).reserve('prf_1', 'ptr_1', NOW);
  await t.rejects(reserve('void'), { code: 'conflict', message: /after three days/ });
  await t.rejects(reserve('issued'), { code: 'conflict', message: /taken/ });
  await reserve(undefined);
});

t.test('charges beside a damaged one are taken over once', async (t) => {
  const item = (number: number) => `event/000000007/other/2026-03/${String(number).padStart(10, '0')}`;
  const row = (number: number) => ({
    item: item(number),
    event: blobs.encode(item(number), {
      to: number + 1,
      at: NOW,
      counts: [{ day: '2026-03-31', operation: 'verify', units: 1 }],
    }),
  });
  const rows: { readonly item: string; event: Buffer }[] = [row(0), row(1), row(2)];
  rows[1]!.event = DAMAGED_CELL;
  const reads = {
    rows: async (_query: string, [, after]: readonly [string, string]) =>
      rows.filter((one) => one.item > after),
  };
  const session = {
    serialReads: () => reads,
    lightweightTransaction: async () => ({ applied: true }),
  } as unknown as Session;
  let visit: (pointer: Pointer) => Promise<Visited> = async () => 'stays';
  const pointers = {
    onVisit: (_kind: string, visitor: typeof visit) => (visit = visitor),
    remove: async () => undefined,
    now: () => Date.now(),
  } as unknown as Pointers;
  const published: number[] = [];
  const outbox = {
    hasCapacity: () => true,
    hasCapacityForOthers: () => true,
    hold: ({ event, onPublished }: Parameters<Outbox['hold']>[0]) => {
      if (event.topic === 'usage') published.push(event.data.from);
      // Published at once, so the outbox knows nothing of the event afterwards.
      void Promise.resolve().then(() => onPublished());
      return true;
    },
  } as unknown as Outbox;
  const consumption = {} as Consumption;
  t.ok(new ChargeEvents({ session, blobs, pointers, outbox, consumption, writer: 'this' }));
  const pointer: Pointer = { bucket: 7, op: '7/other/ptr_1', kind: 'charges', key: 'ptr_1' };
  for (let pass = 0; pass < 3; pass += 1) await t.rejects(visit(pointer), damaged);
  t.strictSame(published, [0, 2], 'also those after the damaged one');
  rows[1] = row(1);
  for (let pass = 0; pass < 2; pass += 1) await visit(pointer);
  t.strictSame(published, [0, 2, 1]);
});
