import { createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { decodeCborStrict, decodeCborTolerant, encodeCbor } from '../../src/core/codec/cbor.js';
import { decodeMessagePackStrict, encodeMessagePack } from '../../src/core/codec/messagepack.js';
import { checkSignature } from '../../src/core/credential/signature.js';
import { foreignSigner, signAs } from '../fixtures/foreign-store.js';
import { testSigning } from '../fixtures/signing.js';

interface Vectors {
  readonly testGroups: readonly {
    readonly publicKeyDer: string;
    readonly publicKey: { readonly keySize?: number; readonly curve: string };
    readonly tests: readonly {
      readonly tcId: number;
      readonly comment: string;
      readonly msg: string;
      readonly sig: string;
      readonly result: 'valid' | 'invalid' | 'acceptable';
      readonly flags: readonly string[];
    }[];
  }[];
}

const VECTORS = process.env['TAKEMARK_VECTORS'];
const skip = VECTORS === undefined ? 'TAKEMARK_VECTORS is not set' : false;
const HALF_ORDER = 0x7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8n;

function vectors(name: string): Vectors {
  return JSON.parse(readFileSync(join(VECTORS!, 'wycheproof', name), 'utf8')) as Vectors;
}

t.test('Wycheproof: Ed25519 signatures are judged as it says', { skip }, (t) => {
  let tried = 0;
  for (const group of vectors('ed25519_test.json').testGroups) {
    const key = createPublicKey({ key: Buffer.from(group.publicKeyDer, 'hex'), format: 'der', type: 'spki' });
    for (const { tcId, comment, msg, sig, result } of group.tests) {
      const answer = checkSignature('Ed25519', key, Buffer.from(msg, 'hex'), Buffer.from(sig, 'hex'), {
        requireLowS: true,
      });
      tried += 1;
      if (answer !== (result === 'valid')) t.fail(`${tcId} ${comment}: ${answer}`);
      if (
        checkSignature('ES256', key, Buffer.from(msg, 'hex'), Buffer.from(sig, 'hex'), { requireLowS: false })
      )
        t.fail('the key decides');
    }
  }
  t.comment(`${tried} vectors`);
  t.ok(tried > 100);
  t.end();
});

t.test('Wycheproof: ECDSA P-256 signatures with r || s are judged as it says', { skip }, (t) => {
  let tried = 0;
  let highS = 0;
  for (const group of vectors('ecdsa_secp256r1_sha256_p1363_test.json').testGroups) {
    const key = createPublicKey({ key: Buffer.from(group.publicKeyDer, 'hex'), format: 'der', type: 'spki' });
    for (const { tcId, comment, msg, sig, result } of group.tests) {
      const [message, signature] = [Buffer.from(msg, 'hex'), Buffer.from(sig, 'hex')];
      const foreign = checkSignature('ES256', key, message, signature, { requireLowS: false });
      const ours = checkSignature('ES256', key, message, signature, { requireLowS: true });
      const high =
        signature.length === 64 && BigInt(`0x${signature.subarray(32).toString('hex')}`) > HALF_ORDER;
      tried += 1;
      if (foreign !== (result === 'valid')) t.fail(`${tcId} ${comment}: ${foreign}`);
      // The expected refusals of our own mode: valid in the vectors, with s above half the order.
      if (ours !== (result === 'valid' && !high)) t.fail(`${tcId} ${comment} as ours: ${ours}`);
      if (result === 'valid' && high) highS += 1;
    }
  }
  t.comment(`${tried} vectors, ${highS} valid ones refused for high S in our own mode`);
  t.ok(highS > 10);
  t.end();
});

t.test('Wycheproof: an ECDSA P-256 signature in DER is never taken', { skip }, (t) => {
  let tried = 0;
  for (const group of vectors('ecdsa_secp256r1_sha256_test.json').testGroups) {
    const key = createPublicKey({ key: Buffer.from(group.publicKeyDer, 'hex'), format: 'der', type: 'spki' });
    for (const { tcId, msg, sig } of group.tests) {
      tried += 1;
      // COSE has r || s alone (RFC 9053 section 2.1); 64 bytes of DER would be read as that and fail.
      if (
        checkSignature('ES256', key, Buffer.from(msg, 'hex'), Buffer.from(sig, 'hex'), { requireLowS: false })
      )
        t.fail(`${tcId}`);
    }
  }
  t.ok(tried > 100);
  t.end();
});

t.test('the algorithm belongs to the key', (t) => {
  const names = ['Ed25519', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'] as const;
  const message = Buffer.from('message');
  for (const algorithm of names) {
    const signer = foreignSigner(algorithm);
    const signature = signAs(signer, message);
    const key = createPublicKey(signer.privateKey);
    for (const claimed of names) {
      t.equal(
        checkSignature(claimed, key, message, signature, { requireLowS: false }),
        claimed === algorithm,
        `${algorithm} claimed as ${claimed}`,
      );
    }
    t.notOk(
      checkSignature(algorithm, key, message, Buffer.concat([signature, Buffer.from([0])]), {
        requireLowS: false,
      }),
    );
    t.notOk(checkSignature(algorithm, key, message, Buffer.alloc(0), { requireLowS: false }));
    t.notOk(checkSignature(algorithm, key, Buffer.from('Message'), signature, { requireLowS: false }));
  }
  t.notOk(
    checkSignature('PS256', createPublicKey(foreignSigner('PS256').privateKey), message, Buffer.alloc(256), {
      requireLowS: true,
    }),
  );
  t.end();
});

t.test('ES256 signatures of ours always have low S', (t) => {
  const { signer } = testSigning({ algorithm: 'ES256' });
  for (let run = 0; run < 40; run += 1) {
    const message = Buffer.from([run]);
    const signature = Buffer.from(signer.sign(message));
    t.ok(BigInt(`0x${signature.subarray(32).toString('hex')}`) <= HALF_ORDER && signature.length === 64);
    t.ok(
      verify(
        'sha256',
        message,
        {
          key: createPublicKey(
            `-----BEGIN CERTIFICATE-----\n${Buffer.from(signer.identity.certificate).toString('base64')}\n-----END CERTIFICATE-----`,
          ),
          dsaEncoding: 'ieee-p1363',
        },
        signature,
      ),
    );
  }
  t.end();
});

t.test('CBOR is taken in one encoding only', (t) => {
  const value = new Map<string | number, never>(
    Object.entries({ b: 1, a: [1, -7, 'x', null, true, new Uint8Array(3)], aa: 70_000 }) as never,
  );
  const bytes = encodeCbor(value);
  t.equal(
    Buffer.from(bytes).toString('hex'),
    'a361618601266178f6f543000000616201626161' + '1a00011170',
    'sorted by encoded key (RFC 8949 section 4.2.1)',
  );
  t.strictSame(decodeCborStrict(bytes), { ok: true, value: new Map([...value].sort()) });
  const refused: [string, string][] = [
    ['a2616201616102', 'not_canonical'],
    ['a2616101616102', 'malformed'],
    ['1801', 'malformed'],
    ['1b0000000000000001', 'malformed'],
    ['5800', 'malformed'],
    ['9f01ff', 'malformed'],
    ['bf616101ff', 'malformed'],
    ['5f4101ff', 'malformed'],
    ['c001', 'malformed'],
    ['f7', 'malformed'],
    ['f97e00', 'malformed'],
    ['fb3ff0000000000000', 'not_canonical'],
    ['0100', 'malformed'],
    ['', 'malformed'],
    ['61ff', 'not_canonical'],
    [`${'81'.repeat(20)}00`, 'over_budget'],
    ['a20000810000', 'malformed'],
    ['a20000a0f600', 'malformed'],
  ];
  for (const [hex, fault] of refused)
    t.strictSame(decodeCborStrict(Buffer.from(hex, 'hex')), { ok: false, fault }, hex);
  const budget = { bytes: 100, depth: 4, items: 10 };
  for (const hex of ['a2616201616102', '1801', '9f01ff', 'bf616101ff', 'd8ff01', 'fb3ff0000000000000'])
    t.ok(decodeCborTolerant(Buffer.from(hex, 'hex'), budget).ok, hex);
  for (const [hex, fault] of [
    ['a16178ff', 'malformed'],
    ['ff', 'malformed'],
    ['bf6178ff', 'malformed'],
    ['a2616101616102', 'malformed'],
    ['0100', 'malformed'],
    ['818181818100', 'over_budget'],
    ['8b0000000000000000000000', 'over_budget'],
    ['00'.repeat(101), 'over_budget'],
    ['9bffffffffffffffff', 'over_budget'],
  ]) {
    const decoded = decodeCborTolerant(Buffer.from(hex!, 'hex'), budget);
    t.notOk(decoded.ok, hex!);
    if (!decoded.ok && hex !== '9bffffffffffffffff') t.equal(decoded.fault, fault);
  }
  const map = (keys: readonly string[], head: string, end = ''): Buffer =>
    Buffer.from(head + keys.map((key) => `${key}00`).join('') + end, 'hex');
  const keysOf = (count: number, keyOf: (n: number) => string): string[] =>
    Array.from({ length: count }, (_, n) => keyOf(n));
  const text = (value: string): string => hexOf(0x60 + value.length, 1) + Buffer.from(value).toString('hex');
  const room = { bytes: 100_000, depth: 4, items: 16_384 };
  // V8 hashes numbers and array indices without a seed.
  for (const [name, most, keyOf] of [
    ['texts', 1024, (n: number) => text(`k${n}`)],
    ['texts that are too long for an array index', 1024, (n: number) => text(`10000000${1000 + n}`)],
    ['whole numbers', 64, (n: number) => `1a${hexOf(n, 4)}`],
    ['negative numbers', 64, (n: number) => `3b${hexOf(n, 8)}`],
    ['floats', 64, (n: number) => `fb3ff0${hexOf(n, 6)}`],
    ['array indices as texts', 64, (n: number) => text(String(n))],
  ] as const) {
    for (const [members, ok] of [
      [most, true],
      [most + 1, false],
    ] as const) {
      const keys = keysOf(members, keyOf);
      t.equal(decodeCborTolerant(map(keys, `b9${hexOf(members, 2)}`), room).ok, ok, `${members} ${name}`);
      t.equal(
        decodeCborTolerant(map(keys, 'bf', 'ff'), room).ok,
        ok,
        `${members} ${name} in a map without a count`,
      );
    }
  }
  const full = map(
    keysOf(64, (n) => `1a${hexOf(n, 4)}`),
    'b840',
  ).toString('hex');
  t.ok(decodeCborTolerant(Buffer.from(`82${full}${full}`, 'hex'), room).ok, 'each map has its own limit');
  t.end();
});

function hexOf(value: number, bytes: number): string {
  return value.toString(16).padStart(2 * bytes, '0');
}

t.test('MessagePack is taken in one encoding only', (t) => {
  const bytes = encodeMessagePack({ b: 1, a: new Uint8Array(3), c: [null, 'x', 2 ** 40] });
  t.strictSame(decodeMessagePackStrict(bytes, 100), {
    ok: true,
    value: { b: 1, a: new Uint8Array(3), c: [null, 'x', 2 ** 40] },
  });
  for (const hex of [
    '82a16101a16102',
    'cc01',
    'd900',
    'dc0000',
    'c40100ff',
    'cb3ff0000000000000',
    '',
    'c1',
    'd40100',
    '81a95f5f70726f746f5f5f01',
    `${'91'.repeat(20)}00`,
    'ddffffffff',
    'dfffffffff',
    'c6ffffffff',
  ]) {
    t.notOk(decodeMessagePackStrict(Buffer.from(hex, 'hex'), 100).ok, hex);
  }
  t.strictSame(decodeMessagePackStrict(bytes, 10), { ok: false, fault: 'over_budget' });
  t.end();
});
