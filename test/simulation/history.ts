import { isDeepStrictEqual } from 'node:util';
import { migrate } from '../../src/adapters/cassandra/driver/migrations.js';
import { allNames, topicName } from '../../src/adapters/kafka/topic-names.js';
import { DomainError } from '../../src/domain/errors.js';
import { SCOPES, SHIPPED_PLANS } from '../../src/domain/partner.js';
import { EVIDENCE_KINDS, REVIEW_OUTCOMES } from '../../src/domain/review.js';
import type { Caller } from '../../src/operations/caller.js';
import type { Signer, TrustList } from '../../src/ports/signing.js';
import { Broker } from './broker.js';
import { Bucket } from './bucket.js';
import { immediateClient } from './client.js';
import { Database } from './database.js';
import { judge } from './judge.js';
import { Ledger, type ProofFacts } from './ledger.js';
import type { Machine } from './machine.js';
import { KEYSPACE, type Member, PREFIX, type Surroundings, startMember } from './member.js';
import { FAULTS, type Fault, Weather } from './weather.js';
import { cancel, Process, type World } from './world.js';

/** Things that all histories share: nothing of it changes. */
export interface Stage {
  readonly machine: Machine;
  /** A migrated keyspace without rows. */
  readonly database: Database;
  readonly signing: { readonly signer: Signer; readonly trust: TrustList };
}

export interface HistoryOptions {
  /** Kinds of faults from which each history takes some; all by default. */
  readonly faults?: readonly Fault[];
  /** Changes what the history runs over: for tests, which plant defects. */
  readonly spoil?: (around: Surroundings) => Surroundings;
}

export interface HistoryResult {
  readonly seed: number;
  readonly faults: readonly Fault[];
  readonly violations: readonly string[];
  /** Calls that clients were answered with success. */
  readonly answered: number;
  readonly lines: readonly string[];
}

/** A keyspace as the product's own migrations make it. */
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
/** Seconds in which clients call and faults happen. */
const BAD_SECONDS = 240;
/** Longest time for which a request may be under way, and what the product needs to find what was left. */
const LATE_SECONDS = 400;
const RECOVERY_SECONDS = 420;
const CALL_MS = 30_000;
/** Time in which an event is on the bus when nothing hinders it. */
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

/** Plays a history from its seed: processes, clients, faults, healing, recovery, judgement. */
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
    { faults = FAULTS, spoil }: HistoryOptions,
  ) {
    const { random } = world;
    this.#world = world;
    this.#seed = seed;
    // A history with one kind of fault says more than one with all of them.
    const share = random.pick([0.15, 0.3, 0.6]);
    const chosen = faults.filter(() => random.chance(share));
    this.#faults = new Set(chosen.length > 0 ? chosen : [random.pick(faults)]);
    this.#weather = new Weather(world, this.#faults);
    const around: Surroundings = {
      world,
      weather: this.#weather,
      database: new Database(database),
      broker: new Broker(world, this.#weather, allNames(PREFIX)),
      bucket: new Bucket(world, this.#weather),
      signing,
      // Now and then so few that calls meet the bound.
      outboxLimit: random.chance(0.5) ? 1 + random.below(2) : 1000,
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
      this.#skews.push(0);
      this.#start(slot);
    }
    await world.run(
      world.now + 60_000,
      () => this.#members.filter((member) => member !== undefined).length === count,
    );
    await this.#setUp();
    this.#weather.begin();
    const end = world.now + BAD_SECONDS * 1000;
    this.#planFaults(end);
    for (let client = 0; client < 4; client += 1) void this.#client(`client${client}`, end);
    await world.run(end);
    this.#heal();
    await world.run(world.now + 120_000, () => this.#clientsAtWork === 0);
    await world.run(end + (this.#faults.has('late') || this.#faults.has('double') ? LATE_SECONDS * 1000 : 0));
    await world.run(world.now + RECOVERY_SECONDS * 1000);
    for (const process of this.#processes) world.kill(process);
    const violations = await judge(this.#around, this.#ledger);
    for (const violation of violations) world.note('VIOLATION', violation);
    const answered = this.#answered;
    return { seed: this.#seed, faults: [...this.#faults], violations, answered, lines: world.history };
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
   * Tells, while one partition takes nothing and all else is well, whether the others get what is theirs: each
   * erasure that was acknowledged a while ago has been announced, unless its own partition is the one.
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
          `the erasure of ${proofId} waits behind another partition that takes nothing`,
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
            this.#ledger.keys.set(made.value.keyId, {
              partnerId,
              successors: new Set(),
              rotationAsked: false,
            });
          }
        }
      }
      isDone = true;
    };
    void work();
    await this.#world.run(this.#world.now + 60_000, () => isDone);
    if (!isDone) throw new Error('the partners could not be made, without any fault');
  }

  /** A call of a process over HTTP: what it answers, if anything does within the client's patience. */
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
              // Nobody knows what became of a call that could not be finished.
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

  /** The same call until it is answered, or the client gives up. */
  async #insist<Value>(
    who: string,
    what: string,
    work: (member: Member) => Promise<Value>,
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
      if (answer.outcome === 'done') {
        this.#answered += 1;
        return { ...answer, sentAt };
      }
      if (answer.outcome === 'refused' && answer.code !== 'no_connection') return { ...answer, sentAt };
      if (attempt >= patience) return { outcome: 'unknown', sentAt };
      await world.sleep(random.between(500, 20_000));
    }
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
    if (dice < 0.65) return this.#createReview(name, caller, random.pick(all));
    if (dice < 0.8) return this.#changeReview(name, caller);
    if (dice < 0.88) return this.#read(name, caller, random.pick(own));
    if (dice < 0.94) return this.#rotate(name, caller);
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
          ? { key: `idempotency-${number}`, partnerId, song: `song ${number}`, proofs: new Set<string>() }
          : undefined;
    if (key !== undefined && key !== reused) used.push(key);
    const song = key?.song ?? `song ${number}`;
    const answer = await this.#insist(
      name,
      `issue ${song}${key === undefined ? '' : ` under ${key.key}`}`,
      async (member) => {
        const issued = await member.operations.operator.issueProof({
          partnerId,
          songTitle: song,
          fileName: 'song.bin',
          carrier: 'sidecar',
          audio: audioOf(song),
          ...(key && { idempotencyKey: key.key }),
        });
        return issued;
      },
    );
    if (answer.outcome !== 'done') return;
    const { proofId } = answer.value;
    key?.proofs.add(proofId);
    const facts = ledger.proof(proofId, partnerId);
    facts.issuedAt ??= this.#world.now;
    const read = await this.#insist(name, `keep the sidecar of ${proofId}`, ({ stores }) =>
      stores.getProof(proofId),
    );
    if (read.outcome !== 'done' || read.value?.state !== 'issued') {
      if (read.outcome === 'done' && facts.eraseAskedAt === undefined)
        ledger.violations.push(`issued ${proofId} was acknowledged and could not be read right after`);
      return;
    }
    facts.sidecar = read.value.sidecar;
    facts.sha256 = read.value.boundAudioSha256;
    facts.bytes = read.value.asset.bytes;
  }

  async #erase(name: string, caller: Caller, facts: ProofFacts): Promise<void> {
    const { proofId } = facts;
    facts.eraseAskedAt ??= this.#world.now;
    const answer = await this.#insist(name, `erase ${proofId}`, ({ operations }) =>
      operations.partner.eraseProof(caller, { proofId }),
    );
    if (answer.outcome === 'done') facts.erasedAt ??= this.#world.now;
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
          container: 'unknown',
          chunkCount: 0,
          findings: [],
          broadcastWave: false,
        },
      });
    });
    if (uploaded.outcome !== 'done') return;
    const unit = ledger.unit(partnerId, caller.plan.monthlyQuota);
    unit.asked += 1;
    const answer = await this.#insist(name, `verify ${uploadId} against ${proofId}`, ({ operations }) =>
      operations.partner.verifyUpload({ ...caller }, { uploadId, sidecar }),
    );
    if (answer.outcome !== 'done') return;
    unit.acknowledged += 1;
    const isValid = answer.value.verdict === 'valid';
    if (isValid && facts.erasedAt !== undefined && facts.erasedAt < answer.sentAt)
      ledger.violations.push(
        `${proofId} was verified as valid by a call that began after its erasure was acknowledged`,
      );
    if (!isValid && facts.eraseAskedAt === undefined)
      ledger.violations.push(`${proofId} was verified as ${answer.value.verdict}, and nobody has erased it`);
  }

  async #createReview(name: string, caller: Caller, { proofId, erasedAt }: ProofFacts): Promise<void> {
    const ledger = this.#ledger;
    const submissionId = `submission-${this.#world.random.below(2)}`;
    const bindings = { creatorId: 'creator', accountId: 'account', submissionId, trackId: 'track' };
    const answer = await this.#insist(
      name,
      `create a case of ${proofId} for ${submissionId}`,
      ({ operations }) => operations.partner.createReview(caller, { proofId, bindings }),
    );
    if (answer.outcome !== 'done') return;
    const { reviewId } = answer.value;
    ledger.reviews.set(reviewId, {
      reviewId,
      proofId,
      partnerId: caller.partnerId,
      submissionId,
      requests: new Set(),
    });
    if (erasedAt !== undefined && erasedAt < answer.sentAt)
      ledger.violations.push(`case ${reviewId} was created after the erasure of ${proofId} was acknowledged`);
  }

  async #changeReview(name: string, caller: Caller): Promise<void> {
    const { random } = this.#world;
    const reviews = [...this.#ledger.reviews.values()].filter(
      ({ partnerId }) => partnerId === caller.partnerId,
    );
    if (reviews.length === 0) return;
    const review = random.pick(reviews);
    const { reviewId } = review;
    const requestId = review.requests.size > 0 ? random.pick([...review.requests]) : undefined;
    const dice = random.unit();
    if (dice < 0.4 || requestId === undefined) {
      const kind = random.pick(EVIDENCE_KINDS);
      const answer = await this.#insist(name, `open ${kind} in ${reviewId}`, ({ operations }) =>
        operations.partner.openEvidence(caller, { reviewId, kind }),
      );
      if (answer.outcome === 'done')
        for (const request of answer.value.evidenceRequests) review.requests.add(request.requestId);
    } else if (dice < 0.6) {
      await this.#insist(name, `supply ${requestId}`, ({ operations }) =>
        operations.operator.supplyEvidence({ reviewId, requestId }),
      );
    } else if (dice < 0.75) {
      const status = random.pick(['accepted', 'declined'] as const);
      const answer = await this.#insist(name, `close ${requestId} as ${status}`, ({ operations }) =>
        operations.partner.closeEvidence(caller, { reviewId, requestId, status }),
      );
      if (answer.outcome === 'done') this.#ledger.finals.set(requestId, { reviewId, status });
    } else {
      const outcome = random.pick(REVIEW_OUTCOMES);
      const answer = await this.#insist(name, `resolve ${reviewId} as ${outcome}`, ({ operations }) =>
        operations.partner.resolveReview(caller, { reviewId, outcome }),
      );
      if (answer.outcome === 'done' && outcome !== 'held') {
        if (review.outcome !== undefined && !isDeepStrictEqual(review.outcome, outcome))
          this.#ledger.violations.push(
            `case ${reviewId} was resolved as ${review.outcome} and as ${outcome}`,
          );
        review.outcome = outcome;
      }
    }
  }

  async #read(name: string, caller: Caller, facts: ProofFacts): Promise<void> {
    const { proofId } = facts;
    const answer = await this.#insist(name, `read ${proofId}`, ({ operations }) =>
      operations.partner.readProof(caller, { proofId }),
    );
    const isThere = answer.outcome === 'done';
    if (isThere && facts.erasedAt !== undefined && facts.erasedAt < answer.sentAt)
      this.#ledger.violations.push(
        `${proofId} was read by a call that began after its erasure was acknowledged`,
      );
    if (answer.outcome === 'refused' && facts.eraseAskedAt === undefined)
      this.#ledger.violations.push(`${proofId} could not be read (${answer.code}), and nobody has erased it`);
  }

  async #rotate(name: string, caller: Caller): Promise<void> {
    const { random } = this.#world;
    const keys = [...this.#ledger.keys].filter(
      ([keyId, { partnerId }]) => partnerId === caller.partnerId && this.#apiKeys.has(keyId),
    );
    if (keys.length === 0) return;
    const [keyId, facts] = random.pick(keys);
    facts.rotationAsked = true;
    const idempotencyKey = `rotation-of-the-key-${random.below(2)}`;
    const answer = await this.#insist(name, `rotate ${keyId}`, ({ operations }) =>
      operations.partner.rotateKey({ ...caller, keyId }, this.#apiKeys.get(keyId)!, idempotencyKey),
    );
    if (answer.outcome !== 'done') return;
    facts.successors.add(answer.value.keyId);
    if (facts.successors.size > 1) this.#ledger.violations.push(`${keyId} has two successors`);
  }

  async #revoke(name: string, caller: Caller): Promise<void> {
    const { random } = this.#world;
    const keys = [...this.#ledger.keys].filter(([, { partnerId }]) => partnerId === caller.partnerId);
    if (keys.length < 1) return;
    const [keyId, facts] = random.pick(keys);
    const answer = await this.#insist(name, `revoke ${keyId}`, ({ operations }) =>
      operations.operator.revokeKey({ partnerId: caller.partnerId, keyId }),
    );
    if (answer.outcome === 'done') facts.revoked = true;
  }
}

async function* audioOf(song: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`no audio, but the bytes of ${song}`);
}
