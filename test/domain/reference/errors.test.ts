import t from 'tap';
import { ERROR_CODES, ERROR_REASONS } from '../../../src/core/domain/errors.js';
import {
  ERROR_CODE_REFERENCE,
  ERROR_REASON_REFERENCE,
} from '../../../src/service/domain/reference/errors.js';

t.test('every code and reason of errors has sentences', async (t) => {
  t.strictSame(Object.keys(ERROR_CODE_REFERENCE), ERROR_CODES);
  t.strictSame(Object.keys(ERROR_REASON_REFERENCE), ERROR_REASONS);
  for (const [word, { meaning, caller }] of [
    ...Object.entries(ERROR_CODE_REFERENCE),
    ...Object.entries(ERROR_REASON_REFERENCE),
  ])
    for (const sentence of [meaning, caller]) t.match(sentence, /^[A-Z].*\.$/, word);
  const meanings = Object.values(ERROR_REASON_REFERENCE).map(({ meaning }) => meaning);
  t.equal(new Set(meanings).size, meanings.length, 'each reason has a meaning of its own');
});
