import { defined } from '../../../core/domain/defined.js';
import { DomainError } from '../../../core/domain/errors.js';
import { readPublicKey } from '../../domain/message-signature.js';
import { SCOPES, type Scope } from '../../domain/partner.js';
import { type Environment, formatApiKey } from '../../domain/partner-key.js';
import { mayBeNamed, TEST_ANSWERS } from '../../domain/test-key.js';
import type { Secrets } from '../../ports/secrets.js';
import type { KeyStore, PartnerStore } from '../../ports/stores.js';
import type { Clock, Ids } from '../../ports/system.js';
import { hashApiKey } from './authenticate.js';

export interface CreateKeyDeps {
  readonly stores: KeyStore & PartnerStore;
  readonly environment: Environment;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly ids: Ids;
}

/**
 * Creates a partner's key, for the operator. Only this result contains the secret: the store keeps a keyed
 * hash.
 */
export async function createKey(
  deps: CreateKeyDeps,
  request: {
    readonly partnerId: string;
    readonly name: string;
    readonly scopes?: readonly Scope[];
    /** The public key in PEM. */
    readonly publicKey?: string;
  },
): Promise<{ readonly keyId: string; readonly apiKey: string; readonly name: string }> {
  if ((await deps.stores.getPartner(request.partnerId)) === undefined)
    throw new DomainError('not_found', 'There is no such partner.');
  if (!mayBeNamed(deps.environment, request.name))
    throw new DomainError(
      'invalid_request',
      `Names that begin with test: are reserved for test keys in beta: ${TEST_ANSWERS.map((answer) => `test:${answer}`).join(', ')}.`,
      { reason: 'invalid_member' },
    );
  const publicKey = request.publicKey === undefined ? undefined : readPublicKey(request.publicKey);
  if (request.publicKey !== undefined && publicKey === undefined)
    throw new DomainError('invalid_request', 'The public key must be one Ed25519 or P-256 key in PEM.', {
      reason: 'invalid_member',
    });
  const keyId = deps.ids.next('key');
  const apiKey = formatApiKey(deps.environment, keyId, deps.ids.random(32));
  const pepper = deps.secrets.current('key-pepper');
  const createdAt = Math.floor(deps.clock.now() / 1000);
  const { partnerId, name, scopes = SCOPES } = request;
  await deps.stores.createKey(
    defined({
      keyId,
      partnerId,
      name,
      scopes,
      secretHash: hashApiKey(apiKey, pepper.key),
      pepperId: pepper.id,
      createdAt,
      publicKey,
    }),
    { partnerId, action: 'key_created', at: createdAt, actor: 'operator', subjects: [keyId] },
  );
  return { keyId, apiKey, name };
}
