/**
 * The part of node-rdkafka that this folder uses. The package is optional: without it everything else still
 * has to compile.
 */
declare module 'node-rdkafka' {
  export interface LibrdKafkaError extends Error {
    /** The error code, negative if the error did not come from a broker. */
    readonly code: number;
  }
  /** A callback that is called once. */
  export type Done<Value = unknown> = (
    error: Error | LibrdKafkaError | null | undefined,
    value?: Value,
  ) => void;

  /** The properties of librdkafka, by name. */
  export type GlobalConfig = Readonly<Record<string, string | number | boolean>>;
  export type ConsumerGlobalConfig = Readonly<Record<string, unknown>>;

  export interface TopicPartition {
    readonly topic: string;
    readonly partition: number;
  }
  export interface TopicPartitionOffset extends TopicPartition {
    readonly offset: number;
  }
  export type MessageHeader = Readonly<Record<string, string | Buffer>>;
  export interface Message extends TopicPartitionOffset {
    readonly key?: Buffer | string | null;
    readonly value: Buffer | null;
    readonly headers?: readonly MessageHeader[];
    /** The timestamp in milliseconds. */
    readonly timestamp?: number;
  }
  export interface NewTopic {
    readonly topic: string;
    readonly num_partitions: number;
    readonly replication_factor: number;
    readonly config?: Readonly<Record<string, string>>;
  }
  export interface MetadataRequest {
    readonly topic?: string;
    readonly allTopics: boolean;
    /** The time limit in milliseconds. */
    readonly timeout: number;
  }

  export class Producer {
    constructor(config: GlobalConfig, topicConfig: GlobalConfig);
    connect(request: MetadataRequest, done: Done): unknown;
    disconnect(flushMs: number, done: () => void): unknown;
    disconnect(done: () => void): unknown;
    getMetadata(request: MetadataRequest, done: Done): void;
    isConnected(): boolean;
    poll(): unknown;
    /** @throws LibrdKafkaError where the queue is full */
    produce(
      topic: string,
      partition: number | null,
      value: Buffer | null,
      key: string | Buffer | null,
      timestamp: number | null,
      opaque: unknown,
      headers: readonly MessageHeader[],
    ): unknown;
    on(event: 'event.error', listener: (error: LibrdKafkaError) => void): unknown;
    on(
      event: 'delivery-report',
      listener: (
        error: LibrdKafkaError | null,
        report: { readonly opaque?: unknown; readonly offset?: number },
      ) => void,
    ): unknown;
  }
  export class KafkaConsumer {
    constructor(config: ConsumerGlobalConfig, topicConfig: GlobalConfig);
    connect(request: MetadataRequest, done: Done): unknown;
    disconnect(done: () => void): unknown;
    isConnected(): boolean;
    setDefaultConsumeTimeout(ms: number): void;
    subscribe(topics: readonly string[]): unknown;
    unsubscribe(): unknown;
    assign(partitions: readonly (TopicPartition | TopicPartitionOffset)[]): unknown;
    unassign(): unknown;
    assignments(): readonly TopicPartition[];
    /**
     * Returns the positions in all partitions that the consumer holds.
     * @throws LibrdKafkaError where it is not connected
     */
    position(): readonly (TopicPartition & { readonly offset?: number })[];
    /** Returns the last known watermarks, negative where none is known. @throws LibrdKafkaError */
    getWatermarkOffsets(topic: string, partition: number): WatermarkOffsets;
    pause(partitions: readonly TopicPartition[]): unknown;
    resume(partitions: readonly TopicPartition[]): unknown;
    consume(count: number, done: Done): void;
    commit(positions: readonly TopicPartitionOffset[]): unknown;
    committed(partitions: readonly TopicPartition[], timeoutMs: number, done: Done): unknown;
    getMetadata(request: MetadataRequest, done: Done): void;
    queryWatermarkOffsets(topic: string, partition: number, timeoutMs: number, done: Done): void;
    on(event: 'event.error', listener: (error: LibrdKafkaError) => void): unknown;
    on(event: 'partition.eof', listener: (position: TopicPartitionOffset) => void): unknown;
    on(
      event: 'offset.commit',
      listener: (error: LibrdKafkaError | null, positions: readonly TopicPartitionOffset[]) => void,
    ): unknown;
  }
  export interface WatermarkOffsets {
    readonly lowOffset: number;
    readonly highOffset: number;
  }
  export interface IAdminClient {
    createTopic(topic: NewTopic, timeoutMs: number, done: Done): void;
    deleteTopic(topic: string, timeoutMs: number, done: Done): void;
    disconnect(): void;
  }
  export const AdminClient: { create(config: GlobalConfig): IAdminClient };
  export const librdkafkaVersion: string;
}
