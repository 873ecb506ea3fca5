import { defined } from '../../../../core/domain/defined.js';
import { DomainError } from '../../../../core/domain/errors.js';
import type { AuditPage } from '../../../ports/audited-store.js';
import { isReadFailure, type Session, textIn } from './session.js';

export const FIRST_TOKEN = -(2n ** 63n);
export const LAST_TOKEN = 2n ** 63n - 1n;

/**
 * Returns at most `limit` keys of a table's partitions, in the order of their tokens. A range in which too much was
 * removed for one read is halved.
 * @param after place of the page; absent for the first
 */
export async function tokenPage(
  session: Session,
  { table, column }: { readonly table: string; readonly column: string },
  after: string | undefined,
  limit: number,
): Promise<AuditPage<string>> {
  const from = after === undefined ? FIRST_TOKEN : tokenOf(after);
  const token = `token(${column})`;
  const query = `SELECT DISTINCT ${column}, ${token} AS place FROM ${table} WHERE ${token} > ? AND ${token} <= ? LIMIT ?`;
  for (let to = LAST_TOKEN; ; to = from + (to - from) / 2n) {
    try {
      const rows = await session.rows(query, [String(from), String(to), limit]);
      const isFull = rows.length === limit;
      return {
        items: rows.map((row) => textIn(row, column)!),
        ...defined({
          next: isFull ? String(rows.at(-1)!['place']) : to < LAST_TOKEN ? String(to) : undefined,
        }),
      };
    } catch (error) {
      if (!isReadFailure(error) || to - from < 2n) throw error;
    }
  }
}

function tokenOf(place: string): bigint {
  const token = /^-?\d{1,19}$/.test(place) ? BigInt(place) : undefined;
  if (token === undefined || token < FIRST_TOKEN || token > LAST_TOKEN)
    throw new DomainError(
      'invalid_request',
      'The parameter `from` is not a `next` value of an earlier step.',
      { reason: 'invalid_member' },
    );
  return token;
}
