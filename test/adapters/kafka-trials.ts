/** What the tests of the Kafka bus do to a broker besides the bus. */
import { type KafkaConnection, loadLibrary } from '../../src/adapters/kafka/client.js';
import { allNames } from '../../src/adapters/kafka/topic-names.js';

export async function dropTopics({ brokers }: KafkaConnection, prefix: string): Promise<void> {
  const library = await loadLibrary();
  const admin = library.AdminClient.create({ 'metadata.broker.list': brokers.join(',') });
  await Promise.all(allNames(prefix).map((name) => new Promise<void>((resolve) => admin.deleteTopic(name, 5_000, () => resolve()))));
  admin.disconnect();
}
