/** Creates topics with an explicit assignment of replicas, which the client library does not offer. */
import { askBroker, int16, int32, text } from '../../fixtures/kafka-frames.js';

const ANSWER_MS = 10_000;

/**
 * Sends CreateTopics of Kafka's protocol, version 4.
 * @param address `host:port` of any broker
 * @param replicas brokers of each partition, the leader first
 */
export async function makePlacedTopic(
  address: string,
  name: string,
  replicas: readonly (readonly number[])[],
  config: Readonly<Record<string, string>>,
): Promise<void> {
  const assignments = replicas.flatMap((brokers, partition) => [
    int32(partition),
    int32(brokers.length),
    ...brokers.map(int32),
  ]);
  const answer = await askBroker(address, [
    int16(19),
    int16(4),
    int32(1),
    text('step'),
    int32(1),
    text(name),
    int32(-1),
    int16(-1),
    int32(replicas.length),
    ...assignments,
    int32(Object.keys(config).length),
    ...Object.entries(config).flatMap(([key, value]) => [text(key), text(value)]),
    int32(ANSWER_MS),
    Buffer.of(0),
  ]);
  // The answer has a correlation id, a throttle time, and one topic with its name and error code.
  const code = answer.readInt16BE(4 + 4 + 4 + 2 + Buffer.byteLength(name));
  if (code !== 0) throw new Error(`topic ${name} is refused: error ${code}`);
}
