import { createHmac, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../../core/domain/errors.js';
import type { Environment } from '../domain/partner-key.js';
import type { Secrets } from '../ports/secrets.js';

/** The list that a cursor continues. Any other list refuses the cursor. */
export interface CursorScope {
  readonly partnerId: string;
  readonly route: string;
  /** The other members of the query, in a fixed order. */
  readonly filter: readonly (string | number | null)[];
}

/** The sort key of the last entry of a page. */
export interface PageKey {
  readonly createdAt: number;
  readonly id: string;
}

export interface Cursors {
  write(scope: CursorScope, last: PageKey): string;
  /**
   * @throws DomainError `invalid_request` / `invalid_member` for a cursor that `write` did not return for
   * this scope
   */
  read(scope: CursorScope, cursor: string): PageKey;
}

const MAC_BYTES = 32;

/**
 * Creates cursors that are opaque to callers. A cursor is base64url of a MAC followed by the text that the
 * MAC covers. The MAC binds the cursor to environment, partner, route and filter.
 */
export function createCursors(secrets: Secrets, environment: Environment): Cursors {
  const mac = (key: Uint8Array, { partnerId, route, filter }: CursorScope, payload: string): Buffer =>
    createHmac('sha256', key)
      .update(JSON.stringify(['takemark cursor', environment, partnerId, route, filter, payload]))
      .digest();

  return {
    write(scope, { createdAt, id }) {
      const secret = secrets.current('cursor');
      const payload = JSON.stringify([secret.id, createdAt, id]);
      return Buffer.concat([mac(secret.key, scope, payload), Buffer.from(payload)]).toString('base64url');
    },
    read(scope, cursor) {
      const refused = () =>
        new DomainError('invalid_request', 'The cursor was not issued for this partner, list and filter.', {
          reason: 'invalid_member',
        });
      const bytes = Buffer.from(cursor, 'base64url');
      // Encoded again and compared, so that one cursor has one spelling. Stray trailing bits, padding and
      // foreign characters are refused.
      if (bytes.length <= MAC_BYTES || bytes.toString('base64url') !== cursor) throw refused();
      const payload = bytes.subarray(MAC_BYTES).toString();
      const parts = parse(payload);
      const secret = parts === undefined ? undefined : secrets.find('cursor', parts[0]);
      if (
        parts === undefined ||
        secret === undefined ||
        !timingSafeEqual(mac(secret.key, scope, payload), bytes.subarray(0, MAC_BYTES))
      )
        throw refused();
      return { createdAt: parts[1], id: parts[2] };
    },
  };
}

/**
 * Returns the page of a list that was read with one entry more than `limit`. `last` is the last entry of the
 * page, and undefined when no page follows.
 */
export function cutPage<Entry>(
  found: readonly Entry[],
  limit: number,
): { readonly entries: readonly Entry[]; readonly last: Entry | undefined } {
  return { entries: found.slice(0, limit), last: found.length > limit ? found[limit - 1] : undefined };
}

function parse(payload: string): readonly [string, number, string] | undefined {
  try {
    const value: unknown = JSON.parse(payload);
    if (!Array.isArray(value) || value.length !== 3) return undefined;
    const [secretId, createdAt, id] = value as unknown[];
    return typeof secretId === 'string' && typeof createdAt === 'number' && typeof id === 'string'
      ? [secretId, createdAt, id]
      : undefined;
  } catch {
    return undefined;
  }
}
