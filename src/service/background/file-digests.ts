import { isRecordDamaged } from '../../core/domain/errors.js';
import type { AuditedStore } from '../ports/audited-store.js';
import type { ProofStore } from '../ports/stores.js';

/** The most records that one step reads. */
const STEP = 500;
/** The minimum time from the start of one pass to the start of the next, in milliseconds. */
const PASS_MS = 24 * 3_600_000;

export interface FileDigestsParts {
  readonly stores: Pick<ProofStore, 'getProof' | 'addDigests'>;
  /** The stores below the encryption. Reading a record there needs no content key. */
  readonly encrypted: Pick<ProofStore, 'getProof'>;
  readonly audited: Pick<AuditedStore, 'proofs' | 'lease'>;
  /** The records to read per second. */
  readonly rate: number;
}

/**
 * Adds the digest of the delivered file to records of versions that stored none, so that each proof is found by it.
 * Reads all records after the start of the process, and once a day, because processes of earlier versions may run
 * beside this one. One process of a cluster does it, at a bounded rate.
 */
export class FileDigests {
  readonly #parts: FileDigestsParts;
  #place: string | undefined;
  /** The time of the monotonic clock before which no new pass begins. */
  #restsUntil = 0;

  constructor(parts: FileDigestsParts) {
    this.#parts = parts;
  }

  /** Continues, with as many records as `rate` permits in `seconds`. */
  async run(seconds: number, ending?: AbortSignal): Promise<void> {
    const { audited, rate } = this.#parts;
    if (this.#place === undefined && performance.now() < this.#restsUntil) return;
    if (!(await audited.lease())) return;
    if (this.#place === undefined) this.#restsUntil = performance.now() + PASS_MS;
    for (let left = rate * seconds; left > 0 && ending?.aborted !== true; ) {
      const { items, next } = await audited.proofs(this.#place, Math.min(STEP, left));
      for (const proofId of items) await this.#complete(proofId);
      this.#place = next;
      if (next === undefined) return;
      // An empty page also costs work, so it counts as one record.
      left -= Math.max(1, items.length);
    }
  }

  async #complete(proofId: string): Promise<void> {
    const { stores, encrypted } = this.#parts;
    try {
      const stored = await encrypted.getProof(proofId);
      if (stored?.state !== 'issued' || stored.fileSha256 !== undefined) return;
      const proof = await stores.getProof(proofId);
      if (proof?.state === 'issued') await stores.addDigests(proofId, { fileSha256: proof.asset.sha256 });
    } catch (error) {
      // The auditor reports a damaged record.
      if (!isRecordDamaged(error)) throw error;
    }
  }
}
