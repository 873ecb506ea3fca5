import type { EvidenceKind } from '../../../src/service/domain/review.js';
import { Witness } from './witness.js';

/** What clients know of a proof. Times are milliseconds of the right clock. */
export interface ProofFacts {
  readonly proofId: string;
  readonly partnerId: string;
  /** The time at which the issuing was acknowledged. */
  issuedAt?: number;
  /** The time of the first request to erase it, answered or not. */
  eraseAskedAt?: number;
  /** The time at which the erasure was acknowledged. */
  erasedAt?: number;
  sidecar?: Uint8Array | undefined;
  sha256?: string;
  bytes?: number;
}

export interface ReviewFacts {
  readonly reviewId: string;
  readonly proofId: string;
  readonly partnerId: string;
  /** The name of the place that the review has until it is resolved. */
  readonly place: string;
  /** The kinds of requested evidence, by the ids of the requests. */
  readonly requests: Map<string, EvidenceKind>;
}

export interface KeyFacts {
  readonly partnerId: string;
  revoked?: boolean;
}

export interface IdempotencyFacts {
  readonly key: string;
  readonly partnerId: string;
  /** The song that is issued under the key, except for deliberate mistakes. */
  readonly song: string;
}

/** The answers to the clients of a history. */
export class Ledger {
  readonly proofs = new Map<string, ProofFacts>();
  readonly reviews = new Map<string, ReviewFacts>();
  readonly keys = new Map<string, KeyFacts>();
  /**
   * Partners whose keys only they revoke, with the keys whose revocation with all successors was
   * acknowledged.
   */
  readonly selfRevoking = new Map<string, string[]>();
  readonly idempotencyKeys: IdempotencyFacts[] = [];
  readonly units = new Map<string, { asked: number; acknowledged: number; readonly quota: number }>();
  readonly witness = new Witness();
  /** Violations that were seen during the history. */
  readonly violations: string[] = [];
  /** The number of processes that replaced a killed one. */
  restarts = 0;
  #count = 0;

  count(): number {
    this.#count += 1;
    return this.#count;
  }

  proof(proofId: string, partnerId: string): ProofFacts {
    let facts = this.proofs.get(proofId);
    if (facts === undefined) {
      facts = { proofId, partnerId };
      this.proofs.set(proofId, facts);
    }
    return facts;
  }

  ownProofs(partnerId: string): readonly ProofFacts[] {
    return [...this.proofs.values()].filter(
      (facts) => facts.partnerId === partnerId && facts.issuedAt !== undefined,
    );
  }

  unit(partnerId: string, quota: number): { asked: number; acknowledged: number } {
    let unit = this.units.get(partnerId);
    if (unit === undefined) {
      unit = { asked: 0, acknowledged: 0, quota };
      this.units.set(partnerId, unit);
    }
    return unit;
  }
}
