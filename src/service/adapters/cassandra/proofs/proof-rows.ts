import { defined } from '../../../../core/domain/defined.js';
import type { ErasedProof, IssuedProof, Proof } from '../../../domain/proof.js';
import type { DecidedTable } from '../commit/decisions.js';
import type { Blobs } from '../driver/blobs.js';
import type { RowCodes } from '../driver/row-codes.js';
import { numberIn, type Row, type Session, type Statement, textIn } from '../driver/session.js';

const HEAD = 'part, state, gen, partner_id, body, erased_at, erase_op, confirmed_at, void_at, reviewers, mac';
const GET = `SELECT ${HEAD} FROM record WHERE proof_id = ? AND part = ''`;
const GET_PARTS = `SELECT ${HEAD}, version, op, data, TTL(data) AS lives FROM record WHERE proof_id = ? AND part IN ?`;
/**
 * A void head lives for three days. No statement takes effect more than an hour late, and the files of the id are removed
 * a second time after a day. An interrupted import of a legacy proof can only be repeated after the three days.
 */
const VOID =
  "INSERT INTO record (proof_id, part, state, gen, partner_id, void_at, mac) VALUES (?, '', 'void', 1, '', ?, ?) IF NOT EXISTS USING TTL 259200";
const INSERT_TOMBSTONE =
  "INSERT INTO record (proof_id, part, state, gen, partner_id, erased_at, confirmed_at, mac) VALUES (?, '', 'erased', 1, ?, ?, ?, ?) IF NOT EXISTS";
const FENCE = "UPDATE record SET gen = ? WHERE proof_id = ? AND part = '' IF gen = ?";

/** The state of a head row. `void`: the id was given up before a proof was issued under it. */
type HeadState = 'issued' | 'erased' | 'void';

/** The columns of a head row that its code covers. */
export interface HeadColumns {
  readonly proofId: string;
  readonly partnerId: string;
  readonly state: HeadState;
  readonly body?: Uint8Array;
  readonly erasedAt?: number;
  readonly eraseOp?: string;
  readonly confirmedAt?: number;
  readonly voidAt?: number;
}

/** The head row of a proof's partition. */
export interface Head extends HeadColumns {
  /** The generation. Statements that demand an earlier one are refused. */
  readonly gen: number;
  /** The partners that have or had reviews on the proof. */
  readonly reviewers: readonly string[];
}

/** The parts of a proof's partition, with its head. */
export interface Parts {
  readonly head?: Head;
  readonly rows: ReadonlyMap<string, Row>;
}

/**
 * Partitions of `record`, each with all that is decided together about one proof. Readers look at the head:
 * a tombstone hides everything beside it.
 */
export class ProofRows {
  readonly #session: Session;
  readonly #blobs: Blobs;
  readonly #codes: RowCodes;
  /** The table, for decisions. */
  readonly table: DecidedTable;

  constructor(session: Session, blobs: Blobs, codes: RowCodes) {
    this.#session = session;
    this.#blobs = blobs;
    this.#codes = codes;
    this.table = {
      name: 'record',
      keyColumns: ['proof_id'],
      keyValues: (proofId) => [proofId],
      fence: async (proofId) => {
        const head = await this.serialHead(proofId);
        if (head === undefined) await this.voidId(proofId, Math.floor(Date.now() / 1000));
        else
          await session.lightweightTransaction({ query: FENCE, params: [head.gen + 1, proofId, head.gen] });
      },
    };
  }

  /** @throws DomainError `internal` / `record_damaged` */
  async head(proofId: string): Promise<Head | undefined> {
    return this.#headOf(proofId, await this.#session.first(GET, [proofId]));
  }

  /** Returns the head by a serial read, which sees or prevents what others have left half done. */
  async serialHead(proofId: string): Promise<Head | undefined> {
    return this.#headOf(proofId, await this.#session.serialReads().first(GET, [proofId]));
  }

  /** Returns the head, and the rows of the named parts that exist. */
  async parts(proofId: string, ...names: readonly string[]): Promise<Parts> {
    const found = await this.#session.rows(GET_PARTS, [proofId, ['', ...names]]);
    const rows = new Map(found.map((row) => [textIn(row, 'part')!, row]));
    return defined({ head: this.#headOf(proofId, rows.get('')), rows });
  }

  async get(proofId: string): Promise<Proof | undefined> {
    const head = await this.head(proofId);
    return head && this.proofOf(head);
  }

  /**
   * Takes an id that no proof has, for three days: no statement is later than that.
   * @returns whether no proof can be issued under it any more
   */
  async voidId(proofId: string, at: number): Promise<boolean> {
    const code = this.codeOf({ proofId, partnerId: '', state: 'void', voidAt: at });
    const { applied, current } = await this.#session.lightweightTransaction({
      query: VOID,
      params: [proofId, at, code],
    });
    return applied || (current !== undefined && textIn(current, 'state') === 'void');
  }

  /** Inserts the tombstone of another store. What exists under the id stays as it is. */
  async insertTombstone({ proofId, partnerId, erasedAt, confirmedAt }: ErasedProof): Promise<void> {
    const code = this.codeOf(
      defined({ proofId, partnerId, state: 'erased' as const, erasedAt, confirmedAt }),
    );
    await this.#session.lightweightTransaction({
      query: INSERT_TOMBSTONE,
      params: [proofId, partnerId, erasedAt, confirmedAt, code],
    });
  }

  /** Returns the code of a head as a statement leaves the head. */
  codeOf(columns: HeadColumns): string {
    return this.#codes.make('record', columns.proofId, valuesOf(columns));
  }

  /** Returns the content of the column `body`. */
  encode(proof: IssuedProof): Buffer {
    return this.#blobs.encode(`proof/${proof.proofId}`, proof);
  }

  issuedOf({ proofId, body }: Head): IssuedProof {
    return this.#blobs.decode<IssuedProof>(`proof/${proofId}`, body);
  }

  erasedOf({ proofId, partnerId, erasedAt, confirmedAt }: Head): ErasedProof {
    return defined({ state: 'erased' as const, proofId, partnerId, erasedAt: erasedAt!, confirmedAt });
  }

  proofOf(head: Head): Proof | undefined {
    if (head.state === 'erased') return this.erasedOf(head);
    return head.state === 'issued' ? this.issuedOf(head) : undefined;
  }

  #headOf(proofId: string, row: Row | undefined): Head | undefined {
    const state = row && textIn(row, 'state');
    if (row === undefined || state === undefined) return undefined;
    const head: Head = defined({
      proofId,
      partnerId: textIn(row, 'partner_id')!,
      state: state as HeadState,
      gen: row['gen'] as number,
      body: (row['body'] as Buffer | null) ?? undefined,
      erasedAt: numberIn(row, 'erased_at'),
      eraseOp: textIn(row, 'erase_op'),
      confirmedAt: numberIn(row, 'confirmed_at'),
      voidAt: numberIn(row, 'void_at'),
      reviewers: (row['reviewers'] as readonly string[] | null) ?? [],
    });
    this.#codes.check('record', proofId, valuesOf(head), textIn(row, 'mac'));
    return head;
  }
}

/**
 * Returns the statement with which a batch demands that the proof is issued and has the generation that was read.
 * @param reviewer partner that has a review on the proof from this batch on
 */
export function standing({ proofId, gen }: Head, reviewer?: string): Statement {
  const condition = "WHERE proof_id = ? AND part = '' IF state = 'issued' AND gen = ?";
  return reviewer === undefined
    ? { query: `UPDATE record SET gen = ? ${condition}`, params: [gen, proofId, gen] }
    : {
        query: `UPDATE record SET reviewers = reviewers + ? ${condition}`,
        params: [[reviewer], proofId, gen],
      };
}

function valuesOf({
  partnerId,
  state,
  body,
  erasedAt,
  eraseOp,
  confirmedAt,
  voidAt,
}: HeadColumns): readonly (string | number | Uint8Array | undefined)[] {
  return [partnerId, state, body, erasedAt, eraseOp, confirmedAt, voidAt];
}
