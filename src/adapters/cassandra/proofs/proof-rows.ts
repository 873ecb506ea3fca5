import type { ErasedProof, IssuedProof, Proof } from '../../../domain/proof.js';
import type { Blobs } from '../driver/blobs.js';
import type { RowCodes } from '../driver/row-codes.js';
import { numberIn, type Row, type Session, textIn } from '../driver/session.js';

const GET =
  'SELECT proof_id, partner_id, state, reserved_at, body, declared, replay_key, erased_at, confirmed_at, issue_op, erase_op, mac FROM proof WHERE proof_id = ?';

/** Columns that a proof's code covers. */
export interface ProofColumns {
  readonly proofId: string;
  readonly partnerId: string;
  readonly state: Proof['state'];
  readonly reservedAt: number;
  readonly body?: Uint8Array | undefined;
  readonly replayKey?: string | undefined;
  readonly erasedAt?: number | undefined;
  readonly confirmedAt?: number | undefined;
}

/**
 * Rows of `proof`, which reviews and replays look at too: a proof's tombstone hides everything that was
 * derived from it.
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

  /** The same rows by a settled session. */
  settled(): ProofRows {
    return new ProofRows(this.#session.settled(), this.#blobs, this.#codes);
  }

  /** @throws DomainError `internal` / `record_damaged` */
  async row(proofId: string): Promise<Row | undefined> {
    const row = await this.#session.first(GET, [proofId]);
    if (row !== undefined)
      this.#codes.check('proof', proofId, proofValues(columnsOf(row)), textIn(row, 'mac'));
    return row;
  }

  /** The code of a row as a statement leaves it. */
  codeOf(columns: ProofColumns): string {
    return this.#codes.make('proof', columns.proofId, proofValues(columns));
  }

  async get(proofId: string): Promise<Proof | undefined> {
    const row = await this.row(proofId);
    return row === undefined ? undefined : this.proofOf(row);
  }

  async isIssued(proofId: string): Promise<boolean> {
    return isIn(await this.row(proofId), 'issued');
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
    return {
      state: 'erased',
      proofId: textIn(row, 'proof_id')!,
      partnerId: textIn(row, 'partner_id')!,
      erasedAt: numberIn(row, 'erased_at')!,
      ...(confirmedAt === undefined ? {} : { confirmedAt }),
    };
  }

  proofOf(row: Row): Proof | undefined {
    const proofId = textIn(row, 'proof_id')!;
    const partnerId = textIn(row, 'partner_id')!;
    if (isIn(row, 'pending'))
      return { state: 'pending', proofId, partnerId, reservedAt: numberIn(row, 'reserved_at')! };
    if (isIn(row, 'erased')) return this.erasedOf(row);
    return isIn(row, 'issued') ? this.issuedOf(row) : undefined;
  }
}

export function columnsOf(row: Row): ProofColumns {
  return {
    proofId: textIn(row, 'proof_id')!,
    partnerId: textIn(row, 'partner_id')!,
    state: textIn(row, 'state') as Proof['state'],
    reservedAt: numberIn(row, 'reserved_at')!,
    body: (row['body'] as Buffer | null) ?? undefined,
    replayKey: textIn(row, 'replay_key'),
    erasedAt: numberIn(row, 'erased_at'),
    confirmedAt: numberIn(row, 'confirmed_at'),
  };
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

export function isIn(row: Row | undefined, state: Proof['state']): boolean {
  return row !== undefined && textIn(row, 'state') === state;
}
