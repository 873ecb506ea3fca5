import type {
  ConsumerGlobalConfig,
  Done,
  Message,
  MessageHeader,
  MetadataRequest,
  TopicPartition,
  TopicPartitionOffset,
} from 'node-rdkafka';
import type { Weather } from './weather.js';
import type { Process, World } from './world.js';

type Library = typeof import('node-rdkafka');

const PARTITIONS = 4;
/** The silence after which a member is taken for dead, in milliseconds. */
const SESSION_MS = 15_000;
/** The time after which a consumer learns that it has nothing to read, in milliseconds. */
const IDLE_MS = 10_000;
const RETRY_MS = 500;
/** How often a coordinator does not answer with the offsets of a member's partitions. */
const UNREAD = 0.3;
/** How often brokers refuse the first messages of a new producer and store the next ones. */
const REFUSED = 0.3;
/** The offset in the report of a message whose place no broker has reported. */
const NO_OFFSET = -1001;
const CODE = { assign: -175, revoke: -174, transport: -195, illegalGeneration: 22 } as const;

interface Partition {
  readonly log: Message[];
  /** Whether the partition appends messages but acknowledges none. */
  isStuck: boolean;
}

/** The topics, groups and offsets of a cluster of brokers. */
export class Broker {
  readonly world: World;
  readonly weather: Weather;
  isDown = false;
  /** Whether a query for the offsets of a partition is answered. */
  answersOffsets = true;
  readonly #topics = new Map<string, Partition[]>();
  readonly #groups = new Map<string, Group>();

  constructor(world: World, weather: Weather, topics: readonly string[]) {
    this.world = world;
    this.weather = weather;
    for (const topic of topics)
      this.#topics.set(
        topic,
        Array.from({ length: PARTITIONS }, () => ({ log: [], isStuck: false })),
      );
  }

  /** Whether every group has read all of its topics. */
  get isRead(): boolean {
    for (const group of this.#groups.values())
      for (const topic of group.topics)
        for (const [number, { log }] of this.#topics.get(topic)!.entries())
          if ((group.committed.get(`${topic}/${number}`) ?? 0) < log.length) return false;
    return true;
  }

  get topics(): readonly string[] {
    return [...this.#topics.keys()];
  }

  partition(topic: string, number: number): Partition {
    return this.#topics.get(topic)![number]!;
  }

  /** Returns all messages of a topic. */
  messages(topic: string): readonly Message[] {
    return this.#topics.get(topic)!.flatMap(({ log }) => log);
  }

  /** Returns the partition of a key. */
  partitionOf(key: string | Buffer | null): number {
    let hash = 7;
    for (const byte of Buffer.from(key ?? '')) hash = (hash * 31 + byte) % 1_000_003;
    return hash % PARTITIONS;
  }

  setStuck(topic: string, number: number, isStuck: boolean): void {
    this.partition(topic, number).isStuck = isStuck;
  }

  /** @returns the offset of the message */
  append(topic: string, number: number, message: Omit<Message, 'topic' | 'partition' | 'offset'>): number {
    const { log } = this.partition(topic, number);
    const offset = log.push({ ...message, topic, partition: number, offset: log.length }) - 1;
    for (const group of this.#groups.values()) group.wake();
    return offset;
  }

  group(name: string): Group {
    let group = this.#groups.get(name);
    if (group === undefined) {
      group = new Group(this);
      this.#groups.set(name, group);
    }
    return group;
  }

  /** Returns the metadata of the topics. Fails at the timeout if the brokers are down. */
  askMetadata({ timeout }: MetadataRequest, process: Process | undefined, done: Done): void {
    const fails = this.isDown;
    this.world.at(fails ? timeout : this.world.random.between(1, 5), process, () =>
      fails ? done(transportError()) : done(null, { topics: this.topics.map((name) => ({ name })) }),
    );
  }

  /** Removes one member of each group, as if it were dead. */
  losesMembers(): void {
    for (const group of this.#groups.values()) group.losesMember();
  }

  /** Returns the client library as a process loads it. */
  library(): Library {
    const broker = this;
    return {
      Producer: class extends SimulatedProducer {
        constructor() {
          super(broker);
        }
      },
      KafkaConsumer: class extends SimulatedConsumer {
        constructor(config: ConsumerGlobalConfig) {
          super(broker, config);
        }
      },
      librdkafkaVersion: '2.6.1',
    } as unknown as Library;
  }
}

/** The members of a group, their partitions, and their committed offsets. */
class Group {
  readonly committed = new Map<string, number>();
  readonly #broker: Broker;
  #members: SimulatedConsumer[] = [];

  constructor(broker: Broker) {
    this.#broker = broker;
  }

  get topics(): ReadonlySet<string> {
    return new Set(this.#members.flatMap(({ topics }) => topics));
  }

  has(member: SimulatedConsumer): boolean {
    return this.#members.includes(member);
  }

  join(member: SimulatedConsumer): void {
    if (this.has(member)) return;
    this.#members.push(member);
    this.#rebalance();
  }

  leave(member: SimulatedConsumer): void {
    if (!this.has(member)) return;
    this.#members = this.#members.filter((other) => other !== member);
    this.#rebalance();
  }

  losesMember(): void {
    const [first] = this.#members;
    if (first !== undefined) this.leave(first);
  }

  /** Removes the members that are dead, or paused for longer than a session. */
  expire(): void {
    const { world } = this.#broker;
    for (const member of this.#members)
      if (
        member.process?.isDead === true ||
        (member.process?.isPaused === true && world.now - member.heardAt > SESSION_MS)
      )
        this.leave(member);
  }

  wake(): void {
    for (const member of this.#members) member.wake();
  }

  /** Grants each member its share as soon as no other member holds it. */
  settle(): void {
    const wanted = this.#shares();
    for (const member of this.#members) {
      const share = wanted.get(member)!;
      if (member.held.length > 0 || member.isGranted || share.length === 0) continue;
      const isFree = share.every(({ topic, partition }) =>
        this.#members.every(
          (other) => !other.held.some((held) => held.topic === topic && held.partition === partition),
        ),
      );
      if (isFree) member.grant(share);
    }
  }

  #rebalance(): void {
    const wanted = this.#shares();
    for (const member of this.#members) {
      const share = wanted.get(member)!;
      const isSame =
        share.length === member.held.length &&
        share.every(({ partition }, i) => member.held[i]?.partition === partition);
      if (!isSame && (member.held.length > 0 || member.isGranted)) member.revoke();
    }
    this.settle();
  }

  #shares(): ReadonlyMap<SimulatedConsumer, readonly TopicPartition[]> {
    const shares = new Map<SimulatedConsumer, TopicPartition[]>(this.#members.map((member) => [member, []]));
    for (const topic of this.topics)
      for (let partition = 0; partition < PARTITIONS; partition += 1)
        shares.get(this.#members[partition % this.#members.length]!)!.push({ topic, partition });
    return shares;
  }
}

type RebalanceListener = (error: { readonly code: number }, partitions: readonly TopicPartition[]) => void;

interface Sent {
  readonly topic: string;
  readonly partition: number;
  readonly message: Omit<Message, 'topic' | 'partition' | 'offset'>;
  readonly opaque: unknown;
}

class SimulatedProducer {
  readonly #broker: Broker;
  readonly #process: Process | undefined;
  readonly #lines = new Map<string, Sent[]>();
  /** The partitions that have stored a message of this producer. */
  readonly #stored = new Set<string>();
  readonly #reports: { readonly opaque: unknown; readonly offset: number }[] = [];
  #onReport: (error: null, report: { readonly opaque: unknown; readonly offset: number }) => void = () =>
    undefined;
  #isConnected = false;

  constructor(broker: Broker) {
    this.#broker = broker;
    this.#process = broker.world.current;
  }

  on(event: string, listener: never): this {
    if (event === 'delivery-report') this.#onReport = listener;
    return this;
  }

  connect(_request: unknown, done: Done): void {
    const { world } = this.#broker;
    const fails = this.#broker.isDown;
    world.at(fails ? 3000 : world.random.between(1, 5), this.#process, () => {
      if (fails) return done(transportError());
      this.#isConnected = true;
      done(null, { topics: this.#broker.topics.map((name) => ({ name })) });
    });
  }

  isConnected(): boolean {
    return this.#isConnected;
  }

  getMetadata(request: MetadataRequest, done: Done): void {
    this.#broker.askMetadata(request, this.#process, done);
  }

  produce(
    topic: string,
    _partition: null,
    value: Buffer | null,
    key: string | Buffer | null,
    _timestamp: null,
    opaque: unknown,
    headers: readonly MessageHeader[],
  ): void {
    const partition = this.#broker.partitionOf(key);
    const sent: Sent = {
      topic,
      partition,
      opaque,
      message: { value, key, headers, timestamp: Date.now() },
    };
    const name = `${topic}/${partition}`;
    const line = this.#lines.get(name);
    if (line !== undefined) line.push(sent);
    else {
      this.#lines.set(name, [sent]);
      this.#send(name);
    }
  }

  poll(): void {
    for (const report of this.#reports.splice(0)) this.#onReport(null, report);
  }

  disconnect(_flushMs: unknown, done: () => void): void {
    this.#isConnected = false;
    this.#lines.clear();
    this.#broker.world.at(1, this.#process, done);
  }

  /** Sends the messages of a partition in order. The first one is repeated until the brokers accept it. */
  #send(name: string): void {
    const { world, weather } = this.#broker;
    world.at(world.random.between(0.5, weather.has('reorder') ? 200 : 3), this.#process, () => {
      const line = this.#lines.get(name);
      const sent = line?.[0];
      if (line === undefined || sent === undefined) return;
      if (this.#broker.isDown || this.#broker.partition(sent.topic, sent.partition).isStuck) {
        world.at(RETRY_MS, this.#process, () => this.#send(name));
        return;
      }
      const batch = line.splice(0);
      // The library reports even refused messages as delivered (decision 0052).
      const isNew = !this.#stored.has(name) && batch.length > 1;
      const refused = isNew && world.random.chance(REFUSED) ? 1 + world.random.below(batch.length - 1) : 0;
      this.#stored.add(name);
      // Messages in flight arrive even if their process dies.
      for (const [place, { topic, partition, message, opaque }] of batch.entries()) {
        const offset = place < refused ? NO_OFFSET : this.#broker.append(topic, partition, message);
        world.at(
          world.random.between(0.5, 3),
          this.#process,
          () => void this.#reports.push({ opaque, offset }),
        );
      }
      this.#lines.delete(name);
    });
  }
}

class SimulatedConsumer {
  readonly process: Process | undefined;
  topics: readonly string[] = [];
  held: readonly TopicPartition[] = [];
  /** Whether partitions were granted that the member has not assigned yet. */
  isGranted = false;
  heardAt: number;
  readonly #broker: Broker;
  readonly #group: Group;
  readonly #onRebalance: RebalanceListener;
  #onCommit: (error: Error | null, positions: readonly TopicPartitionOffset[]) => void = () => undefined;
  readonly #positions = new Map<string, number>();
  readonly #rebalances: { readonly code: number; readonly partitions: readonly TopicPartition[] }[] = [];
  readonly #commits: { readonly error: Error | null; readonly positions: readonly TopicPartitionOffset[] }[] =
    [];
  #granted = '';
  #isPaused = false;
  /** Whether reads of the assigned partitions have silently stopped until the next assignment. */
  #isUnread = false;
  #isConnected = false;
  #waiting: { readonly limit: number; readonly done: Done } | undefined;

  constructor(broker: Broker, config: ConsumerGlobalConfig) {
    this.#broker = broker;
    this.process = broker.world.current;
    this.heardAt = broker.world.now;
    this.#group = broker.group(String(config['group.id']));
    this.#onRebalance = config['rebalance_cb'] as RebalanceListener;
  }

  on(event: string, listener: never): this {
    if (event === 'offset.commit') this.#onCommit = listener;
    return this;
  }

  setDefaultConsumeTimeout(): void {}

  connect(_request: unknown, done: Done): void {
    const fails = this.#broker.isDown;
    this.#broker.world.at(fails ? 3000 : 2, this.process, () => {
      this.#isConnected = !fails;
      done(fails ? transportError() : null);
    });
  }

  isConnected(): boolean {
    return this.#isConnected;
  }

  getMetadata(request: MetadataRequest, done: Done): void {
    this.#broker.askMetadata(request, this.process, done);
  }

  disconnect(done: () => void): void {
    this.#isConnected = false;
    this.held = [];
    this.#group.leave(this);
    this.#broker.world.at(1, this.process, done);
  }

  subscribe(topics: readonly string[]): void {
    this.topics = topics;
    this.#group.join(this);
  }

  unsubscribe(): void {
    this.topics = [];
    this.held = [];
    this.#group.leave(this);
  }

  assign(partitions: readonly TopicPartition[]): void {
    const isCurrent = this.isGranted && namesOf(partitions) === this.#granted;
    this.isGranted = false;
    if (!this.#group.has(this)) return;
    this.held = partitions;
    this.#isUnread = this.#broker.weather.happens('bus', UNREAD);
    for (const { topic, partition } of partitions) {
      const name = `${topic}/${partition}`;
      this.#positions.set(name, this.#group.committed.get(name) ?? 0);
    }
    // The group has rebalanced since, so the old grant is given back.
    if (!isCurrent) this.revoke();
    this.#group.settle();
  }

  unassign(): void {
    this.isGranted = false;
    this.held = [];
    this.#group.settle();
  }

  assignments(): readonly TopicPartition[] {
    return this.held;
  }

  position(): readonly [] {
    return [];
  }

  committed(partitions: readonly TopicPartition[], timeoutMs: number, done: Done): void {
    this.#ask(timeoutMs, done, () =>
      partitions.map(({ topic, partition }) => ({
        topic,
        partition,
        offset: this.#group.committed.get(`${topic}/${partition}`),
      })),
    );
  }

  queryWatermarkOffsets(topic: string, partition: number, timeoutMs: number, done: Done): void {
    this.#ask(timeoutMs, done, () => ({
      lowOffset: 0,
      highOffset: this.#broker.partition(topic, partition).log.length,
    }));
  }

  #ask(timeoutMs: number, done: Done, answer: () => unknown): void {
    const { world, isDown, answersOffsets } = this.#broker;
    const fails = isDown || !answersOffsets;
    world.at(fails ? timeoutMs : 2, this.process, () =>
      fails ? done(transportError()) : done(null, answer()),
    );
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
  }

  commit(positions: readonly TopicPartitionOffset[]): void {
    const { world } = this.#broker;
    world.at(world.random.between(0.5, 5), undefined, () => {
      const isMember =
        this.#group.has(this) &&
        !this.#broker.isDown &&
        positions.every(({ partition }) => this.held.some((held) => held.partition === partition));
      if (isMember)
        for (const { topic, partition, offset } of positions)
          this.#group.committed.set(`${topic}/${partition}`, offset);
      const error = isMember
        ? null
        : Object.assign(new Error('illegal generation'), { code: CODE.illegalGeneration });
      this.#commits.push({ error, positions });
      this.wake();
    });
  }

  consume(limit: number, done: Done): void {
    const { world } = this.#broker;
    this.heardAt = world.now;
    this.#group.expire();
    // A removed member notices its removal, revokes its partitions, and joins again.
    if (this.topics.length > 0 && !this.#group.has(this)) {
      if (this.held.length > 0 || this.isGranted) this.revoke();
      this.#group.join(this);
    }
    this.#waiting = { limit, done };
    if (this.#hasNews()) this.wake();
    else {
      const waiting = this.#waiting;
      world.at(IDLE_MS, this.process, () => {
        if (this.#waiting === waiting) this.#deliver();
      });
    }
  }

  grant(partitions: readonly TopicPartition[]): void {
    this.isGranted = true;
    this.#granted = namesOf(partitions);
    this.#rebalances.push({ code: CODE.assign, partitions });
    this.wake();
  }

  revoke(): void {
    this.isGranted = false;
    const given = this.#rebalances.findIndex(({ code }) => code === CODE.assign);
    if (given >= 0) this.#rebalances.splice(given);
    if (this.held.length > 0) this.#rebalances.push({ code: CODE.revoke, partitions: this.held });
    this.wake();
  }

  wake(): void {
    const waiting = this.#waiting;
    if (waiting === undefined || !this.#hasNews()) return;
    this.#broker.world.at(1, this.process, () => {
      if (this.#waiting === waiting) this.#deliver();
    });
  }

  #hasNews(): boolean {
    return (
      this.#rebalances.length > 0 || this.#commits.length > 0 || this.#isPaused || this.#fetch(1).length > 0
    );
  }

  #deliver(): void {
    const { limit, done } = this.#waiting!;
    this.#waiting = undefined;
    this.heardAt = this.#broker.world.now;
    for (const { error, positions } of this.#commits.splice(0)) this.#onCommit(error, positions);
    for (const { code, partitions } of this.#rebalances.splice(0)) this.#onRebalance({ code }, partitions);
    const messages = this.#fetch(limit);
    for (const { topic, partition, offset } of messages)
      this.#positions.set(`${topic}/${partition}`, offset + 1);
    done(null, messages);
  }

  #fetch(limit: number): readonly Message[] {
    if (
      this.#isPaused ||
      this.#isUnread ||
      this.#broker.isDown ||
      this.#rebalances.length > 0 ||
      !this.#group.has(this)
    )
      return [];
    const messages: Message[] = [];
    for (const { topic, partition } of this.held) {
      const from = this.#positions.get(`${topic}/${partition}`) ?? 0;
      messages.push(
        ...this.#broker.partition(topic, partition).log.slice(from, from + limit - messages.length),
      );
      if (messages.length >= limit) break;
    }
    return messages;
  }
}

function namesOf(partitions: readonly TopicPartition[]): string {
  return partitions.map(({ topic, partition }) => `${topic}/${partition}`).join(' ');
}

function transportError(): Error {
  return Object.assign(new Error('Local: Broker transport failure'), { code: CODE.transport });
}
