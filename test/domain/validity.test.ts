import t from 'tap';
import { daysLeft, type ValidityWarning, validityWarning } from '../../src/core/domain/validity.js';

const DAY = 86_400;

t.test('a validity warns once its days have begun when the certificate lives long enough', async (t) => {
  const year = { notBefore: 1000 * DAY, notAfter: 1365 * DAY };
  const expected: readonly (readonly [at: number, warning: ValidityWarning | undefined])[] = [
    [year.notBefore - 1, 'not_begun'],
    [year.notBefore, undefined],
    [year.notAfter - 90 * DAY, undefined],
    [year.notAfter - 90 * DAY + 1, '90_days'],
    [year.notAfter - 30 * DAY, '90_days'],
    [year.notAfter - 30 * DAY + 1, '30_days'],
    [year.notAfter - 7 * DAY + 1, '7_days'],
    [year.notAfter, '7_days'],
    [year.notAfter + 1, 'expired'],
  ];
  t.strictSame(
    expected.map(([at]) => [at, validityWarning(year, at)]),
    expected,
  );
});

t.test('a certificate that is renewed every few weeks has no warning for most of its life', async (t) => {
  const month = { notBefore: 0, notAfter: 47 * DAY };
  t.equal(validityWarning(month, 0), undefined);
  t.equal(validityWarning(month, 39 * DAY), undefined);
  t.equal(validityWarning(month, 41 * DAY), '7_days');
  const quarter = { notBefore: 0, notAfter: 90 * DAY };
  t.equal(validityWarning(quarter, 1), undefined);
  t.equal(validityWarning(quarter, 60 * DAY + 1), '30_days');
});

t.test('the days left are whole days and never negative', async (t) => {
  const validity = { notBefore: 0, notAfter: 10 * DAY };
  t.strictSame(
    [0, 1, 9 * DAY, 11 * DAY].map((now) => daysLeft(validity, now)),
    [10, 9, 1, 0],
  );
});
