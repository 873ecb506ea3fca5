/** A service whose certificates have ended, or have not begun. The clock is the service's own. */

import { X509Certificate } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { serviceBanner } from '../../src/service/compose/service.js';
import { readConfig } from '../../src/service/config/config.js';
import { TestClock, TestService } from '../fixtures/service.js';
import { testSigning } from '../fixtures/signing.js';
import { wav } from '../fixtures/wav.js';

const DAY = 86_400;
/** The days that a service's own certificates are valid for, from the first start on. */
const LIFE_DAYS = 7305;

async function makeDirectory(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-validity-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

const readiness = async ({ operatorUrl }: TestService): Promise<unknown> => {
  const response = await fetch(`${operatorUrl}/readyz`);
  return { status: response.status, body: await response.json() };
};

const metrics = async ({ operatorUrl }: TestService): Promise<string> =>
  (await fetch(`${operatorUrl}/metrics`)).text();

t.test('a service verifies and issues nothing when its signing certificate has expired', async (t) => {
  const directory = await makeDirectory(t);
  const clock = new TestClock();
  clock.hold();
  let house = await TestService.start({ TAKEMARK_DATA_DIR: directory }, clock);
  t.teardown(() => house.stop());
  const { partnerId, caller } = await house.partner();
  const { file } = await house.issue(partnerId, wav(2000));
  const pair = await house.issue(partnerId, wav(2000), { carrier: 'sidecar' });
  const [signer] = await house.service.operations.operator.listSigners();
  const { kid, notAfter } = signer!;
  const end = new Date(notAfter * 1000).toISOString().replace('.000', '');
  t.match(await readiness(house), { status: 200, body: { ok: true, issuing: { ok: true } } });

  clock.advance(notAfter - Math.floor(clock.now() / 1000));
  t.match(await house.issue(partnerId, wav(2000)), { proofId: /^prf_/ }, 'the last second is valid');
  clock.advance(1);
  const refused = {
    code: 'unavailable',
    reason: 'signer_expired',
    retryAfterSeconds: 60,
    message: new RegExp(
      `${kid} expired at ${end}\\..* takemark operator signing request and takemark operator signing install`,
    ),
  };
  const looks = async (): Promise<void> => {
    await t.rejects(house.issue(partnerId, wav(2000)), refused);
    await t.rejects(house.issue(partnerId, wav(2000), { carrier: 'sidecar' }), refused);
    t.match(await house.verify(caller, file), { verdict: 'valid', good: true });
    t.match(await house.verify(caller, pair.file, pair.sidecar), { verdict: 'valid', good: true });
  };
  await looks();
  await house.stop({ keep: true });
  house = await TestService.start({ TAKEMARK_DATA_DIR: directory }, clock);
  await looks();
  t.strictSame(await readiness(house), {
    status: 200,
    body: { ok: true, issuing: { ok: false, reason: 'signer_expired' } },
  });
  t.match(await metrics(house), /takemark_certificate_warning\{certificate="signing",warning="expired"\} 1/);
  t.match(house.log.join(''), new RegExp(`"signer_expired","notAfter":${notAfter},"kid":"${kid}"`));
  t.match(serviceBanner(house.service, readConfig({}), { version: '1' }), refused.message);
});

t.test('a service verifies and issues nothing when its signing certificate has not begun', async (t) => {
  const directory = await makeDirectory(t);
  const clock = new TestClock();
  clock.hold();
  const now = Math.floor(clock.now() / 1000);
  const later = testSigning({
    environment: 'production',
    notBefore: (now + 2 * DAY) * 1000,
    notAfter: (now + 400 * DAY) * 1000,
  });
  const settings = await filesOf(directory, later);
  const house = await TestService.start(settings, clock);
  t.teardown(() => house.stop());
  const { partnerId, caller } = await house.partner();
  await t.rejects(house.issue(partnerId, wav(2000)), {
    code: 'unavailable',
    reason: 'signer_not_begun',
    retryAfterSeconds: 3600,
    message: /is not valid before .* Check the clock .* TAKEMARK_SIGNING_CERT/,
  });
  t.match(await house.verify(caller, wav(2000)), { verdict: 'unreadable' });
  t.match(await readiness(house), { status: 200, body: { issuing: { reason: 'signer_not_begun' } } });
  t.match(house.log.join(''), /"signer_not_begun"/);
  clock.advance(2 * DAY);
  t.match(await house.verify(caller, (await house.issue(partnerId, wav(2000))).file), { verdict: 'valid' });
});

t.test('a service issues nothing when the authority above its certificate has expired', async (t) => {
  const directory = await makeDirectory(t);
  const clock = new TestClock();
  clock.hold();
  const now = Math.floor(clock.now() / 1000);
  const signing = testSigning({
    environment: 'production',
    notBefore: (now - 400 * DAY) * 1000,
    authorityNotAfter: (now + 3 * DAY) * 1000,
  });
  const house = await TestService.start(await filesOf(directory, signing), clock);
  t.teardown(() => house.stop());
  const { partnerId, caller } = await house.partner();
  const { file } = await house.issue(partnerId, wav(2000));
  t.match(house.log.join(''), /"authority_ending"[^\n]*"days":3/);
  clock.advance(3 * DAY + 1);
  await t.rejects(house.issue(partnerId, wav(2000)), {
    reason: 'signer_expired',
    message: /^The authority's certificate [0-9a-f]{64} expired at /,
  });
  t.match(await house.verify(caller, file), { verdict: 'valid' });
  t.match(
    await metrics(house),
    /takemark_certificate_warning\{certificate="authority",warning="expired"\} 1/,
  );
});

t.test(
  'other certificates of the trust list stop nothing when they are outside their validity',
  async (t) => {
    const directory = await makeDirectory(t);
    const known = join(directory, 'signing', 'production', 'known');
    await mkdir(known, { recursive: true });
    for (const [name, notBefore, notAfter] of [
      ['past', Date.now() - 20 * DAY * 1000, Date.now() - 10 * DAY * 1000],
      ['future', Date.now() + 10 * DAY * 1000, Date.now() + 20 * DAY * 1000],
    ] as const) {
      const other = testSigning({ environment: 'production', notBefore, notAfter });
      await writeFile(
        join(known, `${name}.pem`),
        new X509Certificate(other.signer.identity.certificate).toString() + other.authority,
      );
    }
    const house = await TestService.start({ TAKEMARK_DATA_DIR: directory });
    t.teardown(() => house.stop());
    const { partnerId, caller } = await house.partner();
    t.match(await house.verify(caller, (await house.issue(partnerId, wav(2000))).file), { verdict: 'valid' });
    t.equal((await house.service.operations.operator.listSigners()).length, 3);
  },
);

t.test('the log names a signing certificate 90, 30 and 7 days before its end', async (t) => {
  const directory = await makeDirectory(t);
  const clock = new TestClock();
  clock.hold();
  const warned = async (): Promise<readonly unknown[]> => {
    const house = await TestService.start({ TAKEMARK_DATA_DIR: directory }, clock);
    const line = house.log.find((each) => each.includes('"signer_ending"'));
    const shown = /certificate="signing",warning="(\w+)"\} 1/.exec(await metrics(house))?.[1];
    await house.stop({ keep: true });
    const { level, days } = JSON.parse(line ?? '{}') as { level?: number; days?: number };
    return [level, days, shown];
  };
  t.strictSame(await warned(), [undefined, undefined, undefined]);
  clock.advance((LIFE_DAYS - 90) * DAY + 1);
  t.strictSame(await warned(), [30, 89, '90_days']);
  clock.advance(60 * DAY);
  t.strictSame(await warned(), [40, 29, '30_days']);
  clock.advance(23 * DAY);
  t.strictSame(await warned(), [40, 6, '7_days']);
});

t.test('the sandbox refuses to make fixtures when the signing certificate has expired', async (t) => {
  const directory = await makeDirectory(t);
  const clock = new TestClock();
  const house = await TestService.start(
    { TAKEMARK_DATA_DIR: directory, TAKEMARK_ENVIRONMENT: 'beta' },
    clock,
  );
  t.teardown(() => house.stop());
  const { caller } = await house.partner();
  clock.advance((LIFE_DAYS + 1) * DAY);
  await t.rejects(house.service.operations.partner.sandboxFixtures(caller), {
    code: 'unavailable',
    reason: 'signer_expired',
    message: 'The sandbox cannot sign its fixtures at the moment.',
  });
});

/** Writes a signing identity to files, and returns the settings that name them. */
async function filesOf(
  directory: string,
  { signer, authority, leafKey }: ReturnType<typeof testSigning>,
): Promise<Readonly<Record<string, string>>> {
  const at = (name: string): string => join(directory, name);
  await writeFile(at('leaf.pem'), new X509Certificate(signer.identity.certificate).toString());
  await writeFile(at('key.pem'), leafKey, { mode: 0o600 });
  await writeFile(at('authority.pem'), authority);
  return {
    TAKEMARK_DATA_DIR: join(directory, 'data'),
    TAKEMARK_SIGNING_CERT: at('leaf.pem'),
    TAKEMARK_SIGNING_KEY: at('key.pem'),
    TAKEMARK_SIGNING_AUTHORITY: at('authority.pem'),
  };
}
