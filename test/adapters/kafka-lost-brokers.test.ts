/**
 * Tests brokers that are lost and brokers that are not. One names no broker in its metadata for a while, like
 * a starting broker. One delays its clients, like a broker with hanging replicas.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { BareBroker } from './bare-broker.js';
import { bareBus } from './bare-bus.js';

const PREFIX = 'lost';
const TOPIC = `${PREFIX}.erasure`;
/** The longest wait for a client to recover, in milliseconds. */
const PATIENCE_MS = 120_000;

/** The time between two queries of a client, in milliseconds. It is a fifth of the product's own. */
const QUESTION_MS = 1000;
/**
 * The time after which a client without brokers would count as lost, in milliseconds: four queries, each a
 * second late.
 */
const SILENT_MS = 12_000;

t.test(
  'clients whose brokers named no broker for a while find them again',
  { timeout: 300_000 },
  async (t) => {
    const broker = await BareBroker.start(TOPIC);
    const faults = new Set<string>();
    const bus = await bareBus(
      t,
      broker,
      PREFIX,
      (where, error) => faults.add(`${where}: ${error instanceof Error ? error.message : String(error)}`),
      { questionMs: QUESTION_MS },
    );
    /** Returns whether a broker answers the producer and each consumer within `patienceMs`. */
    const reaches = async (patienceMs: number): Promise<boolean> => {
      for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(200))
        if (
          await bus.ping().then(
            () => true,
            () => false,
          )
        )
          return true;
      return false;
    };
    bus.handle('erasure', async () => undefined);
    await bus.start();
    t.ok(await reaches(PATIENCE_MS), 'all are connected');

    const isLost = (): boolean => [...faults].some((fault) => fault.endsWith('no broker responds'));
    broker.isSilent = true;
    await sleep(SILENT_MS);
    await t.rejects(bus.ping(), 'a silent broker is not there');
    t.notOk(bus.lag().has('erasure'), 'a consumer without a broker reports no lag');
    t.notOk(isLost(), 'another client could not reach it either');
    broker.isSilent = false;
    t.ok(await reaches(PATIENCE_MS), 'the same clients are answered again');

    broker.namesItself = false;
    broker.dropConnections();
    for (const deadline = Date.now() + PATIENCE_MS; !isLost() && Date.now() < deadline; )
      await bus.ping().catch(() => sleep(200));
    t.ok(isLost(), [...faults].join(', '));
    t.notOk(bus.lag().has('erasure'), 'a consumer without a broker reports no lag');
    broker.namesItself = true;

    t.ok(await reaches(PATIENCE_MS), 'all are connected again');
  },
);
