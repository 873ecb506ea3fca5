import { DomainError } from '../../../src/core/domain/errors.js';
import type { Signer, TrustList } from '../../../src/core/ports/signing.js';
import { migrate } from '../../../src/service/adapters/cassandra/driver/migrations.js';
import { ISSUING } from '../../../src/service/adapters/cassandra/proofs/reservations.js';
import { allNames, topicName } from '../../../src/service/adapters/kafka/topic-names.js';
import { SCOPES, SHIPPED_PLANS } from '../../../src/service/domain/partner.js';
import { EVIDENCE_KINDS, REVIEW_OUTCOMES } from '../../../src/service/domain/review.js';
import type { Caller } from '../../../src/service/operations/caller.js';
import type { ReviewView } from '../../../src/service/operations/reviews/reviews.js';
import type { ReviewCall, ReviewResult } from '../cluster/history.js';
import { Broker } from './broker.js';
import { Bucket } from './bucket.js';
import { immediateClient } from './client.js';
import { Database } from './database.js';
import { judge } from './judge.js';
import { Ledger, type ProofFacts, type ReviewFacts } from './ledger.js';
import type { Machine } from './machine.js';
import { KEYSPACE, type Member, PARTS, PREFIX, type Surroundings, startMember } from './member.js';
import { FAULTS, type Fault, Weather } from './weather.js';
import { operationOf, Refusal, reviewStateOf, type Seen } from './witness.js';
import { cancel, Process, type World } from './world.js';

/** The immutable things that all histories share. */
export interface Stage {
  readonly machine: Machine;
  /** A migrated keyspace without rows. */
  readonly database: Database;
  readonly signing: { readonly signer: Signer; readonly trust: TrustList };
}

export interface HistoryOptions {
  /** The kinds of faults that a history draws from. Default: all. */
  readonly faults?: readonly Fault[];
  /** Whether the history plays all of these kinds. */
  readonly takesAll?: boolean;
  /** Whether the history begins with a crowd. By default a few histories do. */
  readonly isCrowded?: boolean;
  /** The lead of one process's clock until the faults end, in milliseconds. */
  readonly aheadMs?: number;
  /** Plants a defect into the surroundings of the history. For tests. */
  readonly spoil?: (around: Surroundings) => Surroundings;
}

export interface HistoryResult {
  readonly seed: number;
  readonly faults: readonly Fault[];
  readonly violations: readonly string[];
  /** The number of calls that were answered with success. */
  readonly answered: number;
  readonly lines: readonly string[];
}

/** Returns a keyspace after the product's own migrations. */
export async function migrated(): Promise<Database> {
  const database = new Database();
  await migrate({
    contactPoints: ['cassandra:9042'],
    localDataCenter: 'datacenter1',
    keyspace: KEYSPACE,
    replication: 1,
    openClient: () => immediateClient(database),
  });
  return database;
}

const PARTNERS = ['ptr_a', 'ptr_b'] as const;
/** The time in which clients call and faults happen, in seconds. */
const BAD_SECONDS = 240;
/**
 * The time in which the product must find all remains of faults, in seconds. At rest it must find nothing for
 * `REST_SECONDS`.
 */
const RECOVERY_SECONDS = 420;
const REST_SECONDS = 60;
/**
 * The time until a dead process's charges are taken over, in seconds, and the interval of the job that does
 * it.
 */
const TAKEOVER_SECONDS = 180;
const COLLECTION_SECONDS = 40;
const CALL_MS = 30_000;
/**
 * The share of histories that begin with a crowd: one partner creates cases of another partner's proof during
 * its erasure.
 */
const CROWDED = 0.01;
const CROWD_CLIENTS = 6;
/**
 * The number of cases before the erasure begins, the total number of cases, and the time limit of the
 * erasure.
 */
const CROWD_FIRST = 60;
const CROWD_MOST = 400;
const CROWD_MS = 2000;
/** The time in which an event reaches the bus without faults, in milliseconds. */
const PUBLISHING_MS = 30_000;

type Answer<Value> =
  | { readonly outcome: 'done'; readonly value: Value; readonly sentAt: number }
  | {
      readonly outcome: 'refused';
      readonly code: string;
      readonly reason: string | undefined;
      readonly sentAt: number;
    }
  | { readonly outcome: 'unknown'; readonly sentAt: number };

/** Plays the history of a seed: processes, clients, faults, repair, recovery and judgement. */
export async function runHistory(
  stage: Stage,
  seed: number,
  options: HistoryOptions = {},
): Promise<HistoryResult> {
  const world = stage.machine.begin(seed);
  try {
    return await new History(stage, world, seed, options).run();
  } finally {
    stage.machine.end();
  }
}

class History {
  readonly #world: World;
  readonly #seed: number;
  readonly #faults: ReadonlySet<Fault>;
  readonly #weather: Weather;
  readonly #isCrowded: boolean;
  readonly #aheadMs: number;
  readonly #around: Surroundings;
  readonly #ledger = new Ledger();
  readonly #members: (Member | undefined)[] = [];
  readonly #processes: Process[] = [];
  readonly #skews: number[] = [];
  readonly #callers: readonly Caller[];
  readonly #apiKeys = new Map<string, string>();
  #starts = 0;
  #clientsAtWork = 0;
  #answered = 0;

  constructor(
    { database, signing }: Stage,
    world: World,
    seed: number,
    { faults = FAULTS, takesAll = false, isCrowded = false, aheadMs = 0, spoil }: HistoryOptions,
  ) {
    const { random } = world;
    this.#world = world;
    this.#seed = seed;
    this.#isCrowded = random.chance(CROWDED) || isCrowded;
    this.#aheadMs = aheadMs;
    // A history with few kinds of faults shows more than a history with all of them.
    const share = random.pick([0.15, 0.3, 0.6]);
    const chosen = faults.filter(() => random.chance(share) || takesAll);
    this.#faults = new Set(chosen.length > 0 ? chosen : [random.pick(faults)]);
    this.#weather = new Weather(world, this.#faults);
    const around: Surroundings = {
      world,
      weather: this.#weather,
      database: new Database(database),
      broker: new Broker(world, this.#weather, allNames(PREFIX)),
      bucket: new Bucket(world, this.#weather),
      signing,
      // Some histories have so small an outbox that calls reach its limit.
      outboxLimit: random.chance(0.5) && !this.#isCrowded ? 1 + random.below(2) : 1000,
      parts: PARTS,
      readings: new Map(),
    };
    this.#around = spoil?.(around) ?? around;
    const [plan] = SHIPPED_PLANS;
    const monthlyQuota = random.chance(0.5) ? 3 + random.below(6) : 1000;
    this.#callers = PARTNERS.map((partnerId) => ({
      partnerId,
      keyId: `key_of_${partnerId}`,
      scopes: SCOPES,
      plan: { ...plan!, monthlyQuota },
    }));
  }

  async run(): Promise<HistoryResult> {
    const world = this.#world;
    const { random } = world;
    world.note('world', `seed ${this.#seed}, faults: ${[...this.#faults].join(' ')}`);
    const count = 2 + random.below(2);
    for (let slot = 0; slot < count; slot += 1) {
      // Only the last process, because the first one creates the partners.
      this.#skews.push(slot === count - 1 ? this.#aheadMs : 0);
      this.#start(slot);
    }
    await world.run(
      world.now + 60_000,
      () => this.#members.filter((member) => member !== undefined).length === count,
    );
    await this.#setUp();
    if (this.#isCrowded) await this.#crowd();
    this.#weather.begin();
    const end = world.now + BAD_SECONDS * 1000;
    this.#planFaults(end);
    for (let client = 0; client < 4; client += 1) void this.#client(`client${client}`, end);
    await world.run(end);
    this.#heal();
    await world.run(world.now + 120_000, () => this.#clientsAtWork === 0);
    // Requests in flight may arrive after every repair.
    await world.run(Math.max(world.now, this.#weather.lastArrivalAt));
    await this.#recover();
    for (const member of this.#members)
      if (member?.gate.isClosed === true)
        this.#ledger.violations.push(
          `${member.process.name} waits for the end of a restore that was never begun`,
        );
    for (const process of this.#processes) world.kill(process);
    const violations = await judge(this.#around, this.#ledger);
    for (const violation of violations) world.note('VIOLATION', violation);
    const answered = this.#answered;
    return { seed: this.#seed, faults: [...this.#faults], violations, answered, lines: world.history };
  }

  /**
   * Lets the processes repair what the faults left. Nine of ten histories end as soon as nothing is left to
   * repair. The others continue, so that jobs run that wait for minutes.
   */
  async #recover(): Promise<void> {
    const world = this.#world;
    const end = world.now + this.#recoverySeconds * 1000;
    const endsAtRest = world.random.chance(0.9);
    let restingSince: number | undefined;
    while (world.now < end) {
      await world.run(Math.min(end, world.now + 5000));
      if (!endsAtRest) continue;
      restingSince = this.#isAtRest() ? (restingSince ?? world.now) : undefined;
      if (restingSince !== undefined && world.now - restingSince >= REST_SECONDS * 1000) return;
    }
  }

  /** Returns whether all events were read, and each remaining pointer leads to an id without a proof. */
  #isAtRest(): boolean {
    const { broker, database, world } = this.#around;
    return (
      broker.isRead &&
      database
        .all('pointer', world.now)
        .every(({ kind, key }) => kind === ISSUING && !database.has('record', [key]))
    );
  }

  /** Each run of the job takes over as many charges as fit into the outbox. */
  get #recoverySeconds(): number {
    const charges = [...this.#ledger.units.values()].reduce((sum, { asked }) => sum + asked, 0);
    const runs = Math.floor(charges / this.#around.outboxLimit);
    return Math.max(RECOVERY_SECONDS, TAKEOVER_SECONDS + runs * COLLECTION_SECONDS);
  }

  // ----------------------------------------------------------------------------------------------- processes

  #start(slot: number): void {
    const world = this.#world;
    this.#starts += 1;
    const process = new Process(`p${slot}.${this.#starts}`, world.now, this.#skews[slot]!);
    this.#processes[slot] = process;
    this.#members[slot] = undefined;
    world.at(world.random.between(1, 500), process, () => {
      startMember(process, this.#around).then(
        (member) => {
          this.#members[slot] = member;
          world.note(process.name, 'runs');
          if (this.#starts > this.#skews.length) this.#ledger.restarts += 1;
        },
        (error: unknown) => {
          world.note(process.name, `did not start: ${String(error)}`);
          world.kill(process);
          world.at(5000, undefined, () => this.#start(slot));
        },
      );
    });
  }

  #kill(slot: number, forMs: number): void {
    const process = this.#processes[slot]!;
    if (process.isDead) return;
    this.#world.note(process.name, `KILLED for ${(forMs / 1000).toFixed(0)} s`);
    this.#world.kill(process);
    this.#members[slot] = undefined;
    this.#world.at(forMs, undefined, () => this.#start(slot));
  }

  #planFaults(end: number): void {
    const world = this.#world;
    const { random } = world;
    const sometime = (): number => random.between(0, end - world.now);
    const slots = this.#processes.length;
    if (this.#faults.has('clock')) {
      const slot = random.below(slots);
      const size =
        random.pick([random.between(1, 30), random.between(30, 600), random.between(720, 3600)]) * 1000;
      world.at(random.chance(0.5) ? 0 : sometime(), undefined, () =>
        this.#setClock(slot, random.chance(0.7) ? size : -size),
      );
    }
    if (this.#faults.has('kill'))
      for (let i = 0; i <= random.below(6); i += 1) {
        const slot = random.below(slots);
        const forMs = random.between(1000, 120_000);
        world.at(sometime(), undefined, () => this.#kill(slot, forMs));
      }
    if (this.#faults.has('pause'))
      for (let i = 0; i <= random.below(3); i += 1) {
        const slot = random.below(slots);
        const forMs = random.pick([random.between(1000, 20_000), random.between(60_000, 300_000)]);
        world.at(sometime(), undefined, () => {
          const process = this.#processes[slot]!;
          if (process.isDead || process.isPaused) return;
          world.note(process.name, `PAUSED for ${(forMs / 1000).toFixed(0)} s`);
          world.pause(process);
          world.at(forMs, undefined, () => {
            if (process.isDead || !process.isPaused) return;
            world.note(process.name, 'goes on');
            world.resume(process);
          });
        });
      }
    const { broker } = this.#around;
    if (this.#faults.has('stuck')) {
      const topic = random.pick(broker.topics.filter((name) => !name.endsWith('.dlq')));
      const partition = random.below(4);
      world.at(sometime() / 3, undefined, () => {
        world.note('kafka', `STUCK: partition ${partition} of ${topic}`);
        broker.setStuck(topic, partition, true);
      });
      world.at(end - world.now - 1, undefined, () => {
        this.#judgeStuck();
        broker.setStuck(topic, partition, false);
      });
    }
    if (this.#faults.has('bus')) {
      world.at(sometime(), undefined, () => {
        if (!this.#weather.has('bus')) return;
        world.note('kafka', 'DOWN');
        broker.isDown = true;
        world.at(random.between(1000, 60_000), undefined, () => {
          broker.isDown = false;
          world.note('kafka', 'is back');
        });
      });
      for (let i = 0; i < 2; i += 1) world.at(sometime(), undefined, () => broker.losesMembers());
    }
  }

  /**
   * Judges the partitions that work while one partition acknowledges nothing. Each erasure that was
   * acknowledged a while ago must be announced, unless it belongs to the stuck partition.
   */
  #judgeStuck(): void {
    if (this.#faults.size > 1) return;
    const { broker, world } = this.#around;
    const topic = topicName(PREFIX, 'erasure');
    const announced = new Set(broker.messages(topic).map(({ key }) => String(key)));
    for (const { proofId, erasedAt } of this.#ledger.proofs.values())
      if (
        erasedAt !== undefined &&
        erasedAt < world.now - PUBLISHING_MS &&
        !broker.partition(topic, broker.partitionOf(proofId)).isStuck &&
        !announced.has(proofId)
      )
        this.#ledger.violations.push(
          `the erasure of ${proofId} waits for another partition that acknowledges nothing`,
        );
  }

  #setClock(slot: number, skewMs: number): void {
    this.#skews[slot] = skewMs;
    const process = this.#processes[slot]!;
    process.skewMs = skewMs;
    this.#world.note(process.name, `CLOCK ${(skewMs / 1000).toFixed(0)} s off`);
  }

  #heal(): void {
    const world = this.#world;
    world.note('world', 'all faults end');
    this.#weather.heal();
    this.#around.broker.isDown = false;
    for (const [slot, process] of this.#processes.entries()) {
      if (this.#skews[slot] !== 0) this.#setClock(slot, 0);
      if (process.isPaused) world.resume(process);
    }
  }

  // ------------------------------------------------------------------------------------------------- clients

  async #setUp(): Promise<void> {
    let isDone = false;
    const work = async (): Promise<void> => {
      for (const { partnerId } of this.#callers) {
        const createdAt = Math.floor(this.#world.now / 1000);
        await this.#call(0, ({ stores }) =>
          stores.createPartner(
            { partnerId, name: partnerId, plan: 'trial', createdAt },
            { partnerId, action: 'partner_created', at: createdAt, actor: 'operator', subjects: [partnerId] },
          ),
        );
        for (let i = 0; i < 2; i += 1) {
          const made = await this.#call(0, ({ operations }) =>
            operations.operator.createKey({ partnerId, name: 'live' }),
          );
          if (made.outcome === 'done') {
            this.#apiKeys.set(made.value.keyId, made.value.apiKey);
            this.#ledger.keys.set(made.value.keyId, { partnerId });
          }
        }
      }
      isDone = true;
    };
    void work();
    await this.#world.run(this.#world.now + 60_000, () => isDone);
    if (!isDone) throw new Error('the partners could not be made, without any fault');
  }

  /**
   * Plays a crowd without other faults. Clients of one partner create cases of another partner's proof as
   * fast as possible. The proof must be erased nevertheless.
   */
  async #crowd(): Promise<void> {
    const world = this.#world;
    const [owner, other] = this.#callers as [Caller, Caller];
    const name = 'crowd';
    let isDone = false;
    const work = async (): Promise<void> => {
      await this.#issue(name, owner);
      const [facts] = this.#ledger.ownProofs(owner.partnerId);
      if (facts === undefined) throw new Error('a proof could not be issued, without any fault');
      let count = 0;
      const isOver = (): boolean => facts.erasedAt !== undefined || count >= CROWD_MOST;
      const make = async (): Promise<void> => {
        while (!isOver()) await this.#createReview(name, other, facts, `crowd-${count++}`);
      };
      const crowd = Array.from({ length: CROWD_CLIENTS }, make);
      while (count < CROWD_FIRST) await world.sleep(5);
      const eraseAskedAt = world.now;
      await this.#erase(name, owner, facts);
      if (facts.erasedAt === undefined || world.now - eraseAskedAt > CROWD_MS)
        this.#ledger.violations.push(
          `the erasure of ${facts.proofId} was held up by cases of another partner`,
        );
      await Promise.all(crowd);
      isDone = true;
    };
    void work();
    await world.run(world.now + 120_000, () => isDone);
  }

  /** Calls a process. Returns its answer, if one comes within the client's patience. */
  #call<Value>(slot: number, work: (member: Member) => Promise<Value>): Promise<Answer<Value>> {
    const world = this.#world;
    const sentAt = world.now;
    return new Promise((resolve) => {
      const member = this.#members[slot];
      if (member === undefined)
        return void world.at(10, undefined, () =>
          resolve({ outcome: 'refused', code: 'no_connection', reason: undefined, sentAt }),
        );
      const timer = world.at(CALL_MS, undefined, () => resolve({ outcome: 'unknown', sentAt }));
      const answer = (given: Answer<Value>): void =>
        void world.at(0.5, undefined, () => {
          cancel(timer);
          resolve(given);
        });
      world.at(0.5, member.process, () => {
        if (!member.isReady())
          return answer({ outcome: 'refused', code: 'no_connection', reason: 'not_ready', sentAt });
        work(member).then(
          (value) => answer({ outcome: 'done', value, sentAt }),
          (error: unknown) => {
            if (error instanceof DomainError) {
              const { code, reason } = error;
              // The outcome of an unfinished call is unknown.
              if (code === 'unavailable' || code === 'internal')
                return answer({ outcome: 'unknown', sentAt });
              return answer({ outcome: 'refused', code, reason, sentAt });
            }
            this.#ledger.violations.push(
              `a call ended in ${error instanceof Error ? error.stack : String(error)}`,
            );
            return answer({ outcome: 'unknown', sentAt });
          },
        );
      });
    });
  }

  /**
   * Repeats a call until it is answered or the client gives up.
   * @param saw called each time the call reached a process
   */
  async #insist<Value>(
    who: string,
    what: string,
    work: (member: Member) => Promise<Value>,
    saw: (seen: Seen<Value>) => void = () => undefined,
  ): Promise<Answer<Value>> {
    const world = this.#world;
    const { random } = world;
    const patience = random.chance(0.4) ? 0 : 6;
    const sentAt = world.now;
    for (let attempt = 0; ; attempt += 1) {
      const slot = random.below(this.#members.length);
      const answer = await this.#call(slot, work);
      const words =
        answer.outcome === 'done'
          ? 'done'
          : answer.outcome === 'refused'
            ? `refused: ${answer.code} ${answer.reason ?? ''}`
            : 'no answer';
      world.note(who, `${what} at ${this.#processes[slot]!.name}: ${words}`);
      if (!isUnsent(answer)) saw(this.#seen(answer));
      if (answer.outcome === 'done') {
        this.#answered += 1;
        return { ...answer, sentAt };
      }
      if (answer.outcome === 'refused' && !isUnsent(answer)) return { ...answer, sentAt };
      if (attempt >= patience) return { outcome: 'unknown', sentAt };
      await world.sleep(random.between(500, 20_000));
    }
  }

  /** Returns a call as its client saw it. Its answer has just come. */
  #seen<Value>(answer: Answer<Value>): Seen<Value> {
    const { outcome, sentAt } = answer;
    if (outcome === 'unknown') return { sentAt };
    const result = outcome === 'done' ? answer.value : new Refusal(answer.code, answer.reason);
    return { sentAt, answer: { at: this.#world.now, result } };
  }

  async #client(name: string, end: number): Promise<void> {
    const world = this.#world;
    const { random } = world;
    this.#clientsAtWork += 1;
    const caller = random.pick(this.#callers);
    await world.sleep(random.between(0, 10_000));
    while (world.now < end) {
      await this.#act(name, caller);
      await world.sleep(random.pick([random.between(1, 200), random.between(1000, 40_000)]));
    }
    this.#clientsAtWork -= 1;
  }

  async #act(name: string, caller: Caller): Promise<void> {
    const { random } = this.#world;
    const own = this.#ledger.ownProofs(caller.partnerId);
    const all = [...this.#ledger.proofs.values()].filter(({ issuedAt }) => issuedAt !== undefined);
    const dice = random.unit();
    if (own.length === 0 || dice < 0.2) return this.#issue(name, caller);
    if (dice < 0.35) return this.#erase(name, caller, random.pick(own));
    if (dice < 0.5) return this.#verify(name, caller, random.pick(all));
    if (dice < 0.62) return this.#createReview(name, caller, random.pick(all));
    if (dice < 0.65) return this.#createReviewOnce(name, caller, random.pick(all));
    if (dice < 0.8) return this.#changeReview(name, caller);
    if (dice < 0.88) return this.#read(name, caller, random.pick(own));
    if (dice < 0.92) return this.#rotate(name, caller);
    if (dice < 0.94) return this.#useKey(name, caller);
    if (dice < 0.96) return this.#readUsage(name, caller);
    if (dice < 0.97) return this.#revokeLastKeys(name);
    return this.#revoke(name, caller);
  }

  async #issue(name: string, { partnerId }: Caller): Promise<void> {
    const { random } = this.#world;
    const ledger = this.#ledger;
    const number = ledger.count();
    const used = ledger.idempotencyKeys;
    const reused = used.length > 0 && random.chance(0.2) ? random.pick(used) : undefined;
    const key =
      reused?.partnerId === partnerId
        ? reused
        : random.chance(0.5)
          ? { key: `idempotency-${number}`, partnerId, song: `song ${number}` }
          : undefined;
    if (key !== undefined && key !== reused) used.push(key);
    // Some calls use another song under a used key.
    const song = key === undefined || random.chance(0.1) ? `song ${number}` : key.song;
    const answer = await this.#insist(
      name,
      `issue ${song}${key === undefined ? '' : ` under ${key.key}`}`,
      (member) =>
        member.operations.operator.issueProof({
          partnerId,
          songTitle: song,
          fileName: 'song.bin',
          carrier: 'sidecar',
          audio: audioOf(song),
          ...(key && { idempotencyKey: key.key }),
        }),
      (seen) => {
        if (key === undefined) return;
        const operation = operationOf({ song }, seen, (result) => {
          if (!(result instanceof Refusal)) return { proofId: result.proofId };
          return result.reason === undefined || result.reason === 'idempotency_in_progress'
            ? undefined
            : { refused: result.reason };
        });
        ledger.witness.issuing(key.key, operation);
      },
    );
    if (answer.outcome !== 'done') return;
    const { proofId } = answer.value;
    const facts = ledger.proof(proofId, partnerId);
    facts.issuedAt ??= this.#world.now;
    const read = await this.#insist(
      name,
      `keep the sidecar of ${proofId}`,
      ({ stores }) => stores.getProof(proofId),
      (seen) => this.#sawProof(proofId, seen, (proof) => proof?.state === 'issued'),
    );
    if (read.outcome !== 'done' || read.value?.state !== 'issued') return;
    facts.sidecar = read.value.sidecar;
    facts.sha256 = read.value.boundAudioSha256;
    facts.bytes = read.value.asset.bytes;
  }

  /**
   * Records whether a call saw the proof.
   * @param isThere returns undefined if the answer leaves it open
   */
  #sawProof<Value>(
    proofId: string,
    seen: Seen<Value>,
    isThere: (result: Value) => boolean | undefined,
    whereRefused: (refusal: Refusal) => boolean | undefined = ({ code }) =>
      code === 'not_found' ? false : undefined,
  ): void {
    const operation = operationOf({ does: 'look' } as const, seen, (result) => {
      const isSeen = result instanceof Refusal ? whereRefused(result) : isThere(result);
      return isSeen === undefined ? undefined : { seen: isSeen };
    });
    this.#ledger.witness.proof(proofId, operation);
  }

  async #erase(name: string, caller: Caller, facts: ProofFacts): Promise<void> {
    const { proofId } = facts;
    facts.eraseAskedAt ??= this.#world.now;
    const answer = await this.#insist(
      name,
      `erase ${proofId}`,
      ({ operations }) => operations.partner.eraseProof(caller, { proofId }),
      (seen) => {
        const operation = operationOf({ does: 'erase' } as const, seen, (result) =>
          result instanceof Refusal
            ? // A refusal is wrong for the owner of the proof.
              { seen: false }
            : { outcome: result.outcome, erasedAt: result.erasedAt },
        );
        this.#ledger.witness.proof(proofId, operation);
      },
    );
    if (answer.outcome !== 'done') return;
    facts.erasedAt ??= this.#world.now;
    if (!this.#around.bucket.hasJournalled(proofId))
      this.#ledger.violations.push(`the erasure of ${proofId} was acknowledged before the journal had it`);
  }

  async #verify(name: string, caller: Caller, facts: ProofFacts): Promise<void> {
    const { proofId, sidecar, sha256, bytes } = facts;
    if (sidecar === undefined || sha256 === undefined || bytes === undefined) return;
    const ledger = this.#ledger;
    const uploadId = `upl_${ledger.count()}`;
    const { partnerId } = caller;
    const at = Math.floor(this.#world.now / 1000);
    const slot = { uploadId, partnerId, purpose: 'verify' as const, createdAt: at, expiresAt: at + 900 };
    const uploaded = await this.#insist(name, `upload ${uploadId}`, async ({ stores }) => {
      await stores.createSlot(slot);
      return stores.putFacts({
        uploadId,
        partnerId,
        purpose: 'verify',
        uploadedAt: at,
        expiresAt: at + 3600,
        measurement: {
          bytes,
          sha256,
          container: 'flac',
          chunkCount: 0,
          findings: [],
          broadcastWave: false,
        },
      });
    });
    if (uploaded.outcome !== 'done') return;
    const unit = ledger.unit(partnerId, caller.plan.monthlyQuota);
    unit.asked += 1;
    const answer = await this.#insist(
      name,
      `verify ${uploadId} against ${proofId}`,
      ({ operations }) => operations.partner.verifyUpload({ ...caller }, { uploadId, sidecar }),
      (seen) => this.#sawProof(proofId, seen, ({ verdict }) => verdict === 'valid'),
    );
    // An upload is billed once, however often it is verified.
    const billed = operationOf({ does: 'verify', uploadId } as const, this.#seen(answer), (result) => {
      if (!(result instanceof Refusal)) return { done: true } as const;
      return result.reason === 'quota_exceeded' ? { refused: result.reason } : undefined;
    });
    ledger.witness.quota(partnerId, caller.plan.monthlyQuota, billed);
    if (answer.outcome === 'done') unit.acknowledged += 1;
  }

  async #readUsage(name: string, caller: Caller): Promise<void> {
    const { partnerId, plan } = caller;
    await this.#insist(
      name,
      'read the usage',
      ({ operations }) => operations.partner.readUsage({ ...caller }, { days: 1 }),
      (seen) => {
        const operation = operationOf({ does: 'read' } as const, seen, (result) =>
          result instanceof Refusal ? undefined : { used: result.used },
        );
        this.#ledger.witness.quota(partnerId, plan.monthlyQuota, operation);
      },
    );
  }

  async #createReview(
    name: string,
    caller: Caller,
    { proofId }: ProofFacts,
    submissionId = `submission-${this.#world.random.below(2)}`,
  ): Promise<void> {
    const { witness, reviews } = this.#ledger;
    const { partnerId } = caller;
    const bindings = { creatorId: 'creator', accountId: 'account', submissionId, trackId: 'track' };
    const place = `${partnerId} ${proofId} ${submissionId}`;
    const answer = await this.#insist(
      name,
      `create a case of ${proofId} for ${submissionId}`,
      ({ operations }) => operations.partner.createReview(caller, { proofId, bindings }),
      (seen) => {
        const operation = operationOf({ does: 'create' } as const, seen, (result) =>
          result instanceof Refusal
            ? { refused: result.reason ?? result.code }
            : { reviewId: result.reviewId },
        );
        witness.place(place, proofId, operation);
        this.#sawProof(
          proofId,
          seen,
          () => true,
          ({ code, reason }) =>
            reason === 'review_exists' ? true : code === 'not_found' ? false : undefined,
        );
      },
    );
    if (answer.outcome !== 'done') return;
    const { reviewId } = answer.value;
    reviews.set(reviewId, { reviewId, proofId, partnerId, place, requests: new Map() });
  }

  /**
   * Creates a case under an Idempotency-Key, resolves it, and repeats the creation. The key must return the
   * first case. No other call uses its bindings.
   */
  async #createReviewOnce(name: string, caller: Caller, { proofId }: ProofFacts): Promise<void> {
    const { violations } = this.#ledger;
    const idempotencyKey = `review-${this.#ledger.count()}`.padEnd(16, '-');
    const create = (trackId: string) =>
      this.#insist(name, `create a case of ${proofId} under ${idempotencyKey}`, ({ operations }) =>
        operations.partner.createReview(caller, {
          proofId,
          bindings: { creatorId: 'creator', accountId: 'account', submissionId: idempotencyKey, trackId },
          idempotencyKey,
        }),
      );
    const first = await create('track');
    if (first.outcome !== 'done') return;
    const { reviewId } = first.value;
    await this.#insist(name, `resolve ${reviewId} as rejected`, ({ operations }) =>
      operations.partner.resolveReview(caller, { reviewId, outcome: 'rejected' }),
    );
    const again = await create('track');
    if (again.outcome === 'done' && again.value.reviewId !== reviewId)
      violations.push(`${idempotencyKey} made the cases ${reviewId} and ${again.value.reviewId}`);
    if (again.outcome === 'refused' && again.code === 'conflict')
      violations.push(`${idempotencyKey} was refused to its own data: ${again.reason}`);
    const other = await create('another');
    if (other.outcome === 'done') violations.push(`${idempotencyKey} was given other data`);
  }

  async #changeReview(name: string, caller: Caller): Promise<void> {
    const { random } = this.#world;
    const reviews = [...this.#ledger.reviews.values()].filter(
      ({ partnerId }) => partnerId === caller.partnerId,
    );
    if (reviews.length === 0) return;
    const review = random.pick(reviews);
    const { reviewId, proofId, place } = review;
    const [requestId, kind] =
      review.requests.size > 0 ? random.pick([...review.requests]) : [undefined, undefined];
    const dice = random.unit();
    if (dice < 0.1) {
      await this.#callReview(name, `read ${reviewId}`, review, { does: 'read' }, ({ operations }) =>
        operations.partner.readReview(caller, { reviewId }),
      );
    } else if (dice < 0.4 || requestId === undefined) {
      const wanted = random.pick(EVIDENCE_KINDS);
      await this.#callReview(
        name,
        `open ${wanted} in ${reviewId}`,
        review,
        { does: 'open', kind: wanted },
        ({ operations }) => operations.partner.openEvidence(caller, { reviewId, kind: wanted }),
      );
    } else if (dice < 0.6) {
      await this.#callReview(
        name,
        `supply ${requestId}`,
        review,
        { does: 'supply', kind },
        ({ operations }) => operations.operator.supplyEvidence({ reviewId, requestId }),
      );
    } else if (dice < 0.75) {
      const status = random.pick(['accepted', 'declined'] as const);
      await this.#callReview(
        name,
        `close ${requestId} as ${status}`,
        review,
        { does: status === 'accepted' ? 'accept' : 'decline', kind },
        ({ operations }) => operations.partner.closeEvidence(caller, { reviewId, requestId, status }),
      );
    } else {
      const outcome = random.pick(REVIEW_OUTCOMES);
      await this.#callReview(
        name,
        `resolve ${reviewId} as ${outcome}`,
        review,
        { does: 'resolve', outcome },
        ({ operations }) => operations.partner.resolveReview(caller, { reviewId, outcome }),
        (seen) => {
          if (outcome === 'held' || seen.answer?.result instanceof Refusal) return;
          const operation = operationOf(
            { does: 'resolve', reviewId } as const,
            seen,
            () => ({ outcome: 'accepted' }) as const,
          );
          this.#ledger.witness.place(place, proofId, operation);
        },
      );
    }
  }

  /**
   * Makes a call on a review.
   * @param saw called with the answer of each attempt
   */
  async #callReview(
    name: string,
    what: string,
    review: ReviewFacts,
    call: ReviewCall,
    work: (member: Member) => Promise<ReviewView>,
    saw: (seen: Seen<ReviewView>) => void = () => undefined,
  ): Promise<void> {
    const answer = await this.#insist(name, what, work, (seen) => {
      const operation = operationOf(
        call,
        seen,
        (result): ReviewResult =>
          result instanceof Refusal
            ? { refused: result.reason ?? result.code }
            : { state: reviewStateOf(result) },
      );
      this.#ledger.witness.review(review, operation);
      saw(seen);
    });
    if (answer.outcome !== 'done') return;
    for (const { requestId, kind } of answer.value.evidenceRequests) review.requests.set(requestId, kind);
  }

  async #read(name: string, caller: Caller, { proofId }: ProofFacts): Promise<void> {
    await this.#insist(
      name,
      `read ${proofId}`,
      ({ operations }) => operations.partner.readProof(caller, { proofId }),
      (seen) => this.#sawProof(proofId, seen, () => true),
    );
  }

  /** Returns a key of the caller's partner that clients know, with its secret. */
  #knownKey({ partnerId }: Caller): { readonly keyId: string; readonly apiKey: string } | undefined {
    const known = [...this.#apiKeys].filter(
      ([keyId]) => this.#ledger.keys.get(keyId)?.partnerId === partnerId,
    );
    if (known.length === 0) return undefined;
    const [keyId, apiKey] = this.#world.random.pick(known);
    return { keyId, apiKey };
  }

  async #rotate(name: string, caller: Caller): Promise<void> {
    const key = this.#knownKey(caller);
    if (key === undefined) return;
    const { keyId, apiKey } = key;
    const idempotencyKey = `rotation-of-the-key-${this.#world.random.below(2)}`;
    await this.#insist(
      name,
      `rotate ${keyId}`,
      async ({ operations: { partner } }) =>
        partner.rotateKey(await partner.authenticate(apiKey), apiKey, idempotencyKey),
      (seen) => {
        const operation = operationOf({ does: 'rotate', idempotencyKey } as const, seen, (result) => {
          if (!(result instanceof Refusal)) return { successor: result.keyId };
          if (result.code === 'forbidden') return { refused: 'forbidden' };
          return result.reason === 'already_rotated' ? { refused: result.reason } : undefined;
        });
        this.#ledger.witness.key(keyId, operation);
      },
    );
  }

  async #useKey(name: string, caller: Caller): Promise<void> {
    const key = this.#knownKey(caller);
    if (key === undefined) return;
    const { keyId, apiKey } = key;
    await this.#insist(
      name,
      `use ${keyId}`,
      ({ operations }) => operations.partner.authenticate(apiKey),
      (seen) => {
        const operation = operationOf({ does: 'use' } as const, seen, (result) =>
          result instanceof Refusal ? { refused: result.code } : ({ done: true } as const),
        );
        this.#ledger.witness.key(keyId, operation);
      },
    );
  }

  /**
   * Revokes the keys of a new partner at once at several processes. The keys revoke themselves or each other,
   * or one key is rotated while another revokes it with its successors. The operator revokes none of them.
   */
  async #revokeLastKeys(name: string): Promise<void> {
    const { random } = this.#world;
    const ledger = this.#ledger;
    const made = await this.#insist(name, 'create a partner', ({ operations }) =>
      operations.operator.createPartner({ name: 'keys', plan: 'trial' }),
    );
    if (made.outcome !== 'done') return;
    const { partnerId } = made.value;
    const keys: { readonly keyId: string; readonly apiKey: string }[] = [];
    for (let i = 0; i < 2; i += 1) {
      const key = await this.#insist(name, `create a key of ${partnerId}`, ({ operations }) =>
        operations.operator.createKey({ partnerId, name: 'own' }),
      );
      if (key.outcome !== 'done') return;
      keys.push(key.value);
    }
    const [first, second] = keys as [(typeof keys)[0], (typeof keys)[0]];
    ledger.selfRevoking.set(partnerId, []);
    const revoke = (by: typeof first, keyId: string, successors = false) =>
      this.#insist(name, `revoke ${keyId} by ${by.keyId}`, async ({ operations: { partner } }) =>
        partner.revokeOwnKey(await partner.authenticate(by.apiKey), { keyId, successors }),
      );
    const dice = random.unit();
    if (dice < 0.4) await Promise.all([revoke(first, first.keyId), revoke(second, second.keyId)]);
    else if (dice < 0.7) await Promise.all([revoke(first, second.keyId), revoke(second, first.keyId)]);
    else {
      const rotate = this.#insist(name, `rotate ${first.keyId}`, async ({ operations: { partner } }) =>
        partner.rotateKey(
          await partner.authenticate(first.apiKey),
          first.apiKey,
          'rotation-by-another-person',
        ),
      );
      const [ended] = await Promise.all([
        revoke(second, first.keyId, true),
        rotate,
        revoke(second, second.keyId),
      ]);
      if (ended.outcome === 'done') ledger.selfRevoking.get(partnerId)!.push(first.keyId);
    }
  }

  async #revoke(name: string, caller: Caller): Promise<void> {
    const key = this.#knownKey(caller);
    if (key === undefined) return;
    const { keyId } = key;
    const answer = await this.#insist(
      name,
      `revoke ${keyId}`,
      ({ operations }) => operations.operator.revokeKey({ partnerId: caller.partnerId, keyId }),
      (seen) => {
        const operation = operationOf({ does: 'revoke' } as const, seen, (result) =>
          result instanceof Refusal ? undefined : ({ done: true } as const),
        );
        this.#ledger.witness.key(keyId, operation);
      },
    );
    if (answer.outcome === 'done') this.#ledger.keys.get(keyId)!.revoked = true;
  }
}

/** Returns whether the call reached no process. */
function isUnsent(answer: Answer<unknown>): boolean {
  return answer.outcome === 'refused' && answer.code === 'no_connection';
}

async function* audioOf(song: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`no audio, but the bytes of ${song}`);
}
