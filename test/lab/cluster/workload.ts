/**
 * Partners at work: issue, upload, verify, rotate, review, erase and list until `stop`. Every operation that
 * began is finished.
 */
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { wav } from '../../fixtures/wav.js';
import { type Answer, type Calls, describe, isLater, reasonOf, SETTLE_LIMIT_MS } from './calls.js';
import type { EvidenceState, ReviewCall, ReviewOperation, ReviewState } from './history.js';
import type { KnownPartner, Ledger } from './ledger.js';
import type { Service } from './members.js';
import { faultsOfSet, strangersIn } from './sets.js';

const KINDS = ['source_evidence', 'source_licence', 'creator_clarification'] as const;
const OUTCOMES = ['accepted', 'held', 'rejected'] as const;
/** The rotations of a chain: fewer than the plan's per day (rule 4.12). A process remembers them until a kill. */
const ROTATIONS_EACH = 3;

interface ReviewBody {
  readonly reviewId: string;
  readonly outcome?: (typeof OUTCOMES)[number];
  readonly evidenceRequests: readonly {
    readonly requestId: string;
    readonly kind: string;
    readonly status: EvidenceState;
  }[];
}

interface SlotBody {
  readonly uploadId: string;
  readonly url: string;
  readonly fields: Readonly<Record<string, string>>;
}

export interface Issued {
  readonly proofId: string;
  readonly file: Uint8Array;
}

export class Workload {
  readonly #calls: Calls;
  readonly #ledger: Ledger;
  readonly #random: () => number;
  readonly #roundMs: number;
  #stopped = false;
  #audio = 0;

  /** @param roundMs the shortest duration of a round of proofs or of reviews, in milliseconds */
  constructor(calls: Calls, ledger: Ledger, random: () => number, roundMs = 0) {
    this.#calls = calls;
    this.#ledger = ledger;
    this.#random = random;
    this.#roundMs = roundMs;
  }

  /** Resolves after `stop`, when all lanes have finished their operations. */
  async run(
    partners: readonly KnownPartner[],
    beside?: (isOver: () => boolean) => Promise<void>,
  ): Promise<void> {
    this.#stopped = false;
    const lanes = partners.flatMap((partner) => [
      this.#lane('proofs', () => this.#paced(this.#lifeOfProof(partner))),
      this.#lane('reviews', () => this.#paced(this.#lifeOfReview(partner))),
      this.#lane('lists', () => this.#list(partner)),
    ]);
    await Promise.all([
      ...lanes,
      this.#lane('rotations', () => this.#rotations()),
      beside?.(() => this.#stopped),
    ]);
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Resolves with a round, and not before its shortest duration. */
  async #paced(round: Promise<void>): Promise<void> {
    await Promise.all([round, delay(this.#roundMs)]);
  }

  async #lane(name: string, work: () => Promise<void>): Promise<void> {
    while (!this.#stopped) {
      try {
        await work();
        this.#ledger.count(`rounds of ${name}`);
      } catch (error) {
        // The violation is recorded already.
        if (this.#ledger.violations.length === 0)
          this.#ledger.violation(`${name}: ${error instanceof Error ? error.stack : String(error)}`);
        await delay(500);
      }
    }
  }

  async partner(plan = 'volume'): Promise<KnownPartner> {
    // Neither call is idempotent. If a call is not answered, its result is abandoned, and the next attempt
    // makes another partner.
    const operator = { method: 'POST', listener: 'operator' } as const;
    for (;;) {
      const { partnerId } = (
        await this.#calls.settle(
          { ...operator, path: '/operator/v1/partners', json: { name: 'Under test', plan } },
          [201],
        )
      ).json as { partnerId: string };
      const key = await this.#calls.send({
        ...operator,
        path: `/operator/v1/partners/${partnerId}/keys`,
        json: { name: 'key' },
      });
      if (key === undefined || isLater(key)) {
        await delay(100);
        continue;
      }
      if (key.status !== 201) throw this.#calls.fail(`a key was answered ${key.status} ${describe(key)}`);
      const partner = { partnerId, apiKey: (key.json as { apiKey: string }).apiKey };
      this.#ledger.partner(partner);
      return partner;
    }
  }

  async issue({ partnerId, apiKey }: KnownPartner): Promise<Issued> {
    this.#audio += 1;
    const audio = wav(2000 + 4 * this.#audio, {}, this.#audio);
    const { json, process } = await this.#calls.settle(
      {
        method: 'POST',
        listener: 'operator',
        path: `/operator/v1/proofs?partnerId=${partnerId}&song=Song&fileName=take.wav`,
        headers: { 'content-type': 'application/octet-stream', 'idempotency-key': randomUUID() },
        body: audio,
      },
      [201],
      { later: (answer) => isLater(answer) || reasonOf(answer) === 'idempotency_in_progress' },
    );
    const { proofId, asset } = json as { proofId: string; asset: { sha256: string } };
    this.#ledger.issue({ proofId, partnerId, sha256: asset.sha256 });
    this.#ledger.log(partnerId, `proof_issued ${proofId}`, process);
    this.#ledger.count('issued');
    const file = (
      await this.#calls.settle({ method: 'GET', path: `/v1/proofs/${proofId}/asset`, apiKey }, [200])
    ).bytes;
    if (createHash('sha256').update(file).digest('hex') !== asset.sha256)
      throw this.#calls.fail(`the deliverable of ${proofId} is another file`);
    return { proofId, file };
  }

  /**
   * Creates a slot on one service and posts to another one, or uses the named services. A lost upload starts
   * again.
   */
  async upload(
    { apiKey }: KnownPartner,
    file: Uint8Array,
    {
      purpose = 'verify',
      ...at
    }: { readonly slot?: Service; readonly post?: Service; readonly purpose?: 'verify' | 'identify' } = {},
  ): Promise<string> {
    for (const deadline = Date.now() + SETTLE_LIMIT_MS; ; ) {
      const slot = (
        await this.#calls.settle({ method: 'POST', path: '/v1/uploads', apiKey, json: { purpose } }, [201], {
          service: at.slot,
        })
      ).json as SlotBody;
      const form = new FormData();
      for (const [name, value] of Object.entries(slot.fields)) form.set(name, value);
      form.set('file', new Blob([file as Uint8Array<ArrayBuffer>]), 'take.wav');
      const answer = await this.#calls.send(
        { method: 'POST', path: new URL(slot.url).pathname, body: form },
        at.post,
      );
      if (answer?.status === 201) {
        this.#ledger.count('uploaded');
        return slot.uploadId;
      }
      if ((answer !== undefined && !isLater(answer)) || Date.now() > deadline)
        throw this.#calls.fail(
          `an upload was ${answer === undefined ? 'never answered' : `answered ${answer.status} ${describe(answer)}`}`,
        );
      this.#ledger.count('uploads lost and begun anew');
      await delay(100);
    }
  }

  /** Verifies an upload, which is billed once. Some verifies are sent twice at once. */
  async verify(
    partner: KnownPartner,
    uploadId: string,
  ): Promise<{ readonly verdict: string; readonly proofId?: string }> {
    this.#ledger.billAsked(partner.partnerId);
    const call = { method: 'POST', path: '/v1/verify', apiKey: partner.apiKey, json: { uploadId } };
    const answers = await Promise.all(
      Array.from({ length: this.#random() < 0.2 ? 2 : 1 }, () => this.#calls.settle(call, [200])),
    );
    this.#ledger.bill({ partnerId: partner.partnerId, uploadId });
    this.#ledger.count('verified');
    return answers[0]!.json as { verdict: string; proofId?: string };
  }

  async #lifeOfProof(partner: KnownPartner): Promise<void> {
    const { proofId, file } = await this.issue(partner);
    const { verdict, proofId: verified } = await this.verify(partner, await this.upload(partner, file));
    if (verdict !== 'valid' || verified !== proofId)
      throw this.#calls.fail(`${proofId} verified as ${verdict} of ${verified ?? 'none'}`);
    if (this.#random() < 0.5) await this.erase(partner, proofId, file);
  }

  async erase(partner: KnownPartner, proofId: string, file?: Uint8Array): Promise<void> {
    const { apiKey, partnerId } = partner;
    this.#ledger.eraseAsked(proofId);
    const call = { method: 'DELETE', path: `/v1/proofs/${proofId}`, apiKey };
    const answers = (
      await Promise.all(
        Array.from({ length: this.#random() < 0.3 ? 2 : 1 }, () => this.#calls.settle(call, [200])),
      )
    ).map(({ json, process }) => ({ ...(json as { outcome: string; erasedAt: number }), process }));
    if (
      new Set(answers.map(({ erasedAt }) => erasedAt)).size !== 1 ||
      answers.filter(({ outcome }) => outcome === 'erased').length > 1
    )
      this.#ledger.violation(`${proofId} was erased twice: ${JSON.stringify(answers)}`);
    this.#ledger.erase({ proofId, partnerId, erasedAt: answers[0]!.erasedAt });
    const first = answers.find(({ outcome }) => outcome === 'erased');
    this.#ledger.log(partnerId, `proof_erased ${proofId}`, first?.process);
    this.#ledger.count('erased');
    const after = await this.#calls.send({ method: 'GET', path: `/v1/proofs/${proofId}`, apiKey });
    if (after !== undefined && !isLater(after) && after.status !== 404)
      this.#ledger.violation(`${proofId} is answered ${after.status} after its erasure`);
    if (file !== undefined && this.#random() < 0.2) {
      const { verdict } = await this.verify(partner, await this.upload(partner, file));
      if (verdict !== 'unregistered')
        this.#ledger.violation(`${proofId} verifies as ${verdict} after its erasure`);
    }
  }

  /** Plays the life of a review with four clients that set conflicting outcomes. */
  async #lifeOfReview(partner: KnownPartner): Promise<void> {
    const { apiKey, partnerId } = partner;
    const { proofId } = await this.issue(partner);
    const bindings = {
      creatorId: `creator-${randomUUID()}`,
      accountId: 'account',
      submissionId: 'submission',
      trackId: 'track',
    };
    const created = await this.#calls.send({
      method: 'POST',
      path: '/v1/partner/reviews',
      apiKey,
      json: { proofId, bindings },
    });
    // Only the answer has the review's id. Without an answer no client can continue this review.
    if (created === undefined || isLater(created)) {
      this.#ledger.unknownReviews += 1;
      return;
    }
    if (created.status !== 201) throw this.#calls.fail(`a new review was answered ${created.status}`);
    const { reviewId } = created.json as ReviewBody;
    this.#ledger.log(partnerId, `review_created ${reviewId}`, created.process);
    const operations: ReviewOperation[] = [];
    const requestIds = new Map<string, string>();
    const erasesAmidst = this.#random() < 0.3;
    await Promise.all([
      ...Array.from({ length: 3 }, async () => {
        for (let step = 0; step < 5; step += 1)
          operations.push(await this.#reviewStep(partner, reviewId, requestIds));
      }),
      ...(erasesAmidst
        ? [delay(this.#random() * 300).then(() => this.#eraseReviewed(partner, proofId, operations))]
        : []),
    ]);
    const read = await this.#reviewCall(partner, reviewId, { does: 'read' }, requestIds, true);
    operations.push(read);
    this.#ledger.review({ reviewId, proofId, partnerId, operations });
    this.#ledger.count('reviewed');
    this.#ledger.count('calls on reviews', operations.length);
    if (!erasesAmidst && this.#random() < 0.3) await this.erase(partner, proofId);
  }

  async #eraseReviewed(partner: KnownPartner, proofId: string, operations: ReviewOperation[]): Promise<void> {
    const sentAt = this.#ledger.now();
    await this.erase(partner, proofId);
    operations.push({
      call: { does: 'erase' },
      sentAt,
      answer: { at: this.#ledger.now(), result: { erased: true } },
    });
  }

  #reviewStep(
    partner: KnownPartner,
    reviewId: string,
    requestIds: Map<string, string>,
  ): Promise<ReviewOperation> {
    const known = [...requestIds.keys()];
    const dice = this.#random();
    const call: Exclude<ReviewCall, { does: 'erase' }> =
      dice < 0.35 || known.length === 0
        ? { does: 'open', kind: this.#oneOf(KINDS) }
        : dice < 0.75
          ? { does: this.#oneOf(['supply', 'accept', 'decline', 'accept']), kind: this.#oneOf(known) }
          : dice < 0.9
            ? { does: 'resolve', outcome: this.#oneOf(OUTCOMES) }
            : { does: 'read' };
    return this.#reviewCall(partner, reviewId, call, requestIds);
  }

  /** Sends an attempt. The last look is repeated until it is answered. */
  async #reviewCall(
    { apiKey }: KnownPartner,
    reviewId: string,
    call: Exclude<ReviewCall, { does: 'erase' }>,
    requestIds: Map<string, string>,
    settled = false,
  ): Promise<ReviewOperation> {
    const path = `/v1/partner/reviews/${reviewId}`;
    const request =
      call.does === 'read'
        ? { method: 'GET', path, apiKey }
        : call.does === 'open'
          ? { method: 'POST', path: `${path}/evidence-requests`, apiKey, json: { kind: call.kind } }
          : call.does === 'resolve'
            ? { method: 'POST', path: `${path}/resolve`, apiKey, json: { outcome: call.outcome } }
            : call.does === 'supply'
              ? {
                  method: 'POST',
                  listener: 'operator' as const,
                  path: `/operator/v1/reviews/${reviewId}/evidence-requests/${requestIds.get(call.kind)}/supply`,
                }
              : {
                  method: 'PATCH',
                  path: `${path}/evidence-requests/${requestIds.get(call.kind)}`,
                  apiKey,
                  json: { status: call.does === 'accept' ? 'accepted' : 'declined' },
                };
    const sentAt = this.#ledger.now();
    const patienceMs = this.#random() < 0.1 ? this.#random() * 500 : undefined;
    const answer = settled
      ? await this.#calls.settle(request, [200, 404])
      : await this.#calls.send(request, undefined, patienceMs);
    if (answer === undefined || isLater(answer)) return { call, sentAt };
    const at = this.#ledger.now();
    if (answer.status === 409)
      return { call, sentAt, answer: { at, result: { refused: reasonOf(answer) ?? 'no reason' } } };
    if (answer.status === 404) return { call, sentAt, answer: { at, result: { refused: 'not_found' } } };
    if (answer.status !== 200 && answer.status !== 201) {
      this.#ledger.violation(`${call.does} on a review was answered ${answer.status}`);
      return { call, sentAt };
    }
    return { call, sentAt, answer: { at, result: { state: this.#reviewOf(answer, requestIds) } } };
  }

  #reviewOf(answer: Answer, requestIds: Map<string, string>): ReviewState {
    const { reviewId, evidenceRequests } = answer.json as ReviewBody;
    for (const { kind, requestId } of evidenceRequests) {
      const known = requestIds.get(kind) ?? requestId;
      if (known !== requestId) this.#ledger.violation(`${reviewId} has two requests for ${kind}`);
      requestIds.set(kind, known);
    }
    if (new Set(evidenceRequests.map(({ kind }) => kind)).size !== evidenceRequests.length)
      this.#ledger.violation(`${reviewId} lists a kind twice`);
    return reviewStateOf(answer);
  }

  /**
   * Plays a chain of rotations. Two clients send each rotation under one Idempotency-Key, and a third client
   * under another.
   */
  async #rotations(): Promise<void> {
    let { partnerId, apiKey } = await this.partner();
    for (let link = 0; link < ROTATIONS_EACH && !this.#stopped; link += 1) {
      const keyId = await this.#newestKey(apiKey);
      const later = (answer: Answer) => isLater(answer) || reasonOf(answer) === 'rotation_in_progress';
      const ask = (idempotencyKey: string) =>
        this.#calls.settle(
          {
            method: 'POST',
            path: '/v1/partner/keys/rotate',
            apiKey,
            headers: { 'idempotency-key': idempotencyKey },
          },
          [201, 409],
          { later },
        );
      const [mine, other] = [randomUUID(), randomUUID()];
      const answers = await Promise.all([
        ask(mine),
        ask(mine),
        ...(this.#random() < 0.5 ? [ask(other)] : []),
      ]);
      const given = answers
        .filter(({ status }) => status === 201)
        .map(({ json }) => json as { apiKey: string; keyId: string });
      const refused = answers.filter(({ status }) => status === 409);
      for (const answer of refused)
        if (reasonOf(answer) !== 'already_rotated')
          this.#ledger.violation(`a rotation was refused for ${reasonOf(answer)}`);
      // Under one Idempotency-Key both get the same answer, or both are refused.
      if (
        answers[0]!.status !== answers[1]!.status ||
        given.length === 0 ||
        new Set(given.map((one) => JSON.stringify([one.keyId, one.apiKey]))).size !== 1
      ) {
        throw this.#calls.fail(
          `rotation of ${keyId}: ${answers.map(({ status, json }) => `${status} ${(json as { keyId?: string }).keyId ?? ''}`).join(', ')}`,
        );
      }
      const { apiKey: newApiKey, keyId: newKeyId } = given[0]!;
      this.#ledger.rotate({ partnerId, keyId, newKeyId, newApiKey });
      this.#ledger.count('rotated');
      apiKey = newApiKey;
    }
  }

  async #newestKey(apiKey: string): Promise<string> {
    const { keys } = (await this.#calls.settle({ method: 'GET', path: '/v1/partner/keys', apiKey }, [200]))
      .json as { keys: readonly { keyId: string; status: string }[] };
    const active = keys.filter(({ status }) => status === 'active');
    if (active.length !== 1)
      throw this.#calls.fail(`${active.length} active keys where every other was rotated`);
    return active[0]!.keyId;
  }

  /**
   * Reads all pages, each from another process, and the usage. Both must agree with what was acknowledged
   * before and begun after.
   */
  async #list({ partnerId, apiKey }: KnownPartner): Promise<void> {
    const before = this.#ledger.now();
    const billed = this.#ledger.billed.filter((entry) => entry.partnerId === partnerId).length;
    const listed: string[] = [];
    let cursor: string | undefined;
    do {
      const { proofs, nextCursor } = (
        await this.#calls.settle(
          {
            method: 'GET',
            path: `/v1/proofs?limit=50${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
            apiKey,
          },
          [200],
        )
      ).json as {
        proofs: readonly { proofId: string }[];
        nextCursor?: string;
      };
      listed.push(...proofs.map(({ proofId }) => proofId));
      cursor = nextCursor;
    } while (cursor !== undefined);
    const read = { sentAt: before, at: this.#ledger.now(), seen: listed };
    const members = this.#ledger.members(partnerId);
    for (const fault of faultsOfSet(read, members))
      this.#ledger.violation(`a list of ${listed.length}, begun at ${Math.round(before)} ms: ${fault}`);
    for (const name of strangersIn(read, members))
      this.#ledger.strangers.push({ partnerId, name, where: 'a list' });
    const { used } = (
      await this.#calls.settle({ method: 'GET', path: '/v1/partner/usage?days=2', apiKey }, [200])
    ).json as { used: number };
    const most = this.#ledger.asked.get(partnerId) ?? 0;
    if (used < billed || used > most)
      this.#ledger.violation(`usage says ${used} where ${billed} to ${most} calls are billable`);
    this.#ledger.count('listed');
    await delay(300);
  }

  #oneOf<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#random() * values.length)]!;
  }
}

export function reviewStateOf({ json }: Pick<Answer, 'json'>): ReviewState {
  const { outcome, evidenceRequests } = json as ReviewBody;
  return {
    outcome: outcome ?? 'open',
    evidence: Object.fromEntries(evidenceRequests.map(({ kind, status }) => [kind, status])),
  };
}
