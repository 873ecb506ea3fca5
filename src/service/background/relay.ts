import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { pauseAfter } from '../../core/async/backoff.js';
import type { ServiceEvent, Topic } from '../domain/events.js';
import type { EventBus } from '../ports/bus.js';
import type { Observer } from '../ports/observer.js';
import type { OutboxStore, WaitingEvent } from '../ports/stores.js';
import { Lanes } from './lanes.js';

/** The most events that are published together. */
const BATCH = 500;
/**
 * The most events of a batch that failed before. The limit leaves room for other events, even when many fail.
 */
const AGAIN = 50;
/**
 * The pauses and time limits of the relay, in milliseconds. `firstMs` is the first pause after a failure and
 * doubles with every further failure up to `longestMs`. `idleMs` is the interval between reads of an idle
 * outbox. `patienceMs` is how long a batch may delay the next one. After `silentMs` a missing acknowledgement
 * is reported. `stopMs` is how long a stop waits for running work.
 */
const PAUSES = {
  firstMs: 100,
  longestMs: 5000,
  idleMs: 5000,
  patienceMs: 200,
  silentMs: 10_000,
  stopMs: 5000,
};
/**
 * A generous estimate of the events that are skipped per millisecond. After many skipped events the relay
 * pauses for the estimated time.
 */
const PASSED_OVER_A_MS = 1000;

export interface EventRelay {
  /** Starts publishing, with the oldest waiting events first. */
  start(): void;
  /** Starts no further batch, and waits some seconds for running ones. May be called twice. */
  stop(): Promise<void>;
  /** Returns when the oldest waiting event happened, in unix seconds, or undefined without any. */
  oldestAt(): number | undefined;
}

export interface EventRelayDeps {
  readonly stores: OutboxStore;
  readonly bus: Pick<EventBus, 'publish'>;
  readonly observer: Pick<Observer, 'events' | 'fault'>;
  readonly pauses?: typeof PAUSES;
}

/**
 * Publishes the outbox to the bus, oldest first. An event is marked once the bus has confirmed it, regardless
 * of other events. A failed event is published again before any later event of its key. So the order within a
 * key holds and no event is lost. An event that the bus neither confirms nor refuses delays only its own key.
 */
export function createEventRelay({ stores, bus, observer, pauses = PAUSES }: EventRelayDeps): EventRelay {
  const lanes = new Lanes(pauses);
  const confirmed: WaitingEvent[] = [];
  const sendings = new Set<Sending>();
  let running = false;
  let looking: Promise<void> | undefined;
  let marking: Promise<void> | undefined;
  let reading: Promise<readonly WaitingEvent[]> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let woken = false;
  /** The number of consecutive failed reads and refused batches, without any confirmed event between them. */
  let failures = 0;
  let isReported = false;
  /** The time of the oldest event of the last read. */
  let oldestAt: number | undefined;

  /** Reports an outage once, regardless of its length. */
  const report = (error: unknown): void => {
    if (!isReported) observer.fault('outbox', error);
    isReported = true;
  };
  const wake = (): void => {
    woken = true;
    // During an outage new events do not shorten the pause.
    if (running && looking === undefined && failures === 0) begin();
  };

  const markAll = async (): Promise<void> => {
    for (let attempts = 1; confirmed.length > 0; ) {
      const batch = confirmed.splice(0);
      try {
        await stores.markPublished(batch);
        attempts = 1;
        for (const [topic, count] of countTopics(batch)) observer.events(topic, 'published', count);
        // A running read may have read the events before their marks.
        await reading?.catch(() => undefined);
        for (const { event } of batch) lanes.end(event, 'kept', performance.now());
      } catch (error) {
        // Repeat only the marking, not the publishing.
        confirmed.unshift(...batch);
        report(error);
        if (!running) return;
        await sleep(pauseAfter(attempts, pauses));
        attempts += 1;
      }
    }
  };
  const mark = (): Promise<void> => {
    marking ??= markAll().finally(() => (marking = undefined));
    return marking;
  };

  const send = (batch: readonly WaitingEvent[]): Sending => {
    const open = new Map(batch.map((waiting) => [waiting.event, waiting]));
    const sending = { failed: 0, isRefused: false, isLate: false };
    let marked: Promise<void> | undefined;
    const settle = (event: ServiceEvent, fault?: unknown): void => {
      const waiting = open.get(event);
      if (waiting === undefined) return;
      open.delete(event);
      if (fault === undefined) {
        failures = 0;
        confirmed.push(waiting);
        // Events that are confirmed together are marked together.
        marked ??= setImmediate().then(async () => {
          marked = undefined;
          await mark();
          if (sending.isLate) wake();
        });
      } else {
        sending.failed += 1;
        lanes.end(event, 'failed', performance.now());
        report(fault);
        if (sending.isLate) wake();
      }
    };
    const settleRest = (fault?: unknown): void => {
      for (const event of [...open.keys()]) settle(event, fault);
    };
    for (const { event } of batch) lanes.begin(event, performance.now());
    const settled = bus.publish([...open.keys()], settle).then(
      () => settleRest(),
      (fault: unknown) => {
        // The bus refused the batch as a whole when it reported no single event.
        sending.isRefused = open.size === batch.length;
        settleRest(fault);
      },
    );
    return Object.assign(sending, { settled: settled.then(() => marked ?? marking) });
  };

  const publishWaiting = async (): Promise<void> => {
    for (let more = true; more && running; ) {
      woken = false;
      let passedOver = 0;
      let again = 0;
      const now = performance.now();
      let oldest: number | undefined;
      reading = stores.waitingEvents(BATCH, (event) => {
        oldest = Math.min(oldest ?? event.at, event.at);
        const state = lanes.stateOf(event, now);
        if (state === 'again') again += 1;
        const isHeldBack = state === 'closed' || (state === 'again' && again > AGAIN);
        if (isHeldBack) passedOver += 1;
        return isHeldBack;
      });
      const batch = await reading;
      oldestAt = oldest;
      const hasFailed = batch.length > 0 && (await publishBatch(batch));
      if (batch.length === 0 && !lanes.hasFailed) failures = 0;
      reportSilence();
      if (failures > 0) return;
      more = woken || batch.length === BATCH || (again > AGAIN && !hasFailed);
      if (passedOver >= PASSED_OVER_A_MS) await sleep(passedOver / PASSED_OVER_A_MS);
    }
  };

  /**
   * Publishes a batch. Does not wait longer than `patienceMs` for a silent batch, so that other batches
   * continue.
   * @returns true when an event failed meanwhile
   */
  const publishBatch = async (batch: readonly WaitingEvent[]): Promise<boolean> => {
    const sending = send(batch);
    sendings.add(sending);
    void sending.settled.then(() => sendings.delete(sending));
    if (!(await settledWithin(sending.settled, pauses.patienceMs))) sending.isLate = true;
    if (sending.isRefused) failures += 1;
    return sending.failed > 0;
  };

  const reportSilence = (): void => {
    const { oldest } = lanes;
    const isSilent = oldest !== undefined && performance.now() - oldest > pauses.silentMs;
    if (isSilent) report(new Error('events are waiting for an acknowledgement from the event bus'));
    else if (failures === 0 && !lanes.hasFailed) isReported = false;
  };

  const schedule = (): void => {
    clearTimeout(timer);
    const untilFree = Math.max(pauses.firstMs, lanes.nextFree - performance.now());
    const pause = failures > 0 ? pauseAfter(failures, pauses) : Math.min(pauses.idleMs, untilFree);
    timer = setTimeout(begin, pause);
  };

  const begin = (): void => {
    if (looking !== undefined) return;
    clearTimeout(timer);
    looking = publishWaiting()
      .catch((error: unknown) => {
        failures += 1;
        report(error);
      })
      .then(() => {
        looking = undefined;
        if (!running) return;
        schedule();
        // An event may have arrived since the last read.
        if (woken && failures === 0) begin();
      });
  };
  return {
    oldestAt: () => (stores.countWaiting() === 0 ? undefined : oldestAt),
    start() {
      running = true;
      stores.onWaiting(wake);
      begin();
    },
    async stop() {
      running = false;
      clearTimeout(timer);
      await looking;
      await settledWithin(Promise.all([...sendings].map(({ settled }) => settled)), pauses.stopMs);
    },
  };
}

/** A batch that is being published. */
interface Sending {
  /** The number of failed events. */
  failed: number;
  /** True when the bus accepted none of the events. */
  isRefused: boolean;
  /** True when the next read does not wait for this batch. */
  isLate: boolean;
  /** Resolves when all its events are settled, and the confirmed ones are marked. */
  readonly settled: Promise<void>;
}

/** Returns true when the work settled in time. Otherwise the work continues. */
async function settledWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  const late = new AbortController();
  const settled = work.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([settled, sleep(ms, false, { signal: late.signal }).catch(() => false)]);
  } finally {
    late.abort();
  }
}

function countTopics(batch: readonly WaitingEvent[]): Map<Topic, number> {
  const counts = new Map<Topic, number>();
  for (const { event } of batch) counts.set(event.topic, (counts.get(event.topic) ?? 0) + 1);
  return counts;
}
