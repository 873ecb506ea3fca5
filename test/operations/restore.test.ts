import {
  GetObjectCommand,
  type ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import t from 'tap';
import { DomainError } from '../../src/core/domain/errors.js';
import { openBucketNotes } from '../../src/service/adapters/assets/bucket-notes.js';
import { type RestoreDeps, restore } from '../../src/service/background/restore.js';
import { proofErased, type ServiceEvent, unitsCounted } from '../../src/service/domain/events.js';
import type { EventHandler } from '../../src/service/ports/bus.js';
import { authenticator } from '../fixtures/authentication.js';
import { stillClock } from './doubles.js';

const NOW = 1_700_000_000;
/**
 * The number of erasures in the journal. It exceeds the consecutive failures that end a restore. `PAGE` is
 * the number of names on a page of its list.
 */
const ERASURES = 40;
const PAGE = 16;
const pauses = { firstMs: 0, longestMs: 0 };
const proofIds = Array.from({ length: ERASURES }, (_, i) => `prf_${String(i).padStart(2, '0')}`);

function away(): DomainError {
  return new DomainError('unavailable', 'It cannot be reached.', { reason: 'store_unavailable' });
}

/** A source of failing calls. It counts the failures by their subject. */
class Faults {
  readonly failures = new Map<string, number>();
  /** Returns whether the call fails now. By default each call fails once. */
  happens = (_what: string, before: number): boolean => before === 0;

  /** @throws the error if the call fails now */
  meet(what: string, error = away()): void {
    const before = this.failures.get(what) ?? 0;
    if (!this.happens(what, before)) return;
    this.failures.set(what, before + 1);
    throw error;
  }

  /** Returns the parts. Each of their methods may fail before it does anything. */
  of<Parts extends object>(name: string, parts: Parts): Parts {
    return new Proxy(parts, {
      get: (target, method) => {
        const call = Reflect.get(target, method) as (...args: unknown[]) => Promise<unknown>;
        return async (...args: unknown[]) => {
          this.meet(`${name}.${String(method)}`);
          return call(...args);
        };
      },
    });
  }
}

/** Returns a bucket in memory. Each of its requests may fail. */
function bucketOf(faults: Faults) {
  const objects = new Map<string, string>();
  const send = async (command: unknown): Promise<unknown> => {
    if (command instanceof PutObjectCommand) {
      const { Key: key, Body: body } = command.input;
      faults.meet(`put ${key}`);
      objects.set(key!, String(body));
      return {};
    }
    if (command instanceof GetObjectCommand) {
      const { Key: key } = command.input;
      faults.meet(`get ${key}`);
      const text = objects.get(key!);
      if (text === undefined)
        throw new S3ServiceException({
          name: 'NoSuchKey',
          $fault: 'client',
          $metadata: { httpStatusCode: 404 },
        });
      return { Body: { transformToString: async () => text } };
    }
    const { Prefix: prefix, ContinuationToken: after = '' } = (command as ListObjectsV2Command).input;
    faults.meet(`list ${prefix} ${after}`);
    const names = [...objects.keys()].filter((key) => key.startsWith(prefix!) && key > after).sort();
    const page = names.slice(0, PAGE);
    return {
      Contents: page.map((key) => ({ Key: key })),
      NextContinuationToken: names.length > PAGE ? page.at(-1) : undefined,
    };
  };
  const client = { send, destroy: () => undefined } as unknown as S3Client;
  return {
    objects,
    ...openBucketNotes({ bucket: 'notes', prefix: '', region: 'any', authenticator, client }),
  };
}

/** Returns an installation whose backup lacks every erasure of the journal. */
async function forgetful(faults: Faults) {
  const { happens } = faults;
  faults.happens = () => false;
  const { objects, journal, marks } = bucketOf(faults);
  for (const proofId of proofIds) await journal.record({ proofId, partnerId: 'ptr_1', erasedAt: NOW - 60 });
  await marks.setEpoch(4);
  faults.happens = happens;
  const states = new Map<string, 'issued' | 'erased'>(proofIds.map((proofId) => [proofId, 'issued']));
  const files = new Set(proofIds);
  const confirmed = new Set<string>();
  const counted: string[] = [];
  const accepted: object[] = [];
  const begun: number[] = [];
  const proofOf = (proofId: string) => ({
    proofId,
    partnerId: 'ptr_1',
    state: states.get(proofId),
    erasedAt: NOW - 60,
  });
  const events: Readonly<Record<string, readonly ServiceEvent[]>> = {
    erasure: [proofErased({ proofId: 'prf_00', partnerId: 'ptr_1', erasedAt: NOW - 60 })],
    usage: [
      unitsCounted(
        {
          partnerId: 'ptr_1',
          source: 'billed/2023-11',
          from: 0,
          to: 1,
          counts: [{ day: '2023-11-14', operation: 'verify', units: 1 }],
        },
        NOW,
      ),
    ],
  };
  const deps = {
    stores: faults.of('stores', {
      getProof: async (proofId: string) => (states.has(proofId) ? proofOf(proofId) : undefined),
      async eraseProof(proofId: string) {
        states.set(proofId, 'erased');
        return { outcome: 'erased', proof: proofOf(proofId) };
      },
      confirmErasure: async (proofId: string) => void confirmed.add(proofId),
      aggregateUsage: async (given: readonly ServiceEvent[]) =>
        void counted.push(...given.map(({ id }) => id)),
    }),
    assets: faults.of('assets', {
      delete: async (proofId: string) => files.delete(proofId),
      size: async (proofId: string) => (files.has(proofId) ? 1 : undefined),
    }),
    clock: stillClock(NOW * 1000),
    bus: {
      async replay(topic: string, handler: EventHandler) {
        faults.meet(`bus.replay ${topic}`);
        await handler(events[topic]!);
        return { taken: events[topic]!.length, left: 0 };
      },
    },
    journal,
    marks,
    row: faults.of('row', {
      read: async () => ({ epoch: 2, beat: 9 }),
      beginEpoch: async (epoch: number) => void begun.push(epoch),
      accept: async (state: object) => void accepted.push(state),
    }),
    pauses,
  } as unknown as RestoreDeps;
  return { deps, objects, files, confirmed, counted, accepted, begun };
}

t.test('a restore waits for servers that fail once at every step', async (t) => {
  const faults = new Faults();
  const { deps, files, confirmed, counted, accepted, begun } = await forgetful(faults);
  t.match(await restore(deps), {
    epoch: 5,
    erasures: ERASURES + 1,
    erasedAgain: ERASURES,
    usage: 1,
    left: 0,
  });
  t.strictSame([...files], []);
  t.strictSame([...confirmed].sort(), proofIds);
  t.equal(counted.length, 1);
  t.strictSame(begun, [5]);
  t.strictSame(accepted, [{ epoch: 5, beat: 0 }]);
  t.strictSame(
    [...faults.failures.keys()].filter((what) => !/prf_/.test(what) || what.startsWith('list')).sort(),
    [
      'assets.delete',
      'assets.size',
      'bus.replay erasure',
      'bus.replay usage',
      'get installation/beat',
      'get installation/epoch',
      'list erasures/ ',
      `list erasures/ erasures/prf_${PAGE - 1}`,
      `list erasures/ erasures/prf_${2 * PAGE - 1}`,
      'put installation/epoch',
      'row.accept',
      'row.beginEpoch',
      'row.read',
      'stores.aggregateUsage',
      'stores.confirmErasure',
      'stores.eraseProof',
      'stores.getProof',
    ],
  );
  for (const kind of ['get', 'put'])
    for (const proofId of proofIds) t.equal(faults.failures.get(`${kind} erasures/${proofId}`), 1);
});

t.test('a restore gives up a server that stays away, and the gate stays closed', async (t) => {
  for (const what of [
    'get installation/epoch',
    'get erasures/prf_20',
    'bus.replay usage',
    'stores.aggregateUsage',
  ]) {
    const faults = new Faults();
    faults.happens = (asked) => asked === what;
    const { deps, accepted } = await forgetful(faults);
    await t.rejects(
      restore(deps),
      { name: 'ServerError', message: /25 attempts in a row failed, the last with \w+/ },
      what,
    );
    t.equal(faults.failures.get(what), 25, 'no attempt around it is made again');
    t.strictSame(accepted, []);
  }
});

t.test('an entry that cannot be believed matters where the store holds its proof', async (t) => {
  const held = await forgetful(Object.assign(new Faults(), { happens: () => false }));
  held.objects.set(`erasures/${proofIds[0]}-6f1b7c1e`, '');
  t.match(await restore(held.deps), { erasedAgain: ERASURES, left: 0 }, 'the store has no such proof');
  t.equal(held.accepted.length, 1);

  const damaged = await forgetful(Object.assign(new Faults(), { happens: () => false }));
  damaged.objects.set(`erasures/${proofIds[0]}`, 'half');
  await t.rejects(restore(damaged.deps), { message: new RegExp(`1 entries .*${proofIds[0]}`) });
  t.equal(damaged.accepted.length, 0, 'the gate stays closed');
  t.equal(damaged.confirmed.size, ERASURES - 1, 'after the other ones');
});

t.test('an error of another kind ends a restore at once', async (t) => {
  const { deps, accepted } = await forgetful(Object.assign(new Faults(), { happens: () => false }));
  let asked = 0;
  const read = async () => {
    asked += 1;
    throw new Error('a defect');
  };
  await t.rejects(restore({ ...deps, row: { ...deps.row, read } }), { message: 'a defect' });
  t.equal(asked, 1);
  t.strictSame(accepted, []);
});
