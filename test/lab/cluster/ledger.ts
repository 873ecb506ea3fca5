/** A record of a run's answers: all acknowledgements, and all answers that violate the contract. */
import { appendFileSync, writeFileSync } from 'node:fs';
import type { History, ReviewHistory } from './history.js';
import type { Logged, LogRead, Member } from './sets.js';

export interface IssuedEntry {
  readonly proofId: string;
  readonly partnerId: string;
  /** The SHA-256 of the asset. */
  readonly sha256: string;
  /**
   * The time of the acknowledgement, in milliseconds of the run's clock. All times here are of this clock.
   */
  readonly at: number;
}

export interface ErasedEntry {
  readonly proofId: string;
  readonly partnerId: string;
  /** The time in the answer of the service, in Unix seconds. */
  readonly erasedAt: number;
  readonly at: number;
}

/** A verify that was answered. Each upload is billed once. */
export interface BilledEntry {
  readonly partnerId: string;
  readonly uploadId: string;
}

export interface RotatedEntry {
  readonly partnerId: string;
  /** The key that was rotated. */
  readonly keyId: string;
  readonly newKeyId: string;
  readonly newApiKey: string;
}

export interface KnownPartner {
  readonly partnerId: string;
  readonly apiKey: string;
}

export interface Stranger {
  readonly partnerId: string;
  readonly name: string;
  /** The list in which the name was seen. */
  readonly where: string;
}

export interface Refusal {
  readonly answered: boolean;
  /** The call, the called service, the reason and the duration. */
  readonly what: string;
  readonly at: number;
}

export class Ledger {
  readonly partners: KnownPartner[] = [];
  readonly issued: IssuedEntry[] = [];
  readonly erased: ErasedEntry[] = [];
  readonly billed: BilledEntry[] = [];
  readonly rotated: RotatedEntry[] = [];
  readonly reviews: ReviewHistory[] = [];
  readonly histories: History[] = [];
  /** The time of the first request to erase each proof, whether it was answered or not. */
  readonly erasing = new Map<string, number>();
  /** The number of uploads with a billed call, answered or not, by partner. */
  readonly asked = new Map<string, number>();
  /** The reads of audit logs, by partner. */
  readonly logReads = new Map<string, LogRead[]>();
  /** The audit entries that answers promise, by partner. */
  readonly logged = new Map<string, Logged[]>();
  /** The latest of these entries. */
  lastLogged: { readonly partnerId: string; readonly process: string } | undefined;
  /** Names in lists that no answer had contained before. */
  readonly strangers: Stranger[] = [];
  /** The number of unanswered review creations. Each of these reviews may exist or not. */
  unknownReviews = 0;
  readonly violations: string[] = [];
  /** The calls that were answered "later" or not at all, in order. */
  readonly refusals: Refusal[] = [];
  readonly #counts = new Map<string, number>();
  readonly #disturbances = {
    servers: { underWay: 0, over: -Infinity },
    members: { underWay: 0, over: -Infinity },
  };
  readonly #file: string | undefined;

  /** @param file gets one line of JSON for each entry */
  constructor(file?: string) {
    this.#file = file;
    if (file !== undefined) writeFileSync(file, '');
  }

  now(): number {
    return performance.now();
  }

  partner(entry: KnownPartner): void {
    this.partners.push(entry);
    this.#write('partner', { partnerId: entry.partnerId });
  }

  issue(entry: Omit<IssuedEntry, 'at'>): void {
    this.issued.push({ ...entry, at: this.now() });
    this.#write('issued', entry);
  }

  erase(entry: Omit<ErasedEntry, 'at'>): void {
    this.erased.push({ ...entry, at: this.now() });
    this.#write('erased', entry);
  }

  bill(entry: BilledEntry): void {
    this.billed.push(entry);
    this.#write('billed', entry);
  }

  rotate(entry: RotatedEntry): void {
    this.rotated.push(entry);
    this.#write('rotated', { ...entry, newApiKey: undefined });
  }

  review(history: ReviewHistory): void {
    this.reviews.push(history);
    this.#write('review', history);
  }

  history(history: History): void {
    this.histories.push(history);
    this.count(`histories of ${history.of}`);
    this.count('calls of histories', history.operations.length);
    this.#write('history', history);
  }

  billAsked(partnerId: string): void {
    this.asked.set(partnerId, (this.asked.get(partnerId) ?? 0) + 1);
  }

  eraseAsked(proofId: string): void {
    if (!this.erasing.has(proofId)) this.erasing.set(proofId, this.now());
  }

  /** Returns the acknowledged proofs of a partner. */
  members(partnerId: string): readonly Member[] {
    const removed = new Map(this.erased.map(({ proofId, at }) => [proofId, at]));
    return this.issued
      .filter((entry) => entry.partnerId === partnerId)
      .map(({ proofId, at }) => ({
        name: proofId,
        addedAt: at,
        removeAskedAt: this.erasing.get(proofId),
        removedAt: removed.get(proofId),
      }));
  }

  /** Records that an answer promises an audit entry. */
  log(partnerId: string, entry: string, process: string | undefined): void {
    const logged = this.logged.get(partnerId) ?? [];
    logged.push({ entry, at: this.now(), process });
    this.logged.set(partnerId, logged);
    if (process !== undefined) this.lastLogged = { partnerId, process };
  }

  /**
   * Records the start of a fault.
   * @returns a function that records its end
   */
  disturb(what: 'servers' | 'members'): () => void {
    const disturbance = this.#disturbances[what];
    disturbance.underWay += 1;
    return () => {
      disturbance.underWay -= 1;
      disturbance.over = this.now();
    };
  }

  logRead(partnerId: string, given: Omit<LogRead, 'at' | 'serversQuietSince' | 'quietSince'>): void {
    const since = ({ underWay, over }: { readonly underWay: number; readonly over: number }): number =>
      underWay > 0 ? Infinity : over;
    const { servers, members } = this.#disturbances;
    const read = {
      ...given,
      at: this.now(),
      serversQuietSince: since(servers),
      quietSince: Math.max(since(servers), since(members)),
    };
    const reads = this.logReads.get(partnerId) ?? [];
    reads.push(read);
    this.logReads.set(partnerId, reads);
  }

  violation(what: string): void {
    this.violations.push(what);
    this.#write('violation', { what });
  }

  refusal(refusal: Omit<Refusal, 'at'>): void {
    this.refusals.push({ ...refusal, at: this.now() });
    this.#write('refusal', refusal);
  }

  count(what: string, by = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + by);
  }

  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #write(kind: string, entry: object): void {
    if (this.#file !== undefined)
      appendFileSync(this.#file, `${JSON.stringify({ kind, at: Math.round(this.now()), ...entry })}\n`);
  }
}
