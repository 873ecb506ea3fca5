import { isRecordDamaged } from '../../core/domain/errors.js';
import type { AuditedStore } from '../ports/audited-store.js';
import type { ProofStore } from '../ports/stores.js';

/** The most records that one step reads. */
const STEP = 500;

export interface FileDigestsParts {
  readonly stores: Pick<ProofStore, 'getProof' | 'addDigests'>;
  readonly audited: Pick<AuditedStore, 'proofs' | 'lease'>;
  /** The records to read per second. */
  readonly rate: number;
}

/**
 * Adds the digest of the delivered file to records of versions that stored none, so that each proof is found by it.
 * Reads all records once after the start of the process, at a bounded rate. One process of a cluster does it.
 */
export class FileDigests {
  readonly #parts: FileDigestsParts;
  #place: string | undefined;
  #isDone = false;

  constructor(parts: FileDigestsParts) {
    this.#parts = parts;
  }

  /** Continues, with as many records as `rate` permits in `seconds`. */
  async run(seconds: number): Promise<void> {
    const { audited, rate } = this.#parts;
    if (this.#isDone || !(await audited.lease())) return;
    for (let left = rate * seconds; left > 0; ) {
      const { items, next } = await audited.proofs(this.#place, Math.min(STEP, left));
      for (const proofId of items) await this.#complete(proofId);
      this.#place = next;
      this.#isDone = next === undefined;
      if (this.#isDone) return;
      // An empty page also costs work, so it counts as one record.
      left -= Math.max(1, items.length);
    }
  }

  async #complete(proofId: string): Promise<void> {
    const { stores } = this.#parts;
    try {
      const proof = await stores.getProof(proofId);
      if (proof?.state === 'issued' && proof.fileSha256 === undefined)
        await stores.addDigests(proofId, { fileSha256: proof.asset.sha256 });
    } catch (error) {
      // The auditor reports a damaged record.
      if (!isRecordDamaged(error)) throw error;
    }
  }
}
