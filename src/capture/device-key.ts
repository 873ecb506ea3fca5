import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
} from 'node:crypto';
import { link, open, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { algorithmOf, deviceIdOf, signMessage } from '../codec/trace-chain.js';
import type { DeviceAlgorithm, DeviceId } from '../domain/trace.js';
import { CaptureError } from './capture-error.js';

/** Longest key file that is read. */
const MAX_KEY_FILE_BYTES = 16_384;

/** Key of a device, which signs its traces. */
export class DeviceKey {
  readonly algorithm: DeviceAlgorithm;
  /** SPKI in DER: what the operator enrols. */
  readonly publicKey: Uint8Array;
  readonly deviceId: DeviceId;
  readonly #privateKey: KeyObject;

  /** @throws CaptureError where the key is neither Ed25519 nor on P-256 */
  constructor(privateKey: KeyObject) {
    const algorithm = algorithmOf(privateKey);
    if (algorithm === undefined || privateKey.type !== 'private')
      throw new CaptureError('a device key is a private key, Ed25519 or on P-256');
    this.algorithm = algorithm;
    this.publicKey = Uint8Array.from(createPublicKey(privateKey).export({ format: 'der', type: 'spki' }));
    this.deviceId = deviceIdOf(this.publicKey);
    this.#privateKey = privateKey;
  }

  static generate(algorithm: DeviceAlgorithm = 'Ed25519'): DeviceKey {
    const { privateKey } =
      algorithm === 'Ed25519'
        ? generateKeyPairSync('ed25519')
        : generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    return new DeviceKey(privateKey);
  }

  sign(message: Uint8Array): Uint8Array {
    return signMessage(this.algorithm, this.#privateKey, message);
  }

  /** The private key, PKCS #8 in PEM. */
  exportPem(): string {
    return this.#privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  }
}

/**
 * Makes a key and keeps it in a new file that its owner alone may read. The file is whole or absent, whenever the
 * process ends.
 * @throws CaptureError where the file is there already
 */
export async function createDeviceKey(file: string, algorithm?: DeviceAlgorithm): Promise<DeviceKey> {
  const key = DeviceKey.generate(algorithm);
  const draft = `${file}.${randomUUID()}.tmp`;
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(key.exportPem());
    await handle.sync();
    await handle.close();
    await link(draft, file);
  } catch (error) {
    throw isCode(error, 'EEXIST') ? new CaptureError('the key file is there already') : error;
  } finally {
    await handle.close().catch(() => {});
    await unlink(draft);
  }
  await syncDirectory(dirname(file));
  return key;
}

/** @throws CaptureError where others may read the file, or it holds no key of a device */
export async function loadDeviceKey(file: string): Promise<DeviceKey> {
  const handle = await open(file, 'r');
  try {
    const { mode, size } = await handle.stat();
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw new CaptureError('the key file may be read by others: its mode must be 0600');
    if (size > MAX_KEY_FILE_BYTES) throw new CaptureError('the key file is too long');
    return new DeviceKey(parsePrivateKey(await handle.readFile('latin1')));
  } finally {
    await handle.close();
  }
}

function parsePrivateKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    throw new CaptureError('the key file holds no private key', { cause });
  }
}

/** A new name survives a power cut once its directory is synced. */
export async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
