import type { PartnerKey } from '../../../src/service/domain/partner.js';
import type { Proof } from '../../../src/service/domain/proof.js';
import type { ReviewCase } from '../../../src/service/domain/review.js';
import {
  type EvidenceState,
  faultOfHistory,
  type History,
  type IssuingOperation,
  type KeyOperation,
  type PlaceOperation,
  type ProofOperation,
  type QuotaOperation,
  type ReviewOperation,
  type ReviewState,
} from '../cluster/history.js';
import type { Operation } from '../cluster/linearizable.js';

/** A call as its client saw it. */
export interface Seen<Value> {
  readonly sentAt: number;
  /** Absent if no answer came, or if the answer leaves the outcome open. */
  readonly answer?: { readonly at: number; readonly result: Value | Refusal };
}

/** An answer that refuses. */
export class Refusal {
  readonly code: string;
  readonly reason: string | undefined;

  constructor(code: string, reason: string | undefined) {
    this.code = code;
    this.reason = reason;
  }
}

/** The final state, which must follow from the calls as well. */
export interface End {
  readonly at: number;
  proof(proofId: string): Promise<Proof | undefined>;
  review(partnerId: string, reviewId: string): Promise<ReviewCase | undefined>;
  key(keyId: string): Promise<{ readonly key?: PartnerKey; readonly successor?: string }>;
  used(partnerId: string): Promise<number>;
}

interface ReviewSeen {
  readonly partnerId: string;
  readonly proofId: string;
  readonly operations: ReviewOperation[];
}

/** The calls of all clients, by thing. */
export class Witness {
  readonly #proofs = new Map<string, ProofOperation[]>();
  readonly #keys = new Map<string, KeyOperation[]>();
  readonly #quotas = new Map<string, { readonly limit: number; readonly operations: QuotaOperation[] }>();
  readonly #issuings = new Map<string, IssuingOperation[]>();
  readonly #reviews = new Map<string, ReviewSeen>();
  readonly #places = new Map<string, { readonly proofId: string; readonly operations: PlaceOperation[] }>();

  proof(proofId: string, operation: ProofOperation): void {
    listIn(this.#proofs, proofId).push(operation);
  }

  key(keyId: string, operation: KeyOperation): void {
    listIn(this.#keys, keyId).push(operation);
  }

  quota(partnerId: string, limit: number, operation: QuotaOperation): void {
    const seen = this.#quotas.get(partnerId);
    if (seen === undefined) this.#quotas.set(partnerId, { limit, operations: [operation] });
    else seen.operations.push(operation);
  }

  issuing(idempotencyKey: string, operation: IssuingOperation): void {
    listIn(this.#issuings, idempotencyKey).push(operation);
  }

  /** @param of the review, and whose it is */
  review({ reviewId, partnerId, proofId }: Named, operation: ReviewOperation): void {
    const seen = this.#reviews.get(reviewId);
    if (seen === undefined) this.#reviews.set(reviewId, { partnerId, proofId, operations: [operation] });
    else seen.operations.push(operation);
  }

  /** Records an operation on a place of an unresolved review. */
  place(name: string, proofId: string, operation: PlaceOperation): void {
    const seen = this.#places.get(name);
    if (seen === undefined) this.#places.set(name, { proofId, operations: [operation] });
    else seen.operations.push(operation);
  }

  /** @returns what no order of the calls explains */
  async faults(end: End): Promise<readonly string[]> {
    const faults: string[] = [];
    for await (const history of this.#histories(end)) {
      const fault = faultOfHistory(history);
      if (fault !== undefined) faults.push(`the ${history.of} ${history.name}: ${fault}`);
    }
    return faults;
  }

  async *#histories(end: End): AsyncGenerator<History> {
    const last = <Call, Result>(call: Call, result: Result): Operation<Call, Result> => ({
      call,
      sentAt: end.at,
      answer: { at: end.at, result },
    });
    for (const [proofId, operations] of this.#proofs) {
      const seen = (await end.proof(proofId))?.state === 'issued';
      yield { of: 'proof', name: proofId, operations: [...operations, last({ does: 'look' }, { seen })] };
    }
    for (const [keyId, operations] of this.#keys) {
      const { key, successor } = await end.key(keyId);
      const status =
        key?.revokedAt !== undefined ? 'revoked' : key?.expiresAt !== undefined ? 'expiring' : 'active';
      const successors = successor === undefined ? [] : [successor];
      yield {
        of: 'key',
        name: keyId,
        operations: [...operations, last({ does: 'list' }, { status, successors })],
      };
    }
    for (const [partnerId, { limit, operations }] of this.#quotas) {
      const read = last({ does: 'read' } as const, { used: await end.used(partnerId) });
      yield { of: 'quota', name: partnerId, used: 0, limit, operations: [...operations, read] };
    }
    for (const [name, operations] of this.#issuings)
      yield { of: 'issuing', name, operations: this.#untilErased(operations) };
    for (const [reviewId, { partnerId, proofId, operations }] of this.#reviews) {
      const review = await end.review(partnerId, reviewId);
      const state = review === undefined ? { refused: 'not_found' } : { state: reviewStateOf(review) };
      const erasures = this.#erasures(proofId, { erased: true } as const);
      yield {
        of: 'review',
        name: reviewId,
        operations: [...operations, ...erasures, last({ does: 'read' }, state)],
      };
    }
    for (const [name, { proofId, operations }] of this.#places)
      yield {
        of: 'place',
        name,
        operations: [...operations, ...this.#erasures(proofId, { erased: true } as const)],
      };
  }

  /** Returns the erasures of a proof, which also end its reviews. */
  #erasures<Result>(
    proofId: string,
    result: Result,
  ): readonly Operation<{ readonly does: 'erase' }, Result>[] {
    return (this.#proofs.get(proofId) ?? []).flatMap(({ call: { does }, sentAt, answer }) =>
      does === 'erase'
        ? [{ call: { does }, sentAt, ...(answer && { answer: { at: answer.at, result } }) }]
        : [],
    );
  }

  /**
   * Returns the issuings before the first request to erase the result. The erasure deletes the record at an
   * unspecified time.
   */
  #untilErased(operations: readonly IssuingOperation[]): readonly IssuingOperation[] {
    const issued = operations.flatMap(({ answer }) =>
      answer !== undefined && 'proofId' in answer.result ? [answer.result.proofId] : [],
    );
    const erasedAt = Math.min(
      ...issued.flatMap((proofId) => this.#erasures(proofId, undefined).map(({ sentAt }) => sentAt)),
    );
    return operations
      .filter(({ sentAt }) => sentAt < erasedAt)
      .map(({ call, sentAt, answer }) =>
        answer !== undefined && answer.at < erasedAt ? { call, sentAt, answer } : { call, sentAt },
      );
  }
}

interface Named {
  readonly reviewId: string;
  readonly partnerId: string;
  readonly proofId: string;
}

/**
 * Converts a call to its model.
 * @param read returns the result of an answer, or undefined if the answer leaves the outcome open
 */
export function operationOf<Call, Result, Value>(
  call: Call,
  { sentAt, answer }: Seen<Value>,
  read: (result: Value | Refusal) => Result | undefined,
): Operation<Call, Result> {
  const result = answer && read(answer.result);
  return result === undefined ? { call, sentAt } : { call, sentAt, answer: { at: answer!.at, result } };
}

export function reviewStateOf({
  outcome,
  evidenceRequests,
}: Pick<ReviewCase, 'outcome' | 'evidenceRequests'>): ReviewState {
  return {
    outcome: outcome ?? 'open',
    evidence: Object.fromEntries(
      evidenceRequests.map(({ kind, status }): [string, EvidenceState] => [kind, status]),
    ),
  };
}

function listIn<Item>(lists: Map<string, Item[]>, name: string): Item[] {
  let list = lists.get(name);
  if (list === undefined) {
    list = [];
    lists.set(name, list);
  }
  return list;
}
