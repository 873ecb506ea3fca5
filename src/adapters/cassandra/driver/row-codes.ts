import type { Authenticator } from '../../../codec/authenticator.js';
import { RecordError } from '../../../codec/record.js';
import { recordDamaged } from '../../../domain/errors.js';

type Value = string | number | readonly string[] | Uint8Array | undefined;

/**
 * Codes of rows whose columns are changed one by one. Each statement that changes columns writes the code of
 * the row as it leaves it.
 */
export class RowCodes {
  readonly #authenticator: Authenticator;
  readonly #acceptUnauthenticated: boolean;

  /**
   * @param acceptUnauthenticated takes any row, while processes of a version that made no codes change rows
   */
  constructor(authenticator: Authenticator, acceptUnauthenticated: boolean) {
    this.#authenticator = authenticator;
    this.#acceptUnauthenticated = acceptUnauthenticated;
  }

  /** @param values values of the columns, in the table's own order */
  make(table: string, id: string, values: readonly Value[]): string {
    return this.#authenticator.sign(label(table, id), bytesOf(values));
  }

  /** Tells whether a row has its code; rows without one fail here even where they are accepted. */
  holds(table: string, id: string, values: readonly Value[], code: string | undefined): boolean {
    return code !== undefined && this.#authenticator.verify(label(table, id), bytesOf(values), code);
  }

  /** @throws DomainError `internal` / `record_damaged` where the row is not what was written under its key */
  check(table: string, id: string, values: readonly Value[], code: string | undefined): void {
    if (!this.#acceptUnauthenticated && !this.holds(table, id, values, code))
      throw recordDamaged(new RecordError('row is not authentic'));
  }
}

function label(table: string, id: string): string {
  return `columns/${table}/${id}`;
}

/** JSON of the values. Each position in a table's list has one type, so no two rows come to the same text. */
function bytesOf(values: readonly Value[]): Buffer {
  return Buffer.from(
    JSON.stringify(
      values.map((value) =>
        value instanceof Uint8Array ? Buffer.from(value).toString('base64') : (value ?? null),
      ),
    ),
  );
}
