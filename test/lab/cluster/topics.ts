/** Reads the events of the topics since their beginning, without the consumers. */
import { openKafkaBus } from '../../../src/service/adapters/kafka/bus.js';
import { readClusterBundle } from '../../../src/service/adapters/signing/cluster-bundle.js';
import { readConfig } from '../../../src/service/config/config.js';
import { type ServiceEvent, TOPICS } from '../../../src/service/domain/events.js';
import type { EventBus } from '../../../src/service/ports/bus.js';
import { again } from '../../fixtures/again.js';
import { authenticatorWith } from '../../fixtures/authentication.js';

const MOST_LETTERS = 1000;

export class Topics {
  readonly #bus: EventBus;

  private constructor(bus: EventBus) {
    this.#bus = bus;
  }

  static async open(settings: Readonly<Record<string, string>>): Promise<Topics> {
    const { environment } = readConfig(settings);
    const { secrets } = await readClusterBundle(settings['TAKEMARK_SECRETS_FILE']!, environment);
    return new Topics(
      await openKafkaBus({
        brokers: settings['TAKEMARK_KAFKA']!.split(','),
        prefix: settings['TAKEMARK_KAFKA_PREFIX']!,
        group: 'checker',
        onFault: () => undefined,
        authenticator: authenticatorWith(secrets, 'event', environment),
        acceptWithoutMac: false,
      }),
    );
  }

  /** Returns all events, with duplicates. */
  async read(): Promise<readonly ServiceEvent[]> {
    const events: ServiceEvent[] = [];
    for (const topic of TOPICS) {
      const ofTopic = await again(async () => {
        const read: ServiceEvent[] = [];
        await this.#bus.replay(topic, async (batch) => void read.push(...batch));
        return read;
      });
      events.push(...ofTopic);
    }
    return events;
  }

  async deadLetters(): Promise<number> {
    const letters = await Promise.all(
      TOPICS.map((topic) => again(() => this.#bus.deadLetters(topic, MOST_LETTERS))),
    );
    return letters.flat().length;
  }

  close(): Promise<void> {
    return this.#bus.close();
  }
}
