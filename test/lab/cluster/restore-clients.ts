/**
 * Clients that issue, erase and verify before, during and after the restore of a backup. Each call is sent
 * once, and every answer is recorded. Data that the backup lacks may be lost afterwards.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { wav } from '../../fixtures/wav.js';
import { type Answer, type Call, type Calls, describe, isLater } from './calls.js';
import type { Acknowledged, VerifiedEntry } from './judge-restored.js';
import type { ErasedEntry, IssuedEntry, KnownPartner, Ledger } from './ledger.js';

/** The share of proofs that clients may erase. */
const ERASABLE = 0.5;
/** The share of erasures that are repeated. */
const ERASED_AGAIN = 0.3;
const PAUSE_MS = 100;
const ATTEMPTS = 50;
/** The number of earlier proofs whose file is kept. */
const KEPT_OF_BEFORE = 20;
const LANES = 2;

export class RestoreClients {
  readonly #calls: Calls;
  readonly #ledger: Ledger;
  readonly #random: () => number;
  readonly #partners: readonly KnownPartner[];
  readonly #issued: IssuedEntry[] = [];
  readonly #erased: ErasedEntry[] = [];
  readonly #erasing = new Map<string, number>();
  readonly #notFound: { readonly proofId: string; readonly sentAt: number }[] = [];
  readonly #verified: VerifiedEntry[] = [];
  readonly #known = new Map<string, KnownPartner>();
  /** The deliverables, by proof. */
  readonly #files = new Map<string, Uint8Array>();
  readonly #erasable: IssuedEntry[] = [];
  /** Proofs that stay until the backup contains them. */
  readonly #later: IssuedEntry[] = [];
  #isLater = false;
  #audio = 0;
  #stopped = false;

  constructor(calls: Calls, ledger: Ledger, random: () => number, partners: readonly KnownPartner[]) {
    this.#calls = calls;
    this.#ledger = ledger;
    this.#random = random;
    this.#partners = partners;
  }

  /** Takes over what was acknowledged before. */
  async know({ partners, issued, erased, erasing, billed }: Ledger): Promise<void> {
    for (const partner of partners) this.#known.set(partner.partnerId, partner);
    this.#issued.push(...issued);
    this.#erased.push(...erased);
    for (const [proofId, at] of erasing) this.#erasing.set(proofId, at);
    const uploads = new Map(billed.map(({ partnerId, uploadId }) => [`${partnerId} ${uploadId}`, partnerId]));
    for (const partnerId of uploads.values()) this.#verified.push({ partnerId, sentAt: 0, at: 0 });
    const left = issued.filter(({ proofId }) => !erasing.has(proofId));
    for (const entry of left) this.#mayErase(entry);
    for (const { proofId, partnerId } of left.slice(-KEPT_OF_BEFORE))
      await this.#keepFile(proofId, partnerId);
  }

  get acknowledged(): Pick<
    Acknowledged,
    'partners' | 'issued' | 'erased' | 'erasing' | 'notFound' | 'verified'
  > {
    return {
      partners: [...this.#known.values()],
      issued: this.#issued,
      erased: this.#erased,
      erasing: this.#erasing,
      notFound: this.#notFound,
      verified: this.#verified,
    };
  }

  /** Resolves after `stop`, when every call was answered or given up. */
  async run(): Promise<void> {
    const lanes = [() => this.#issue(), () => this.#erase(), () => this.#verifyOne()];
    await Promise.all(
      lanes.flatMap((lane) =>
        Array.from({ length: LANES }, async () => {
          for (; !this.#stopped; await delay(PAUSE_MS)) await lane();
        }),
      ),
    );
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Erases the proofs that had to stay until the backup contains them. */
  async eraseBackedUp(limitMs: number): Promise<void> {
    this.#isLater = true;
    const proofs = this.#later.splice(0);
    this.#erasable.push(...proofs);

    for (const deadline = Date.now() + limitMs; ; await delay(PAUSE_MS)) {
      const gone = new Set(this.#erased.map(({ proofId }) => proofId));
      if (proofs.every(({ proofId }) => gone.has(proofId))) return;
      if (Date.now() > deadline) throw new Error('proofs of the backup are not erased');
    }
  }

  /**
   * Resolves when `more` calls of each kind were acknowledged.
   * @throws Error after `limitMs`
   */
  async until(more: number, limitMs: number): Promise<void> {
    const counts = () => [this.#issued.length, this.#erased.length, this.#verified.length];
    const goals = counts().map((count) => count + more);
    for (const deadline = Date.now() + limitMs; ; await delay(PAUSE_MS)) {
      if (counts().every((count, index) => count >= goals[index]!)) return;
      if (Date.now() > deadline)
        throw new Error(`issued, erased, verified: ${counts().join(', ')} of ${goals.join(', ')}`);
    }
  }

  /**
   * Verifies kept files, of erased and of other proofs.
   * @returns verdicts by proof
   */
  async verifyAgain(most: number): Promise<ReadonlyMap<string, string>> {
    const verdicts = new Map<string, string>();
    const kept = [...this.#files.keys()];
    const gone = new Set(this.#erased.map(({ proofId }) => proofId));
    for (const proofId of [
      ...kept.filter((id) => gone.has(id)).slice(-most),
      ...kept.filter((id) => !gone.has(id)).slice(0, most),
      ...kept.filter((id) => !gone.has(id)).slice(-most),
    ])
      for (let attempt = 0; attempt < ATTEMPTS && !verdicts.has(proofId); attempt += 1) {
        const verdict = await this.#verify(proofId);
        if (verdict === undefined) await delay(PAUSE_MS);
        else verdicts.set(proofId, verdict);
      }
    return verdicts;
  }

  /** @returns undefined if the answer was "later", or none came */
  async #try(call: Call): Promise<Answer | undefined> {
    const answer = await this.#calls.send(call);
    return answer === undefined || isLater(answer) ? undefined : answer;
  }

  #unexpected(what: string, answer: Answer): void {
    this.#ledger.violation(
      `${what} around a restore: ${answer.status} ${describe(answer)} on ${answer.service}`,
    );
  }

  async #keepFile(proofId: string, partnerId: string): Promise<void> {
    const { apiKey } = this.#known.get(partnerId)!;
    const answer = await this.#try({ method: 'GET', path: `/v1/proofs/${proofId}/asset`, apiKey });
    if (answer?.status === 200) this.#files.set(proofId, answer.bytes);
  }

  async #issue(): Promise<void> {
    const { partnerId } = this.#oneOf(this.#partners);
    this.#audio += 1;
    const answer = await this.#try({
      method: 'POST',
      listener: 'operator',
      path: `/operator/v1/proofs?partnerId=${partnerId}&song=Song&fileName=take.wav`,
      headers: { 'content-type': 'application/octet-stream', 'idempotency-key': randomUUID() },
      body: wav(4000 + 4 * this.#audio, {}, 2_000_000 + this.#audio),
    });
    if (answer === undefined) return;
    if (answer.status !== 201) return this.#unexpected('an issuing', answer);
    const { proofId, asset } = answer.json as { proofId: string; asset: { sha256: string } };
    const entry = { proofId, partnerId, sha256: asset.sha256, at: this.#ledger.now() };
    this.#issued.push(entry);
    this.#ledger.count('issued around a restore');
    await this.#keepFile(proofId, partnerId);
    this.#mayErase(entry);
  }

  #mayErase(entry: IssuedEntry): void {
    const dice = this.#random();
    if (dice > ERASABLE) return;
    if (dice < ERASABLE / 2 && !this.#isLater) this.#later.push(entry);
    else this.#erasable.push(entry);
  }

  /** Erases a proof. Some erasures are repeated. The answer has the time of the first. */
  async #erase(): Promise<void> {
    if (this.#erasable.length === 0) return;
    const { proofId, partnerId } = this.#oneOf(this.#erasable);
    const { apiKey } = this.#known.get(partnerId)!;
    const sentAt = this.#ledger.now();
    if (!this.#erasing.has(proofId)) this.#erasing.set(proofId, sentAt);
    const answer = await this.#try({ method: 'DELETE', path: `/v1/proofs/${proofId}`, apiKey });
    if (answer === undefined) return;
    if (answer.status === 200) {
      const { erasedAt } = answer.json as { erasedAt: number };
      this.#erased.push({ proofId, partnerId, erasedAt, at: this.#ledger.now() });
      this.#ledger.count('erased around a restore');
    } else if (answer.status === 404) this.#notFound.push({ proofId, sentAt });
    else return this.#unexpected('an erasure', answer);
    const place = this.#erasable.findIndex((entry) => entry.proofId === proofId);
    if (place >= 0 && this.#random() > ERASED_AGAIN) this.#erasable.splice(place, 1);
  }

  async #verifyOne(): Promise<void> {
    const proofIds = [...this.#files.keys()];
    if (proofIds.length > 0) await this.#verify(this.#oneOf(proofIds));
  }

  /**
   * Verifies a file without repeating a call, so it is billed at most once.
   * @returns undefined if no verdict came
   */
  async #verify(proofId: string): Promise<string | undefined> {
    const partner = this.#oneOf(this.#partners);
    const { apiKey, partnerId } = partner;
    const slot = await this.#try({
      method: 'POST',
      path: '/v1/uploads',
      apiKey,
      json: { purpose: 'verify' },
    });
    if (slot?.status !== 201) return undefined;
    const { uploadId, url, fields } = slot.json as {
      readonly uploadId: string;
      readonly url: string;
      readonly fields: Readonly<Record<string, string>>;
    };
    const body = new FormData();
    for (const [name, value] of Object.entries(fields)) body.set(name, value);
    body.set('file', new Blob([this.#files.get(proofId) as Uint8Array<ArrayBuffer>]), 'take.wav');
    // The upload slot is lost with the store that had it.
    if ((await this.#try({ method: 'POST', path: new URL(url).pathname, body }))?.status !== 201)
      return undefined;
    const entry = { partnerId, proofId, sentAt: this.#ledger.now() };
    const answer = await this.#try({ method: 'POST', path: '/v1/verify', apiKey, json: { uploadId } });
    if (answer?.status !== 200) {
      this.#verified.push(entry);
      return undefined;
    }
    const { verdict } = answer.json as { verdict: string };
    this.#verified.push({ ...entry, at: this.#ledger.now(), verdict });
    this.#ledger.count('verified around a restore');
    return verdict;
  }

  #oneOf<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.#random() * values.length)]!;
  }
}
