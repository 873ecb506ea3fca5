import { TOPICS, type Topic } from '../../domain/events.js';
import { checked, passed, type ServerCheck, unchecked } from '../../domain/server-check.js';
import { askBrokers, type ClusterAnswers } from './broker-questions.js';
import { KafkaError } from './client.js';
import { allNames, deadLetterName, topicName } from './topic-names.js';
import { DEAD_LETTERS, KEEPING, type TopicOptions } from './topics.js';

/** The replicas with which one broker may be lost while another is restarted, without loss or stall. */
const LEAST_REPLICAS = 3;
const LEAST_IN_SYNC = 2;
const DAY_MS = 86_400_000;

const SETTINGS = [
  'min.insync.replicas',
  'unclean.leader.election.enable',
  'cleanup.policy',
  'retention.ms',
  'retention.bytes',
] as const;

/** Looks at the brokers and the topics. @returns one check that says so where no broker is reached */
export async function examineKafka(options: TopicOptions): Promise<readonly ServerCheck[]> {
  const wanted = 'a broker that responds and accepts the credentials';
  try {
    const answers = await askBrokers(options, allNames(options.prefix), SETTINGS);
    return [
      passed('kafka.reachable', answers.brokers === 1 ? '1 broker' : `${answers.brokers} brokers`, wanted),
      unchecked('kafka.version', '3.3 or later', 'brokers do not report their release'),
      ...judgeKafka(answers, options),
    ];
  } catch (error) {
    const found =
      error instanceof KafkaError && error.message === 'credentials refused' ? error.message : 'no answer';
    return [checked('kafka.reachable', { found, wanted }, 'refuse', 'no other check could run')];
  }
}

/** Returns the checks that the answers of the brokers pass or fail. */
export function judgeKafka(
  answers: ClusterAnswers,
  { prefix, partitions }: Pick<TopicOptions, 'prefix' | 'partitions'>,
): readonly ServerCheck[] {
  const names = allNames(prefix);
  const missing = names.filter((name) => !answers.topics.some((topic) => topic.name === name));
  if (missing.length > 0)
    return [
      checked(
        'kafka.topics',
        { found: `${words(missing)} missing`, wanted: words(names) },
        'refuse',
        'run takemark operator migrate',
      ),
    ];
  const few = answers.topics.filter(({ replicas }) => replicas < LEAST_REPLICAS);
  const other = answers.topics.filter(
    (topic) =>
      TOPICS.some((name) => topicName(prefix, name) === topic.name) && topic.partitions !== partitions,
  );
  return [
    passed('kafka.topics', 'all', words(names)),
    checked(
      'kafka.replication',
      {
        found: words(answers.topics.map(({ name, replicas }) => `${name}: ${replicas}`)),
        wanted: `${LEAST_REPLICAS} or more replicas of every topic`,
      },
      'refuse',
      few.length === 0 ? undefined : 'the loss of one broker would lose or stop events, including erasures',
    ),
    checked(
      'kafka.partitions',
      {
        found: words(answers.topics.map(({ name, partitions: count }) => `${name}: ${count}`)),
        wanted: `${partitions}, the value of TAKEMARK_KAFKA_PARTITIONS`,
      },
      'warn',
      other.length === 0
        ? undefined
        : 'the number differs: if it was changed, keys have moved to other partitions',
    ),
    ...settingChecks(answers, prefix),
  ];
}

function settingChecks({ settings }: ClusterAnswers, prefix: string): readonly ServerCheck[] {
  const check = (
    name: string,
    wanted: string,
    verdict: 'warn' | 'refuse',
    wrong: (settings: ReadonlyMap<string, string>, topic: string) => string | undefined,
    reason: string,
  ): ServerCheck => {
    if (settings.length === 0 || settings.some((topic) => topic.settings === undefined))
      return unchecked(
        name,
        wanted,
        'the brokers refuse to report it: this user needs DescribeConfigs on the topics; check with kafka-configs --describe',
      );
    const found = settings.flatMap((topic) => {
      const fault = wrong(topic.settings!, topic.name);
      return fault === undefined ? [] : [`${topic.name}: ${fault}`];
    });
    return checked(
      name,
      { found: found.length === 0 ? `${wanted}, on every topic` : words(found), wanted },
      verdict,
      found.length === 0 ? undefined : reason,
    );
  };
  return [
    check(
      'kafka.min_insync_replicas',
      `${LEAST_IN_SYNC} or more`,
      'refuse',
      (of) => {
        const value = of.get('min.insync.replicas') ?? '';
        return Number(value) >= LEAST_IN_SYNC ? undefined : value;
      },
      'an event is acknowledged when only one broker has it, and is lost with that broker',
    ),
    check(
      'kafka.unclean_leader_election',
      'false',
      'refuse',
      (of) => {
        const value = of.get('unclean.leader.election.enable') ?? '';
        return value === 'false' ? undefined : value;
      },
      'a broker that lacks events may become the leader, and these events are then lost',
    ),
    check(
      'kafka.cleanup_policy',
      'compact for the topic of erasures, delete for the other topics',
      'refuse',
      (of, topic) => {
        const value = of.get('cleanup.policy') ?? '';
        return value === keepingOf(prefix, topic)['cleanup.policy'] ? undefined : value;
      },
      'after a restore from a backup, erasures are repeated from this topic, so its events must be kept permanently',
    ),
    check(
      'kafka.retention',
      words(
        allNames(prefix)
          .filter((name) => keepingOf(prefix, name)['retention.ms'] !== undefined)
          .map((name) => `${name}: ${Number(keepingOf(prefix, name)['retention.ms']) / DAY_MS} days`),
      ),
      'warn',
      (of, topic) => {
        const least = keepingOf(prefix, topic)['retention.ms'];
        if (least === undefined) return undefined;
        const kept = of.get('retention.ms') ?? '';
        const bytes = of.get('retention.bytes') ?? '';
        if (bytes !== '-1') return `retention.bytes ${bytes}`;
        return kept === '-1' || Number(kept) >= Number(least) ? undefined : `retention.ms ${kept}`;
      },
      'a consumer that is stopped for longer loses events',
    ),
  ];
}

/** Returns the settings with which `migrate` makes a topic. */
function keepingOf(prefix: string, name: string): Readonly<Record<string, string>> {
  const topic = TOPICS.find((one): one is Topic => topicName(prefix, one) === name);
  if (topic !== undefined) return KEEPING[topic];
  return TOPICS.some((one) => deadLetterName(prefix, one) === name) ? DEAD_LETTERS : {};
}

function words(items: readonly string[]): string {
  return items.length === 0 ? 'none' : items.join(', ');
}
