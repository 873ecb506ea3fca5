import { spawn } from 'node:child_process';
import { createHash, createPublicKey, type KeyObject, verify, type X509Certificate } from 'node:crypto';
import { DomainError, ServerError } from '../../../core/domain/errors.js';
import type { SignatureAlgorithm } from '../../../core/domain/parsed-credential.js';
import type { Signer } from '../../../core/ports/signing.js';
import { identityOf, lowS } from './identity.js';

export interface TokenOptions {
  /** The path of the PKCS#11 module. */
  readonly module: string;
  /** The labels of the token, and of the key pair in it. */
  readonly token: string;
  readonly key: string;
  readonly pin: string;
  /** The environment variables for the module. They never include the service's own settings. */
  readonly environment: Readonly<Record<string, string>>;
  /** The time in milliseconds after which a call is given up. The default is 10,000. */
  readonly timeoutMs?: number;
}

/** A key that stays in its token. */
export interface TokenKey {
  publicKey(): Promise<KeyObject>;
  /** Returns 64 bytes: for ES256 r || s with low S. @throws DomainError `unavailable` / `signer_unavailable` */
  sign(algorithm: SignatureAlgorithm, message: Uint8Array): Promise<Uint8Array>;
}

/** The tool of OpenSC, which runs in a process of its own for each signature. */
const TOOL = 'pkcs11-tool';
const PIN_VARIABLE = 'TOKEN_PIN';
const TIMEOUT_MS = 10_000;
/**
 * The most calls that are under way or wait. One is made at a time, because a token is one device, and SoftHSM's
 * files are not read while another call writes.
 */
const MOST_CALLS = 64;
const MAX_OUTPUT_BYTES = 16_384;
const SIGNATURE_BYTES = 64;
/** The errors of PKCS#11 2.40 for a PIN that is wrong, locked, expired, invalid or of a wrong length. */
const PIN_REFUSED = /CKR_PIN_(?:INCORRECT|LOCKED|EXPIRED|INVALID|LEN_RANGE)/;

/**
 * Opens a key in a PKCS#11 token. The module runs in a child process, so it blocks no other work, its crash costs one
 * signature, and it sees nothing of the service. Each signature has a new session, so a token that was away is used
 * again.
 */
export function openToken(options: TokenOptions): TokenKey {
  const calls = new Calls(options);
  return {
    async publicKey() {
      const output = await calls.run(['--read-object', '--type', 'pubkey', '--label', options.key]);
      try {
        // Some versions write Ed25519 keys as PEM.
        return output.toString('latin1').startsWith('-----')
          ? createPublicKey(output.toString('latin1'))
          : createPublicKey({ key: output, format: 'der', type: 'spki' });
      } catch (cause) {
        throw new ServerError(`the token has no readable public key with the label ${options.key}`, {
          cause,
        });
      }
    },
    async sign(algorithm, message) {
      // The hash is made here, since many tokens only do the rest.
      const signature =
        algorithm === 'ES256'
          ? await calls.run(
              [
                '--login',
                '--sign',
                '--mechanism',
                'ECDSA',
                '--signature-format',
                'rs',
                '--label',
                options.key,
              ],
              createHash('sha256').update(message).digest(),
            )
          : await calls.run(['--login', '--sign', '--mechanism', 'EDDSA', '--label', options.key], message);
      if (signature.length !== SIGNATURE_BYTES)
        throw unavailable(
          `the token returned a signature of ${signature.length} bytes, which is the wrong length`,
        );
      return algorithm === 'ES256' ? lowS(signature) : signature;
    },
  };
}

/** Signs with a token's key; a signature that is not the certificate's is a fault and not handed out. */
export function createTokenSigner(certificate: X509Certificate, token: TokenKey): Signer {
  const identity = identityOf(certificate);
  const { publicKey } = certificate;
  return {
    identity,
    async sign(message) {
      const signature = await token.sign(identity.algorithm, message);
      const good =
        identity.algorithm === 'Ed25519'
          ? verify(null, message, publicKey, signature)
          : verify('sha256', message, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature);
      if (!good) throw unavailable('the key in the token does not belong to the signing certificate');
      return signature;
    },
  };
}

/** Runs the tool, one call after another. */
class Calls {
  readonly #options: TokenOptions;
  #last: Promise<unknown> = Promise.resolve();
  #calls = 0;
  #pinRefused = false;

  constructor(options: TokenOptions) {
    this.#options = options;
  }

  run(words: readonly string[], input: Uint8Array = new Uint8Array(0)): Promise<Buffer> {
    if (this.#calls >= MOST_CALLS)
      return Promise.reject(unavailable('too many calls are waiting for the token'));
    this.#calls += 1;
    const since = performance.now();
    const call = this.#last
      .then(() => {
        // Tried again and again, a wrong PIN locks the token for good.
        if (this.#pinRefused)
          throw unavailable(
            'the token refused the PIN; the service does not try this PIN again: restart it with another PIN',
          );
        if (performance.now() - since > (this.#options.timeoutMs ?? TIMEOUT_MS))
          throw unavailable('the call waited too long for the token');
        return this.#spawn(words, input);
      })
      .finally(() => (this.#calls -= 1));
    this.#last = call.catch(() => undefined);
    return call;
  }

  #spawn(words: readonly string[], input: Uint8Array): Promise<Buffer> {
    const { module, token, pin, environment, timeoutMs = TIMEOUT_MS } = this.#options;
    const login = words.includes('--login') ? ['--pin', `env:${PIN_VARIABLE}`] : [];
    return new Promise((resolve, reject) => {
      const child = spawn(TOOL, ['--module', module, '--token-label', token, ...words, ...login], {
        env: { ...environment, [PIN_VARIABLE]: pin },
        stdio: ['pipe', 'pipe', 'pipe'],
        timeout: timeoutMs,
        killSignal: 'SIGKILL',
      });
      const output: Buffer[] = [];
      const errors: Buffer[] = [];
      let bytes = 0;
      const keep = (list: Buffer[]) => (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_OUTPUT_BYTES) child.kill('SIGKILL');
        else list.push(chunk);
      };
      child.stdout.on('data', keep(output));
      child.stderr.on('data', keep(errors));
      child.on('error', (error: NodeJS.ErrnoException) =>
        reject(
          unavailable(
            error.code === 'ENOENT'
              ? `${TOOL} of OpenSC is not installed`
              : 'the tool for the token could not be started',
            error,
          ),
        ),
      );
      child.on('close', (code, signal) => {
        if (code === 0) return resolve(Buffer.concat(output));
        const said = Buffer.concat(errors).toString('utf8');
        this.#pinRefused ||= PIN_REFUSED.test(said);
        reject(
          unavailable(
            signal === null ? `the token reported: ${firstFault(said)}` : 'the token did not answer in time',
          ),
        );
      });
      // A child that ends before it has read everything says why on its other end.
      child.stdin.on('error', () => undefined);
      child.stdin.end(input);
    });
  }
}

/** Returns the tool's first line that reports a fault. It is about the token and holds nothing of a caller. */
function firstFault(said: string): string {
  const line =
    said.split('\n').find((text) => /error|no slot|not found|fail/i.test(text)) ?? 'no reason was given';
  return line.replace(/[^\x20-\x7e]/g, '').slice(0, 160);
}

function unavailable(words: string, cause?: unknown): DomainError {
  return new DomainError('unavailable', 'The signing key cannot be reached at the moment.', {
    reason: 'signer_unavailable',
    retryAfterSeconds: 5,
    dependency: 'token',
    cause: new ServerError(words, cause === undefined ? undefined : { cause }),
  });
}
