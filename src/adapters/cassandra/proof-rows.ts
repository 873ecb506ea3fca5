import type { ErasedProof, IssuedProof, Proof } from '../../domain/proof.js';
import type { Blobs } from './blobs.js';
import { numberIn, type Row, type Session, textIn } from './session.js';

const GET = 'SELECT proof_id, partner_id, state, reserved_at, body, declared, replay_key, erased_at, confirmed_at, issue_op, erase_op FROM proof WHERE proof_id = ?';
const STATE = 'SELECT state FROM proof WHERE proof_id = ?';

/** Rows of `proof`, which reviews and replays look at too: a proof's tombstone hides everything that was derived from it. */
export class ProofRows {
  readonly #session: Session;
  readonly #blobs: Blobs;

  constructor(session: Session, blobs: Blobs) {
    this.#session = session;
    this.#blobs = blobs;
  }

  /** The same rows by a settled session. */
  settled(): ProofRows {
    return new ProofRows(this.#session.settled(), this.#blobs);
  }

  row(proofId: string): Promise<Row | undefined> {
    return this.#session.first(GET, [proofId]);
  }

  async get(proofId: string): Promise<Proof | undefined> {
    const row = await this.row(proofId);
    return row === undefined ? undefined : this.proofOf(row);
  }

  async isIssued(proofId: string): Promise<boolean> {
    return isIn(await this.#session.first(STATE, [proofId]), 'issued');
  }

  /** What `body` holds. */
  encode(proof: IssuedProof): Buffer {
    return this.#blobs.encode(`proof/${proof.proofId}`, proof);
  }

  issuedOf(row: Row): IssuedProof {
    return this.#blobs.decode<IssuedProof>(`proof/${textIn(row, 'proof_id')!}`, row['body']);
  }

  erasedOf(row: Row): ErasedProof {
    const confirmedAt = numberIn(row, 'confirmed_at');
    return { state: 'erased', proofId: textIn(row, 'proof_id')!, partnerId: textIn(row, 'partner_id')!, erasedAt: numberIn(row, 'erased_at')!, ...(confirmedAt === undefined ? {} : { confirmedAt }) };
  }

  proofOf(row: Row): Proof | undefined {
    const proofId = textIn(row, 'proof_id')!;
    const partnerId = textIn(row, 'partner_id')!;
    if (isIn(row, 'pending')) return { state: 'pending', proofId, partnerId, reservedAt: numberIn(row, 'reserved_at')! };
    if (isIn(row, 'erased')) return this.erasedOf(row);
    return isIn(row, 'issued') ? this.issuedOf(row) : undefined;
  }
}

export function isIn(row: Row | undefined, state: Proof['state']): boolean {
  return row !== undefined && textIn(row, 'state') === state;
}
