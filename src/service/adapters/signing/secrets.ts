import { hkdfSync } from 'node:crypto';
import { join } from 'node:path';
import { SECRET_PURPOSES, type SecretPurpose } from '../../../core/domain/secret-purposes.js';
import { replaceFile } from '../../../core/files/durable.js';
import type { Secret, Secrets } from '../../ports/secrets.js';
import { keepFile } from './kept-file.js';

export const SECRETS_FILE = 'secrets.json';
const SECRET_BYTES = 32;
const ID_BYTES = 4;
/** The purposes that bundles of former versions do not have. */
const LATER_PURPOSES: readonly SecretPurpose[] = ['event', 'row'];

export interface StoredSecret {
  readonly id: string;
  /** The secret in base64. */
  readonly key: string;
  /** Present while the secret is known but not used yet. It verifies, and becomes the current one next. */
  readonly next?: true;
  /** The time at which another secret took its place, in unix seconds. */
  readonly formerSince?: number;
}

/** The secrets as they are on disk: for each purpose its secrets, the current one first. */
export interface SecretsBundle {
  readonly format: 1;
  readonly environment: string;
  readonly secrets: Readonly<Record<SecretPurpose, readonly StoredSecret[]>>;
}

export interface KeptSecrets {
  readonly secrets: Secrets;
  /**
   * Set where the file is of a version that had no secret for rows: rows without a code may be taken over. To
   * be called once that is done, by the process that owns the store: the file has all secrets from then on.
   */
  readonly complete: (() => Promise<void>) | undefined;
}

/**
 * Loads the environment's symmetric secrets, and makes them on the first start.
 * @throws Error for a file that is damaged or belongs to another environment
 */
export async function loadSecrets({
  directory,
  environment,
  random,
}: {
  readonly directory: string;
  readonly environment: string;
  readonly random: (length: number) => Uint8Array;
}): Promise<KeptSecrets> {
  const { text } = await keepFile(directory, SECRETS_FILE, () => textOf(newSecrets(environment, random)));
  const secrets = readSecrets(text, SECRETS_FILE, environment);
  const bundle = parseBundle(text, SECRETS_FILE);
  const isWhole = JSON.stringify(bundle) === JSON.stringify(JSON.parse(text));
  return {
    secrets,
    complete: isWhole ? undefined : () => replaceFile(join(directory, SECRETS_FILE), textOf(bundle)),
  };
}

/**
 * Returns the secrets in the text of a bundle.
 * @param name of the file, for the message
 * @throws Error
 */
export function readSecrets(text: string, name: string, environment: string): Secrets {
  const bundle = parseBundle(text, name);
  if (bundle.environment !== environment)
    throw new Error(`${name} belongs to the environment ${bundle.environment}, not ${environment}`);
  const byPurpose = new Map<SecretPurpose, readonly Secret[]>(
    SECRET_PURPOSES.map((purpose) => [
      purpose,
      bundle.secrets[purpose].map(({ id, key }) => ({ id, key: Buffer.from(key, 'base64') })),
    ]),
  );
  return {
    current: (purpose) => byPurpose.get(purpose)![0]!,
    find: (purpose, id) => byPurpose.get(purpose)!.find((secret) => secret.id === id),
    all: (purpose) => byPurpose.get(purpose)!,
  };
}

export function newSecrets(environment: string, random: (length: number) => Uint8Array): SecretsBundle {
  const one = () => [newSecret(random)];
  return {
    format: 1,
    environment,
    secrets: {
      'key-pepper': one(),
      'upload-policy': one(),
      cursor: one(),
      rotation: one(),
      audit: one(),
      event: one(),
      row: one(),
    },
  };
}

export function newSecret(random: (length: number) => Uint8Array): StoredSecret {
  return {
    id: Buffer.from(random(ID_BYTES)).toString('hex'),
    key: Buffer.from(random(SECRET_BYTES)).toString('base64'),
  };
}

/**
 * Returns the whole bundle. Purposes that a former version did not have get secrets that follow from those of the
 * audit logs, which are never dropped. These secrets are the same in every process. So a bundle of a former version
 * needs no step before an update.
 * @throws Error
 */
export function parseBundle(text: string, name: string): SecretsBundle {
  const damaged = () => new Error(`${name} is damaged`);
  let bundle: Partial<SecretsBundle> | null;
  try {
    bundle = JSON.parse(text) as Partial<SecretsBundle> | null;
  } catch {
    throw damaged();
  }
  if (typeof bundle !== 'object' || bundle === null) throw damaged();
  if (bundle.format !== 1) throw new Error(`${name} has a format that this version does not know`);
  const given = bundle.secrets;
  const lacking = LATER_PURPOSES.filter((purpose) => given?.[purpose] === undefined);
  for (const purpose of SECRET_PURPOSES) {
    if (lacking.includes(purpose)) continue;
    const known = given?.[purpose];
    if (!Array.isArray(known) || known.length === 0) throw damaged();
    for (const { id, key } of known)
      if (
        typeof id !== 'string' ||
        typeof key !== 'string' ||
        Buffer.from(key, 'base64').length < SECRET_BYTES
      )
        throw damaged();
  }
  const whole = bundle as SecretsBundle;
  if (lacking.length === 0) return whole;
  return {
    ...whole,
    secrets: {
      ...whole.secrets,
      ...Object.fromEntries(
        lacking.map((purpose) => [purpose, whole.secrets.audit.map((secret) => derived(secret, purpose))]),
      ),
    },
  };
}

/**
 * Derives a secret with HKDF (RFC 5869) from a secret of the audit logs, with the purpose in the info. `next` and
 * `formerSince` are those of that secret.
 */
function derived(audit: StoredSecret, purpose: SecretPurpose): StoredSecret {
  const bytes = Buffer.from(
    hkdfSync(
      'sha256',
      Buffer.from(audit.key, 'base64'),
      '',
      `takemark secret for ${purpose}`,
      SECRET_BYTES + ID_BYTES,
    ),
  );
  return {
    ...audit,
    id: bytes.subarray(SECRET_BYTES).toString('hex'),
    key: bytes.subarray(0, SECRET_BYTES).toString('base64'),
  };
}

function textOf(bundle: SecretsBundle): string {
  return `${JSON.stringify(bundle, null, 2)}\n`;
}
