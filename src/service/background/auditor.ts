import { defined } from '../../core/domain/defined.js';
import type { Finding, FindingKind } from '../../core/domain/finding.js';
import { type AuditStoresDeps, auditStores } from '../operations/system/audit-stores.js';

/** The most items that one step checks. */
const STEP = 500;
/** The minimum time from the start of one pass to the start of the next, in milliseconds. */
const PASS_MS = 3_600_000;

export interface AuditorParts extends AuditStoresDeps {
  /** The items to check per second. 0 disables the auditor. */
  readonly rate: number;
  /** The receiver of findings, called for each kind in a step. */
  readonly onFindings: (kind: FindingKind, count: number) => void;
}

/** The findings of passes, for metrics. */
export interface AuditReport {
  /** The findings by kind: of the last complete pass, or of the current one where it has more. */
  readonly findings: ReadonlyMap<FindingKind, number>;
  /** The end of the last complete pass, in unix seconds. Absent before. */
  readonly endedAt?: number;
  /** The end of the last step, in unix seconds. Steps end often, even in a long pass. Absent before. */
  readonly steppedAt?: number;
}

/**
 * Checks the stores in repeated passes, at a configured rate. A lease ensures that one process of a cluster
 * does it. A process that takes over the lease starts a new pass. Findings are counted and reported. The
 * auditor repairs nothing.
 */
export class Auditor {
  readonly #parts: AuditorParts;
  #place: string | undefined;
  /** The time of the monotonic clock before which no new pass begins. */
  #restsUntil = 0;
  #found = new Map<FindingKind, number>();
  #last = new Map<FindingKind, number>();
  #endedAt: number | undefined;
  #steppedAt: number | undefined;
  #hasLease = false;

  constructor(parts: AuditorParts) {
    this.#parts = parts;
  }

  /** Returns the findings, or undefined when this process does not hold the lease. */
  get report(): AuditReport | undefined {
    if (!this.#hasLease) return undefined;
    const findings = new Map(this.#last);
    for (const [kind, count] of this.#found) findings.set(kind, Math.max(count, findings.get(kind) ?? 0));
    return { findings, ...defined({ endedAt: this.#endedAt, steppedAt: this.#steppedAt }) };
  }

  /**
   * Continues the pass, with as many items as `rate` permits in `seconds`, or until `ending` aborts or `maySweep` returns
   * false. The findings of a step are dropped if `maySweep` returns false at its end.
   */
  async run(seconds: number, ending?: AbortSignal, maySweep: () => boolean = () => true): Promise<void> {
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
    for (let left = rate * seconds; left > 0 && ending?.aborted !== true; ) {
      const { findings, looked, next } = await auditStores(this.#parts, {
        from: this.#place,
        limit: Math.min(STEP, left),
      });
      if (!maySweep()) {
        // A pass whose first step is dropped has not begun.
        if (this.#place === undefined) this.#restsUntil = 0;
        return;
      }
      this.#count(findings);
      this.#steppedAt = Math.floor(this.#parts.clock.now() / 1000);
      this.#place = next;
      if (next === undefined) return this.#end();
      // An empty page also costs work, so it counts as one item.
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
