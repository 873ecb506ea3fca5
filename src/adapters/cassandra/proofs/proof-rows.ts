import { defined } from '../../../domain/defined.js';
import type { ErasedProof, IssuedProof, Proof } from '../../../domain/proof.js';
import type { Blobs } from '../driver/blobs.js';
import type { RowCodes } from '../driver/row-codes.js';
import { numberIn, type Row, type Session, textIn } from '../driver/session.js';

const GET =
  'SELECT proof_id, partner_id, state, reserved_at, body, revised, replay_key, erased_at, confirmed_at, issue_op, erase_op, mac FROM proof WHERE proof_id = ?';

/** Columns that a proof's code covers. */
export interface ProofColumns {
  readonly proofId: string;
  readonly partnerId: string;
  readonly state: Proof['state'];
  readonly reservedAt: number;
  readonly body?: Uint8Array;
  readonly replayKey?: string;
  readonly erasedAt?: number;
  readonly confirmedAt?: number;
}

/**
 * Rows of `proof`. Reviews and replays look at them too: a proof's tombstone hides everything that was
 * derived from the proof.
 */
export class ProofRows {
  readonly #session: Session;
  readonly #blobs: Blobs;
  readonly #codes: RowCodes;

  constructor(session: Session, blobs: Blobs, codes: RowCodes) {
    this.#session = session;
    this.#blobs = blobs;
    this.#codes = codes;
  }

  /** The same rows with serial reads. */
  serialReads(): ProofRows {
    return new ProofRows(this.#session.serialReads(), this.#blobs, this.#codes);
  }

  /** @throws DomainError `internal` / `record_damaged` */
  async row(proofId: string): Promise<Row | undefined> {
    const row = await this.#session.first(GET, [proofId]);
    if (row !== undefined)
      this.#codes.check('proof', proofId, proofValues(columnsOf(row)), textIn(row, 'mac'));
    return row;
  }

  /** Code of a row as a statement leaves it. */
  codeOf(columns: ProofColumns): string {
    return this.#codes.make('proof', columns.proofId, proofValues(columns));
  }

  async get(proofId: string): Promise<Proof | undefined> {
    const row = await this.row(proofId);
    return row === undefined ? undefined : this.proofOf(row);
  }

  async isIssued(proofId: string): Promise<boolean> {
    return isInState(await this.row(proofId), 'issued');
  }

  /** Content of the column `body`. */
  encode(proof: IssuedProof): Buffer {
    return this.#blobs.encode(`proof/${proof.proofId}`, proof);
  }

  issuedOf(row: Row): IssuedProof {
    return this.#blobs.decode<IssuedProof>(`proof/${textIn(row, 'proof_id')!}`, row['body']);
  }

  erasedOf(row: Row): ErasedProof {
    return defined({
      state: 'erased' as const,
      proofId: textIn(row, 'proof_id')!,
      partnerId: textIn(row, 'partner_id')!,
      erasedAt: numberIn(row, 'erased_at')!,
      confirmedAt: numberIn(row, 'confirmed_at'),
    });
  }

  proofOf(row: Row): Proof | undefined {
    const proofId = textIn(row, 'proof_id')!;
    const partnerId = textIn(row, 'partner_id')!;
    if (isInState(row, 'pending'))
      return { state: 'pending', proofId, partnerId, reservedAt: numberIn(row, 'reserved_at')! };
    if (isInState(row, 'erased')) return this.erasedOf(row);
    return isInState(row, 'issued') ? this.issuedOf(row) : undefined;
  }
}

export function columnsOf(row: Row): ProofColumns {
  return defined({
    proofId: textIn(row, 'proof_id')!,
    partnerId: textIn(row, 'partner_id')!,
    state: textIn(row, 'state') as Proof['state'],
    reservedAt: numberIn(row, 'reserved_at')!,
    body: (row['body'] as Buffer | null) ?? undefined,
    replayKey: textIn(row, 'replay_key'),
    erasedAt: numberIn(row, 'erased_at'),
    confirmedAt: numberIn(row, 'confirmed_at'),
  });
}

export function proofValues({
  partnerId,
  state,
  reservedAt,
  body,
  replayKey,
  erasedAt,
  confirmedAt,
}: ProofColumns) {
  return [partnerId, state, reservedAt, body, replayKey, erasedAt, confirmedAt];
}

export function isInState(row: Row | undefined, state: Proof['state']): boolean {
  return row !== undefined && textIn(row, 'state') === state;
}
