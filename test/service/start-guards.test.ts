/** Things that a start looks at before anything is served: the clock, and who can read the secrets. And its end. */

import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { secureFile } from '../../src/service/adapters/signing/secret-file.js';
import { SteadyClock } from '../../src/service/adapters/system/steady-clock.js';
import { TestClock, TestService } from '../fixtures/service.js';
import { RawClient } from '../http/raw-client.js';

t.test('a clock that is set back revives nothing, and a start on one is refused', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-clock-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const clock = new TestClock();
  clock.hold();
  const house = await TestService.start({ TAKEMARK_DATA_DIR: directory }, clock);
  t.teardown(() => house.stop());
  const { apiKey, caller } = await house.partner();
  const { partner } = house.service.operations;
  const rotated = await partner.rotateKey(caller, apiKey, 'a-first-rotation-0001');
  clock.advance(72 * 3600);
  t.equal(Math.floor(clock.now() / 1000), rotated.previousKeyExpiresAt);
  await t.rejects(partner.authenticate(apiKey), { code: 'forbidden' }, 'expired');
  clock.advance(-48 * 3600);
  await t.rejects(
    partner.authenticate(apiKey),
    { code: 'forbidden' },
    'and still expired when the clock is set back',
  );
  t.ok(await partner.authenticate(rotated.apiKey));
  await house.stop({ keep: true });

  await t.rejects(
    TestService.start({ TAKEMARK_DATA_DIR: directory }, clock),
    /the clock shows .* already saw .*With a clock that was set back/,
  );
  clock.advance(48 * 3600 - 240);
  const again = await TestService.start({ TAKEMARK_DATA_DIR: directory }, clock);
  t.teardown(() => again.stop());
  await t.rejects(
    again.service.operations.partner.authenticate(apiKey),
    { code: 'forbidden' },
    'a few minutes are not refused, and change nothing',
  );
  await again.stop({ keep: true });
  clock.advance(-48 * 3600);
  await rm(join(directory, 'clock'));
  await (await TestService.start({ TAKEMARK_DATA_DIR: directory }, clock)).stop({ keep: true });
});

t.test('a clock that is set back does not stop request rates from coming back', async (t) => {
  const clock = new TestClock();
  clock.hold();
  const house = await TestService.start({}, clock);
  t.teardown(() => house.stop());
  const { apiKey } = await house.partner('trial');
  const call = async (): Promise<number> =>
    (await fetch(`${house.partnerUrl}/v1/partner/usage`, { headers: { 'x-api-key': apiKey } })).status;
  clock.advance(-3600);
  let status = 0;
  for (let calls = 0; calls < 1000 && (status = await call()) === 200; calls += 1);
  t.equal(status, 429, 'the burst is spent');
  clock.advance(2);
  t.equal(await call(), 200, 'two seconds later there is more, an hour before the clock has caught up');
});

t.test('time pauses until the clock has caught up', async (t) => {
  let below = 1000;
  const clock = new SteadyClock({ now: () => below }, 500);
  const said = [1000, 900, 1000, 1100, 0].map((now) => ((below = now), clock.now()));
  t.strictSame(said, [1000, 1000, 1000, 1100, 1100]);
  t.equal(clock.behind(), 1100);
});

t.test(
  'secrets that others can read are closed to them at the start, and the log says so',
  { skip: process.platform === 'win32' && 'there are no modes' },
  async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'takemark-modes-'));
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    await (await TestService.start({ TAKEMARK_DATA_DIR: directory })).stop({ keep: true });
    const files = [
      'secrets.json',
      'operator-token',
      'signing/production/authority/key.pem',
      'signing/production/leaf-ed25519/key.pem',
    ].map((name) => join(directory, name));
    for (const path of files) await chmod(path, 0o644);
    const house = await TestService.start({ TAKEMARK_DATA_DIR: directory });
    t.teardown(() => house.stop());
    for (const path of files) {
      t.equal((await stat(path)).mode & 0o777, 0o600, path);
      t.ok(house.log.some((line) => line.includes('"secret_file_tightened"') && line.includes(path)));
    }
    const untouched = join(directory, 'other');
    await writeFile(untouched, 'x', { mode: 0o640 });
    t.equal(await secureFile(untouched, 'win32'), 'sound');
    t.equal((await stat(untouched)).mode & 0o777, 0o640);
    t.equal(await secureFile(join(directory, 'none')), 'sound');
    t.equal(await secureFile(untouched), 'tightened');
    t.equal(await readFile(untouched, 'utf8'), 'x');
  },
);

t.test('what a stop waits for has its time together', async (t) => {
  const house = await TestService.start({ TAKEMARK_STOP_GRACE_SECONDS: '2' });
  t.teardown(() => house.stop());
  const token = (await readFile(join(house.directory, 'operator-token'), 'utf8')).trim();
  const { apiKey } = await house.partner();
  /** Begins a call that never ends by itself, and waits until it is under way. */
  const hold = async (port: number, path: string, header: string) => {
    const client = new RawClient(port);
    t.teardown(() => client.destroy());
    await client.send(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${header}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{`,
    );
    await client.arrived();
    return { ended: client.ended().then(() => performance.now()) };
  };
  const { partner, operator } = house.service;
  const partners = await hold(partner.port, '/v1/telemetry', `X-Api-Key: ${apiKey}`);
  const operators = await hold(operator.port, '/operator/v1/partners', `Authorization: Bearer ${token}`);
  const from = performance.now();
  await house.stop({ keep: true });
  const [partnersMs, operatorsMs] = [(await partners.ended) - from, (await operators.ended) - from];
  t.ok(operatorsMs < 1.5 * partnersMs, `${operatorsMs} beside ${partnersMs}: at the same time`);
  await rm(house.directory, { recursive: true, force: true });
});

t.test('a token file is refused when it has no token', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-token-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  await (await TestService.start({ TAKEMARK_DATA_DIR: directory })).stop({ keep: true });
  const path = join(directory, 'operator-token');
  const token = await readFile(path, 'utf8');
  for (const damaged of ['', '\n', token.slice(0, 9), `${token}${token}`, token.replace(/^./, '\0')]) {
    await writeFile(path, damaged);
    await t.rejects(
      TestService.start({ TAKEMARK_DATA_DIR: directory }),
      /operator-token does not hold a token/,
    );
  }
  await writeFile(path, token);
  await (await TestService.start({ TAKEMARK_DATA_DIR: directory })).stop({ keep: true });
});

t.test('a damaged file of the data directory is named by the start that it prevents', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'takemark-damaged-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  await (await TestService.start({ TAKEMARK_DATA_DIR: directory })).stop({ keep: true });
  const cases: readonly (readonly [name: string, content: string, message: RegExp])[] = [
    ['secrets.json', 'null', /secrets\.json is damaged/],
    ['secrets.json', '"x"', /secrets\.json is/],
    ['dead-letters/dead-letters.position', '{"usage"', /dead-letters\.position is damaged/],
    ['dead-letters/dead-letters.position', 'null', /dead-letters\.position is damaged/],
    ['signing/production/leaf-ed25519/key.pem', '', /signing key in .*production cannot be read/],
    ['store/CURRENT', 'MANIFEST-999999\n', /store could not be opened: .*MANIFEST-999999/],
  ];
  for (const [name, content, message] of cases) {
    const path = join(directory, name);
    const former = await readFile(path).catch(() => undefined);
    await writeFile(path, content);
    await t.rejects(TestService.start({ TAKEMARK_DATA_DIR: directory }), message, `${name}: ${content}`);
    if (former === undefined) await rm(path);
    else await writeFile(path, former);
  }
  await writeFile(join(directory, 'clock'), '9999999999999999');
  await (await TestService.start({ TAKEMARK_DATA_DIR: directory })).stop({ keep: true });
});
