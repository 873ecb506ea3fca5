import { decodeMessagePackStrict } from '../../../src/core/codec/messagepack.js';
import { defined } from '../../../src/core/domain/defined.js';
import { topicName } from '../../../src/service/adapters/kafka/topic-names.js';
import { type AuditEntry, AuditWalk } from '../../../src/service/domain/audit.js';
import { TOPICS } from '../../../src/service/domain/events.js';
import { REVIEW_LIFE_SECONDS } from '../../../src/service/domain/review.js';
import type { ReviewPlace, Stores } from '../../../src/service/ports/stores.js';
import { NAMING_PROOFS } from '../cluster/tables.js';
import type { Ledger, ProofFacts } from './ledger.js';
import { openStores, PREFIX, type Surroundings, secrets } from './member.js';
import { Process } from './world.js';

/** Actions that an audit log may have at most once for each subject. */
const ONCE: ReadonlySet<string> = new Set([
  'proof_issued',
  'proof_erased',
  'review_created',
  'key_rotated',
  'key_revoked',
]);
/**
 * The most copies of an event that repetitions may make. Each restart of a process allows one more. More
 * copies show a loop.
 */
const MOST_COPIES = 6;
const DAY_SECONDS = 86_400;

interface Message {
  readonly id: string;
  readonly kind: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Compares the end of a history with the answers of its clients. */
export async function judge(around: Surroundings, ledger: Ledger): Promise<readonly string[]> {
  const { world } = around;
  const process = new Process('judge', world.now, 0);
  let outcome: { readonly violations: readonly string[] } | { readonly error: unknown } | undefined;
  world.at(0, process, () => {
    openStores(around)
      .then((stores) => new Judge(around, ledger, stores).judge())
      .then(
        (violations) => (outcome = { violations }),
        (error: unknown) => (outcome = { error }),
      );
  });
  await world.run(world.now + 3_600_000, () => outcome !== undefined);
  world.kill(process);
  if (outcome === undefined) return ['the judge came to no end'];
  if ('error' in outcome) {
    const { error } = outcome;
    return [
      ...ledger.violations,
      `the judge could not read: ${error instanceof Error ? error.stack : String(error)}`,
    ];
  }
  return outcome.violations;
}

class Judge {
  readonly #around: Surroundings;
  readonly #ledger: Ledger;
  readonly #stores: Stores;
  readonly #found: string[];
  readonly #audit = new Map<string, AuditEntry[]>();
  readonly #events = new Map<string, { copies: number; readonly message: Message }>();
  /** The ids of proofs in the tables that an erasure clears, by table. */
  readonly #named: ReadonlyMap<string, ReadonlySet<unknown>>;

  constructor(around: Surroundings, ledger: Ledger, stores: Stores) {
    this.#around = around;
    this.#ledger = ledger;
    this.#stores = stores;
    this.#found = [...ledger.violations];
    const { database, world } = around;
    this.#named = new Map(
      NAMING_PROOFS.map((table) => [
        table,
        new Set(database.all(table, world.now).map((row) => row['proof_id'])),
      ]),
    );
  }

  /** Only a part of the histories looks at reminders, because it reads half a year hour by hour. */
  get #looksAtReminders(): boolean {
    return this.#ledger.reviews.size > 0 && this.#around.world.random.chance(0.1);
  }

  async judge(): Promise<readonly string[]> {
    this.#readTopics();
    const partners = new Set([...this.#ledger.keys.values()].map(({ partnerId }) => partnerId));
    for (const partnerId of partners) await this.#readLog(partnerId);
    const listed = new Map<string, string>();
    for (const partnerId of partners)
      for (const { proofId } of await this.#stores.listProofs(partnerId, { limit: 1000 }))
        listed.set(proofId, partnerId);
    const audited = [...this.#audit.values()]
      .flat()
      .flatMap(({ action, subjects }) => (action.startsWith('proof_') ? subjects : []));
    const known = new Set([
      ...this.#ledger.proofs.keys(),
      ...this.#around.bucket.proofs(),
      ...listed.keys(),
      ...audited,
    ]);
    for (const proofId of known) await this.#judgeProof(proofId, listed.has(proofId));
    await this.#judgeReviews(await this.#listedReviews(partners));
    await this.#judgeKeys();
    await this.#judgeSelfRevoking();
    for (const partnerId of partners) await this.#judgeUsage(partnerId);
    await this.#judgeCalls();
    await this.#judgeObjects();
    for (const [id, { copies }] of this.#events)
      if (copies > MOST_COPIES + this.#ledger.restarts)
        this.#violation(`the event ${id} was sent ${copies} times`);
    return this.#found;
  }

  /**
   * Judges that each object and key in the bucket belongs to a proof, or that a pointer leads to its removal.
   */
  async #judgeObjects(): Promise<void> {
    const { bucket, database, world } = this.#around;
    const led = new Set(database.all('pointer', world.now).map(({ key }) => key));
    for (const proofId of new Set([...bucket.proofs(), ...bucket.keys.keys()])) {
      const state = (await this.#stores.getProof(proofId))?.state;
      if (state === undefined && !led.has(proofId))
        this.#violation(`the bucket has objects or a key of ${proofId}, which is unknown and has no pointer`);
    }
  }

  #violation(what: string): void {
    this.#found.push(what);
  }

  #readTopics(): void {
    for (const topic of TOPICS)
      for (const { value } of this.#around.broker.messages(topicName(PREFIX, topic))) {
        const decoded = decodeMessagePackStrict(value ?? Buffer.alloc(0), 1_000_000);
        if (!decoded.ok) this.#violation(`a message of ${topic} cannot be read`);
        else {
          const message = decoded.value as unknown as Message;
          const found = this.#events.get(message.id);
          if (found === undefined) this.#events.set(message.id, { copies: 1, message });
          else found.copies += 1;
        }
      }
  }

  async #readLog(partnerId: string): Promise<void> {
    const entries = [...(await this.#stores.readAudit(partnerId, 1, 10_000))];
    this.#audit.set(partnerId, entries);
    const walk = new AuditWalk(
      secrets.all('audit').map(({ key }) => key),
      undefined,
    );
    for (const entry of entries)
      if (!walk.take(entry)) {
        this.#violation(`the audit log of ${partnerId} breaks at its entry ${entry.sequence}`);
        break;
      }
    const seen = new Set<string>();
    for (const { action, subjects } of entries) {
      const name = `${action} ${subjects[0]}`;
      if (ONCE.has(action) && seen.has(name)) this.#violation(`the audit log has ${name} twice`);
      seen.add(name);
    }
  }

  #isAudited(action: string, subject: string): boolean {
    return [...this.#audit.values()].some((entries) =>
      entries.some((entry) => entry.action === action && entry.subjects.includes(subject)),
    );
  }

  async #judgeProof(proofId: string, isListed: boolean): Promise<void> {
    const facts: Partial<ProofFacts> = this.#ledger.proofs.get(proofId) ?? {};
    const proof = await this.#stores.getProof(proofId);
    const hasAsset = this.#around.bucket.proofs().has(proofId);
    const hasKey = this.#around.bucket.keys.has(proofId);
    if (facts.erasedAt !== undefined && hasKey)
      this.#violation(`the erasure of ${proofId} was acknowledged, and its key is there`);
    if (facts.erasedAt !== undefined && proof?.state !== 'erased')
      this.#violation(`the erasure of ${proofId} was acknowledged, and it is ${proof?.state ?? 'unknown'}`);
    const isConfirmed = proof?.state === 'erased' && proof.confirmedAt !== undefined;
    if ((facts.erasedAt !== undefined || isConfirmed) && !this.#around.bucket.hasJournalled(proofId))
      this.#violation(`the erasure of ${proofId} is over and not in the journal`);
    if (proof?.state === 'erased') {
      if (facts.eraseAskedAt === undefined && facts.issuedAt !== undefined)
        this.#violation(`${proofId} is erased without a request`);
      const state = facts.erasedAt === undefined ? 'took effect' : 'was acknowledged';
      if (!this.#events.has(`proof_erased/${proofId}`))
        this.#violation(`the erasure of ${proofId} ${state} and has no event`);
      else if (proof.confirmedAt === undefined)
        this.#violation(`the erasure of ${proofId} ${state} and was never confirmed`);
      if (!this.#isAudited('proof_erased', proofId))
        this.#violation(`the erasure of ${proofId} ${state} and is not in the audit log`);
      if (isListed) this.#violation(`${proofId} is erased and listed`);
      if (hasAsset && proof.confirmedAt !== undefined)
        this.#violation(`${proofId} is erased and its asset is there`);
      if (hasKey && proof.confirmedAt !== undefined)
        this.#violation(`${proofId} is erased and its key is there`);
      if (proof.confirmedAt !== undefined)
        for (const [table, proofIds] of this.#named)
          if (proofIds.has(proofId)) this.#violation(`${proofId} is erased and ${table} names it`);
    } else if (proof?.state === 'issued') {
      const state = facts.issuedAt === undefined ? 'is issued' : 'was acknowledged as issued';
      if (!isListed) this.#violation(`${proofId} ${state} and is not listed`);
      if (!this.#isAudited('proof_issued', proofId))
        this.#violation(`${proofId} ${state} and is not in the audit log`);
      if (!hasAsset) this.#violation(`${proofId} ${state} and has no asset`);
      if (!hasKey) this.#violation(`${proofId} ${state} and has no key`);
      if (this.#isAudited('proof_erased', proofId))
        this.#violation(`${proofId} is issued, and the audit log has its erasure`);
      const found = await this.#stores.findProofs('bound', proof.boundAudioSha256, 100);
      if (!found.some((one) => one.proofId === proofId))
        this.#violation(`${proofId} ${state} and is not found by its audio`);
    } else {
      if (facts.issuedAt !== undefined)
        this.#violation(`${proofId} was acknowledged as issued, and is not there`);
      if (this.#isAudited('proof_issued', proofId))
        this.#violation(`the audit log has ${proofId}, which is not issued`);
    }
  }

  /** Looks for an order of the calls that explains all answers and the final state. */
  async #judgeCalls(): Promise<void> {
    const { now } = this.#around.world;
    const at = Math.floor(now / 1000);
    const stores = this.#stores;
    const faults = await this.#ledger.witness.faults({
      at: now,
      proof: (proofId) => stores.getProof(proofId),
      review: (partnerId, reviewId) => stores.getReview(partnerId, reviewId, at),
      async key(keyId) {
        const [key, rotation] = await Promise.all([stores.getKey(keyId), stores.getRotation(keyId)]);
        return defined({ key, successor: rotation?.newKeyId });
      },
      used: (partnerId) => stores.getUsed(partnerId, at),
    });
    for (const fault of faults) this.#violation(fault);
  }

  /** Returns the ids of the cases on the lists of all partners, read in short pages. */
  async #listedReviews(partners: Iterable<string>): Promise<ReadonlySet<string>> {
    const now = Math.floor(this.#around.world.now / 1000);
    const listed = new Set<string>();
    for (const partnerId of partners) {
      for (let before: ReviewPlace | undefined; ; ) {
        const { reviews, last } = await this.#stores.listReviews(
          partnerId,
          { limit: 7, ...(before && { before }) },
          now,
        );
        for (const review of reviews) {
          if (listed.has(review.reviewId)) this.#violation(`case ${review.reviewId} is listed twice`);
          if (review.partnerId !== partnerId)
            this.#violation(`case ${review.reviewId} is on the list of ${partnerId}`);
          listed.add(review.reviewId);
        }
        if (last === undefined) break;
        before = last;
      }
    }
    return listed;
  }

  async #judgeReviews(listed: ReadonlySet<string>): Promise<void> {
    const now = Math.floor(this.#around.world.now / 1000);
    const due = this.#looksAtReminders
      ? await this.#stores.dueReminders(now + REVIEW_LIFE_SECONDS + DAY_SECONDS, 10_000)
      : undefined;
    const unresolved = new Map<string, string>();
    const created = [...this.#audit.values()]
      .flat()
      .flatMap(({ action, subjects, partnerId }) =>
        action === 'review_created' ? [{ reviewId: subjects[0]!, proofId: subjects[1]!, partnerId }] : [],
      );
    const known = new Map(
      [...(await this.#storedReviews(now)), ...created, ...this.#ledger.reviews.values()].map(
        (review) => [review.reviewId, review] as const,
      ),
    );
    for (const { reviewId, proofId, partnerId } of known.values()) {
      const review = await this.#stores.getReview(partnerId, reviewId, now);
      const isErased = (await this.#stores.getProof(proofId))?.state === 'erased';
      const reminders = due?.filter((reminder) => reminder.reviewId === reviewId);
      if (listed.has(reviewId) !== (review !== undefined))
        this.#violation(`case ${reviewId} is ${listed.has(reviewId) ? '' : 'not '}on its partner's list`);
      if (isErased) {
        if (review !== undefined) this.#violation(`case ${reviewId} is left after the erasure of ${proofId}`);
        if (reminders !== undefined && reminders.length > 0)
          this.#violation(`reminders of case ${reviewId} are left after the erasure of ${proofId}`);
        continue;
      }
      if (review === undefined) {
        this.#violation(
          this.#ledger.reviews.has(reviewId)
            ? `case ${reviewId} was acknowledged and is not there`
            : `the audit log has case ${reviewId}, which is not there`,
        );
        continue;
      }
      if (!this.#isAudited('review_created', reviewId))
        this.#violation(`case ${reviewId} is not in the audit log`);
      if (!this.#events.has(`review_created/${reviewId}`))
        this.#violation(`case ${reviewId} was never announced`);
      else if (reminders !== undefined && reminders.length !== 2)
        this.#violation(`case ${reviewId} has ${reminders.length} reminders of 2`);
      if (review.outcome === 'accepted' || review.outcome === 'rejected') continue;
      const place = `${partnerId} ${proofId} ${review.bindings.submissionId}`;
      const other = unresolved.get(place);
      if (other !== undefined)
        this.#violation(`cases ${other} and ${reviewId} are unresolved for the same bindings`);
      unresolved.set(place, reviewId);
    }
  }

  /** Returns all stored cases, including those that no answer contained. */
  async #storedReviews(now: number) {
    const { database, world } = this.#around;
    const found = await Promise.all(
      database.all('review_proof', world.now).map(async (row) => {
        const { review_id: reviewId, proof_id: proofId } = row as Readonly<Record<string, string>>;
        const partnerId = await this.#stores.findReviewPartner(reviewId!, now);
        return partnerId === undefined ? [] : [{ reviewId: reviewId!, proofId: proofId!, partnerId }];
      }),
    );
    return found.flat();
  }

  async #judgeKeys(): Promise<void> {
    for (const [keyId, { partnerId, revoked }] of this.#ledger.keys) {
      if (revoked === true && !this.#isAudited('key_revoked', keyId))
        this.#violation(`the revocation of ${keyId} is not in the audit log`);
      const rotation = await this.#stores.getRotation(keyId);
      if (rotation === undefined) continue;
      const { newKeyId } = rotation;
      if (!this.#isAudited('key_rotated', keyId))
        this.#violation(`the rotation of ${keyId} is not in the audit log`);
      if ((await this.#stores.getKey(newKeyId)) === undefined)
        this.#violation(`the successor of ${keyId} is not there`);
      const listed = await this.#stores.listKeys(partnerId);
      if (!listed.some((one) => one.keyId === newKeyId))
        this.#violation(`the successor of ${keyId} is not listed`);
    }
  }

  /**
   * Judges that revocations by a partner leave it an active key. A key that was revoked with its successors
   * must have no valid successor.
   */
  async #judgeSelfRevoking(): Promise<void> {
    for (const [partnerId, ended] of this.#ledger.selfRevoking) {
      const keys = await this.#stores.listKeys(partnerId);
      if (keys.every(({ revokedAt, expiresAt }) => revokedAt !== undefined || expiresAt !== undefined))
        this.#violation(`${partnerId} has revoked its last active key`);
      for (const root of ended)
        for (let keyId: string | undefined = root; keyId !== undefined; ) {
          if ((await this.#stores.getKey(keyId))?.revokedAt === undefined)
            this.#violation(`the successor ${keyId} of ${root} is valid after the revocation of both`);
          keyId = (await this.#stores.getRotation(keyId))?.newKeyId;
        }
    }
  }

  async #judgeUsage(partnerId: string): Promise<void> {
    const unit = this.#ledger.units.get(partnerId);
    if (unit === undefined) return;
    // All calls were made in March.
    const now = Math.floor(this.#around.world.now / 1000);
    const used = await this.#stores.getUsed(partnerId, now);
    if (used > unit.quota) this.#violation(`${partnerId} used ${used} units of ${unit.quota}`);
    if (used < unit.acknowledged)
      this.#violation(`${partnerId} was answered ${unit.acknowledged} verifies and ${used} were counted`);
    if (used > unit.asked)
      this.#violation(`${partnerId} asked for ${unit.asked} verifies and ${used} were counted`);
    const days = await this.#stores.getDailyUsage(partnerId, '2026-03-01', '2026-04-30');
    const folded = days.reduce((sum, { operations }) => sum + (operations['verify'] ?? 0), 0);
    if (folded !== used)
      this.#violation(`${partnerId} used ${used} units, and ${folded} are in the daily totals`);
    const events = new Map<number, string>();
    let sum = 0;
    for (const [id, { message }] of this.#events) {
      if (message.kind !== 'units_counted' || message.data['partnerId'] !== partnerId) continue;
      if (!String(message.data['source']).startsWith('billed/')) continue;
      const [from, to] = [message.data['from'] as number, message.data['to'] as number];
      for (let number = from; number < to; number += 1) {
        if (events.has(number))
          this.#violation(`unit ${number} of ${partnerId} is in ${events.get(number)} and in ${id}`);
        events.set(number, id);
        sum += 1;
      }
    }
    if (sum !== used) this.#violation(`${partnerId} used ${used} units, and events report ${sum}`);
  }
}
