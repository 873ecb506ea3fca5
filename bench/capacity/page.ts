/**
 * `npm run build:capacity` writes deploy/capacity.md from deploy/capacity-measured.json and
 * deploy/capacity-inputs.json. `-- --measured <file>` first replaces the measurement, for example with
 * bench/results/capacity.json.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import type { Contention } from './one-partner.js';
import { type Figure, type Inputs, type Measured, type Measurement, planOf } from './plan.js';

const DEPLOY = new URL('../../../deploy/', import.meta.url);
const MEASURED = new URL('capacity-measured.json', DEPLOY);
const INPUTS = new URL('capacity-inputs.json', DEPLOY);
const PAGE = new URL('capacity.md', DEPLOY);

/** The age in seconds from which the auditor checks something. */
const SETTLED_SECONDS = 600;

type Recorded = Measurement & {
  readonly count: number;
  readonly settleSeconds: number;
  readonly onePartner: readonly Contention[];
};

/** Returns the text of the page for a measurement and the assumptions. */
export function pageOf(measured: Recorded, inputs: Inputs): string {
  return `# Capacity

For operators who size a cluster. At the end you know how many cores, disks and requests to the bucket a load needs, and
what they cost.

\`npm run build:capacity\` generates this page from two files. \`deploy/capacity-measured.json\` has the costs that
\`npm run bench:capacity\` measured. \`deploy/capacity-inputs.json\` has the loads, prices and all assumptions. To compute
another load, change \`deploy/capacity-inputs.json\` and run \`npm run build:capacity\` again.

## Measured

The costs were measured on ${measured.measuredAt}, on ${measured.machine.cores} cores of ${measured.machine.processor} with Node ${measured.machine.node}. Each kind of call was made
${measured.count} times, issuings, reviews and erasures a quarter as often, and calls with large files or traces a few times. One
service, one process of consumers, one Cassandra node, one Kafka broker, one S3 server and the clients shared the cores.

CPU is the CPU time that the operating system reports for a process and its children, minus the CPU time of the idle
process. It includes the background jobs that follow from a call. The error is about a fifth, because there were few calls
and the cores were shared. A cost of 0.0 is too small to distinguish from the idle load. Bytes are bytes on the disk of the
Cassandra node after flush and compaction, for one replica. They include rows of evidence, pointers, index and audit log.
The auditor ran ${measured.settleSeconds} seconds after the issuings${measured.settleSeconds < SETTLED_SECONDS ? '. **That is too soon for it to check files**' : '. By then no content key was in memory any more'}.

| CPU, milliseconds a call | service | consumers | Cassandra, one replica | Kafka |
| --- | ---: | ---: | ---: | ---: |
${measured.costs.map(cpuRow).join('\n')}
| idle, share of a core | ${share(measured.idle.service)} | ${share(measured.idle.consumers)} | ${share(measured.idle.cassandra)} | ${share(measured.idle.kafka)} |

| Bytes a call | |
| --- | --- |
${measured.costs.map(bytesRow).join('\n')}

| Requests to the bucket a call | |
| --- | --- |
${measured.costs.map(bucketRow).join('\n')}
| idle, a process and second | ${Object.entries(measured.idle.bucket)
    .map(([kind, rate]) => `${kind} ${rate}`)
    .join(', ')} |

Content keys, the journal of erasures and files are stored in the bucket. An issuing creates a key. An erasure is written
to the journal twice: by the call and by the consumer. Call and consumer both destroy the key and delete the files, and
both check that they are gone.

All charges of a partner in a month change one row. The next table shows how many charges of one partner are possible:

| Processes | Calls at once | Units a second | p50 | p99 |
| ---: | ---: | ---: | ---: | ---: |
${measured.onePartner.map((one) => `| ${one.stores} | ${one.inFlight} | ${one.chargesPerSecond} | ${one.p50} ms | ${one.p99} ms |`).join('\n')}

More processes do not make the calls of one partner faster, so let the balancer send the calls of one partner to few
processes. If the calls of few partners are spread over many processes, fewer charges share one batch. Then each verify
needs more CPU of the services (\`npm run bench -- --scale\`). The plans below use the cost of a verify with one process.

## Lightweight transactions of an operation

These numbers were counted in the code. The measured costs above include these transactions.

| Operation | Lightweight transactions |
| --- | --- |
| issue | 1, or 2 with an Idempotency-Key |
| verify | 1, shared by up to 40 concurrent units of a partner in one process |
| upload | 2 (slot, facts) |
| create or change a review | 1 |
| erase | 1, or 2 with an Idempotency-Key; 1 more when the erasure is confirmed |
| rotate a key | 2 |
| revoke a key | 1 |
| in the background | 1 for each group of up to 25 audit entries of a partner; 1 for each batch of usage that a consumer adds; 1 a minute for each process, which raises the count \`beat\` |

## Formulas

\`i\` is the number of issuings a second at the peak. \`v\`, \`u\`, \`q\`, \`r\` and \`e\` are the numbers of verifies, uploads,
reads, reviews and erasures a second. \`P\` is the number of proofs, and \`n\` the number of processes. Each verify is
computed as a new unit, which needs an upload of its own, so \`u\` is at least \`v\`. Cores are computed for the peak, and
everything else for the mean.

- an issuing = issue + (issue, 32 MiB − issue) in proportion to the bytes of its file + share with a trace × (issue with a trace, in proportion to its events − issue). This includes hashing, encrypting, writing and replaying. Of the two measured traces, the one with more rows of evidence is used for these rows
- an upload and a read of a file are computed in the same way, in proportion to their bytes
- reads of keys that are not in memory = (read a proof, key in the bucket − read a proof) × ${inputs.assumed.keyMissShare} × (v + q + r + reads of files)
- service cores = (Σ CPU a call × calls a second) / ${inputs.assumed.busyShare.service} + idle × processes + the auditor
- Cassandra cores = ${inputs.assumed.replicas} × (Σ CPU a call × calls a second) / ${inputs.assumed.busyShare.cassandra} + sweeps + the auditor + repair
- sweeps = \`n\` × idle load of the node + CPU for 2 × \`n\` × ${inputs.assumed.lookBackSweepsASecond} × (i + r + e) tombstones a second, because each process reads the pointers of the last two minutes every ten seconds
- repair = reading all bytes once in ${inputs.assumed.repairDays} days, at ${inputs.assumed.repairMBPerCoreSecond} MB a second for each core
- Cassandra disk = ${inputs.assumed.replicas} × (proofs + reviews of 180 days + log of erasures of five years + short-lived rows × their time) / ${inputs.assumed.fullShare.cassandra}
- Cassandra disk writes = ${inputs.assumed.replicas} × bytes written × ${inputs.assumed.writeAmplification}. The last factor is for the commit log and compactions
- Kafka disk = ${inputs.assumed.replicas} × Σ bytes of a topic × its retention time / ${inputs.assumed.fullShare.kafka}
- duration of a pass of the auditor = (P + files + reviews of 180 days) / its rate. Each check of an item costs CPU and reads of two replicas. The check of a file also reads a key. One process makes all checks
- requests to the bucket = Σ requests a call × calls a second + the auditor + idle × \`n\`
- money = cores × price + disks × price + network × price + bucket × price + requests × price. The prices of cores and of incoming network are computed as if the peak lasted all month

## Plans

These are the loads of \`deploy/capacity-inputs.json\`:

${table(['', 'unit', ...Object.keys(inputs.plans)], loadRows(inputs))}

Each load needs, as computed with the formulas:

${table(['', ...Object.keys(inputs.plans)], figureRows(measured, inputs))}

### The auditor's pass

${passes(measured, inputs)}

Set \`TAKEMARK_AUDIT_RATE\` to the rate of your plan. If another process takes over the auditor's lease, the pass begins
again. So a pass ends only if the process that has the lease runs for the whole pass. A finding is reported at most one
pass after its cause. Unfinished erasures are visible earlier, in the consumer lag of the topic \`erasure\`. No alert waits
for the end of a pass: [monitor](../docs/operating/monitor.md#the-auditor).

## Assumed, and not measured

${table(['Assumption', 'Value', 'Unit'], assumedRows(inputs))}

- Replicas on separate machines, full disks and a billion rows were not measured. The factor ${inputs.assumed.replicas} in the formulas is the number of replicas.
- The plans do not include \`takemark operator restore\` with a journal of the planned size, backups and their transfer, a balancer, or several data centres.
- The prices are examples by the author, and not the prices of any provider.

## Deliverables dominate: a policy for them

Deliverables are stored until their proofs are erased, and no deliverable expires by age. So deliverables cause most of
the costs of storage. To lower these costs, add a lifecycle rule to the bucket. The rule moves objects under \`<prefix>\` to
a cheaper storage class **with immediate reads** after ${inputs.assumed.hotDays} days. Reads, ranges and erasures work the same in such a
class. Exclude \`<prefix>keys/\`, \`<prefix>erasures/\` and \`<prefix>installation/\` from the rule. The rule saves
${policySaving(measured, inputs)} of the monthly sums of the three plans.

- Rules that delete objects are not supported. A proof whose deliverable is deleted still verifies, but calls for the file fail.
- Storage classes that need a restore before a read are not supported.
- The sums do not include minimum storage times of such a class, or its prices for single reads.
`;
}

function bucketRow({ name, bucket }: Measured): string {
  const kinds = Object.entries(bucket).map(([kind, { requests }]) => `${kind} ${requests}`);
  return `| ${name} | ${kinds.join(', ') || 'none'} |`;
}

/** Returns a sentence for each plan about the length of its auditor's pass. */
function passes(measured: Recorded, inputs: Inputs): string {
  const { auditPassDays } = inputs.assumed;
  return Object.entries(inputs.plans)
    .map(([name, load]) => {
      const figures = planOf(measured, inputs, load);
      const figure = (start: string): Figure => figures.find((each) => each.name.startsWith(start))!;
      const [pass, least, fastest, cost] = [
        figure('auditor: a pass at its rate'),
        figure('auditor: least rate'),
        figure('auditor: rate that one process reaches'),
        figure('of cores and requests: the auditor'),
      ];
      const sentence = `- **${name}**: at ${grouped(load.auditRate)} looks a second a pass takes ${shown(pass, inputs.currency)} and costs ${shown(cost, inputs.currency)} a month`;
      const late =
        pass.value > auditPassDays
          ? `, **longer than the planned ${auditPassDays} days**, which need ${shown(least, inputs.currency)}`
          : '';
      const slow =
        load.auditRate > fastest.value
          ? `; **one process reached ${shown(fastest, inputs.currency)} here, on cores that it shared with the servers**`
          : '';
      return `${sentence}${late}${slow}.`;
    })
    .join('\n');
}

function cpuRow({ name, cpu }: Measured): string {
  const ms = (value: number): string => (Math.max(0, value) / 1000).toFixed(1);
  return `| ${name} | ${ms(cpu.service)} | ${ms(cpu.consumers)} | ${ms(cpu.cassandra)} | ${ms(cpu.kafka)} |`;
}

function bytesRow({ name, bytes }: Measured): string {
  const places = Object.entries(bytes).sort(([, a], [, b]) => b - a);
  const total = places.reduce((sum, [, size]) => sum + size, 0);
  return `| ${name} | ${total}: ${places.map(([place, size]) => `${place} ${size}`).join(', ') || 'nothing'} |`;
}

function loadRows({ plans, units }: Inputs): readonly (readonly string[])[] {
  const [first] = Object.values(plans);
  return Object.keys(first!).map((name) => [
    name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`),
    units[name] ?? '',
    ...Object.values(plans).map((load) => grouped(load[name as keyof typeof load])),
  ]);
}

function figureRows(measured: Recorded, inputs: Inputs): readonly (readonly string[])[] {
  const plans = Object.values(inputs.plans).map((load) => planOf(measured, inputs, load));
  return plans[0]!.map(({ name }, at) => [name, ...plans.map((plan) => shown(plan[at]!, inputs.currency))]);
}

function assumedRows({ assumed, prices, currency, units }: Inputs): readonly (readonly string[])[] {
  return [
    ...Object.entries(assumed).map(([name, value]) => [
      name,
      typeof value === 'number'
        ? grouped(value)
        : Object.entries(value)
            .map(([part, of]) => `${part} ${of}`)
            .join(', '),
      units[name] ?? '',
    ]),
    ...Object.entries(prices).map(([name, value]) => [
      `price: ${name}`,
      `${value} ${currency}`,
      units[name] ?? '',
    ]),
  ];
}

function policySaving(measured: Recorded, inputs: Inputs): string {
  const shares = Object.values(inputs.plans).map((load) => {
    const figures = planOf(measured, inputs, load);
    const [atHand, withPolicy] = figures.slice(-2) as [Figure, Figure];
    return Math.round((1 - withPolicy.value / atHand.value) * 100);
  });
  return shares.map((percent) => `${percent} %`).join(', ');
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [
    `| ${head.join(' | ')} |`,
    `| --- |${head
      .slice(1)
      .map(() => ' ---: |')
      .join('')}`,
    ...rows.map((row) => `| ${row.join(' | ')} |`),
  ].join('\n');
}

function shown({ unit, value }: Figure, currency: string): string {
  if (unit === 'cores') return value < 10 ? value.toFixed(1) : grouped(Math.round(value));
  if (unit === 'requests/s' || unit === 'looks/s') return `${grouped(Math.round(value))}/s`;
  if (unit === 'looks') return grouped(Math.round(value));
  if (unit === 'days') return `${value.toFixed(1)} days`;
  if (unit === 'money') return `${grouped(Math.round(value))} ${currency}`;
  const suffix = unit === 'bytes/s' ? '/s' : '';
  for (const [size, name] of [
    [1e15, 'PB'],
    [1e12, 'TB'],
    [1e9, 'GB'],
    [1e6, 'MB'],
  ] as const)
    if (value >= size) return `${(value / size).toFixed(1)} ${name}${suffix}`;
  return `${Math.round(value / 1000)} kB${suffix}`;
}

function share(cores: number): string {
  return `${(cores * 100).toFixed(1)} %`;
}

function grouped(value: number): string {
  return value.toLocaleString('en-US');
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { measured: { type: 'string' } } });
  if (values.measured !== undefined) await writeFile(MEASURED, await readFile(values.measured));
  const [measured, inputs] = await Promise.all(
    [MEASURED, INPUTS].map(async (file) => JSON.parse(await readFile(file, 'utf8')) as unknown),
  );
  await writeFile(PAGE, pageOf(measured as Recorded, inputs as Inputs));
}

if (import.meta.url === `file://${process.argv[1]}`) await main();
