import { createHash } from 'node:crypto';
import { encode } from '@msgpack/msgpack';
import t from 'tap';
import {
  decodeMessagePackStrict,
  encodeMessagePack,
  type MessagePackValue,
} from '../../src/core/codec/messagepack.js';
import { writeSidecar } from '../../src/core/credential/sidecar.js';
import { stateProduction, stateSeal } from '../../src/core/credential/statement.js';
import type { LocalSigner, SigningIdentity } from '../../src/core/ports/signing.js';
import { now, readPair } from '../fixtures/credentialed-file.js';
import { sampled } from '../fixtures/sampling.js';
import { testDevice, testSigning } from '../fixtures/signing.js';

const BINDING = { bytes: 5_000_000_000, sha256: createHash('sha256').update('audio').digest('hex') };

function serviceSidecar(signer: LocalSigner): Buffer {
  return Buffer.from(
    writeSidecar({
      statement: stateProduction(signer.identity, {
        proofId: 'prf_1',
        createdAt: now(),
        evidenceSha256: 'cd'.repeat(32),
      }),
      binding: BINDING,
      signer,
    }),
  );
}

t.test('a sidecar that is written is read as it was written', (t) => {
  for (const algorithm of ['Ed25519', 'ES256'] as const) {
    const { signer, trust } = testSigning({ algorithm });
    const bytes = serviceSidecar(signer);
    t.match(readPair(bytes, trust), {
      kind: 'service',
      statement: {
        version: 1,
        proofId: 'prf_1',
        issuer: 'Takemark',
        kid: signer.identity.kid,
        evidenceSha256: 'cd'.repeat(32),
      },
      binding: BINDING,
      sidecarSha256: createHash('sha256').update(bytes).digest('hex'),
    });
    const device = testDevice('Studio', algorithm);
    const seal = writeSidecar({
      statement: stateSeal(device.identity, now()),
      binding: BINDING,
      signer: device,
    });
    t.match(readPair(seal, trust), {
      kind: 'local_seal',
      statement: { device: 'Studio', kid: device.identity.kid },
      binding: BINDING,
    });
    t.comment(
      `${algorithm}: ${bytes.length} bytes with a certificate of ${signer.identity.certificate.length}, seal ${seal.length}`,
    );
  }
  t.end();
});

t.test('no changed byte goes unnoticed', (t) => {
  for (const algorithm of ['Ed25519', 'ES256'] as const) {
    const { signer, trust } = testSigning({ algorithm });
    const device = testDevice('Studio', algorithm);
    const bytes = serviceSidecar(signer);
    const seal = Buffer.from(
      writeSidecar({ statement: stateSeal(device.identity, now()), binding: BINDING, signer: device }),
    );
    const isTried = sampled(23);
    let changes = 0;
    for (const original of [bytes, seal]) {
      const refused = (bent: Buffer, what: string): void => {
        if (!isTried()) return;
        const { kind } = readPair(bent, trust);
        changes += 1;
        if (kind !== 'altered' && kind !== 'not_a_sidecar') t.fail(`${what}: ${kind}`);
        if (kind === 'not_a_sidecar' && bent.subarray(0, 18).equals(original.subarray(0, 18)))
          t.fail(`${what} begins as a sidecar`);
      };
      for (let at = 0; at < original.length; at += 1) {
        for (const mask of algorithm === 'Ed25519' ? [1, 2, 4, 8, 16, 32, 64, 128, 255] : [1, 255]) {
          const bent = Buffer.from(original);
          bent[at]! ^= mask;
          refused(bent, `flip ${mask} at ${at}`);
        }
        refused(Buffer.concat([original.subarray(0, at), original.subarray(at + 1)]), `delete at ${at}`);
        refused(
          Buffer.concat([original.subarray(0, at), Buffer.from([0]), original.subarray(at)]),
          `insert at ${at}`,
        );
        refused(original.subarray(0, at), `cut at ${at}`);
      }
      refused(Buffer.concat([original, Buffer.from([0])]), 'a trailing byte');
      refused(Buffer.concat([original, original]), 'twice');
    }
    t.comment(`${algorithm}: ${changes} changed sidecars refused`);
  }
  t.end();
});

t.test('other encodings of the same content are not ours', (t) => {
  const { signer, trust } = testSigning();
  const decoded = decodeMessagePackStrict(serviceSidecar(signer), 10_000);
  t.ok(decoded.ok);
  const [name, version, body, signature] = (decoded.ok ? decoded.value : []) as [
    string,
    number,
    Record<string, MessagePackValue>,
    Uint8Array,
  ];
  const read = (value: MessagePackValue): string => {
    const reading = readPair(encodeMessagePack(value), trust);
    return 'reason' in reading ? `${reading.kind}: ${reading.reason}` : reading.kind;
  };
  t.equal(read([name, version, body, signature]), 'service');
  t.equal(
    read([name, version, Object.fromEntries(Object.entries(body).reverse()), signature]),
    'altered: sidecar_not_writer_form',
  );
  t.equal(read([name, version, { ...body, more: 1 }, signature]), 'altered: sidecar_members');
  t.equal(read([name, 2, body, signature]), 'altered: sidecar_version_unknown');
  t.equal(read([name, version, body]), 'not_a_sidecar: sidecar_magic_missing');
  t.equal(read([name, version, body, new Uint8Array(63)]), 'altered: signature_mismatch');
  t.equal(read([name, version, body, null]), 'altered: sidecar_members');
  t.equal(
    read([name, version, { ...body, alg: 'ES256' }, signature]),
    'altered: signature_mismatch',
    'the key decides the algorithm',
  );
  t.equal(read([name, version, { ...body, alg: 'none' }, signature]), 'altered: sidecar_members');
  t.equal(
    read([name, version, { ...body, certificate: testDevice().identity.certificate }, signature]),
    'altered: kid_mismatch',
  );
  t.equal(
    read([name, version, { ...body, certificate: new Uint8Array(5) }, signature]),
    'altered: certificate_malformed',
  );
  t.equal(read([name, version, { ...body, kid: new Uint8Array(32) }, signature]), 'altered: kid_mismatch');
  t.equal(read([name, version, { ...body, bytes: -1 }, signature]), 'altered: sidecar_members');
  t.equal(read([name, version, { ...body, kind: 'local-seal' }, signature]), 'altered: sidecar_members');
  t.equal(
    read([name, version, { ...body, sha256: new Uint8Array(31) }, signature]),
    'altered: sidecar_members',
  );
  const extended = Buffer.from(encode([name, version, body, signature], { forceIntegerToFloat: true }));
  t.equal(readPair(extended, trust).kind, 'altered');
  t.match(readPair(Buffer.concat([serviceSidecar(signer), Buffer.alloc(30_000)]), trust), {
    kind: 'altered',
    reason: 'sidecar_over_budget',
  });
  t.match(readPair(new Uint8Array(0), trust), { kind: 'not_a_sidecar', reason: 'sidecar_empty' });
  t.match(readPair(Buffer.from('hello world'), trust), {
    kind: 'not_a_sidecar',
    reason: 'sidecar_magic_missing',
  });
  t.end();
});

t.test('a statement counts only under a key that may sign it', (t) => {
  const { signer, trust, unpinned } = testSigning();
  const device = testDevice();
  const masked = (real: LocalSigner, mask: Partial<SigningIdentity>): LocalSigner => ({
    identity: { ...real.identity, ...mask },
    sign: (message) => real.sign(message),
  });
  const read = (bytes: Uint8Array): string => {
    const reading = readPair(bytes, trust);
    return 'reason' in reading ? `${reading.kind}: ${reading.reason}` : reading.kind;
  };
  t.equal(read(serviceSidecar(device)), 'foreign: signer_unknown');
  t.equal(read(serviceSidecar(masked(device, { issuer: 'Takemark' }))), 'foreign: signer_unknown');
  t.equal(read(serviceSidecar(unpinned)), 'altered: signer_not_pinned');
  t.equal(read(serviceSidecar(masked(signer, { issuer: 'Former' }))), 'altered: issuer_mismatch');
  t.equal(
    read(writeSidecar({ statement: stateSeal(signer.identity, now()), binding: BINDING, signer })),
    'altered: class_confusion',
  );
  t.throws(
    () => writeSidecar({ statement: stateSeal(device.identity, now()), binding: BINDING, signer }),
    RangeError,
  );
  t.throws(
    () =>
      writeSidecar({
        statement: stateSeal(device.identity, now()),
        binding: { bytes: -1, sha256: BINDING.sha256 },
        signer: device,
      }),
    RangeError,
  );
  const day = 86_400_000;
  const expired = testSigning({ notBefore: Date.now() - 20 * day, notAfter: Date.now() - 10 * day });
  const then = Math.floor((Date.now() - 15 * day) / 1000);
  const old = writeSidecar({
    statement: stateProduction(expired.signer.identity, {
      proofId: 'prf_1',
      createdAt: then,
      evidenceSha256: null,
    }),
    binding: BINDING,
    signer: expired.signer,
  });
  t.equal(readPair(old, expired.trust).kind, 'service', 'judged at the time of issue');
  t.end();
});

t.test('heads that promise more than there is take no memory', (t) => {
  const { signer, trust } = testSigning();
  const start = serviceSidecar(signer).subarray(0, 18);
  for (const [name, head] of [
    ['array 16', [0xdc, 0x4f, 0xff]],
    ['array 32', [0xdd, 0, 0, 0x4f, 0xff]],
    ['map 16', [0xde, 0x4f, 0xff]],
    ['array of 15', [0x9f]],
    ['array of 64', [0xdc, 0, 64]],
  ] as const) {
    const bomb = Buffer.concat([start, Buffer.alloc(20_000 - (20_000 % head.length), Buffer.from(head))]);
    const before = process.memoryUsage().heapUsed;
    t.match(readPair(bomb, trust), { kind: 'altered' }, name);
    t.ok(process.memoryUsage().heapUsed - before < 64 * 1_048_576, `${name}: bounded`);
  }
  t.end();
});
