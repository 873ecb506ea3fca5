/** The arithmetic of deploy/capacity.md: what a load needs, from measured costs and named inputs. */
import type { BucketUse } from './bucket-counter.js';

export type Part = 'service' | 'consumers' | 'cassandra' | 'kafka';

/** Cost of a call. */
export interface Cost {
  /** Microseconds; Cassandra with one replica. */
  readonly cpu: Readonly<Record<Part, number>>;
  /** Bytes that stay, one replica, by table and topic. */
  readonly bytes: Readonly<Record<string, number>>;
  /** Requests to the bucket, by method and kind of object, and bytes sent with them. */
  readonly bucket: BucketUse;
}

/** Measured cost of one kind of calls, as `npm run bench:capacity` writes it. */
export interface Measured extends Cost {
  readonly name: string;
  readonly calls: number;
  readonly seconds: number;
}

export interface Measurement {
  readonly measuredAt: string;
  readonly machine: { readonly processor: string; readonly cores: number; readonly node: string };
  /**
   * Cores that idle processes need: one service, one process of consumers, a node, a broker; and requests to the
   * bucket a second of one process.
   */
  readonly idle: Readonly<Record<Part, number>> & { readonly bucket: Readonly<Record<string, number>> };
  readonly costs: readonly Measured[];
  /** Bytes of the small file, the large one, and the range that is read of it. */
  readonly fileBytes: number;
  readonly largeBytes: number;
  readonly rangeBytes: number;
  /** Events of the two traces. */
  readonly traces: { readonly short: number; readonly long: number };
}

export interface Load {
  readonly proofs: number;
  readonly issued: number;
  readonly issuedPeak: number;
  readonly tracedShare: number;
  readonly traceEvents: number;
  readonly verifies: number;
  readonly uploads: number;
  readonly uploadBytes: number;
  readonly reviews: number;
  readonly erasures: number;
  readonly reads: number;
  readonly deliverableBytes: number;
  readonly services: number;
  readonly consumers: number;
  readonly auditRate: number;
}

export interface Inputs {
  readonly currency: string;
  /** Unit of each price, assumption and load. */
  readonly units: Readonly<Record<string, string>>;
  readonly prices: Readonly<
    Record<
      | 'coreMonth'
      | 'nvmeGBMonth'
      | 'objectGBMonth'
      | 'coldObjectGBMonth'
      | 'putThousand'
      | 'getThousand'
      | 'deleteThousand'
      | 'networkInGB'
      | 'networkOutGB',
      number
    >
  >;
  readonly assumed: {
    readonly busyShare: Readonly<Record<Part, number>>;
    readonly fullShare: Readonly<Record<'cassandra' | 'kafka', number>>;
    /** By topic. */
    readonly topicSeconds: Readonly<Record<string, number>>;
  } & Readonly<
    Record<
      | 'replicas'
      | 'writeAmplification'
      | 'repairDays'
      | 'repairMBPerCoreSecond'
      | 'microsecondsATombstone'
      | 'uploadSlotSeconds'
      | 'unitSeconds'
      | 'pointerSeconds'
      | 'paxosSeconds'
      | 'reviewSeconds'
      | 'erasureLogSeconds'
      | 'callBytesOut'
      | 'lookBackSweepsASecond'
      | 'keyMissShare'
      | 'auditPassDays'
      | 'hotDays'
      | 'readsOfADeliverable',
      number
    >
  >;
  readonly plans: Readonly<Record<string, Load>>;
}

/** A figure of a plan, and what it is made of. */
export interface Figure {
  readonly name: string;
  readonly unit: 'cores' | 'bytes' | 'bytes/s' | 'requests/s' | 'looks' | 'looks/s' | 'days' | 'money';
  readonly value: number;
}

/** Calls of a load: at their peak, by which cores are counted, and in the mean, by which all else is. */
interface Calls {
  readonly cost: Cost;
  readonly mean: number;
  readonly peak: number;
}

const PARTS = ['service', 'consumers', 'cassandra', 'kafka'] as const;
const DAY_SECONDS = 86_400;
const MONTH_SECONDS = 30 * DAY_SECONDS;
const GB = 1e9;
/** The decision that writes them lies in both for a time. */
const ROWS_OF_EVIDENCE = ['record', 'system.paxos'] as const;
/** Tables whose rows pass: they are counted by how long they stay. */
const PASSING = new Set(['pointer', 'system.paxos', 'upload', 'charge', 'watermark', 'ping', 'due_notice']);

export function planOf(measurement: Measurement, inputs: Inputs, load: Load): readonly Figure[] {
  const { idle } = measurement;
  const { assumed, prices } = inputs;
  const { replicas, busyShare, fullShare } = assumed;
  const of = (name: string): Cost => costOf(measurement, name);
  const erase = of('erase');
  const review = of('create a review');
  const issues = issuing(measurement, load);
  const issue = sum([
    [issues.file, 1],
    [issues.trace, load.tracedShare],
  ]);
  const read = of('read a proof');
  const keyRead = less(of('read a proof, key in the bucket'), read);
  const fileReads = load.issued * assumed.readsOfADeliverable;
  const steady = (cost: Cost, rate: number): Calls => ({ cost, mean: rate, peak: rate });
  const calls: readonly Calls[] = [
    { cost: issue, mean: load.issued, peak: load.issuedPeak },
    steady(ofBytes(measurement, 'upload, 24 kB', 'upload, 32 MiB', load.uploadBytes), load.uploads),
    steady(of('verify, embedded'), load.verifies),
    steady(read, load.reads),
    steady(readOfFile(measurement, load.deliverableBytes), fileReads),
    steady(review, load.reviews),
    steady(erase, load.erasures),
    steady(keyRead, assumed.keyMissShare * (load.verifies + load.reads + load.reviews + fileReads)),
  ];
  /** Cores for the calls at their peak. */
  const busy = (part: Part): number => total(calls, ({ cost, peak }) => cost.cpu[part] * peak) / 1e6;
  const processes = load.services + load.consumers;

  const auditor = audit(measurement, inputs, load, issue, keyRead);
  const service = busy('service') / busyShare.service + idle.service * load.services;
  const consumers = busy('consumers') / busyShare.consumers + idle.consumers * load.consumers;
  const cassandraCalls = (replicas * busy('cassandra')) / busyShare.cassandra;
  // The node's own idle time is in it, and the cost of one service and one process of consumers for each pair.
  const jobs = (2 * idle.cassandra * processes) / 2;
  const decisions = load.issuedPeak + load.erasures + load.reviews;
  const sweeps =
    jobs + (2 * processes * assumed.lookBackSweepsASecond * decisions * assumed.microsecondsATombstone) / 1e6;
  // A read asks two replicas.
  const auditReads = (2 * load.auditRate * auditor.look.cpu.cassandra) / 1e6;
  const auditService = (load.auditRate * auditor.look.cpu.service) / 1e6;

  const proofs = load.proofs * bytesOf(issue, isKept);
  const reviews =
    load.reviews * bytesOf(review, (name) => isKept(name) || name === 'due_notice') * assumed.reviewSeconds;
  const erased = load.erasures * (erase.bytes['audit_entry'] ?? 0) * assumed.erasureLogSeconds;
  const passed = total(
    calls,
    ({ cost: { bytes }, mean }) =>
      mean *
      ((bytes['pointer'] ?? 0) * assumed.pointerSeconds +
        (bytes['system.paxos'] ?? 0) * assumed.paxosSeconds +
        (bytes['upload'] ?? 0) * assumed.uploadSlotSeconds +
        (bytes['charge'] ?? 0) * assumed.unitSeconds),
  );
  const oneReplica = proofs + reviews + erased + passed;
  const repair =
    (replicas * oneReplica) / (assumed.repairDays * DAY_SECONDS) / 1e6 / assumed.repairMBPerCoreSecond;
  const written = total(calls, ({ cost, mean }) => mean * bytesOf(cost, (name) => !isTopic(name)));
  const diskWrites = replicas * written * assumed.writeAmplification;
  const published = total(calls, ({ cost, mean }) => mean * bytesOf(cost, isTopic));
  const kafka = busy('kafka') / busyShare.kafka + 3 * idle.kafka;
  const kafkaDisk =
    (replicas *
      total(
        Object.entries(assumed.topicSeconds),
        ([topic, seconds]) =>
          seconds * total(calls, ({ cost, mean }) => mean * (cost.bytes[`topic ${topic}`] ?? 0)),
      )) /
    fullShare.kafka;

  const deliverables = load.proofs * sentTo(issues.file, 'files');
  const traces = load.proofs * load.tracedShare * sentTo(issues.trace, 'files');
  const keys = load.proofs * sentTo(issue, 'keys');
  // A note of the call and one of the consumer are one object.
  const journal =
    load.erasures *
    (sentTo(erase, 'erasures') / Math.max(1, erase.bucket['PUT erasures']?.requests ?? 0)) *
    assumed.erasureLogSeconds;
  const hot = Math.min(
    deliverables + traces,
    load.issued *
      (sentTo(issues.file, 'files') + load.tracedShare * sentTo(issues.trace, 'files')) *
      assumed.hotDays *
      DAY_SECONDS,
  );

  const networkIn = load.uploads * load.uploadBytes + load.issuedPeak * load.deliverableBytes;
  const networkOut = (load.verifies + load.reads) * assumed.callBytesOut + fileReads * load.deliverableBytes;
  const networkInside = replicas * (written + published);
  const networkBucket =
    total(calls, ({ cost, peak }) => peak * total(Object.values(cost.bucket), ({ bytes }) => bytes)) +
    fileReads * sentTo(issues.file, 'files');

  /** Requests to the bucket a second. */
  const asked = (cost: Cost, ...methods: readonly string[]): number =>
    total(Object.entries(cost.bucket), ([kind, { requests }]) =>
      methods.includes(kind.split(' ')[0]!) ? requests : 0,
    );
  const requests = (...methods: readonly string[]): number =>
    total(calls, ({ cost, mean }) => mean * asked(cost, ...methods)) +
    load.auditRate * asked(auditor.look, ...methods) +
    processes *
      total(Object.entries(idle.bucket), ([kind, rate]) =>
        methods.includes(kind.split(' ')[0]!) ? rate : 0,
      );
  const priceOf = (writes: number, reads: number, deletes: number): number =>
    ((writes * prices.putThousand + reads * prices.getThousand + deletes * prices.deleteThousand) / 1000) *
    MONTH_SECONDS;
  const [writes, reads, deletes] = [requests('PUT', 'LIST'), requests('GET', 'HEAD'), requests('DELETE')];

  const cassandraDisk = (replicas * oneReplica) / fullShare.cassandra;
  const cassandra = cassandraCalls + sweeps + auditReads + repair;
  const cores = service + auditService + consumers + cassandra + kafka;
  const computing = cores * prices.coreMonth;
  const disks = ((cassandraDisk + kafkaDisk) / GB) * prices.nvmeGBMonth;
  const network = ((networkIn * prices.networkInGB + networkOut * prices.networkOutGB) / GB) * MONTH_SECONDS;
  const requested = priceOf(writes, reads, deletes);
  const notes = ((keys + journal) / GB) * prices.objectGBMonth;
  const bucket = ((deliverables + traces) / GB) * prices.objectGBMonth + notes;
  const bucketCold =
    (hot / GB) * prices.objectGBMonth +
    ((deliverables + traces - hot) / GB) * prices.coldObjectGBMonth +
    notes;
  const sumOfAll = computing + disks + network + requested;
  const auditing =
    (auditService + auditReads) * prices.coreMonth +
    priceOf(
      load.auditRate * asked(auditor.look, 'PUT', 'LIST'),
      load.auditRate * asked(auditor.look, 'GET', 'HEAD'),
      0,
    );
  const disk = (value: number): number => (replicas * value) / fullShare.cassandra;
  return [
    { name: 'service, calls and bodies', unit: 'cores', value: service },
    { name: 'service, the auditor (one process)', unit: 'cores', value: auditService },
    { name: 'consumers', unit: 'cores', value: consumers },
    { name: 'Cassandra, calls', unit: 'cores', value: cassandraCalls },
    { name: 'Cassandra, sweeps and jobs of all processes', unit: 'cores', value: sweeps },
    { name: 'Cassandra, the auditor', unit: 'cores', value: auditReads },
    { name: 'Cassandra, repair', unit: 'cores', value: repair },
    { name: 'Kafka', unit: 'cores', value: kafka },
    { name: 'all cores', unit: 'cores', value: cores },
    { name: 'Cassandra disk: proofs, evidence, index, log', unit: 'bytes', value: disk(proofs + erased) },
    { name: 'Cassandra disk: reviews of 180 days', unit: 'bytes', value: disk(reviews) },
    {
      name: 'Cassandra disk: what passes (slots, units, pointers, Paxos)',
      unit: 'bytes',
      value: disk(passed),
    },
    { name: 'Cassandra disk writes, compaction included', unit: 'bytes/s', value: diskWrites },
    { name: 'Kafka disk', unit: 'bytes', value: kafkaDisk },
    { name: 'deliverables', unit: 'bytes', value: deliverables },
    { name: 'traces', unit: 'bytes', value: traces },
    { name: 'content keys', unit: 'bytes', value: keys },
    { name: 'journal of erasures, five years', unit: 'bytes', value: journal },
    { name: 'network in', unit: 'bytes/s', value: networkIn },
    { name: 'network out', unit: 'bytes/s', value: networkOut },
    { name: 'network between servers', unit: 'bytes/s', value: networkInside },
    { name: 'network to and from the bucket', unit: 'bytes/s', value: networkBucket },
    { name: 'bucket: writes and lists', unit: 'requests/s', value: writes },
    { name: 'bucket: reads', unit: 'requests/s', value: reads },
    { name: 'bucket: removals', unit: 'requests/s', value: deletes },
    { name: 'auditor: things that a pass looks at', unit: 'looks', value: auditor.things },
    { name: 'auditor: a pass at its rate', unit: 'days', value: auditor.passDays },
    {
      name: `auditor: least rate for a pass of ${assumed.auditPassDays} days`,
      unit: 'looks/s',
      value: auditor.things / (assumed.auditPassDays * DAY_SECONDS),
    },
    { name: 'auditor: rate that one process reaches', unit: 'looks/s', value: auditor.fastest },
    { name: 'cores a month', unit: 'money', value: computing },
    { name: 'disks a month', unit: 'money', value: disks },
    { name: 'network a month', unit: 'money', value: network },
    { name: 'requests to the bucket a month', unit: 'money', value: requested },
    { name: 'of cores and requests: the auditor', unit: 'money', value: auditing },
    { name: 'bucket a month, all at hand', unit: 'money', value: bucket },
    { name: 'bucket a month, with the policy below', unit: 'money', value: bucketCold },
    { name: '**a month, all at hand**', unit: 'money', value: sumOfAll + bucket },
    { name: '**a month, with the policy**', unit: 'money', value: sumOfAll + bucketCold },
  ];
}

/** Cost of an issuing with its file, and what a trace adds to it. */
function issuing(measurement: Measurement, load: Load): { readonly file: Cost; readonly trace: Cost } {
  const { traces } = measurement;
  const [short, long] = [traces.short, traces.long].map((events) =>
    costOf(measurement, `issue, trace of ${events} events`),
  ) as [Cost, Cost];
  const share = (load.traceEvents - traces.short) / (traces.long - traces.short);
  const traced = sum([
    [short, 1],
    [less(long, short), share],
  ]);
  const issue = costOf(measurement, 'issue');
  const added = less(traced, issue);
  const rows = (table: string): number =>
    Math.max(0, ...[short, long].map(({ bytes }) => (bytes[table] ?? 0) - (issue.bytes[table] ?? 0)));
  return {
    file: ofBytes(measurement, 'issue', 'issue, 32 MiB', load.deliverableBytes),
    // Evidence lies in rows up to a size, and beyond it in objects: the trace with more rows counts.
    trace: { ...added, bytes: Object.fromEntries(ROWS_OF_EVIDENCE.map((table) => [table, rows(table)])) },
  };
}

/** Cost of a call with a file of so many bytes, which are the service's work and the bucket's. */
function ofBytes(measurement: Measurement, small: string, large: string, bytes: number): Cost {
  const { fileBytes, largeBytes } = measurement;
  return withMore(
    costOf(measurement, small),
    costOf(measurement, large),
    (bytes - fileBytes) / (largeBytes - fileBytes),
  );
}

function readOfFile(measurement: Measurement, bytes: number): Cost {
  const { rangeBytes, largeBytes } = measurement;
  return withMore(
    costOf(measurement, 'read 64 KiB of a file'),
    costOf(measurement, 'read a file, 32 MiB'),
    (bytes - rangeBytes) / (largeBytes - rangeBytes),
  );
}

function withMore(small: Cost, large: Cost, share: number): Cost {
  const more = less(large, small);
  return sum([
    [small, 1],
    [{ cpu: { ...more.cpu, consumers: 0, cassandra: 0, kafka: 0 }, bytes: {}, bucket: more.bucket }, share],
  ]);
}

/** Number of things that the auditor looks at, and the mean cost of a look. */
function audit(
  measurement: Measurement,
  { assumed }: Inputs,
  load: Load,
  issue: Cost,
  keyRead: Cost,
): {
  readonly look: Cost;
  readonly things: number;
  readonly passDays: number;
  /** Looks a second. */
  readonly fastest: number;
} {
  const files = load.proofs * (issue.bucket['PUT files']?.requests ?? 0);
  const reviews = load.reviews * assumed.reviewSeconds;
  const things = load.proofs + files + reviews;
  const secondsOf = (name: string): number => {
    const { seconds, calls } = found(measurement, name);
    return seconds / calls;
  };
  // A review's rows are read like a proof's.
  const [ofProof, ofFile] = [(load.proofs + reviews) / things, files / things];
  return {
    // Files come in another order than their proofs: no key is in memory any more.
    look: sum([
      [costOf(measurement, 'audit: a proof'), ofProof],
      [costOf(measurement, 'audit: a file'), ofFile],
      [keyRead, ofFile],
    ]),
    things,
    passDays: things / load.auditRate / DAY_SECONDS,
    fastest: 1 / (ofProof * secondsOf('audit: a proof') + ofFile * secondsOf('audit: a file')),
  };
}

function found({ costs }: Measurement, name: string): Measured {
  const cost = costs.find((each) => each.name === name);
  if (cost === undefined) throw new Error(`nothing was measured of: ${name}`);
  return cost;
}

/** Less than nothing is what the load of an idle process swung by. */
function costOf(measurement: Measurement, name: string): Cost {
  return atLeastNothing(found(measurement, name));
}

function less(one: Cost, other: Cost): Cost {
  return sum([
    [one, 1],
    [other, -1],
  ]);
}

/** Costs by their weights; none is less than nothing. */
function sum(weighted: readonly (readonly [Cost, number])[]): Cost {
  const added = (value: (cost: Cost) => number): number =>
    total(weighted, ([cost, weight]) => weight * value(cost));
  const names = (of: (cost: Cost) => object): readonly string[] => [
    ...new Set(weighted.flatMap(([cost]) => Object.keys(of(cost)))),
  ];
  return atLeastNothing({
    cpu: byPart((part) => added(({ cpu }) => cpu[part])),
    bytes: Object.fromEntries(
      names(({ bytes }) => bytes).map((name) => [name, added(({ bytes }) => bytes[name] ?? 0)]),
    ),
    bucket: Object.fromEntries(
      names(({ bucket }) => bucket).map((name) => [
        name,
        {
          requests: added(({ bucket }) => bucket[name]?.requests ?? 0),
          bytes: added(({ bucket }) => bucket[name]?.bytes ?? 0),
        },
      ]),
    ),
  });
}

function atLeastNothing({ cpu, bytes, bucket }: Cost): Cost {
  const least = (value: number): number => Math.max(0, value);
  return {
    cpu: byPart((part) => least(cpu[part])),
    bytes: Object.fromEntries(Object.entries(bytes).map(([name, size]) => [name, least(size)])),
    bucket: Object.fromEntries(
      Object.entries(bucket).map(([name, { requests, bytes: sent }]) => [
        name,
        { requests: least(requests), bytes: least(sent) },
      ]),
    ),
  };
}

function byPart(value: (part: Part) => number): Readonly<Record<Part, number>> {
  return Object.fromEntries(PARTS.map((part) => [part, value(part)])) as Record<Part, number>;
}

function isTopic(name: string): boolean {
  return name.startsWith('topic ');
}

function isKept(name: string): boolean {
  return !isTopic(name) && !PASSING.has(name);
}

function bytesOf({ bytes }: Cost, isCounted: (name: string) => boolean): number {
  return total(Object.entries(bytes), ([name, size]) => (isCounted(name) ? size : 0));
}

/** Bytes of a kind of object that a call writes into the bucket. */
function sentTo({ bucket }: Cost, kind: string): number {
  return bucket[`PUT ${kind}`]?.bytes ?? 0;
}

function total<Item>(items: readonly Item[], value: (item: Item) => number): number {
  return items.reduce((added, item) => added + value(item), 0);
}
