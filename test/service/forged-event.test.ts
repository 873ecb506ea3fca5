/**
 * An attacker with write access to the topic of erasures, but without the service's secrets, announces the
 * erasure of a live proof. Nothing is erased.
 */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { encodeEvent } from '../../src/service/adapters/kafka/event-message.js';
import { proofErased } from '../../src/service/domain/events.js';
import { dropTopics, makeTopics, produceRaw } from '../adapters/kafka-trials.js';
import { again } from '../fixtures/again.js';
import { until } from '../fixtures/until.js';
import { wav } from '../fixtures/wav.js';
import { RestartedService } from '../operations/restarted-service.js';

const BROKERS = process.env['TAKEMARK_KAFKA'] || undefined;

void t.test(
  'a forged erasure',
  {
    skip:
      BROKERS === undefined &&
      process.env['CI'] === undefined &&
      'TAKEMARK_KAFKA is not set: npm run services:up starts a server and prints it',
  },
  async (t) => {
    if (BROKERS === undefined) return t.fail('TAKEMARK_KAFKA is not set');
    const brokers = BROKERS.split(',');
    const prefix = `takemark-test-${randomBytes(5).toString('hex')}`;
    await makeTopics({ brokers, prefix, partitions: 1, replication: 1 });
    t.teardown(() => dropTopics({ brokers }, prefix));
    const house = await RestartedService.start({
      TAKEMARK_BUS: 'kafka',
      TAKEMARK_KAFKA: BROKERS,
      TAKEMARK_KAFKA_PREFIX: prefix,
      TAKEMARK_KAFKA_REPLICATION: '1',
    });
    t.teardown(() => house.stop());
    const { partnerId, caller } = await house.service.partner();
    const live = await house.service.issue(partnerId, wav(2000), { song: 'live' });
    const doomed = await house.service.issue(partnerId, wav(2000, {}, 2), { song: 'doomed' });

    const { proofId } = live;
    const forged = encodeEvent(proofErased({ proofId, partnerId, erasedAt: house.seconds() }));
    const topic = `${prefix}.erasure`;
    await produceRaw({ brokers }, [
      {
        topic,
        key: proofId,
        value: forged,
        headers: { 'schema-version': '1', 'event-id': `proof_erased/${proofId}` },
      },
    ]);
    // The genuine event follows the forged one in the only partition. When it is confirmed, the forged one
    // has been handled.
    await house.partner.eraseProof(caller, { proofId: doomed.proofId });
    t.ok(
      await until(async () => (await house.operator.erasureStatus(doomed.proofId)).confirmedAt !== undefined),
      'an erasure that the service itself announced is carried out',
    );

    const untouched = async (when: string) => {
      t.match(await house.service.verify(caller, live.file), { verdict: 'valid' }, `${when}: it stays valid`);
      t.match(await house.partner.readProof(caller, { proofId }), { proofId }, `${when}: it is there`);
    };
    const letters = () => again(() => house.operator.listDeadLetters({ topic: 'erasure', limit: 10 }));
    await untouched('taken by the consumer');
    t.match(
      await letters(),
      [{ topic: 'erasure', reason: /not authenticated/ }],
      'it is a dead letter with its own reason',
    );

    t.equal(await again(() => house.operator.replayDeadLetters({ topic: 'erasure', limit: 10 })), 1);
    await until(async () => (await letters()).length > 0);
    t.equal((await letters()).length, 1, 'put back, it comes here again');
    await untouched('put back');
  },
);
