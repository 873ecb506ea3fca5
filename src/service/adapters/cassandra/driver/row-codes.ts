import type { Authenticator } from '../../../../core/codec/authenticator.js';
import { RecordError } from '../../../../core/codec/record.js';
import { recordDamaged } from '../../../../core/domain/errors.js';

type Value = string | number | readonly string[] | Uint8Array | undefined;

/**
 * Codes of rows whose columns are changed one by one. Each statement that changes columns writes the code of
 * the row as it leaves it.
 */
export class RowCodes {
  readonly #authenticator: Authenticator;

  constructor(authenticator: Authenticator) {
    this.#authenticator = authenticator;
  }

  /** @param values values of the columns, in the table's own order */
  make(table: string, id: string, values: readonly Value[]): string {
    return this.#authenticator.sign(label(table, id), bytesOf(values));
  }

  /** @throws DomainError `internal` / `record_damaged` where the row is not what was written under its key */
  check(table: string, id: string, values: readonly Value[], code: string | undefined): void {
    if (code === undefined || !this.#authenticator.verify(label(table, id), bytesOf(values), code))
      throw recordDamaged(new RecordError('row is not authentic'));
  }
}

function label(table: string, id: string): string {
  return `columns/${table}/${id}`;
}

/** Returns the values as JSON. Each position in a table's list has one type, so no two rows have the same JSON. */
function bytesOf(values: readonly Value[]): Buffer {
  return Buffer.from(
    JSON.stringify(
      values.map((value) =>
        value instanceof Uint8Array ? Buffer.from(value).toString('base64') : (value ?? null),
      ),
    ),
  );
}
