import type { Backoff } from '../../core/async/backoff.js';
import { eachOf } from '../../core/async/each-of.js';
import { isRecordDamaged } from '../../core/domain/errors.js';
import { type ErasureConsumerDeps, erasureConsumer, finishErasure } from '../consumers/erasure.js';
import { undamaged } from '../consumers/listen.js';
import { usageConsumer } from '../consumers/usage.js';
import { PoisonError } from '../domain/batch-delivery.js';
import type { Topic } from '../domain/events.js';
import type { AssetStore } from '../ports/assets.js';
import type { EventBus, EventHandler } from '../ports/bus.js';
import type { ErasureJournal, InstallationMarks, InstallationRow } from '../ports/journals.js';
import type { Stores } from '../ports/stores.js';
import type { Clock } from '../ports/system.js';
import { untilAvailable } from './until-available.js';

export interface RestoreDeps {
  readonly stores: Stores;
  readonly assets: AssetStore;
  readonly clock: Clock;
  readonly bus: Pick<EventBus, 'replay'>;
  readonly journal: ErasureJournal;
  readonly row: InstallationRow;
  readonly marks: InstallationMarks;
  /** The pauses between attempts while a server is unavailable, up to 15 seconds by default. */
  readonly pauses?: Backoff;
}

export interface Restored {
  readonly epoch: number;
  /** The number of erasures that were applied to the store. */
  readonly erasures: number;
  /** The number of proofs that the backup contained again. */
  readonly erasedAgain: number;
  /** The number of usage events that were applied to the store. */
  readonly usage: number;
  /** The number of messages of the topics that no consumer can handle, and of erasures of damaged records. */
  readonly left: number;
  /** The duration of the erasures, in seconds. */
  readonly seconds: number;
}

const ERASURES_AT_ONCE = 32;

/**
 * Prepares a restored store for service. Units get a new epoch. Erasures that the backup does not contain are
 * repeated. Results of consumers since the backup are added again. Starts with the mark that closes every
 * process's gate, and ends with the row that opens it. An interrupted restore is simply run again. Waits up
 * to five minutes at each step for an unavailable server.
 * @throws Error when an erasure fails, or a server stays unavailable. The gate then stays closed.
 */
export async function restore({
  stores,
  assets,
  clock,
  bus,
  journal,
  row,
  marks,
  pauses,
}: RestoreDeps): Promise<Restored> {
  const repeat = untilAvailable(pauses);
  const noted = await repeat(() => marks.read());
  const stored = await repeat(() => row.read());
  const epoch = Math.max(noted.epoch, stored.epoch) + 1;
  await repeat(() => marks.setEpoch(epoch));
  await repeat(() => row.beginEpoch(epoch, Math.floor(clock.now() / 1000)));

  const begun = performance.now();
  let erasures = 0;
  let erasedAgain = 0;
  let left = 0;
  const deps: ErasureConsumerDeps = {
    stores: {
      ...stores,
      async eraseProof(...args) {
        const erasure = await stores.eraseProof(...args);
        if (erasure !== 'not_found' && erasure.outcome === 'erased') erasedAgain += 1;
        return erasure;
      },
    },
    assets,
    journal,
    clock,
  };
  const isHeld = (proofId: string) =>
    repeat(async () => {
      try {
        return (await stores.getProof(proofId)) !== undefined;
      } catch (error) {
        if (isRecordDamaged(error)) return true;
        throw error;
      }
    });
  await eachOf(journal.read(repeat, isHeld), ERASURES_AT_ONCE, async (erasure) => {
    erasures += 1;
    try {
      await repeat(() => finishErasure(deps, erasure));
    } catch (error) {
      // A damaged record is never served, and the other erasures need not wait.
      if (!isRecordDamaged(error) && !(error instanceof PoisonError)) throw error;
      left += 1;
    }
  });
  // A failed batch is repeated. If the bus itself fails, its topic is read again from the beginning.
  const replay = (topic: Topic, consumer: EventHandler) =>
    repeat(() => bus.replay(topic, (events) => repeat(() => undamaged(consumer)(events))));
  const topic = await replay('erasure', erasureConsumer(deps, ERASURES_AT_ONCE));
  const seconds = (performance.now() - begun) / 1000;
  const usage = await replay('usage', usageConsumer({ stores }));
  await repeat(() => row.accept({ epoch, beat: noted.beat }));
  return {
    epoch,
    erasures: erasures + topic.taken,
    erasedAgain,
    usage: usage.taken,
    left: left + topic.left + usage.left,
    seconds,
  };
}
