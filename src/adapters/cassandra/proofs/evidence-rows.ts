import type { EvidencePart } from '../../../domain/evidence.js';
import type { EvidenceBody } from '../../../ports/stores.js';
import type { Blobs } from '../driver/blobs.js';
import type { Session } from '../driver/session.js';

const SET = 'INSERT INTO evidence (proof_id, part, body) VALUES (?, ?, ?) USING TIMESTAMP ?';
const GET = 'SELECT body FROM evidence WHERE proof_id = ? AND part = ?';
const REMOVE = 'DELETE FROM evidence USING TIMESTAMP ? WHERE proof_id = ?';

/** Id of a proof with the time of its reservation, in unix seconds. */
interface Reserved {
  readonly proofId: string;
  readonly reservedAt: number;
}

/**
 * Bodies of evidence, of table `evidence`. A row alone proves nothing: the proof's own row says whether there
 * is a proof. Timestamps are made of the reservation, with a removal's above its row's. So a row that a slow
 * process writes after a removal stays removed, whatever the clocks say.
 */
export class EvidenceRows {
  readonly #session: Session;
  readonly #blobs: Blobs;

  constructor(session: Session, blobs: Blobs) {
    this.#session = session;
    this.#blobs = blobs;
  }

  async write({ proofId, reservedAt }: Reserved, bodies: readonly EvidenceBody[]): Promise<void> {
    await Promise.all(
      bodies.map(({ part, body }) =>
        this.#session.write(SET, [
          proofId,
          part,
          this.#blobs.encode(blobKey(proofId, part), body),
          reservedAt * 1_000_000,
        ]),
      ),
    );
  }

  /** @throws DomainError `internal` / `record_damaged` */
  async read(proofId: string, part: EvidencePart): Promise<Uint8Array | undefined> {
    const row = await this.#session.first(GET, [proofId, part]);
    return row && this.#blobs.decode<Uint8Array>(blobKey(proofId, part), row['body']);
  }

  /** Removes all parts of a proof. */
  async remove({ proofId, reservedAt }: Reserved): Promise<void> {
    await this.#session.write(REMOVE, [reservedAt * 1_000_000 + 1, proofId]);
  }
}

function blobKey(proofId: string, part: EvidencePart): string {
  return `evidence/${proofId}/${part}`;
}
