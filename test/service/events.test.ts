/** From a write through outbox and bus to the consumers and back to what people read, on a whole service. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { run } from '../../src/cli/program.js';
import { Terminal } from '../../src/cli/terminal.js';
import { DeadLetterFile } from '../../src/service/adapters/local-bus/dead-letter-file.js';
import { startConsumers } from '../../src/service/compose/consumers.js';
import { migrate, restoreCluster } from '../../src/service/compose/tools.js';
import { readConfig } from '../../src/service/config/config.js';
import { unitsCounted } from '../../src/service/domain/events.js';
import { REVIEW_LIFE_SECONDS } from '../../src/service/domain/review.js';
import { dropTopics, makeTopics } from '../adapters/kafka-trials.js';
import { authenticatorOf } from '../fixtures/authentication.js';
import { until } from '../fixtures/until.js';
import { wav } from '../fixtures/wav.js';
import { call } from '../fixtures/wire.js';
import { bindings, RestartedService } from '../operations/restarted-service.js';

const BROKERS = process.env['TAKEMARK_KAFKA'] || undefined;

/** Returns a value of the operator's metrics, summed over its labels if none are given. */
async function metric(house: RestartedService, name: string, labels = ''): Promise<number> {
  const text = (await call(house.service.operatorUrl, 'GET', '/metrics')).body.toString();
  return text
    .split('\n')
    .reduce(
      (sum, line) => (line.startsWith(`${name}${labels}`) ? sum + Number(line.split(' ').at(-1)) : sum),
      0,
    );
}

const published = (house: RestartedService, topic: string) =>
  metric(house, 'takemark_events_published_total', `{topic="${topic}"}`);
const handled = (house: RestartedService, topic: string) =>
  metric(house, 'takemark_events_handled_total', `{topic="${topic}"}`);

async function takemark(
  house: RestartedService,
  ...words: string[]
): Promise<{ readonly code: number; readonly out: string }> {
  let out = '';
  const output = (keep: boolean) => ({ write: (chunk: string) => ((out += keep ? chunk : ''), true) });
  const { service, operatorUrl, partnerUrl } = house.service;
  const config = {
    url: partnerUrl,
    operatorUrl,
    operatorToken: service.operatorToken,
    dataDirectory: house.directory,
    profilesFile: join(house.directory, 'profiles.json'),
    allowPlainHttp: false,
    dataDirectoryNamed: false,
  };
  const unused = undefined as never;
  const code = await run(words, {
    terminal: new Terminal(output(true), output(false)),
    config,
    version: '0',
    signal: new AbortController().signal,
    openSealer: unused,
    openFileKit: unused,
    readSecret: unused,
    cluster: unused,
  });
  return { code, out };
}

/** Tests everything that any bus has to carry for a service. */
async function carriesEvents(t: Test, house: RestartedService): Promise<void> {
  const { partnerId, caller } = await house.service.partner();
  const proof = await house.service.issue(partnerId, wav(2000));
  const doomed = await house.service.issue(partnerId, wav(2000, {}, 2));
  const audio = proof.file;
  for (let calls = 1; calls <= 3; calls += 1) {
    await house.service.verify(caller, audio);
    const { days, used } = await house.partner.readUsage(caller, { days: 1 });
    t.match(
      [used, days.at(-1)?.operations['verify']],
      [calls, calls],
      'the days count a call that has just been answered',
    );
  }
  t.ok(
    await until(
      async () =>
        (await handled(house, 'usage')) >= 1 && (await metric(house, 'takemark_outbox_waiting')) === 0,
    ),
    'the charges were folded',
  );
  t.match(
    (await house.partner.readUsage(caller, { days: 1 })).days.at(-1)?.operations,
    { verify: 3 },
    'and count once',
  );

  const { reviewId } = await house.partner.createReview(caller, {
    proofId: proof.proofId,
    bindings: bindings('sub_1'),
  });
  await house.partner.createReview(caller, { proofId: doomed.proofId, bindings: bindings('sub_2') });
  t.ok(await until(async () => (await handled(house, 'retention')) >= 2), 'both cases were announced');
  await house.partner.eraseProof(caller, { proofId: doomed.proofId });
  t.ok(
    await until(async () => (await house.operator.erasureStatus(doomed.proofId)).confirmedAt !== undefined),
    'the erasure is confirmed',
  );
  t.match(await house.operator.erasureStatus(doomed.proofId), {
    state: 'erased',
    erasedAt: house.seconds(),
    confirmedAt: house.seconds(),
    assetPresent: false,
  });
  t.equal((await house.partner.readReview(caller, { reviewId })).status, 'open');

  for (const [days, what] of [
    [173, 'soon to expire'],
    [7, 'expired'],
  ] as const) {
    await house.restart(async () => house.clock.advance(days * 86_400));
    t.ok(
      await until(async () => (await published(house, 'retention')) === 1),
      `${what}: announced, and the case that went with its proof is not`,
    );
    await house.restart();
    await sleep(300);
    t.equal(await published(house, 'retention'), 0, `${what}: once`);
  }
  t.equal(REVIEW_LIFE_SECONDS, 180 * 86_400);
}

t.test('the embedded bus carries every event of a service', async (t) => {
  const house = await RestartedService.start();
  t.teardown(() => house.stop());
  await carriesEvents(t, house);
  t.notMatch(house.service.log.join('\n'), /prf_|rev_|ptr_/, 'no line names what an event was about');
});

t.test(
  'Kafka carries every event of a service',
  { skip: BROKERS === undefined && 'TAKEMARK_KAFKA is not set' },
  async (t) => {
    const settings = {
      TAKEMARK_BUS: 'kafka',
      TAKEMARK_KAFKA: BROKERS!,
      TAKEMARK_KAFKA_PREFIX: `tm-test-${randomBytes(4).toString('hex')}`,
      TAKEMARK_KAFKA_PARTITIONS: '2',
      TAKEMARK_KAFKA_REPLICATION: '1',
      TAKEMARK_CONSUMERS: 'on',
    };
    await withTopics(t, settings);
    const house = await RestartedService.start(settings);
    t.teardown(() => house.stop());
    await carriesEvents(t, house);
  },
);

t.test('what does not fit together is refused in words', async (t) => {
  await t.rejects(
    startConsumers(readConfig({}), { version: '0' }),
    /needs TAKEMARK_STORE=cassandra and TAKEMARK_BUS=kafka/,
  );
  await t.rejects(restoreCluster(readConfig({})), /TAKEMARK_STORE=cassandra and TAKEMARK_BUS=kafka/);
  await t.rejects(migrate(readConfig({})), /TAKEMARK_CASSANDRA and TAKEMARK_CASSANDRA_DC/);
});

t.test('dead letters are listed with their reason, and taken once they can be', async (t) => {
  const house = await RestartedService.start();
  t.teardown(() => house.stop());
  const { partnerId, caller } = await house.service.partner();
  const at = house.seconds();
  const day = new Date(at * 1000).toISOString().slice(0, 10);
  const good = unitsCounted(
    { partnerId, source: 'free/elsewhere', from: 0, to: 1, counts: [{ day, operation: 'list', units: 4 }] },
    at,
  );
  const bad = unitsCounted(
    { partnerId, source: 'free/elsewhere', from: 9, to: 9, counts: [{ day, operation: 'list', units: 40 }] },
    at,
  );
  await house.restart(async () => {
    const letters = await DeadLetterFile.open(join(house.directory, 'dead-letters'), {
      authenticator: await authenticatorOf(house.directory, 'event'),
      acceptWithoutMac: false,
    });
    for (const event of [bad, good]) await letters.append(event, 'a reason of an earlier version', at);
    await letters.close();
  });
  const listed = await takemark(house, 'operator', 'dlq', 'list', '--json');
  t.match(
    listed.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object),
    [
      { topic: 'usage', eventId: bad.id, reason: 'a reason of an earlier version' },
      { topic: 'usage', eventId: good.id },
    ],
  );
  t.strictSame(await takemark(house, 'operator', 'dlq', 'list', '--topic', 'erasure'), { code: 0, out: '' });
  t.strictSame(await takemark(house, 'operator', 'dlq', 'replay', '--topic', 'usage'), {
    code: 0,
    out: '2 replayed\n',
  });
  const left = await takemark(house, 'operator', 'dlq', 'list', '--json');
  t.match(
    left.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object),
    [{ eventId: bad.id, reason: 'the span is empty' }],
    'what can never be taken is a dead letter again',
  );
  t.equal(left.out.trim().split('\n').length, 1);
  t.match(
    (await house.partner.readUsage(caller, { days: 1 })).days.at(-1)?.operations,
    { list: 4 },
    'what can be taken was',
  );
  t.equal(await metric(house, 'takemark_dead_letters_total', '{topic="usage"}'), 1);
});

/** Makes topics of the test's own, and deletes them at its end. */
async function withTopics(t: Test, settings: Readonly<Record<string, string>>): Promise<void> {
  const { kafka } = readConfig(settings);
  await makeTopics(kafka!);
  t.teardown(() => dropTopics(kafka!, kafka!.prefix));
}
