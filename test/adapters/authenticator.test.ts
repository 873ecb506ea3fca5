import { createHmac, randomBytes } from 'node:crypto';
import t from 'tap';
import { Authenticator } from '../../src/core/codec/authenticator.js';

const CONTEXT = 'takemark production';

/** Returns an authenticator with one key. */
function withKey(key: Uint8Array): Authenticator {
  const named = { id: 'k1', key };
  return new Authenticator(
    { current: () => named, find: (id) => (id === 'k1' ? named : undefined) },
    CONTEXT,
  );
}

t.test('a code is the HMAC of context, label and bytes, for keys and texts of all lengths', async (t) => {
  const wrong: string[] = [];
  for (const keyBytes of [1, 31, 32, 63, 64, 65, 200])
    for (const label of ['', 'record/key/one', 'größe', '\u{1f3a7}', 'x'.repeat(300)])
      for (const length of [0, 1, 55, 56, 64, 700, 70_000]) {
        const key = randomBytes(keyBytes);
        const bytes = randomBytes(length);
        const authenticator = withKey(key);
        const expected = createHmac('sha256', key).update(`${CONTEXT}\0${label}\0`).update(bytes).digest();
        // The second code uses cached pads.
        for (const { mac } of [authenticator.make(label, bytes), authenticator.make(label, bytes)])
          if (!mac.equals(expected)) wrong.push(`key ${keyBytes}, label ${label.length}, ${length} bytes`);
      }
  t.strictSame(wrong, []);
});

t.test('two keys of one authenticator have codes of their own', async (t) => {
  const keys = [randomBytes(32), randomBytes(32)].map((key, i) => ({ id: `k${i}`, key }));
  let current = keys[0]!;
  const authenticator = new Authenticator(
    { current: () => current, find: (id) => keys.find((each) => each.id === id) },
    CONTEXT,
  );
  const bytes = Buffer.from('row');
  const first = authenticator.make('label', bytes);
  current = keys[1]!;
  const second = authenticator.make('label', bytes);
  t.strictNotSame(first.mac, second.mac);
  t.ok(authenticator.matches('k0', first.mac, 'label', bytes));
  t.ok(authenticator.matches('k1', second.mac, 'label', bytes));
  t.notOk(authenticator.matches('k1', first.mac, 'label', bytes));
});
