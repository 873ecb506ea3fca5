import { type Dependency, DomainError } from '../../../core/domain/errors.js';
import { IDENTIFIER_PATTERN } from '../../../core/domain/identifiers.js';

/**
 * Converts any failure of the files to `unavailable` / `store_unavailable`, with its cause.
 */
export async function guarded<Value>(
  dependency: Extract<Dependency, 'bucket' | 'disk'>,
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof DomainError) throw cause;
    throw new DomainError('unavailable', 'The asset store cannot be reached at the moment.', {
      reason: 'store_unavailable',
      retryAfterSeconds: 1,
      dependency,
      cause,
    });
  }
}

/** Checks an id before a name is made of it: an identifier begins with a letter or digit and has no separator. */
export function checkProofId(proofId: string): void {
  if (!IDENTIFIER_PATTERN.test(proofId))
    throw new DomainError('invalid_request', 'This is not an identifier.');
}
