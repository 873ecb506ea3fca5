import type { Authenticator } from '../../../codec/authenticator.js';
import { RecordError } from '../../../codec/record.js';
import { recordDamaged } from '../../../domain/errors.js';

type Value = string | number | readonly string[] | Uint8Array | undefined;

/**
 * The codes of rows whose columns statements change: each such statement writes, with its columns, the code
 * of what the row is then.
 */
export class RowCodes {
  readonly #authenticator: Authenticator;
  readonly #acceptUnauthenticated: boolean;

  /**
   * @param acceptUnauthenticated takes any row: while processes of a version that made no codes change them
   */
  constructor(authenticator: Authenticator, acceptUnauthenticated: boolean) {
    this.#authenticator = authenticator;
    this.#acceptUnauthenticated = acceptUnauthenticated;
  }

  /** @param values of the columns, in an order that is the table's own */
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

/** JSON: of the same table each place is of the same type, so two rows never come to the same text. */
function bytesOf(values: readonly Value[]): Buffer {
  return Buffer.from(
    JSON.stringify(
      values.map((value) =>
        value instanceof Uint8Array ? Buffer.from(value).toString('base64') : (value ?? null),
      ),
    ),
  );
}
