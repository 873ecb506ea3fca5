/**
 * Clients that contend for one thing at a time. Some of them give up. Their calls form a history, and one
 * order must explain all of it.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { wav } from '../../fixtures/wav.js';
import { type Answer, type Call, type Calls, describe, isLater, reasonOf } from './calls.js';
import type {
  IssuingOperation,
  IssuingResult,
  KeyCall,
  KeyOperation,
  KeyResult,
  PlaceCall,
  PlaceOperation,
  PlaceResult,
  ProofOperation,
  ProofResult,
  QuotaOperation,
  QuotaResult,
  ReviewOperation,
} from './history.js';
import { textOfEntry } from './judge.js';
import type { KnownPartner, Ledger } from './ledger.js';
import type { Operation } from './linearizable.js';
import type { Month } from './month.js';
import { faultsOfSet, strangersIn } from './sets.js';
import type { Workload } from './workload.js';

const CLIENTS = 4;
const STEPS = 4;
const SONGS = ['One song', 'Another song'] as const;
/** The share of clients that give up, and the longest time until they do. */
const GIVES_UP = 0.15;
const PATIENCE_MS = 400;
const PAUSE_MS = 150;
/** The number of uploads. It exceeds the units that are left, so some are refused. */
const UPLOADS = 18;
const AUDIT_PAGE = 200;
/** The number of entries that are read again. */
const AUDIT_OVERLAP = 20;

/** The months of a run, and the times at which they are used up. */
export interface Months {
  /** The months that are left. A month is removed when it is played. */
  readonly months: Month[];
  /** The number of months that a later part of the run needs. */
  readonly kept: number;
  readonly firstMs: number;
  readonly everyMs: number;
}

export class Contention {
  readonly #calls: Calls;
  readonly #ledger: Ledger;
  readonly #workload: Workload;
  readonly #random: () => number;
  #audio = 0;

  constructor(calls: Calls, ledger: Ledger, workload: Workload, random: () => number) {
    this.#calls = calls;
    this.#ledger = ledger;
    this.#workload = workload;
    this.#random = random;
  }

  /** Plays one history after another, of each kind in turn, until `isOver`. */
  async run(partner: KnownPartner, months: Months, isOver: () => boolean): Promise<void> {
    const lanes = [
      async () => {
        await this.#proof(partner);
        await this.#issuing(partner);
      },
      async () => {
        await this.#key();
        await this.#identify(partner);
      },
      () => this.#place(partner),
    ];
    await Promise.all([
      ...lanes.map((lane) => this.#repeat(lane, isOver)),
      this.#repeat(() => this.#readLog(), isOver),
      this.#months(partner, months, isOver),
    ]);
  }

  /** Plays the months, spread over the run. A month can be played only once. */
  async #months(
    issuer: KnownPartner,
    { months, kept, firstMs, everyMs }: Months,
    isOver: () => boolean,
  ): Promise<void> {
    const began = performance.now();
    for (let played = 0; months.length > kept; played += 1) {
      while (!isOver() && performance.now() - began < firstMs + played * everyMs) await delay(100);
      // Even a short run plays one month.
      if (isOver() && played > 0) return;
      const month = months.shift()!;
      await this.#attempted('quota', () => this.#quota(issuer, month));
    }
  }

  async #repeat(work: () => Promise<void>, isOver: () => boolean): Promise<void> {
    while (!isOver()) await this.#attempted('contention', work);
  }

  async #attempted(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      // The violation is recorded already, unless this code failed.
      if (this.#ledger.violations.length === 0)
        this.#ledger.violation(`${name}: ${error instanceof Error ? error.stack : String(error)}`);
      await delay(500);
    }
  }

  /** Runs several clients. Each makes a few calls, one after another. */
  async #clients(step: () => Promise<void>): Promise<void> {
    await Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        for (let count = 0; count < STEPS; count += 1) {
          await delay(this.#random() * PAUSE_MS);
          await step();
        }
      }),
    );
  }

  /**
   * Makes one attempt, which the client may give up.
   * @param read returns the result of an answer, or undefined if the answer leaves the outcome open
   */
  async #try<OperationCall, Result>(
    call: OperationCall,
    request: Call,
    read: (answer: Answer) => Result | undefined,
    { patient = false }: { readonly patient?: boolean } = {},
  ): Promise<Operation<OperationCall, Result>> {
    const sentAt = this.#ledger.now();
    const patienceMs = !patient && this.#random() < GIVES_UP ? this.#random() * PATIENCE_MS : undefined;
    const answer = await this.#calls.send(request, undefined, patienceMs);
    const result = answer === undefined || isLater(answer) ? undefined : read(answer);
    return result === undefined
      ? { call, sentAt }
      : { call, sentAt, answer: { at: this.#ledger.now(), result } };
  }

  /** Makes an attempt and repeats it until it is answered. `sentAt` is the time of the first attempt. */
  async #settle<OperationCall, Result>(
    call: OperationCall,
    request: Call,
    read: (answer: Answer) => Result | undefined,
  ): Promise<Operation<OperationCall, Result>> {
    const sentAt = this.#ledger.now();
    for (;;) {
      const operation = await this.#try(call, request, read, { patient: true });
      if (operation.answer !== undefined) return { ...operation, sentAt };
      await delay(300);
    }
  }

  #unexpected(what: string, answer: Answer): undefined {
    this.#ledger.violation(`${what} on ${answer.service}: ${answer.status} ${describe(answer)}`);
  }

  /** Plays reads, verifies and erasures of one proof. */
  async #proof(partner: KnownPartner): Promise<void> {
    const { apiKey, partnerId } = partner;
    const { proofId, file } = await this.#workload.issue(partner);
    const uploads: string[] = [];
    for (let count = 0; count < 2; count += 1) uploads.push(await this.#workload.upload(partner, file));
    const operations: ProofOperation[] = [];
    const path = `/v1/proofs/${proofId}`;
    const look: ProofOperation['call'] = { does: 'look' };
    const erase: ProofOperation['call'] = { does: 'erase' };
    const ways = [path, `/v1/records/${proofId}`, `${path}/asset`] as const;
    const seen = (answer: Answer): ProofResult | undefined =>
      answer.status === 200 || answer.status === 404
        ? { seen: answer.status === 200 }
        : this.#unexpected('a proof is read', answer);
    const verdict = (answer: Answer): ProofResult | undefined => {
      const { verdict: word } = answer.json as { readonly verdict?: string };
      return word === 'valid' || word === 'unregistered'
        ? { seen: word === 'valid' }
        : this.#unexpected(`a proof is verified (${word})`, answer);
    };
    const erased = (answer: Answer): ProofResult | undefined =>
      answer.status === 200
        ? (answer.json as Extract<ProofResult, { readonly outcome: unknown }>)
        : this.#unexpected('a proof is erased', answer);
    const deletion = { method: 'DELETE', path, apiKey };
    const verifies = [...uploads];
    await this.#clients(async () => {
      const dice = this.#random();
      const uploadId = dice < 0.2 ? verifies.pop() : undefined;
      if (uploadId !== undefined) this.#ledger.billAsked(partnerId);
      if (uploadId !== undefined)
        operations.push(
          await this.#try(look, { method: 'POST', path: '/v1/verify', apiKey, json: { uploadId } }, verdict),
        );
      else if (dice > 0.85) {
        this.#ledger.eraseAsked(proofId);
        operations.push(await this.#try(erase, deletion, erased));
      } else
        operations.push(
          await this.#try(look, { method: 'GET', path: ways[Math.floor(this.#random() * 3)]!, apiKey }, seen),
        );
    });
    // Verifies each upload again, so that the number of used units is known.
    for (const uploadId of uploads)
      if (!verifies.includes(uploadId)) {
        operations.push(
          await this.#settle(
            look,
            { method: 'POST', path: '/v1/verify', apiKey, json: { uploadId } },
            verdict,
          ),
        );
        this.#ledger.bill({ partnerId, uploadId });
      }
    if (this.#ledger.erasing.has(proofId)) {
      const last = await this.#settle(erase, deletion, erased);
      operations.push(last);
      const result = last.answer?.result;
      if (result !== undefined && 'erasedAt' in result)
        this.#ledger.erase({ proofId, partnerId, erasedAt: result.erasedAt });
    }
    operations.push(await this.#settle(look, { method: 'GET', path, apiKey }, seen));
    // An answer has more members than the model.
    this.#ledger.history({ of: 'proof', name: proofId, operations: operations.map(trimmed) });
  }

  /** Issues two songs under one Idempotency-Key. */
  async #issuing(partner: KnownPartner): Promise<void> {
    const { partnerId } = partner;
    this.#audio += 1;
    const audio = wav(3000 + 4 * this.#audio, {}, 1_000_000 + this.#audio);
    const idempotencyKey = randomUUID();
    let sha256 = '';
    const request = (song: string): Call => ({
      method: 'POST',
      listener: 'operator',
      path: `/operator/v1/proofs?partnerId=${partnerId}&song=${encodeURIComponent(song)}&fileName=take.wav`,
      headers: { 'content-type': 'application/octet-stream', 'idempotency-key': idempotencyKey },
      body: audio,
    });
    const read = (answer: Answer): IssuingResult | undefined => {
      if (answer.status === 201) {
        const { proofId, asset } = answer.json as { proofId: string; asset: { sha256: string } };
        sha256 = asset.sha256;
        return { proofId };
      }
      if (reasonOf(answer) === 'idempotency_in_progress') return undefined;
      if (answer.status === 409) return { refused: reasonOf(answer) ?? 'no reason' };
      return this.#unexpected('an issuing', answer);
    };
    const operations: IssuingOperation[] = [];
    const once = async (): Promise<void> => {
      await delay(this.#random() * PAUSE_MS);
      const song = SONGS[this.#random() < 0.5 ? 0 : 1];
      operations.push(await this.#try({ song }, request(song), read));
    };
    await Promise.all(Array.from({ length: CLIENTS }, once));
    for (const song of SONGS) {
      const last = await this.#settle({ song }, request(song), read);
      operations.push(last);
      const result = last.answer?.result;
      if (result === undefined || !('proofId' in result)) continue;
      this.#ledger.issue({ proofId: result.proofId, partnerId, sha256 });
    }
    this.#ledger.history({ of: 'issuing', name: idempotencyKey, operations });
  }

  /** @returns a new partner's key that clients contend for, and a second key that observes it */
  async #contendedKey(): Promise<{ readonly onlooker: string; readonly apiKey: string }> {
    for (;;) {
      const { partnerId, apiKey: onlooker } = await this.#workload.partner();
      const made = await this.#calls.send({
        method: 'POST',
        listener: 'operator',
        path: `/operator/v1/partners/${partnerId}/keys`,
        json: { name: 'contended' },
      });
      if (made?.status === 201)
        return { onlooker, apiKey: (made.json as { readonly apiKey: string }).apiKey };
      if (made !== undefined && !isLater(made))
        throw this.#calls.fail(`a key was answered ${made.status} ${describe(made)}`);
      // A lost creation could add a key to the list later. The next attempt uses another partner.
      await delay(300);
    }
  }

  /** Rotates, revokes and uses one key at once, while another key of the partner observes it. */
  async #key(): Promise<void> {
    // The observer is the key that the run keeps, because the other one may be revoked.
    const { onlooker, apiKey } = await this.#contendedKey();
    const list = async () =>
      (await this.#calls.settle({ method: 'GET', path: '/v1/partner/keys', apiKey: onlooker }, [200]))
        .json as { readonly keys: readonly { readonly keyId: string }[] };
    const before = new Set((await list()).keys.map(({ keyId }) => keyId));
    const keyId = apiKey.split('_').slice(2, 4).join('_');
    const forbidden = (answer: Answer): KeyResult | undefined =>
      answer.status === 403 ? { refused: 'forbidden' } : this.#unexpected('a key', answer);
    const read: Readonly<Record<KeyCall['does'], (answer: Answer) => KeyResult | undefined>> = {
      use: (answer) => (answer.status === 200 ? { done: true } : forbidden(answer)),
      revoke: (answer) => (answer.status === 200 ? { done: true } : this.#unexpected('a revocation', answer)),
      rotate: (answer) => {
        if (answer.status === 201) return { successor: (answer.json as { readonly keyId: string }).keyId };
        if (answer.status !== 409) return forbidden(answer);
        const reason = reasonOf(answer);
        return reason === 'rotation_in_progress' ? undefined : { refused: reason ?? 'no reason' };
      },
      list: (answer) => {
        const { keys } = answer.json as {
          readonly keys?: readonly { readonly keyId: string; readonly status: string }[];
        };
        if (keys === undefined) return this.#unexpected('a list of keys', answer);
        return {
          status: keys.find((key) => key.keyId === keyId)?.status ?? 'missing',
          successors: keys.flatMap((key) => (before.has(key.keyId) ? [] : key.keyId)),
        };
      },
    };
    const idempotencyKeys = [randomUUID(), randomUUID()];
    const request = (call: KeyCall): Call => {
      switch (call.does) {
        case 'use':
          return { method: 'GET', path: '/v1/partner/keys?limit=1', apiKey };
        case 'revoke':
          return { method: 'DELETE', path: `/v1/partner/keys/${keyId}`, apiKey: onlooker };
        case 'rotate':
          return {
            method: 'POST',
            path: '/v1/partner/keys/rotate',
            apiKey,
            headers: { 'idempotency-key': call.idempotencyKey },
          };
        default:
          return { method: 'GET', path: '/v1/partner/keys', apiKey: onlooker };
      }
    };
    const operations: KeyOperation[] = [];
    await this.#clients(async () => {
      const dice = this.#random();
      const call: KeyCall =
        dice < 0.25
          ? { does: 'rotate', idempotencyKey: idempotencyKeys[this.#random() < 0.5 ? 0 : 1]! }
          : dice < 0.32
            ? { does: 'revoke' }
            : dice < 0.65
              ? { does: 'use' }
              : { does: 'list' };
      operations.push(await this.#try(call, request(call), read[call.does]));
    });
    const last: KeyCall = { does: 'list' };
    operations.push(await this.#settle(last, request(last), read.list));
    this.#ledger.history({ of: 'key', name: keyId, operations });
  }

  /** Creates, resolves and reads reviews of one proof with the same bindings, while the proof is erased. */
  async #place(partner: KnownPartner): Promise<void> {
    const { apiKey, partnerId } = partner;
    const { proofId } = await this.#workload.issue(partner);
    const bindings = {
      creatorId: `creator-${randomUUID()}`,
      accountId: 'account',
      submissionId: 'submission',
      trackId: 'track',
    };
    const known: string[] = [];
    const request = (call: PlaceCall): Call => {
      switch (call.does) {
        case 'create':
          return { method: 'POST', path: '/v1/partner/reviews', apiKey, json: { proofId, bindings } };
        case 'erase':
          return { method: 'DELETE', path: `/v1/proofs/${proofId}`, apiKey };
        case 'resolve':
          return {
            method: 'POST',
            path: `/v1/partner/reviews/${call.reviewId}/resolve`,
            apiKey,
            json: { outcome: 'accepted' },
          };
        default:
          return { method: 'GET', path: `/v1/partner/reviews/${call.reviewId}`, apiKey };
      }
    };
    const read = (call: PlaceCall, answer: Answer): PlaceResult | undefined => {
      if (call.does === 'erase') {
        if (answer.status !== 200) return this.#unexpected('a proof is erased', answer);
        const { erasedAt } = answer.json as { readonly erasedAt: number };
        if (!this.#ledger.erased.some((entry) => entry.proofId === proofId))
          this.#ledger.erase({ proofId, partnerId, erasedAt });
        return { erased: true };
      }
      if (answer.status === 404) return { refused: 'not_found' };
      if (answer.status === 409) return { refused: reasonOf(answer) ?? 'no reason' };
      if (answer.status !== (call.does === 'create' ? 201 : 200))
        return this.#unexpected(`${call.does} of a review`, answer);
      const { reviewId, outcome = 'open' } = answer.json as {
        readonly reviewId: string;
        readonly outcome?: 'accepted';
      };
      if (call.does !== 'create') return { outcome };
      known.push(reviewId);
      this.#ledger.log(partnerId, `review_created ${reviewId}`, answer.process);
      return { reviewId };
    };
    const operations: PlaceOperation[] = [];
    const attempt = async (call: PlaceCall, patient = false): Promise<boolean> => {
      const operation = await this.#try(call, request(call), (answer) => read(call, answer), { patient });
      operations.push(operation);
      return operation.answer !== undefined;
    };
    /** Repeats a call until it is answered. Each attempt is an operation: a repeated creation makes a new review. */
    const settle = async (call: PlaceCall): Promise<void> => {
      while (!(await attempt(call, true))) await delay(300);
    };
    await this.#clients(async () => {
      const dice = this.#random();
      const reviewId = known[Math.floor(this.#random() * known.length)];
      if (dice > 0.95) this.#ledger.eraseAsked(proofId);
      await attempt(
        dice > 0.95
          ? { does: 'erase' }
          : dice < 0.45 || reviewId === undefined
            ? { does: 'create' }
            : { does: dice < 0.7 ? 'resolve' : 'read', reviewId },
      );
    });
    if (this.#ledger.erasing.has(proofId)) await settle({ does: 'erase' });
    await settle({ does: 'create' });
    for (const reviewId of [...known]) await settle({ does: 'read', reviewId });
    this.#ledger.unknownReviews += operations.filter(
      ({ call, answer }) => call.does === 'create' && answer === undefined,
    ).length;
    for (const reviewId of known)
      this.#ledger.review({
        reviewId,
        proofId,
        partnerId,
        operations: operations.flatMap((operation) => ofReview(operation, reviewId)),
      });
    this.#ledger.history({ of: 'place', name: proofId, operations });
  }

  /** Verifies more uploads than units are left, some of them twice. */
  async #quota(issuer: KnownPartner, { partner, used, limit }: Month): Promise<void> {
    const { apiKey, partnerId } = partner;
    // Any key may verify any file. The last checks verify the issuer's proofs against another month.
    const { file } = await this.#workload.issue(issuer);
    const uploads: string[] = [];
    while (uploads.length < UPLOADS) uploads.push(await this.#workload.upload(partner, file));
    const operations: QuotaOperation[] = [];
    const verify = (uploadId: string): readonly [QuotaOperation['call'], Call] => [
      { does: 'verify', uploadId },
      { method: 'POST', path: '/v1/verify', apiKey, json: { uploadId } },
    ];
    const billed = (answer: Answer): QuotaResult | undefined => {
      if (answer.status === 200) return { done: true };
      if (reasonOf(answer) === 'quota_exceeded') return { refused: 'quota_exceeded' };
      return this.#unexpected('a verify near the end of the month', answer);
    };
    const counted = (answer: Answer): QuotaResult | undefined =>
      answer.status === 200
        ? { used: (answer.json as { readonly used: number }).used }
        : this.#unexpected('a usage', answer);
    const count: readonly [QuotaOperation['call'], Call] = [
      { does: 'read' },
      { method: 'GET', path: '/v1/partner/usage?days=1', apiKey },
    ];
    const waiting = [...uploads];
    await Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        for (let uploadId = waiting.pop(); uploadId !== undefined; uploadId = waiting.pop()) {
          await delay(this.#random() * PAUSE_MS);
          operations.push(await this.#try(...verify(uploadId), billed));
          if (this.#random() < 0.3) operations.push(await this.#try(...count, counted));
        }
      }),
    );
    // Repeats every verify that was given up or refused before its upload got a unit.
    for (const uploadId of uploads) {
      const last = await this.#settle(...verify(uploadId), billed);
      operations.push(last);
      if (last.answer !== undefined && 'done' in last.answer.result)
        this.#ledger.bill({ partnerId, uploadId });
    }
    operations.push(await this.#settle(...count, counted));
    this.#ledger.history({ of: 'quota', name: partnerId, used, limit, operations });
  }

  /** Identifies a file by its digest before, during and after the erasure of its proof. */
  async #identify(partner: KnownPartner): Promise<void> {
    const { partnerId } = partner;
    const { proofId, file } = await this.#workload.issue(partner);
    const ask = async (): Promise<void> => {
      const uploadId = await this.#workload.upload(partner, file, { purpose: 'identify' });
      this.#ledger.billAsked(partnerId);
      const sentAt = this.#ledger.now();
      const { matches } = (
        await this.#calls.settle(
          { method: 'POST', path: '/v1/recordings/identify', apiKey: partner.apiKey, json: { uploadId } },
          [200],
        )
      ).json as { readonly matches: readonly { readonly proofId: string }[] };
      this.#ledger.bill({ partnerId, uploadId });
      const read = { sentAt, at: this.#ledger.now(), seen: matches.map((match) => match.proofId) };
      // No other proof has this audio.
      const members = this.#ledger.members(partnerId).filter(({ name }) => name === proofId);
      for (const fault of faultsOfSet(read, members)) this.#ledger.violation(`an identify: ${fault}`);
      for (const name of strangersIn(read, members))
        this.#ledger.violation(`an identify: ${name} has other audio`);
      this.#ledger.count('identified');
    };
    await ask();
    await Promise.all([ask(), this.#workload.erase(partner, proofId)]);
    await ask();
  }

  /** Reads the end of an audit log, with some entries that were read before. */
  async #readLog(): Promise<void> {
    const { partners, logReads, lastLogged } = this.#ledger;
    // Half of the reads are of the log that grew last, from the process whose answer promised the entry.
    const grown = this.#random() < 0.5 ? lastLogged : undefined;
    const { partnerId } = grown ?? partners[Math.floor(this.#random() * partners.length)]!;
    const service = this.#calls.services.find(({ name }) => grown?.process.startsWith(`${name}/`));
    const last = logReads.get(partnerId)?.at(-1);
    const from = last === undefined ? 0 : Math.max(0, last.from + last.entries.length - AUDIT_OVERLAP);
    const sentAt = this.#ledger.now();
    const answer = await this.#calls.send(
      {
        method: 'GET',
        listener: 'operator',
        path: `/operator/v1/partners/${partnerId}/audit?from=${from + 1}&limit=${AUDIT_PAGE}`,
      },
      service,
    );
    if (answer === undefined || isLater(answer)) return void (await delay(500));
    if (answer.status !== 200)
      throw this.#calls.fail(`a log was answered ${answer.status} ${describe(answer)}`);
    const { entries } = answer.json as {
      readonly entries: readonly { readonly action: string; readonly subjects: readonly string[] }[];
    };
    this.#ledger.logRead(partnerId, {
      sentAt,
      process: answer.process,
      from,
      entries: entries.map(textOfEntry),
      whole: entries.length < AUDIT_PAGE,
    });
    this.#ledger.count('reads of audit logs');
    await delay(500);
  }
}

/**
 * Converts an operation to the model of one review. Returns nothing if the operation is on another review.
 */
function ofReview({ call, sentAt, answer }: PlaceOperation, reviewId: string): readonly ReviewOperation[] {
  if (call.does === 'create' || ('reviewId' in call && call.reviewId !== reviewId)) return [];
  const same: ReviewOperation['call'] =
    call.does === 'resolve'
      ? { does: 'resolve', outcome: 'accepted' }
      : { does: call.does === 'erase' ? 'erase' : 'read' };
  if (answer === undefined) return [{ call: same, sentAt }];
  const { at, result } = answer;
  if ('reviewId' in result) return [];
  return [
    {
      call: same,
      sentAt,
      answer: { at, result: 'outcome' in result ? { state: { ...result, evidence: {} } } : result },
    },
  ];
}

function trimmed({ call, sentAt, answer }: ProofOperation): ProofOperation {
  if (answer === undefined) return { call, sentAt };
  const { at, result } = answer;
  return {
    call,
    sentAt,
    answer: {
      at,
      result:
        'seen' in result ? { seen: result.seen } : { outcome: result.outcome, erasedAt: result.erasedAt },
    },
  };
}
