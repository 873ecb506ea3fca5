import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';

const ADAPTER = 'src/service/adapters/cassandra';

/**
 * Modules that call `Session.lightweightTransaction` themselves, with the reason why nothing follows from the
 * write that a crash could leave undone. Everything else is decided by `Decisions`.
 */
const ALLOWED: Readonly<Record<string, string>> = {
  'commit/decisions.ts': 'the decision itself',
  'commit/audit-log.ts': 'an entry is chained once, whoever does it: the log is what follows from decisions',
  'driver/migrations.ts': 'the ledger says who has a migration',
  'driver/lease.ts': 'nothing depends on a lease',
  'accounts/key-rows.ts': 'the fence of its table',
  'accounts/partners.ts': 'the fence of its table',
  'accounts/key-rotation.ts': 'a successor follows from a decided rotation',
  'accounts/key-revocation.ts': 'the fence of its table',
  'accounts/uploads.ts': 'an upload is one row, and expires',
  'proofs/proof-rows.ts': 'the fence of its table, and ids that are void',
  'proofs/idempotency-records.ts': 'a record counts only once its proof is issued',
  'proofs/issuing.ts': 'the same record',
  'proofs/overlaying.ts': 'a summary is one cell, and is settled again from the same content',
  'moved-rows.ts': 'a move is repeated until all rows are there, and processes serve only after it',
  'proofs/erasing.ts': 'a confirmation is one cell of the tombstone',
  'reviews/creating.ts': 'a record of an Idempotency-Key is released, or expires after a day',
  'usage/charging.ts': 'a charge and its event are one partition',
  'usage/charge-events.ts': 'a minute that is taken over is one row',
  'usage/consumption.ts': 'units and spans are one partition',
  'usage/installation.ts': 'the beat is one row, and each charge names its epoch',
};

t.test('conditional writes are made by decisions, and by the modules that are named here', async (t) => {
  const files = readdirSync(ADAPTER, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.ts') && file !== 'driver/session.ts');
  t.ok(files.length > 30, 'the sources are seen');
  const found = files.filter((file) =>
    readFileSync(`${ADAPTER}/${file}`, 'utf8').includes('.lightweightTransaction('),
  );
  t.strictSame(found.sort(), Object.keys(ALLOWED).sort());
});
