import { isDeepStrictEqual } from 'node:util';
import type { ServiceEvent, UsageEvent } from '../../src/service/domain/events.js';
import type { Stores } from '../../src/service/ports/stores.js';
import { unitsOf } from '../store-contract/outbox-contract.js';

/**
 * Records every event that a store published or has waiting, over many processes, as a bus and its consumers
 * would get them.
 */
export class EventLedger {
  readonly #events = new Map<string, ServiceEvent>();
  readonly #marked = new Set<string>();
  readonly #confirmed = new Set<string>();

  /** @param lines of a writer: what it published, marked and confirmed */
  take(lines: readonly string[]): readonly string[] {
    const problems: string[] = [];
    for (const line of lines) {
      const [word, rest] = line.split(' ') as [string, string];
      if (word === 'event') problems.push(...this.#add(JSON.parse(rest) as ServiceEvent));
      if (word === 'marked') this.#marked.add(rest);
      if (word === 'confirmed') this.#confirmed.add(rest);
    }
    return problems;
  }

  /**
   * Adds the waiting events.
   * @returns what is wrong with them
   */
  async collect(stores: Stores): Promise<readonly string[]> {
    const waiting = (await stores.waitingEvents(1_000_000)).map(({ event }) => event);
    const problems = waiting.flatMap((event) => this.#add(event));
    const ids = new Set(waiting.map(({ id }) => id));
    if (ids.size !== waiting.length) problems.push(`${waiting.length} events wait, with ${ids.size} ids`);
    if (stores.countWaiting() !== waiting.length)
      problems.push(`${waiting.length} events wait, ${stores.countWaiting()} are counted`);
    for (const id of ids) if (this.#marked.has(id)) problems.push(`${id} was marked, and waits`);
    for (const proofId of this.#confirmed) {
      const proof = await stores.getProof(proofId);
      if (proof?.state !== 'erased' || proof.confirmedAt === undefined)
        problems.push(`the erasure of ${proofId} is confirmed no more`);
    }
    this.#confirmed.clear();
    return problems;
  }

  has(id: string): boolean {
    return this.#events.has(id);
  }

  get usage(): readonly UsageEvent[] {
    return [...this.#events.values()].filter((event) => event.topic === 'usage');
  }

  /** Checks that a partner's events cover each of its units once, and that a read returns the same units. */
  async checkUsage(stores: Stores, partnerIds: readonly string[], at: number): Promise<readonly string[]> {
    const problems: string[] = [];
    const partners = new Map<string, UsageEvent[]>(partnerIds.map((partnerId) => [partnerId, []]));
    for (const event of this.usage) partners.get(event.key)?.push(event);
    for (const [partnerId, events] of partners) {
      const positions = new Map<string, number>();
      for (const { id, data } of events.toSorted((a, b) => a.data.from - b.data.from)) {
        if (data.from !== (positions.get(data.source) ?? 0))
          problems.push(`${id} begins where no other ended`);
        positions.set(data.source, data.to);
      }
      const billed = [...positions].reduce(
        (sum, [source, to]) => sum + (source.startsWith('billed/') ? to : 0),
        0,
      );
      const used = await stores.getUsed(partnerId, at);
      if (billed !== used) problems.push(`${partnerId}: events of ${billed} units, ${used} are used`);
      const read = (await stores.getDailyUsage(partnerId, '2026-01-01', '2026-12-31')).flatMap(
        ({ day, operations }) =>
          Object.entries(operations).map(([operation, units]) => ({ day, operation, units })),
      );
      const published = events.flatMap(({ data }) => data.counts);
      if (!isDeepStrictEqual(unitsOf(read), unitsOf(published)))
        problems.push(
          `${partnerId}: ${JSON.stringify(unitsOf(read))} is read, ${JSON.stringify(unitsOf(published))} was published`,
        );
    }
    return problems;
  }

  #add(event: ServiceEvent): readonly string[] {
    const known = this.#events.get(event.id);
    if (known === undefined) this.#events.set(event.id, event);
    return known === undefined || isDeepStrictEqual(known, event) ? [] : [`${event.id} has two contents`];
  }
}
