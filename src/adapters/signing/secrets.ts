import type { Secret, SecretPurpose, Secrets } from '../../ports/secrets.js';
import { SECRET_PURPOSES } from '../../ports/secrets.js';
import { keepFile } from './kept-file.js';

export const SECRETS_FILE = 'secrets.json';
const SECRET_BYTES = 32;

export interface StoredSecret {
  readonly id: string;
  /** Base64. */
  readonly key: string;
  /** Known everywhere before it is used: verifies, and is the next current one. */
  readonly next?: true;
  /** Unix seconds at which another one took its place. */
  readonly formerSince?: number;
}

/** On disk: for each purpose the secrets, the current one first. */
export interface SecretsBundle {
  readonly format: 1;
  readonly environment: string;
  readonly secrets: Readonly<Record<SecretPurpose, readonly StoredSecret[]>>;
}

/**
 * The environment's symmetric secrets, made on the first start.
 * @throws Error for a file that is damaged or belongs to another environment: "isolated infrastructure, separate keys"
 */
export async function loadSecrets({ directory, environment, random }: { readonly directory: string; readonly environment: string; readonly random: (length: number) => Uint8Array }): Promise<Secrets> {
  const { text } = await keepFile(directory, SECRETS_FILE, () => `${JSON.stringify(newSecrets(environment, random), null, 2)}\n`);
  return readSecrets(text, SECRETS_FILE, environment);
}

/**
 * The secrets in the text of a bundle.
 * @param name of the file, for the message
 * @throws Error
 */
export function readSecrets(text: string, name: string, environment: string): Secrets {
  const bundle = parseBundle(text, name);
  if (bundle.environment !== environment) throw new Error(`${name} belongs to the environment ${bundle.environment}, not ${environment}`);
  const byPurpose = new Map<SecretPurpose, readonly Secret[]>(
    SECRET_PURPOSES.map((purpose) => [purpose, bundle.secrets[purpose].map(({ id, key }) => ({ id, key: Buffer.from(key, 'base64') }))]),
  );
  return {
    current: (purpose) => byPurpose.get(purpose)![0]!,
    find: (purpose, id) => byPurpose.get(purpose)!.find((secret) => secret.id === id),
    all: (purpose) => byPurpose.get(purpose)!,
  };
}

export function newSecrets(environment: string, random: (length: number) => Uint8Array): SecretsBundle {
  const one = () => [newSecret(random)];
  return { format: 1, environment, secrets: { 'key-pepper': one(), 'upload-policy': one(), cursor: one(), rotation: one(), audit: one() } };
}

export function newSecret(random: (length: number) => Uint8Array): StoredSecret {
  return { id: Buffer.from(random(4)).toString('hex'), key: Buffer.from(random(SECRET_BYTES)).toString('base64') };
}

/** @throws Error */
export function parseBundle(text: string, name: string): SecretsBundle {
  const damaged = () => new Error(`${name} is damaged`);
  let bundle: Partial<SecretsBundle>;
  try {
    bundle = JSON.parse(text) as Partial<SecretsBundle>;
  } catch {
    throw damaged();
  }
  if (bundle.format !== 1) throw new Error(`${name} is of a format that this version does not know`);
  for (const purpose of SECRET_PURPOSES) {
    const known = bundle.secrets?.[purpose];
    if (!Array.isArray(known) || known.length === 0) throw damaged();
    for (const { id, key } of known) if (typeof id !== 'string' || typeof key !== 'string' || Buffer.from(key, 'base64').length < SECRET_BYTES) throw damaged();
  }
  return bundle as SecretsBundle;
}
