import { createHash, createPrivateKey, type KeyObject, randomBytes, sign } from 'node:crypto';

/** The algorithms that the service accepts, with their names of RFC 9421, 6.2. */
type Algorithm = 'ed25519' | 'ecdsa-p256-sha256';

export interface SignedRequest {
  readonly method: string;
  readonly url: URL;
  readonly body?: Buffer;
}

/**
 * Signs requests for API keys with a public key (RFC 9421, RFC 9530). A signature is valid for one request.
 */
export class MessageSigner {
  readonly #key: KeyObject;
  readonly #algorithm: Algorithm;
  readonly #apiKey: string;
  readonly #keyId: string;

  /**
   * @param key an Ed25519 or P-256 key, as PEM or KeyObject
   * @throws TypeError for any other key, or for an API key without an id
   */
  constructor(key: KeyObject | string, apiKey: string) {
    this.#key = privateKey(key);
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = this.#key;
    if (type !== 'ed25519' && !(type === 'ec' && details?.namedCurve === 'prime256v1'))
      throw new TypeError('signingKey must be an Ed25519 or P-256 key');
    this.#algorithm = type === 'ed25519' ? 'ed25519' : 'ecdsa-p256-sha256';
    this.#apiKey = apiKey;
    const keyId = /_(key_[0-9A-Z]{26})_/.exec(apiKey)?.[1];
    if (keyId === undefined) throw new TypeError('the apiKey does not contain a key id');
    this.#keyId = keyId;
  }

  /** Returns the signature headers of a request. The request must not change afterwards. */
  sign(
    { method, url, body }: SignedRequest,
    now = Math.floor(Date.now() / 1000),
  ): Readonly<Record<string, string>> {
    const digest =
      body === undefined ? undefined : `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
    const values: readonly (readonly [string, string])[] = [
      ['@method', method],
      ['@path', url.pathname],
      ['@query', url.search === '' ? '?' : url.search],
      ['x-api-key', this.#apiKey],
      ...(digest === undefined ? [] : [['content-digest', digest] as const]),
    ];
    const nonce = randomBytes(18).toString('base64url');
    const parameters = `(${values.map(([name]) => `"${name}"`).join(' ')});created=${now};keyid="${this.#keyId}";nonce="${nonce}";alg="${this.#algorithm}"`;
    const base = [
      ...values.map(([name, value]) => `"${name}": ${value}`),
      `"@signature-params": ${parameters}`,
    ].join('\n');
    const signature =
      this.#algorithm === 'ed25519'
        ? sign(null, Buffer.from(base), this.#key)
        : sign('sha256', Buffer.from(base), { key: this.#key, dsaEncoding: 'ieee-p1363' });
    return {
      ...(digest === undefined ? {} : { 'content-digest': digest }),
      'signature-input': `sig=${parameters}`,
      signature: `sig=:${signature.toString('base64')}:`,
    };
  }
}

function privateKey(key: KeyObject | string): KeyObject {
  if (typeof key !== 'string') {
    if (key.type !== 'private') throw new TypeError('signingKey must be a private key');
    return key;
  }
  try {
    return createPrivateKey(key);
  } catch {
    // Node's own message may quote the key.
    throw new TypeError('signingKey must be a private key, as PEM or KeyObject');
  }
}
