import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
} from 'node:crypto';
import { link, open, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { DeviceAlgorithm, DeviceId } from '../domain/trace.js';
import { algorithmOf, deviceIdOf, signMessage } from '../trace/trace-chain.js';
import { CaptureError } from './capture-error.js';

/** The maximum size of a key file in bytes. */
const MAX_KEY_FILE_BYTES = 16_384;

/** The key of a device, which signs its traces. */
export class DeviceKey {
  readonly algorithm: DeviceAlgorithm;
  /** The public key as SPKI in DER. The operator enrols it. */
  readonly publicKey: Uint8Array;
  readonly deviceId: DeviceId;
  readonly #privateKey: KeyObject;

  /** @throws CaptureError unless the key is an Ed25519 or P-256 private key */
  constructor(privateKey: KeyObject) {
    const algorithm = algorithmOf(privateKey);
    if (algorithm === undefined || privateKey.type !== 'private')
      throw new CaptureError('a device key must be an Ed25519 or P-256 private key');
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

  /** Returns the private key as PKCS #8 in PEM. */
  exportPem(): string {
    return this.#privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  }
}

/**
 * Creates a key in a new file that only its owner may read. After a crash the file is either complete or
 * absent.
 * @throws CaptureError if the file exists
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
    throw isCode(error, 'EEXIST') ? new CaptureError('the key file already exists') : error;
  } finally {
    await handle.close().catch(() => {});
    await unlink(draft);
  }
  await syncDirectory(dirname(file));
  return key;
}

/** Loads a key. @throws CaptureError if other users may read the file, or it does not hold a device key */
export async function loadDeviceKey(file: string): Promise<DeviceKey> {
  const handle = await open(file, 'r');
  try {
    const { mode, size } = await handle.stat();
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw new CaptureError('other users can read the key file: its mode must be 0600');
    if (size > MAX_KEY_FILE_BYTES)
      throw new CaptureError(`the key file is larger than ${MAX_KEY_FILE_BYTES} bytes`);
    return new DeviceKey(parsePrivateKey(await handle.readFile('latin1')));
  } finally {
    await handle.close();
  }
}

function parsePrivateKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    throw new CaptureError('the key file does not hold a private key', { cause });
  }
}

/** Syncs a directory, so that new names in it survive a power cut. */
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
