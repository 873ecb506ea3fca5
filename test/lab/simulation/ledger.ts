import type { EvidenceKind } from '../../../src/service/domain/review.js';
import { Witness } from './witness.js';

/** Knowledge of clients about a proof; times in milliseconds of the right clock. */
export interface ProofFacts {
  readonly proofId: string;
  readonly partnerId: string;
  /** The issuing was acknowledged. */
  issuedAt?: number;
  /** Somebody has asked for its erasure, answered or not. */
  eraseAskedAt?: number;
  /** The erasure was acknowledged. */
  erasedAt?: number;
  sidecar?: Uint8Array | undefined;
  sha256?: string;
  bytes?: number;
}

export interface ReviewFacts {
  readonly reviewId: string;
  readonly proofId: string;
  readonly partnerId: string;
  /** Name of the place that it has until it is resolved. */
  readonly place: string;
  /** Kinds of evidence that was asked for, by the ids of the requests. */
  readonly requests: Map<string, EvidenceKind>;
}

export interface KeyFacts {
  readonly partnerId: string;
  revoked?: boolean;
}

export interface IdempotencyFacts {
  readonly key: string;
  readonly partnerId: string;
  /** The song that is issued under it, but for mistakes. */
  readonly song: string;
}

/** Answers that the clients of a history were given. */
export class Ledger {
  readonly proofs = new Map<string, ProofFacts>();
  readonly reviews = new Map<string, ReviewFacts>();
  readonly keys = new Map<string, KeyFacts>();
  /** Partners whose keys only they revoke, with the keys whose revocation with all successors was answered. */
  readonly selfRevoking = new Map<string, string[]>();
  readonly idempotencyKeys: IdempotencyFacts[] = [];
  readonly units = new Map<string, { asked: number; acknowledged: number; readonly quota: number }>();
  readonly witness = new Witness();
  /** Wrongs that were seen while they happened. */
  readonly violations: string[] = [];
  /** Processes that were started in the place of one that was killed. */
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
