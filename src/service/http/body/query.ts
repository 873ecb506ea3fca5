import { shownName } from '../../../core/domain/display-name.js';
import { DomainError } from '../../../core/domain/errors.js';

/**
 * Returns the query of a request target, decoded as a form (`+` is a space).
 * @throws DomainError `invalid_request` for a repeated name and for escapes that are not UTF-8
 */
export function parseQuery(target: string): Record<string, string> {
  const query: Record<string, string> = Object.create(null) as Record<string, string>;
  const start = target.indexOf('?');
  if (start < 0) return query;
  for (const pair of target.slice(start + 1).split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    if (name in query)
      throw new DomainError('invalid_request', `The query parameter ${shownName(name)} is repeated.`, {
        reason: 'duplicate_parameter',
      });
    query[name] = equals < 0 ? '' : decode(pair.slice(equals + 1));
  }
  return query;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new DomainError('invalid_request', 'A query parameter is not valid percent-encoded UTF-8.', {
      reason: 'invalid_member',
    });
  }
}
