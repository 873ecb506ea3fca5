import { setTimeout as sleep } from 'node:timers/promises';
import { type ConsumerClient, KafkaError, type Message } from './client.js';

const BATCH = 500;
/** The time in milliseconds without a message or an end after which Kafka counts as not answering. */
const SILENCE_MS = 30_000;
const IDLE_MS = 20;

/**
 * Reads what a topic holds now, partition after partition, without joining the group.
 * @param from first offset of a partition; its beginning where there is none
 * @param limit at most so many messages
 * @param each gets them in batches, in the order of their partition
 */
export async function readTopic(
  client: ConsumerClient,
  {
    name,
    from,
    limit = Number.POSITIVE_INFINITY,
  }: { readonly name: string; readonly from?: ReadonlyMap<number, number>; readonly limit?: number },
  each: (messages: readonly Message[]) => Promise<void>,
): Promise<void> {
  let left = limit;
  for (const partition of (await client.partitions(name)).toSorted((a, b) => a - b)) {
    const { low, high } = await client.bounds(name, partition);
    let next = Math.max(low, from?.get(partition) ?? low);
    if (next >= high || left <= 0) continue;
    client.ended.delete(partition);
    client.assign([{ topic: name, partition, offset: next }]);
    for (let heard = Date.now(); next < high && left > 0; ) {
      const polled = await client.poll(Math.min(BATCH, left));
      const messages = polled.filter((message) => message.partition === partition && message.offset < high);
      if (messages.length > 0) await each(messages);
      left -= messages.length;
      // Compaction leaves gaps, so the last offset may not come; the end of the partition does.
      if (client.ended.has(partition)) break;
      if (messages.length > 0) next = messages.at(-1)!.offset + 1;
      if (polled.length > 0) {
        heard = Date.now();
      } else if (Date.now() - heard > SILENCE_MS)
        throw new KafkaError(`${name} cannot be read at the moment`);
      else await sleep(IDLE_MS);
    }
    client.unassign();
  }
}
