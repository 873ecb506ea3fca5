import { createPrivateKey, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { DISPLAY_NAME_PATTERN, holdsServiceName } from '../../../core/domain/display-name.js';
import type { SignatureAlgorithm } from '../../../core/domain/parsed-credential.js';
import type { LocalSigner } from '../../../core/ports/signing.js';
import type { Clock } from '../../ports/system.js';
import { makeCertificate } from './certificate-profile.js';
import { createSigner, generateKey, privatePem } from './identity.js';
import { type KeyPair, keepKeyPair, readKeyPair, removeUnfinished } from './key-directory.js';

export interface DeviceOptions {
  /** The directory with the key pair in its folder `device/`. */
  readonly directory: string;
  /** The name of a new device, of 1 to 64 characters. An existing device keeps its name. */
  readonly name: string;
  readonly algorithm?: SignatureAlgorithm;
  readonly clock: Clock;
  readonly random: (length: number) => Uint8Array;
}

const LIFE_MS = 7305 * 86_400_000;

/**
 * Opens an artist's device: the key that local seals are made with. The first use makes it. Its identity's `issuer`
 * is its name.
 * @throws Error for a name that cannot be shown, or is the service's, and for a certificate that is not valid now
 */
export async function createDevice(options: DeviceOptions): Promise<LocalSigner> {
  await removeUnfinished(options.directory, options.clock.now());
  const device = signerOf(
    (await readKeyPair(join(options.directory, 'device'))) ??
      (await keepKeyPair(options.directory, 'device', newDevice(options))),
  );
  assertDeviceName(device.identity.issuer);
  const { validFrom, validTo } = new X509Certificate(device.identity.certificate);
  const now = options.clock.now();
  if (now < Date.parse(validFrom) || now > Date.parse(validTo))
    throw new Error(
      `the certificate of this device is valid from ${validFrom} to ${validTo}: check the clock, or remove ${join(options.directory, 'device')}, and the next seal creates a new device`,
    );
  return device;
}

/** Makes a new device whose key is in memory alone. */
export function temporaryDevice(options: Omit<DeviceOptions, 'directory'>): LocalSigner {
  return signerOf(newDevice(options));
}

function signerOf({ certificate, key }: KeyPair): LocalSigner {
  return createSigner(new X509Certificate(certificate), createPrivateKey(key));
}

/**
 * Makes a leaf under an authority of its own, whose key is discarded. Validators refuse a self-signed leaf without an
 * authority key identifier, or with equal issuer and subject, and the authority is never used again.
 */
export function newDevice({
  name,
  algorithm = 'Ed25519',
  clock,
  random,
}: Omit<DeviceOptions, 'directory'>): KeyPair {
  assertDeviceName(name);
  const authority = generateKey(algorithm);
  const device = generateKey(algorithm);
  const der = makeCertificate({
    subject: { organisation: name, commonName: 'Local seal' },
    issuer: { organisation: name, commonName: 'Local device authority' },
    subjectKey: device.publicKey,
    issuerKey: authority.privateKey,
    issuerPublicKey: authority.publicKey,
    notBefore: new Date(clock.now() - 86_400_000),
    notAfter: new Date(clock.now() + LIFE_MS),
    serial: random(16),
    kind: 'leaf',
  });
  return { certificate: new X509Certificate(der).toString(), key: privatePem(device.privateKey) };
}

/** Checks a device's name, under which its seals are shown. It must not be, or look like, the service's own. */
function assertDeviceName(name: string): void {
  if (!DISPLAY_NAME_PATTERN.test(name)) throw new Error('a device name must have 1 to 64 visible characters');
  if (holdsServiceName(name))
    throw new Error('a device name must not be, or look like, the name of the service');
}
