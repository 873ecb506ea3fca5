/** The arithmetic of deploy/capacity.md: what a load needs, from measured costs and named inputs. */

/** Measured cost of one kind of calls, as `npm run bench:capacity` writes it. */
export interface Measured {
  readonly name: string;
  readonly calls: number;
  readonly seconds: number;
  /** Microseconds a call; Cassandra with one replica. */
  readonly cpu: Readonly<Record<Part, number>>;
  /** Bytes a call that stay, one replica, by table and topic. */
  readonly bytes: Readonly<Record<string, number>>;
}

export type Part = 'service' | 'consumers' | 'cassandra' | 'kafka';

export interface Measurement {
  readonly measuredAt: string;
  readonly machine: { readonly processor: string; readonly cores: number; readonly node: string };
  /** Cores that idle processes need: one service, one process of consumers, a node, a broker. */
  readonly idle: Readonly<Record<Part, number>>;
  readonly costs: readonly Measured[];
  readonly largeBytes: number;
}

export interface Load {
  readonly proofs: number;
  readonly issued: number;
  readonly issuedPeak: number;
  readonly verifies: number;
  readonly uploads: number;
  readonly uploadBytes: number;
  readonly reviews: number;
  readonly erasures: number;
  readonly reads: number;
  readonly deliverableBytes: number;
  readonly services: number;
  readonly consumers: number;
}

export interface Inputs {
  readonly currency: string;
  readonly prices: Readonly<
    Record<
      | 'coreMonth'
      | 'nvmeGBMonth'
      | 'objectGBMonth'
      | 'coldObjectGBMonth'
      | 'putThousand'
      | 'networkInGB'
      | 'networkOutGB',
      number
    >
  >;
  readonly assumed: {
    readonly busyShare: Readonly<Record<Part, number>>;
    readonly fullShare: Readonly<Record<'cassandra' | 'kafka', number>>;
  } & Readonly<
    Record<
      | 'replicas'
      | 'writeAmplification'
      | 'repairDays'
      | 'repairMBPerCoreSecond'
      | 'microsecondsATombstone'
      | 'uploadSlotSeconds'
      | 'unitSeconds'
      | 'usageTopicSeconds'
      | 'pointerSeconds'
      | 'paxosSeconds'
      | 'reviewSeconds'
      | 'journalObjectBytes'
      | 'callBytesOut'
      | 'lookBackSweepsASecond'
      | 'auditRate'
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
  readonly unit: 'cores' | 'bytes' | 'bytes/s' | 'money';
  readonly value: number;
}

const MONTH_SECONDS = 30 * 86_400;
const DAY_SECONDS = 86_400;
const GB = 1e9;
/** Tables whose rows pass: they are counted by how long they stay. */
const PASSING = new Set(['pointer', 'system.paxos', 'upload', 'charge', 'watermark', 'ping', 'due_notice']);

export function planOf(
  { costs, idle, largeBytes }: Measurement,
  inputs: Inputs,
  load: Load,
): readonly Figure[] {
  const { assumed, prices } = inputs;
  const of = (name: string): Measured => {
    const found = costs.find((cost) => cost.name === name);
    if (found === undefined) throw new Error(`nothing was measured of: ${name}`);
    // Less than nothing is what the load of an idle process swung by.
    const { service, consumers, cassandra, kafka } = found.cpu;
    const least = (value: number): number => Math.max(0, value);
    return {
      ...found,
      cpu: {
        service: least(service),
        consumers: least(consumers),
        cassandra: least(cassandra),
        kafka: least(kafka),
      },
    };
  };
  const issue = of('issue');
  const upload = of('upload, 24 kB');
  const verify = of('verify, embedded');
  const read = of('read a proof');
  const review = of('create a review');
  const erase = of('erase');
  const large = of('upload, 32 MiB');
  /** Seconds of CPU a second for the calls, at their peak. */
  const calls = (part: Part): number =>
    (issue.cpu[part] * load.issuedPeak +
      upload.cpu[part] * load.uploads +
      verify.cpu[part] * load.verifies +
      read.cpu[part] * load.reads +
      review.cpu[part] * load.reviews +
      erase.cpu[part] * load.erasures) /
    1e6;
  const processes = load.services + load.consumers;
  const { replicas, busyShare, fullShare } = assumed;

  const bodies =
    (Math.max(0, large.cpu.service - upload.cpu.service) / largeBytes / 1e6) *
    load.uploads *
    load.uploadBytes;
  const service =
    (calls('service') + bodies) / busyShare.service +
    idle.service * load.services +
    (assumed.auditRate * read.cpu.service) / 1e6;
  const consumers = calls('consumers') / busyShare.consumers + idle.consumers * load.consumers;
  const cassandraCalls = (replicas * calls('cassandra')) / busyShare.cassandra;
  // The node's own idle time is in it, and the cost of one service and one process of consumers for each pair.
  const jobs = (2 * idle.cassandra * processes) / 2;
  const decisions = load.issuedPeak + load.erasures + load.reviews;
  const sweeps =
    jobs + (2 * processes * assumed.lookBackSweepsASecond * decisions * assumed.microsecondsATombstone) / 1e6;
  // A read asks two replicas.
  const audit = (2 * assumed.auditRate * read.cpu.cassandra) / 1e6;

  const stays = ({ bytes }: Measured, table: (name: string) => boolean): number =>
    Object.entries(bytes).reduce((sum, [name, size]) => (table(name) ? sum + size : sum), 0);
  const isKept = (name: string): boolean => !name.startsWith('topic ') && !PASSING.has(name);
  const only =
    (name: string) =>
    (other: string): boolean =>
      other === name;
  const passing = ({ bytes }: Measured, rate: number): number =>
    rate *
    ((bytes['pointer'] ?? 0) * assumed.pointerSeconds +
      (bytes['system.paxos'] ?? 0) * assumed.paxosSeconds +
      (bytes['upload'] ?? 0) * assumed.uploadSlotSeconds +
      (bytes['charge'] ?? 0) * assumed.unitSeconds);
  const proofs = load.proofs * stays(issue, isKept);
  const reviews =
    load.reviews * stays(review, (name) => isKept(name) || name === 'due_notice') * assumed.reviewSeconds;
  const erased = load.erasures * stays(erase, only('audit_entry')) * 5 * 365 * DAY_SECONDS;
  const passed =
    passing(issue, load.issued) +
    passing(upload, load.uploads) +
    passing(verify, load.verifies) +
    passing(review, load.reviews) +
    passing(erase, load.erasures);
  const oneReplica = proofs + reviews + erased + passed;
  const cassandraDisk = (replicas * oneReplica) / fullShare.cassandra;
  const repair =
    (replicas * oneReplica) / (assumed.repairDays * DAY_SECONDS) / 1e6 / assumed.repairMBPerCoreSecond;
  const written =
    load.issued * sum(issue) +
    load.uploads * sum(upload) +
    load.verifies * sum(verify) +
    load.reviews * sum(review) +
    load.erasures * sum(erase);
  const diskWrites = replicas * written * assumed.writeAmplification;
  const usageBytes = stays(verify, only('topic usage')) * load.verifies;
  const kafka = calls('kafka') / busyShare.kafka + 3 * idle.kafka;
  const kafkaDisk = (replicas * usageBytes * assumed.usageTopicSeconds) / fullShare.kafka;

  const networkIn = load.uploads * load.uploadBytes + load.issuedPeak * load.deliverableBytes;
  const networkOut =
    (load.verifies + load.reads) * assumed.callBytesOut +
    load.issued * assumed.readsOfADeliverable * load.deliverableBytes;
  const networkInside = replicas * (written + usageBytes);
  const deliverables = load.proofs * load.deliverableBytes;
  const journal = load.erasures * assumed.journalObjectBytes * 5 * 365 * DAY_SECONDS;
  const hot = Math.min(deliverables, load.issued * load.deliverableBytes * assumed.hotDays * DAY_SECONDS);

  const cassandra = cassandraCalls + sweeps + audit + repair;
  const cores = service + consumers + cassandra + kafka;
  const computing = cores * prices.coreMonth;
  const disks = ((cassandraDisk + kafkaDisk) / GB) * prices.nvmeGBMonth;
  const network = ((networkIn * prices.networkInGB + networkOut * prices.networkOutGB) / GB) * MONTH_SECONDS;
  const puts = (((load.issued + load.erasures) * MONTH_SECONDS) / 1000) * prices.putThousand;
  const bucket = (deliverables / GB) * prices.objectGBMonth + puts;
  const bucketCold =
    (hot / GB) * prices.objectGBMonth + ((deliverables - hot) / GB) * prices.coldObjectGBMonth + puts;
  const total = computing + disks + network;
  return [
    { name: 'service, calls and bodies', unit: 'cores', value: service },
    { name: 'consumers', unit: 'cores', value: consumers },
    { name: 'Cassandra, calls', unit: 'cores', value: cassandraCalls },
    { name: 'Cassandra, sweeps and jobs of all processes', unit: 'cores', value: sweeps },
    { name: 'Cassandra, the auditor', unit: 'cores', value: audit },
    { name: 'Cassandra, repair', unit: 'cores', value: repair },
    { name: 'Kafka', unit: 'cores', value: kafka },
    { name: 'all cores', unit: 'cores', value: cores },
    {
      name: 'Cassandra disk: proofs, index, log',
      unit: 'bytes',
      value: (replicas * (proofs + erased)) / fullShare.cassandra,
    },
    {
      name: 'Cassandra disk: reviews of 180 days',
      unit: 'bytes',
      value: (replicas * reviews) / fullShare.cassandra,
    },
    {
      name: 'Cassandra disk: what passes (slots, units, pointers, Paxos)',
      unit: 'bytes',
      value: (replicas * passed) / fullShare.cassandra,
    },
    { name: 'Cassandra disk writes, compaction included', unit: 'bytes/s', value: diskWrites },
    { name: 'Kafka disk', unit: 'bytes', value: kafkaDisk },
    { name: 'deliverables', unit: 'bytes', value: deliverables },
    { name: 'journal of erasures, five years', unit: 'bytes', value: journal },
    { name: 'network in', unit: 'bytes/s', value: networkIn },
    { name: 'network out', unit: 'bytes/s', value: networkOut },
    { name: 'network between servers', unit: 'bytes/s', value: networkInside },
    { name: 'cores a month', unit: 'money', value: computing },
    { name: 'disks a month', unit: 'money', value: disks },
    { name: 'network a month', unit: 'money', value: network },
    { name: 'deliverables a month, all at hand', unit: 'money', value: bucket },
    { name: 'deliverables a month, with the policy below', unit: 'money', value: bucketCold },
    { name: '**a month, all at hand**', unit: 'money', value: total + bucket },
    { name: '**a month, with the policy**', unit: 'money', value: total + bucketCold },
  ];
}

/** Bytes that a call writes to tables on one replica. */
function sum({ bytes }: Measured): number {
  return Object.entries(bytes).reduce(
    (total, [name, size]) => (name.startsWith('topic ') ? total : total + size),
    0,
  );
}
