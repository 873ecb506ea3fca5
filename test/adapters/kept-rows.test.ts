/** Tests the cache of decoded rows, on a database whose batches end when the test says so. */
import t from 'tap';
import { RecordCodec } from '../../src/core/codec/record.js';
import { CommitQueue } from '../../src/service/adapters/embedded/commit-queue.js';
import { Damages } from '../../src/service/adapters/embedded/damages.js';
import {
  type Database,
  storeUnavailable,
  type Writes,
} from '../../src/service/adapters/embedded/database.js';
import { KeptRows } from '../../src/service/adapters/embedded/kept-rows.js';
import type { RowKey } from '../../src/service/adapters/embedded/keys.js';
import { Rows } from '../../src/service/adapters/embedded/rows.js';
import { encryptedStores } from '../../src/service/adapters/encryption/encrypted-stores.js';
import type { IssuedProof, Proof } from '../../src/service/domain/proof.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { authenticator } from '../fixtures/authentication.js';
import { collectGarbage } from '../fixtures/garbage.js';

interface Row {
  readonly state: string;
  readonly list?: readonly string[];
  readonly bytes?: Uint8Array;
}

const KEY = 'proof/one' as RowKey<Row>;
const codec = new RecordCodec(authenticator);
/** Matches a DomainError. */
const reason = (reason: string): Error => Object.assign(new Error(), { reason });

/**
 * A database in memory. A batch becomes visible when it is written, and is answered when `answer` is called.
 */
class SteppedDatabase {
  readonly rows = new Map<string, Uint8Array>();
  reads = 0;
  isReopening = false;
  readonly #begun: (() => void)[] = [];
  #answer: ((error?: Error) => void) | undefined;
  #waiting: Writes | undefined;

  get(key: string): Uint8Array | undefined {
    this.reads += 1;
    return this.rows.get(key);
  }

  write(writes: Writes): Promise<void> {
    this.#waiting = writes;
    for (const begun of this.#begun.splice(0)) begun();
    return new Promise((resolve, reject) => {
      this.#answer = (error) => (error === undefined ? resolve() : reject(error));
    });
  }

  /** Resolves when the next batch is being written. */
  begun(): Promise<void> {
    return new Promise((resolve) => this.#begun.push(resolve));
  }

  /** Shows the batch to readers, as LevelDB does before it answers the writer. */
  show(): void {
    for (const [key, row] of this.#waiting!) {
      if (row === null) this.rows.delete(key);
      else this.rows.set(key, row);
    }
  }

  answer(error?: Error): void {
    this.#answer!(error);
  }
}

function storeOn(kept: KeptRows) {
  const steps = new SteppedDatabase();
  const database = steps as unknown as Database;
  const damages = new Damages(() => undefined);
  const queue = new CommitQueue(database, codec, damages, kept);
  const rows = new Rows(database, queue, codec, damages, kept);
  steps.rows.set(KEY, codec.encode(KEY, { state: 'issued' }));
  return { steps, queue, rows };
}

interface Seen {
  /** The state that a reader saw before the batch was visible. */
  readonly before: string | undefined;
  /** The state that a reader saw when the batch was visible and not answered. */
  readonly shown: string | undefined;
  /** The state that a reader saw after the writer was answered. */
  readonly after: string | undefined;
}

/** Erases the row while it is cached and readers come at every step. */
async function eraseUnderReaders(
  kept: KeptRows,
  change: (rows: Rows, queue: CommitQueue) => void = () => undefined,
): Promise<Seen> {
  const { steps, rows, queue } = storeOn(kept);
  change(rows, queue);
  rows.getKept(KEY);
  const begun = steps.begun();
  const written = rows.run((tx) => tx.put(KEY, { state: 'erased' }));
  await begun;
  const before = rows.getKept(KEY)?.state;
  steps.show();
  const shown = rows.getKept(KEY)?.state;
  steps.answer();
  await written;
  return { before, shown, after: rows.getKept(KEY)?.state };
}

const COHERENT: Seen = { before: 'issued', shown: 'erased', after: 'erased' };

t.test('a kept row is that of the disk at every step of a batch', async (t) => {
  t.strictSame(await eraseUnderReaders(new KeptRows()), COHERENT);
});

t.test('the steps find a batch that drops no row', async (t) => {
  class Planted extends KeptRows {
    override drop(): void {
      // Drops nothing.
    }
  }
  t.strictSame(await eraseUnderReaders(new Planted()), {
    before: 'issued',
    shown: 'issued',
    after: 'issued',
  });
});

t.test('the steps find a row that is kept while its batch is written', async (t) => {
  const seen = await eraseUnderReaders(new KeptRows(), (_rows, queue) => {
    queue.isWriting = () => false;
  });
  t.strictSame(seen, { before: 'issued', shown: 'issued', after: 'issued' });
});

/** Fails a batch that LevelDB finds in its log at the next opening, while readers come. */
async function failUnderReaders(steps: SteppedDatabase, rows: Rows): Promise<Omit<Seen, 'shown'>> {
  rows.getKept(KEY);
  const begun = steps.begun();
  const written = rows.run((tx) => tx.put(KEY, { state: 'erased' }));
  await begun;
  steps.isReopening = true;
  steps.answer(storeUnavailable());
  await written.catch(() => undefined);
  const before = rows.getKept(KEY)?.state;
  steps.show();
  steps.isReopening = false;
  return { before, after: rows.getKept(KEY)?.state };
}

t.test('no row of a batch that failed is kept before the store is open anew', async (t) => {
  const { steps, rows } = storeOn(new KeptRows());
  t.strictSame(await failUnderReaders(steps, rows), { before: 'issued', after: 'erased' });
});

t.test('the steps find a row that is kept before the store is open anew', async (t) => {
  const { steps, rows } = storeOn(new KeptRows());
  Object.defineProperty(steps, 'isReopening', { get: () => false, set: () => undefined });
  t.strictSame(await failUnderReaders(steps, rows), { before: 'issued', after: 'issued' });
});

t.test('a row that is kept is not read again, and is frozen with all that it has', async (t) => {
  const { steps, rows } = storeOn(new KeptRows());
  steps.rows.set(KEY, codec.encode(KEY, { state: 'issued', list: ['a'], bytes: Buffer.from('abc') }));
  const row = rows.getKept(KEY)!;
  t.equal(rows.getKept(KEY), row);
  t.equal(steps.reads, 1);
  t.throws(() => Object.assign(row, { state: 'erased' }), TypeError);
  t.throws(() => (row.list as string[]).push('b'), TypeError);
  t.strictSame(rows.getKept(KEY), row);
});

t.test('a missing row and a damaged row are not kept', async (t) => {
  const kept = new KeptRows();
  const { steps, rows } = storeOn(kept);
  const missing = 'proof/missing' as RowKey<Row>;
  t.equal(rows.getKept(missing), undefined);
  steps.rows.set(KEY, codec.encode('proof/two', { state: 'issued' }));
  t.throws(() => rows.getKept(KEY), reason('record_damaged'));
  t.equal(kept.bytes, 0);
});

t.test('kept rows stay within their memory, and the row that was read longest ago goes first', async (t) => {
  const kept = new KeptRows(10_000);
  const keyOf = (i: number): string => `proof/${i}`;
  for (let i = 0; i < 100; i += 1) {
    kept.keep(keyOf(i), { state: 'issued' }, 100);
    kept.get(keyOf(0));
    t.ok(kept.bytes <= 10_000, `${kept.bytes} bytes`);
  }
  const left = Array.from({ length: 100 }, (_, i) => i).filter((i) => kept.get(keyOf(i)) !== undefined);
  t.strictSame(left, [0, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
  kept.keep(keyOf(0), { state: 'issued' }, 20_000);
  t.strictSame([kept.bytes, kept.get(keyOf(0))], [0, undefined], 'a row above the limit is not kept');
});

/** Returns stores with one frozen record, as the embedded store keeps it, and its key. */
async function encryptedRecord() {
  const content = new Map<string, Uint8Array>([['prf_1', Buffer.alloc(32, 7)]]);
  const records = new Map<string, Proof>();
  const keys = {
    obtain: async (id: string) => content.get(id)!,
    read: async (id: string) => content.get(id),
    destroy: async (id: string) => void content.delete(id),
    release: async () => undefined,
  };
  const stores = {
    getProof: async (id: string) => records.get(id),
    issueProof: async (proof: IssuedProof) => {
      records.set(proof.proofId, Object.freeze(proof));
      return 'issued';
    },
  } as unknown as Stores;
  const encrypted = encryptedStores(stores, keys);
  const proof = { state: 'issued', proofId: 'prf_1', song: { title: 'Take one' }, carrier: 'sidecar' };
  await encrypted.issueProof(proof as unknown as IssuedProof, undefined as never, undefined);
  return { encrypted, keys, records };
}

t.test('the plaintext of a kept record is opened once and frozen', async (t) => {
  const { encrypted } = await encryptedRecord();
  const first = (await encrypted.getProof('prf_1')) as IssuedProof;
  t.equal(first.song.title, 'Take one');
  t.equal(await encrypted.getProof('prf_1'), first);
  t.throws(() => Object.assign(first.song, { title: 'Other' }), TypeError);
});

t.test('no plaintext is given once the key of the record is destroyed', async (t) => {
  const { encrypted, keys } = await encryptedRecord();
  await encrypted.getProof('prf_1');
  await keys.destroy('prf_1');
  await t.rejects(encrypted.getProof('prf_1'), reason('record_damaged'));
});

t.test('the plaintext of an erased record leaves the memory', async (t) => {
  const { encrypted, keys, records } = await encryptedRecord();
  const plaintext = new WeakRef((await encrypted.getProof('prf_1')) as IssuedProof);
  records.set('prf_1', { state: 'erased', proofId: 'prf_1', partnerId: 'ptr_1', erasedAt: 1 });
  await keys.destroy('prf_1');
  t.match(await encrypted.getProof('prf_1'), { state: 'erased' });
  // A row that was read stays cached until the turn of the event loop ends.
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  t.equal(plaintext.deref(), undefined);
});
