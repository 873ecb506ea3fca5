import { generateKeyPairSync, sign } from 'node:crypto';
import t from 'tap';
import { SignatureChecks, type SignatureInput } from '../../src/service/adapters/reading/signature-checks.js';

const INPUT = [] as unknown as SignatureInput;

/** Checks that end, as valid, when the test says so. */
class SteppedChecks {
  readonly ends: ((error?: Error) => void)[] = [];
  readonly checks: SignatureChecks;
  /** The ended checks by owner, in order. */
  readonly order: string[] = [];

  constructor(inPool: number, maxWaiting: number) {
    this.checks = new SignatureChecks({
      inPool,
      maxWaiting,
      check: () =>
        new Promise((resolve, reject) => {
          this.ends.push((error) => (error === undefined ? resolve(true) : reject(error)));
        }),
    });
  }

  /** Begins a check, and records how it ends. */
  begin(owner: string): Promise<void> {
    return this.checks.check(owner, INPUT).then(
      () => void this.order.push(owner),
      (error: { reason?: string }) => void this.order.push(`${owner} ${error.reason}`),
    );
  }

  /** Ends the check that began first, so that the next one begins. */
  async endFirst(error?: Error): Promise<void> {
    this.ends.shift()!(error);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

t.test('a signature is checked in the pool as it is in place', async (t) => {
  const checks = new SignatureChecks();
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const message = Buffer.from('message');
  const signature = sign(null, message, privateKey);
  const check = (...changed: [message: Buffer, signature: Buffer]) =>
    checks.check('a', ['Ed25519', publicKey, ...changed, { requireLowS: true }]);
  t.equal(await check(message, signature), true);
  t.equal(await check(Buffer.from('massage'), signature), false);
  t.equal(await check(message, signature.subarray(1)), false);
});

t.test('owners take turns when more checks wait than the pool takes', async (t) => {
  const under = new SteppedChecks(1, 100);
  const all = ['a', 'a', 'a', 'a', 'b', 'b', 'c'].map((owner) => under.begin(owner));
  t.equal(under.ends.length, 1, 'one is in the pool');
  for (let i = 0; i < all.length; i += 1) await under.endFirst();
  await Promise.all(all);
  t.equal(under.order[0], 'a');
  t.strictSame(under.order.slice(1, 4).toSorted(), ['a', 'b', 'c'], 'one of each owner before a second');
});

t.test('an owner within its share is admitted when another has filled the lines', async (t) => {
  const under = new SteppedChecks(1, 4);
  const flood = Array.from({ length: 8 }, () => under.begin('flood'));
  await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(under.order, Array(3).fill('flood reader_full'), 'one runs, four wait, three are refused');
  const quiet = under.begin('quiet');
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(under.order.length, 4, 'the flood gives way');
  for (let i = 0; i < 3; i += 1) await under.endFirst();
  await quiet;
  t.ok(under.order.slice(4, 7).includes('quiet'), 'and the quiet owner has an early turn');
  while (under.ends.length > 0) await under.endFirst();
  await Promise.all(flood);
});

t.test('a check that fails lets the next one begin', async (t) => {
  const under = new SteppedChecks(1, 4);
  const first = under.begin('a');
  const second = under.begin('b');
  await under.endFirst(Object.assign(new Error(), { reason: 'failed' }));
  await under.endFirst();
  await Promise.all([first, second]);
  t.strictSame(under.order, ['a failed', 'b']);
});

t.test('stopping refuses what waits and what comes, and lets the pool end', async (t) => {
  const under = new SteppedChecks(1, 4);
  const running = under.begin('a');
  const waiting = under.begin('b');
  under.checks.stop();
  await under.begin('c');
  await waiting;
  await under.endFirst();
  await running;
  t.strictSame(under.order, ['b shutting_down', 'c shutting_down', 'a']);
});
