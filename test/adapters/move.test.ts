import t from 'tap';
import type { MovedRow, MoveTarget } from '../../src/service/ports/moved-rows.js';
import { move } from './move-body.js';

/** Returns a target that keeps rows in the order of their arrival. */
function memoryTarget(): MoveTarget & { readonly rows: MovedRow[] } {
  const rows: MovedRow[] = [];
  const progress = new Map<string, number>();
  const nameOf = (row: MovedRow): string =>
    JSON.stringify(
      row.kind === 'tombstone' || row.kind === 'proof'
        ? row.proof.proofId
        : row.kind === 'review'
          ? row.review.reviewId
          : row,
    );
  const find = (row: MovedRow) => rows.find((each) => nameOf(each) === nameOf(row));
  return {
    rows,
    isEmpty: async () => rows.length === 0,
    progress: async (exportId) => progress.get(exportId),
    setProgress: async (exportId, blocks) => void progress.set(exportId, blocks),
    put: async (row) => {
      if (find(row) === undefined) rows.push(row);
    },
    find: async (row) => find(row),
  };
}

void t.test('an import holds every row of the export, tombstones first', async (t) => {
  const target = memoryTarget();
  const { to, journal, gate, deletedUnfinished, importAgain } = await move(t, target);
  t.strictSame(
    target.rows.map(({ kind }) => kind),
    [
      ...['tombstone', 'partner', 'key', 'key', 'audit', 'audit', 'head', 'proof', 'replay', 'review'],
      ...['upload', 'month', 'charge'],
    ],
  );
  t.strictSame([...new Set(journal)], ['prf_moved-erased']);
  t.strictSame([...new Set(deletedUnfinished)], ['prf_moved-kept'], 'no part of an interrupted import stays');
  t.not(await to.keys.read('prf_moved-kept'), undefined);
  t.equal(await to.keys.read('prf_moved-reserved'), undefined, 'a reserved id does not move');
  t.equal(await to.files.size('prf_moved-kept'), 200_000);
  t.equal(await to.files.size('prf_moved-reserved'), undefined);
  t.strictSame(await importAgain(), { exportId: 'export-1', wasComplete: true, compared: 0, erased: 0 });
  t.strictSame(gate, ['close', 'close', 'open'], 'a repeated import changes nothing');
});

void t.test('an import refuses a target with other rows', async (t) => {
  const target = memoryTarget();
  await target.put({ kind: 'head', head: { partnerId: 'ptr_other', sequence: 1, mac: 'ab' } }, 0);
  await t.rejects(move(t, target, false), /the keyspace is not empty/);
  t.equal(target.rows.length, 1);
});

void t.test('an import fails if the target holds another row than the export', async (t) => {
  const target = memoryTarget();
  const put = target.put;
  target.put = (row, now) =>
    put(row.kind === 'review' ? { ...row, review: { ...row.review, status: 'resolved' } } : row, now);
  await t.rejects(move(t, target, false), /does not hold what was exported: review of rvw_moved/);
});
