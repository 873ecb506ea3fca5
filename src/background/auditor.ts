import { defined } from '../domain/defined.js';
import type { Finding, FindingKind } from '../domain/finding.js';
import { type AuditStoresDeps, auditStores } from '../operations/system/audit-stores.js';

/** Things that one step looks at. */
const STEP = 500;
/** Milliseconds from the beginning of a pass to the next one's, where it takes no longer. */
const PASS_MS = 3_600_000;

export interface AuditorParts extends AuditStoresDeps {
  /** Things that are looked at in a second; 0: none. */
  readonly rate: number;
  /** Told of each kind that a step found. */
  readonly onFindings: (kind: FindingKind, count: number) => void;
}

/** Findings of passes, for metrics. */
export interface AuditReport {
  /** Findings of the last whole pass, or of the present one where these are more. */
  readonly findings: ReadonlyMap<FindingKind, number>;
  /** Unix seconds at which the last whole pass ended; absent before. */
  readonly endedAt?: number;
  /** Unix seconds at which the last step ended, however long a pass takes; absent before. */
  readonly steppedAt?: number;
}

/**
 * Goes through the stores, round after round, at a rate that was set. One process of a cluster does it, by a lease;
 * who takes it over begins anew. A finding is counted and told, and nothing is mended.
 */
export class Auditor {
  readonly #parts: AuditorParts;
  #place: string | undefined;
  /** Time of the monotonic clock before which no pass begins. */
  #restsUntil = 0;
  #found = new Map<FindingKind, number>();
  #last = new Map<FindingKind, number>();
  #endedAt: number | undefined;
  #steppedAt: number | undefined;
  #hasLease = false;

  constructor(parts: AuditorParts) {
    this.#parts = parts;
  }

  /** Findings; undefined where another process goes through the stores, or none. */
  get report(): AuditReport | undefined {
    if (!this.#hasLease) return undefined;
    const findings = new Map(this.#last);
    for (const [kind, count] of this.#found) findings.set(kind, Math.max(count, findings.get(kind) ?? 0));
    return { findings, ...defined({ endedAt: this.#endedAt, steppedAt: this.#steppedAt }) };
  }

  /** Goes on, with what may be looked at in so many seconds. */
  async run(seconds: number): Promise<void> {
    const { audited, rate } = this.#parts;
    if (rate === 0) return;
    const hasLease = await audited.lease();
    if (!hasLease) this.#forget();
    this.#hasLease = hasLease;
    if (!hasLease) return;
    if (this.#place === undefined) {
      if (performance.now() < this.#restsUntil) return;
      this.#restsUntil = performance.now() + PASS_MS;
      this.#found = new Map();
    }
    for (let left = rate * seconds; left > 0; ) {
      const { findings, looked, next } = await auditStores(this.#parts, {
        from: this.#place,
        limit: Math.min(STEP, left),
      });
      this.#count(findings);
      this.#steppedAt = Math.floor(this.#parts.clock.now() / 1000);
      this.#place = next;
      if (next === undefined) return this.#end();
      // A page may be empty, and is not for nothing.
      left -= Math.max(1, looked);
    }
  }

  #count(findings: readonly Finding[]): void {
    const counts = new Map<FindingKind, number>();
    for (const { kind } of findings) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    for (const [kind, count] of counts) {
      this.#found.set(kind, (this.#found.get(kind) ?? 0) + count);
      this.#parts.onFindings(kind, count);
    }
  }

  #end(): void {
    this.#last = this.#found;
    this.#found = new Map();
    this.#endedAt = Math.floor(this.#parts.clock.now() / 1000);
  }

  #forget(): void {
    this.#place = undefined;
    this.#restsUntil = 0;
    this.#found = new Map();
    this.#last = new Map();
    this.#endedAt = undefined;
    this.#steppedAt = undefined;
  }
}
