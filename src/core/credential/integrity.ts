import { createHash } from 'node:crypto';
import type { CborValue } from '../codec/cbor.js';
import { defined } from '../domain/defined.js';
import type { HardBinding } from '../domain/parsed-credential.js';
import type { ProfileFault, StoreFault, UncheckedPart } from '../domain/reference/reasons.js';
import { chainHangsTogether, readCertificate, type SignerCertificate } from './certificate.js';
import { type Claim, fieldsIn, readClaim } from './claim.js';
import { readSign1, type Sign1, toBeSigned } from './cose.js';
import type { Manifest } from './manifest.js';
import { algorithmFitsKey, checkSignature } from './signature.js';

/** The integrity of a manifest of any signer. Each step returns a value, or the slug of the failed check. */
export interface Integrity {
  /** The first check that failed. Later checks were not made. */
  readonly failed?: StoreFault;
  /** The slugs of the parts that this reader does not check. */
  readonly notChecked: readonly UncheckedPart[];
  /** The slugs of what contradicts the standard, although bytes, references and signature agree. */
  readonly nonconforming: readonly ProfileFault[];
  readonly claim?: Claim;
  readonly sign1?: Sign1;
  readonly certificate?: SignerCertificate;
  readonly binding?: HardBinding;
}

export interface Extent {
  /** The offset of the chunk header in the file, in bytes. */
  readonly offset: number;
  /** The length of header and data in bytes. */
  readonly length: number;
}

export function checkIntegrity(manifest: Manifest, extent: Extent): Integrity {
  const notChecked: UncheckedPart[] = [];
  const nonconforming: ProfileFault[] = [];
  const found = { notChecked, nonconforming };
  const claim = readClaim(manifest.claim, manifest.claimLabel, manifest.label);
  if (claim === undefined) return { failed: 'claim_malformed', ...found };
  const cose = readSign1(manifest.cose);
  if (!cose.ok) return { failed: cose.fault, ...found, claim };
  const { sign1 } = cose;
  const certificate = readCertificate(sign1.chain[0]!);
  if (certificate === undefined) return { failed: 'certificate_malformed', ...found, claim, sign1 };
  const read = { ...found, claim, sign1, certificate };

  if (!claim.namesItsSignature) return { failed: 'signature_reference', ...read };
  const reference = checkReferences(manifest, claim, notChecked);
  if (reference !== undefined) return { failed: reference, ...read };
  const signature = checkClaimSignature(manifest, sign1, certificate, notChecked);
  if (signature !== undefined) return { failed: signature, ...read };
  noteUnread(manifest, notChecked);
  if (sign1.hasUnknownHeaders) note(notChecked, 'unprotected_header_unknown');
  if (!chainHangsTogether(sign1.chain)) note(notChecked, 'certificate_chain_broken');
  const binding = readBinding(manifest, claim, extent, found);
  return { ...read, ...defined({ binding }) };
}

/**
 * Checks the hashed URIs. Every assertion must be listed, and every listed assertion must exist with its hash
 * (C2PA 2.2 section 15.10.3).
 */
function checkReferences(
  manifest: Manifest,
  claim: Claim,
  notChecked: UncheckedPart[],
): StoreFault | undefined {
  const assertions = new Map(manifest.assertions.map((assertion) => [assertion.label, assertion]));
  const listed = new Set<string>();
  for (const { label, hash, algorithm } of claim.references) {
    const assertion = label === undefined ? undefined : assertions.get(label);
    if (label === undefined || assertion === undefined) return 'assertion_missing';
    // Otherwise a long claim could make the reader hash one assertion many times.
    if (listed.has(label)) return 'assertion_listed_twice';
    listed.add(label);
    if ((algorithm ?? claim.algorithm) !== 'sha256') note(notChecked, 'hash_algorithm_unsupported');
    else if (!sha256(assertion.hashed).equals(hash)) return 'assertion_hash_mismatch';
  }
  return listed.size === assertions.size ? undefined : 'assertion_not_listed';
}

function checkClaimSignature(
  manifest: Manifest,
  sign1: Sign1,
  certificate: SignerCertificate,
  notChecked: UncheckedPart[],
): StoreFault | undefined {
  if (sign1.algorithm === undefined) {
    note(notChecked, 'signature_algorithm_unsupported');
    return undefined;
  }
  if (!algorithmFitsKey(sign1.algorithm, certificate.publicKey)) return 'algorithm_not_of_key';
  const message = toBeSigned(sign1.protectedBytes, manifest.claim);
  return checkSignature(sign1.algorithm, certificate.publicKey, message, sign1.signature, {
    requireLowS: false,
  })
    ? undefined
    : 'signature_mismatch';
}

/** Notes the legal parts that this reader does not check (rule 8.18). */
function noteUnread(manifest: Manifest, notChecked: UncheckedPart[]): void {
  if (manifest.isOldType) note(notChecked, 'manifest_type_old');
  if (manifest.isUpdate) note(notChecked, 'update_manifest');
  if (manifest.otherManifests > 0) note(notChecked, 'other_manifests');
  if (manifest.assertions.some(({ label }) => label.startsWith('c2pa.ingredient')))
    note(notChecked, 'ingredients');
  if (manifest.trailing.some((byte) => byte !== 0)) note(notChecked, 'bytes_after_store');
}

/**
 * Returns the binding of the data hash, if it excludes exactly the chunk. Any other excluded bytes would be
 * audio that could be changed (C2PA 2.2 section 18.5).
 */
function readBinding(
  manifest: Manifest,
  claim: Claim,
  extent: Extent,
  { notChecked, nonconforming }: { notChecked: UncheckedPart[]; nonconforming: ProfileFault[] },
): HardBinding | undefined {
  const hard = manifest.assertions.filter(({ label }) => label.startsWith('c2pa.hash.'));
  const [only, ...more] = hard;
  if (only === undefined) note(notChecked, 'hard_binding_missing');
  else if (more.length > 0) note(notChecked, 'hard_binding_several');
  else if (!/^c2pa\.hash\.data(?:__[0-9]+)?$/.test(only.label)) note(notChecked, 'hard_binding_unsupported');
  if (only === undefined || notChecked.some((slug) => slug.startsWith('hard_binding'))) return undefined;

  const fields = only.cbor === undefined ? undefined : fieldsIn(only.cbor);
  const hash = fields?.get('hash');
  if (fields === undefined || !(hash instanceof Uint8Array)) {
    nonconforming.push('hash_data_malformed');
    return undefined;
  }
  if ((fields.get('alg') ?? claim.algorithm) !== 'sha256') {
    note(notChecked, 'hash_algorithm_unsupported');
    return undefined;
  }
  if (hash.length !== 32) {
    nonconforming.push('hash_data_malformed');
    return undefined;
  }
  const exclusion = soleExclusion(fields.get('exclusions'));
  if (exclusion === undefined || exclusion.start !== extent.offset || exclusion.length !== extent.length) {
    note(notChecked, 'exclusion_not_chunk');
    return undefined;
  }
  return { exclusion, sha256: Buffer.from(hash).toString('hex') };
}

function soleExclusion(exclusions: CborValue | undefined): HardBinding['exclusion'] | undefined {
  if (!Array.isArray(exclusions) || exclusions.length !== 1) return undefined;
  const entry = (exclusions as readonly CborValue[])[0];
  if (!(entry instanceof Map)) return undefined;
  const start: unknown = entry.get('start');
  const length: unknown = entry.get('length');
  return Number.isSafeInteger(start) && Number.isSafeInteger(length)
    ? { start: start as number, length: length as number }
    : undefined;
}

function note(notChecked: UncheckedPart[], slug: UncheckedPart): void {
  if (!notChecked.includes(slug)) notChecked.push(slug);
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}
