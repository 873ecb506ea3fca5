import { createHash } from 'node:crypto';
import { defined } from '../domain/defined.js';
import { holdsServiceName, shownText } from '../domain/display-name.js';
import {
  type CredentialReport,
  type EmbeddedParseResult,
  NAMES_THIS_SERVICE,
} from '../domain/parsed-credential.js';
import type { ReportReason, StoreFault } from '../domain/reference/reasons.js';
import type { SigningIdentity, TrustList } from '../ports/signing.js';
import { readCertificate, type SignerCertificate } from './certificate.js';
import type { Claim } from './claim.js';
import { contentFindings, type Findings, signerFindings } from './conformance.js';
import { chunkHeader } from './embed.js';
import { checkIntegrity, type Extent, type Integrity } from './integrity.js';
import { beginsAsStore } from './jumbf.js';
import { type Manifest, readManifest } from './manifest.js';
import { locateOwnParts, MAX_OWN_STORE_BYTES, namesOurAssertion, readOwnForm } from './own-form.js';
import { checkSignature, isLowS } from './signature.js';
import { isProduction } from './statement.js';
import type { StoreContent } from './store-form.js';

/** The largest size of a store in bytes. The audio core passes on no more. */
const MAX_STORE_BYTES = 1_048_576;

/**
 * Reads the data of a `C2PA` chunk. Findings are data, and the function never throws.
 *
 * | store, integrity           | signer's certificate         | assertion of ours            | kind       |
 * |----------------------------|------------------------------|------------------------------|------------|
 * | does not begin as one      |                              |                              | not_a_store |
 * | malformed, or check failed | any                          | any                          | altered    |
 * | intact or not checkable    | pinned                       | production, our form         | service    |
 * |                            | pinned                       | local seal (class confusion) | altered    |
 * |                            | pinned                       | none, or not our form        | altered    |
 * |                            | of our authority, unpinned   | any                          | altered    |
 * |                            | anyone else's                | not our form                 | altered    |
 * |                            | anyone else's                | production, our form         | foreign    |
 * |                            | anyone else's                | local seal, our form         | local_seal |
 * |                            | anyone else's                | none                         | foreign    |
 *
 * A `foreign` store is `verified` only if everything in it was checked. It is `failed` if it contradicts the standard,
 * and `not_checked` if this reader does not check all of it.
 *
 * Our form is byte for byte the output of the writer for the content, with low S. The excluded length must
 * equal the length of the chunk. The start of the exclusion belongs to the hard binding, which the caller
 * checks together with its digest.
 *
 * A production record under a foreign key is not a damaged record of ours. It is the claim of another
 * installation, or of an impostor, that the proof is registered. The report says that the record names this
 * service. Our service never signs with an unpinned certificate of our authority.
 * @param store the chunk's data
 * @param extent position of the chunk in the file: offset of its header, length of header and data
 * @param now the time in unix seconds. The certificate of a stranger must be valid at this time
 */
export function readEmbedded(
  store: Uint8Array,
  extent: Extent,
  trust: TrustList,
  now: number,
): EmbeddedParseResult {
  const outside = outsideFault(store, extent);
  if (outside !== undefined) return outside;
  const reading = readManifest(store);
  if (reading.kind === 'malformed') return altered(reading.reason);
  if (reading.kind === 'compressed') {
    return {
      kind: 'foreign',
      report: {
        format: 'c2pa',
        integrity: 'not_checked',
        trust: 'unknown',
        reasons: ['compressed_manifest'],
      },
    };
  }
  const { manifest } = reading;
  const integrity = checkIntegrity(manifest, extent);
  if (integrity.failed !== undefined || integrity.sign1 === undefined)
    return altered(integrity.failed ?? 'cose_malformed', manifest, integrity);

  const leaf = integrity.sign1.chain[0]!;
  const identity = trust.find(leaf);
  if (identity === undefined && trust.issuedByOurAuthority(leaf))
    return altered('signer_not_pinned', manifest, integrity);
  const namesUs = trust.namesOurAuthority(leaf) || holdsServiceName(integrity.certificate?.name ?? '');
  if (identity === undefined && !namesOurAssertion(manifest))
    return foreign(manifest, integrity, namesUs, [
      contentFindings(manifest, integrity.claim),
      signerFindings(integrity, now),
    ]);

  // What names this service must be exactly what this service writes.
  if (integrity.nonconforming.includes('hash_data_malformed'))
    return altered('hash_data_malformed', manifest, integrity);
  const own = readOwnForm(store, manifest, integrity.sign1);
  if (!own.ok) return altered(own.reason, manifest, integrity);
  const { certificate } = integrity;
  const fault =
    ownFault(own.content, extent, integrity) ??
    (identity === undefined ? undefined : serviceFault(own.content, identity, certificate));
  if (fault !== undefined) return altered(fault, manifest, integrity);
  if (identity === undefined && isProduction(own.content.statement))
    return foreign(
      manifest,
      { ...integrity, notChecked: integrity.notChecked.filter((slug) => slug !== 'ingredients') },
      true,
      [signerFindings(integrity, now)],
    );
  return intact(
    store,
    own.content,
    identity === undefined
      ? report(manifest, integrity, 'verified', 'device', namesUs ? [NAMES_THIS_SERVICE] : [])
      : report(manifest, integrity, 'verified', 'service', []),
  );
}

/**
 * Reads a store without parsing what a stranger may have made. It returns a result in three cases. The bytes
 * are not a store. The store does not fill its chunk. A pinned identity signed the store in the form of the
 * writer, which is `service`. It returns undefined otherwise, and then `readEmbedded` decides. Both functions
 * agree, and `readEmbedded` returns `service` for no other store. At most 36 KiB are read, by strict and
 * memory-safe decoders. Only the pinned certificate is parsed, and only its key is used.
 */
export function recogniseEmbedded(
  store: Uint8Array,
  extent: Extent,
  trust: TrustList,
): EmbeddedParseResult | undefined {
  const outside = outsideFault(store, extent);
  if (outside !== undefined) return outside;
  const located = store.length > MAX_OWN_STORE_BYTES ? undefined : locateOwnParts(store);
  const identity = located && trust.find(located.sign1.chain[0]!);
  if (located === undefined || identity === undefined) return undefined;
  const { parts, sign1 } = located;
  const own = readOwnForm(store, parts, sign1);
  const certificate = readCertificate(identity.certificate);
  if (!own.ok || certificate === undefined) return undefined;
  if (
    !checkSignature(own.content.algorithm, certificate.publicKey, own.toBeSigned, sign1.signature, {
      requireLowS: true,
    })
  )
    return undefined;
  const claim = {
    version: 2,
    generator: `${own.content.generator.name} ${own.content.generator.version}`,
    bindsLabel: true,
  } as const;
  const checked = { claim, sign1, certificate, notChecked: [] };
  if (
    (ownFault(own.content, extent, checked) ?? serviceFault(own.content, identity, certificate)) !== undefined
  )
    return undefined;
  return intact(store, own.content, report(parts, checked, 'verified', 'service', []));
}

/** Returns the fault of a store that is visible without parsing its content. */
function outsideFault(store: Uint8Array, extent: Extent): EmbeddedParseResult | undefined {
  if (!beginsAsStore(store)) return { kind: 'not_a_store', reason: 'store_start_missing' };
  if (store.length > MAX_STORE_BYTES) return altered('store_too_large');
  return extent.length === chunkHeader(store.length).length + store.length
    ? undefined
    : altered('extent_mismatch');
}

function intact(
  store: Uint8Array,
  { statement, binding }: StoreContent,
  shown: CredentialReport,
): EmbeddedParseResult {
  const chunkSha256 = createHash('sha256').update(chunkHeader(store.length)).update(store).digest('hex');
  if (isProduction(statement)) return { kind: 'service', statement, binding, chunkSha256, report: shown };
  return { kind: 'local_seal', statement, binding, chunkSha256, report: shown };
}

/** Returns a fault of a credential in our form, beyond the form itself, for any signer. */
function ownFault(
  { statement, binding, algorithm }: StoreContent,
  extent: Extent,
  { notChecked, certificate, sign1 }: Pick<Integrity, 'notChecked' | 'certificate' | 'sign1'>,
): StoreFault | undefined {
  // The excluded length must be the length of the chunk, otherwise the store is not ours. A different offset
  // is a failed hard binding, which is judged together with the audio.
  if (binding.exclusion.length !== extent.length) return 'exclusion_not_chunk';
  // Ingredients in our form name no manifest, so only their digest needs a check.
  if (notChecked.some((slug) => slug !== 'exclusion_not_chunk' && slug !== 'ingredients'))
    return 'not_writer_form';
  if (certificate === undefined || sign1 === undefined || statement.kid !== certificate.kid)
    return 'kid_mismatch';
  // The signature was already verified in the mode that accepts both forms of S.
  return algorithm === 'ES256' && !isLowS(sign1.signature) ? 'signature_not_low_s' : undefined;
}

/**
 * Returns a fault of a credential under a pinned certificate. The certificate is checked for the time of
 * issue, not for today (rule 8.15).
 */
function serviceFault(
  content: StoreContent,
  identity: SigningIdentity,
  certificate: SignerCertificate | undefined,
): StoreFault | undefined {
  const { statement } = content;
  if (!isProduction(statement)) return 'class_confusion';
  if (content.algorithm !== identity.algorithm) return 'algorithm_not_of_key';
  if (statement.issuer !== identity.issuer) return 'issuer_mismatch';
  const valid =
    certificate !== undefined &&
    statement.createdAt >= certificate.notBefore &&
    statement.createdAt <= certificate.notAfter;
  return valid ? undefined : 'outside_validity';
}

function foreign(
  manifest: Manifest,
  integrity: Integrity,
  namesUs: boolean,
  more: readonly Findings[],
): EmbeddedParseResult {
  const { binding, sign1 } = integrity;
  const all = [integrity, ...more];
  const nonconforming = new Set(all.flatMap((findings) => findings.nonconforming));
  const notChecked = new Set(all.flatMap((findings) => findings.notChecked));
  // A time-stamp proves a time, not content, so the manifest is intact without one.
  const reasons: readonly ReportReason[] = [
    ...nonconforming,
    ...notChecked,
    ...(sign1?.hasTimeStamp === true ? ['time_stamp_not_checked' as const] : []),
    ...(namesUs ? [NAMES_THIS_SERVICE] : []),
  ];
  const outcome = report(
    manifest,
    integrity,
    nonconforming.size > 0 ? 'failed' : notChecked.size > 0 ? 'not_checked' : 'verified',
    'unknown',
    reasons,
  );
  return { kind: 'foreign', ...defined({ binding }), report: outcome };
}

function altered(reason: StoreFault, manifest?: Manifest, integrity?: Integrity): EmbeddedParseResult {
  return { kind: 'altered', reason, report: report(manifest, integrity, 'failed', 'unknown', [reason]) };
}

type Reported = Pick<Integrity, 'sign1' | 'certificate'> & {
  readonly claim?: Pick<Claim, 'version' | 'generator' | 'bindsLabel'>;
};

function report(
  manifest: Pick<Manifest, 'label'> | undefined,
  integrity: Reported | undefined,
  outcome: CredentialReport['integrity'],
  trust: CredentialReport['trust'],
  reasons: readonly ReportReason[],
): CredentialReport {
  const name = integrity?.certificate?.name;
  const generator = integrity?.claim?.generator;
  const algorithm = integrity?.sign1?.algorithm;
  const claimVersion = integrity?.claim?.version;
  return {
    format: 'c2pa',
    ...(name === undefined
      ? {}
      : trust === 'device'
        ? { device: shownText(name) }
        : { issuer: shownText(name) }),
    ...defined({
      generator: generator === undefined ? undefined : shownText(generator),
      algorithm,
      claimVersion,
    }),
    // An unsigned label could be written by anyone.
    ...(manifest === undefined || integrity?.claim?.bindsLabel !== true
      ? {}
      : { manifestLabel: shownText(manifest.label) }),
    integrity: outcome,
    trust,
    reasons: [...reasons],
  };
}
