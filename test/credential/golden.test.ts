import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { createTrustList } from '../../src/core/credential/trust-list.js';
import { identityOf } from '../../src/service/adapters/signing/identity.js';
import { readFile, readPair } from '../fixtures/credentialed-file.js';
import { judge, startJudge } from '../fixtures/judge.js';

/** Files of every version of the formats. They must always stay readable, with the same results. */
const FOLDER = new URL('../../../test/fixtures/golden/', import.meta.url);
const expected = JSON.parse(readFileSync(new URL('expected.json', FOLDER), 'utf8')) as {
  readonly leaves: readonly string[];
  readonly authorities: readonly string[];
  readonly readings: Readonly<
    Record<string, { readonly kind: string; readonly statement: { readonly issuer?: string } }>
  >;
};
const trust = createTrustList(
  expected.leaves.map((pem) => identityOf(new X509Certificate(pem))),
  expected.authorities.map((pem) => new X509Certificate(pem)),
);

t.test('golden files read as they always did', async (t) => {
  startJudge();
  for (const [name, reading] of Object.entries(expected.readings)) {
    const bytes = readFileSync(new URL(name, FOLDER));
    if (name.endsWith('.sidecar')) {
      t.strictSame(readPair(bytes, trust), reading, name);
      continue;
    }
    const found = readFile(bytes, trust);
    t.strictSame(found.reading, reading, name);
    t.ok(found.bound, `${name} is bound to its audio`);
    t.equal(
      (await judge(bytes, expected.authorities.join('\n'))).state,
      reading.kind === 'service' ? 'Trusted' : 'Valid',
      `${name} in c2pa-rs`,
    );
  }
  t.equal(expected.readings['embedded-v1-former-name.wav']?.kind, 'service');
  t.equal(
    expected.readings['embedded-v1-former-name.wav']?.statement.issuer,
    'Takeproof',
    'the former name stays as history',
  );
  t.equal(expected.readings['sidecar-v1-former-name.sidecar']?.statement.issuer, 'Takeproof');
});
