import { createHash } from 'node:crypto';
import { decodeMessagePackStrict, encodeMessagePack, type MessagePackValue } from '../codec/messagepack.js';
import type {
  SidecarParseResult,
  SignatureAlgorithm,
  WholeFileBinding,
} from '../domain/parsed-credential.js';
import type { LocalSigner, Signer, TrustList } from '../ports/signing.js';
import { readCertificate, type SignerCertificate } from './certificate.js';
import { checkSignature } from './signature.js';
import {
  assertStatement,
  isProduction,
  isSha256Hex,
  productionStatement,
  type Statement,
  sealStatement,
} from './statement.js';

/**
 * The detached credential of a pair, version 1: MessagePack, an array of four.
 *
 *     [ "takemark.sidecar", 1, { kind, alg, certificate, kid, <statement>, bytes, sha256 }, signature ]
 *
 * The signature covers the context and every byte before the signature element: array head, name, version
 * and body. Digests and key ids are 32 raw bytes. The certificate is DER. Times are unix seconds.
 */
const FORMAT = 'takemark.sidecar';
const VERSION = 1;
/**
 * The constant prefix of every sidecar: the head of an array of four, and the name. Only bytes with this
 * prefix are treated as a sidecar.
 */
const MAGIC = Buffer.concat([Buffer.from([0x94]), encodeMessagePack(FORMAT)]);
/**
 * The context of the signature, which separates it from every other use of the same key. A message that is
 * signed for C2PA begins with a CBOR array head.
 */
const CONTEXT = Buffer.from('takemark sidecar signature v1\0', 'latin1');
/** The length of the last element in bytes: a bin 8 head and 64 bytes. */
const SIGNATURE_ELEMENT_BYTES = 66;
/**
 * The largest size of a sidecar in bytes. Ours are below 2 kB with our certificate, and at most 16 kB of
 * certificate are read.
 */
const MAX_BYTES = 20 * 1024;

const KINDS = { production: 'production-record', seal: 'local-seal' } as const;

interface Content {
  readonly statement: Statement;
  readonly binding: WholeFileBinding;
  readonly algorithm: SignatureAlgorithm;
  readonly certificate: Uint8Array;
}

interface SidecarRequest<Signing extends Signer> {
  readonly statement: Statement;
  readonly binding: WholeFileBinding;
  readonly signer: Signing;
}

/**
 * Signs a sidecar for a whole audio file of any type, with a key in memory.
 * @throws RangeError if the signer may not make the statement, or the binding is invalid
 */
export function writeSidecar(request: SidecarRequest<LocalSigner>): Uint8Array {
  const body = unsigned(request);
  return withSignature(body, request.signer.sign(signedMessage(body)));
}

/** Signs a sidecar with a key that may be stored anywhere. */
export async function signSidecar(request: SidecarRequest<Signer>): Promise<Uint8Array> {
  const body = unsigned(request);
  return withSignature(body, await request.signer.sign(signedMessage(body)));
}

function unsigned({ statement, binding, signer }: SidecarRequest<Signer>): Uint8Array {
  assertStatement(statement, signer.identity);
  if (!isBinding(binding)) throw new RangeError('a binding must be a length and 64 lower-case hex digits');
  return signedPart({
    statement,
    binding,
    algorithm: signer.identity.algorithm,
    certificate: signer.identity.certificate,
  });
}

function withSignature(body: Uint8Array, signature: Uint8Array): Uint8Array {
  const sidecar = Buffer.concat([body, encodeMessagePack(signature)]);
  if (sidecar.length !== body.length + SIGNATURE_ELEMENT_BYTES || sidecar.length > MAX_BYTES)
    throw new RangeError('the certificate or signature is too large for a sidecar');
  return sidecar;
}

/**
 * Reads a sidecar. Findings are data, and the function never throws. Classes are the same as for the embedded
 * form. A production record under an unknown key is `foreign`. A local seal under a pinned key is `altered`.
 * Everything under an unpinned certificate of our authority is `altered` too.
 */
export function readSidecar(bytes: Uint8Array, trust: TrustList): SidecarParseResult {
  const opened = openSidecar(bytes);
  if ('kind' in opened) return opened;
  const read = prepare(bytes, opened, trust);
  return 'kind' in read ? read : read.complete(checkSignature(...read.signature));
}

/** A sidecar whose signature is still to be checked. The sidecar's bytes must not change until then. */
export interface UncheckedSidecar {
  readonly signature: Parameters<typeof checkSignature>;
  /** Returns the result of reading the sidecar. */
  complete(isSignatureValid: boolean): SidecarParseResult;
}

/**
 * Reads a sidecar without parsing the certificate of a stranger. It returns the result for every fault of
 * form. For every other sidecar that names a pinned certificate, it leaves the check of the signature to the caller. It
 * returns undefined for the rest, which has an intact form and is never `service`.
 */
export function recogniseSidecar(
  bytes: Uint8Array,
  trust: TrustList,
): SidecarParseResult | UncheckedSidecar | undefined {
  const opened = openSidecar(bytes);
  if ('kind' in opened) return opened;
  return trust.find(opened.content.certificate) === undefined ? undefined : prepare(bytes, opened, trust);
}

interface Opened {
  readonly content: Content;
  /** The bytes that the signature covers. */
  readonly signed: Uint8Array;
  readonly signature: Uint8Array;
}

/** Returns the content of a sidecar, or the fault of its form. */
function openSidecar(bytes: Uint8Array): Opened | SidecarParseResult {
  if (bytes.length === 0) return { kind: 'not_a_sidecar', reason: 'sidecar_empty' };
  if (Buffer.compare(bytes.subarray(0, MAGIC.length), MAGIC) !== 0)
    return { kind: 'not_a_sidecar', reason: 'sidecar_magic_missing' };
  if (bytes[MAGIC.length] !== VERSION) return { kind: 'altered', reason: 'sidecar_version_unknown' };
  const decoded = decodeMessagePackStrict(bytes, MAX_BYTES);
  if (!decoded.ok) return { kind: 'altered', reason: `sidecar_${decoded.fault}` };
  const [, , body, signature] = decoded.value as readonly MessagePackValue[];
  const content = contentIn(body);
  if (content === undefined || !(signature instanceof Uint8Array))
    return { kind: 'altered', reason: 'sidecar_members' };
  // The content, written again, must give the same bytes. This fixes member order, spare members and number
  // forms.
  const signed = signedPart(content);
  if (Buffer.compare(Buffer.concat([signed, encodeMessagePack(signature)]), bytes) !== 0)
    return { kind: 'altered', reason: 'sidecar_not_writer_form' };
  return { content, signed, signature };
}

/** Does everything before the check of the signature. */
function prepare(
  bytes: Uint8Array,
  { content, signed, signature }: Opened,
  trust: TrustList,
): SidecarParseResult | UncheckedSidecar {
  const { statement, algorithm } = content;
  const certificate = readCertificate(content.certificate);
  if (certificate === undefined) return { kind: 'altered', reason: 'certificate_malformed' };
  if (statement.kid !== certificate.kid) return { kind: 'altered', reason: 'kid_mismatch' };
  return {
    signature: [algorithm, certificate.publicKey, signedMessage(signed), signature, { requireLowS: true }],
    complete: (isValid) =>
      isValid
        ? judgeSigner(bytes, content, certificate, trust)
        : { kind: 'altered', reason: 'signature_mismatch' },
  };
}

/** Judges the signer of a sidecar whose signature is valid. */
function judgeSigner(
  bytes: Uint8Array,
  content: Content,
  certificate: SignerCertificate,
  trust: TrustList,
): SidecarParseResult {
  const { statement, binding } = content;
  const sidecarSha256 = createHash('sha256').update(bytes).digest('hex');
  const identity = trust.find(content.certificate);
  if (identity === undefined && trust.issuedByOurAuthority(content.certificate))
    return { kind: 'altered', reason: 'signer_not_pinned' };
  if (identity !== undefined) {
    if (!isProduction(statement)) return { kind: 'altered', reason: 'class_confusion' };
    if (statement.issuer !== identity.issuer) return { kind: 'altered', reason: 'issuer_mismatch' };
    return within(statement.createdAt, certificate)
      ? { kind: 'service', statement, binding, sidecarSha256 }
      : { kind: 'altered', reason: 'outside_validity' };
  }
  if (isProduction(statement))
    return { kind: 'foreign', reason: 'signer_unknown', namesService: true, binding, sidecarSha256 };
  return { kind: 'local_seal', statement, binding, sidecarSha256 };
}

/** Returns the bytes that the signature covers: array head, name, version and body. */
function signedPart({ statement, binding, algorithm, certificate }: Content): Uint8Array {
  const kid = raw(statement.kid);
  const bound = { bytes: binding.bytes, sha256: raw(binding.sha256) };
  const body: MessagePackValue = isProduction(statement)
    ? {
        kind: KINDS.production,
        alg: algorithm,
        certificate,
        kid,
        proofId: statement.proofId,
        createdAt: statement.createdAt,
        issuer: statement.issuer,
        evidenceSha256: statement.evidenceSha256 === null ? null : raw(statement.evidenceSha256),
        ...bound,
      }
    : {
        kind: KINDS.seal,
        alg: algorithm,
        certificate,
        kid,
        sealedAt: statement.sealedAt,
        device: statement.device,
        ...bound,
      };
  return Buffer.concat([MAGIC, encodeMessagePack(VERSION), encodeMessagePack(body)]);
}

function signedMessage(signed: Uint8Array): Uint8Array {
  return Buffer.concat([CONTEXT, signed]);
}

function contentIn(body: MessagePackValue | undefined): Content | undefined {
  if (typeof body !== 'object' || body === null || Array.isArray(body) || body instanceof Uint8Array)
    return undefined;
  const { kind, alg, certificate, kid, bytes, sha256, ...rest } = body as {
    readonly [member: string]: MessagePackValue;
  };
  if (!(certificate instanceof Uint8Array) || (alg !== 'Ed25519' && alg !== 'ES256')) return undefined;
  const binding = { bytes, sha256: hex(sha256) };
  if (!isBinding(binding)) return undefined;
  const members = new Map<string, unknown>([
    ['version', VERSION],
    ...Object.entries(rest),
    ['kid', hex(kid)],
  ]);
  if (kind === KINDS.production && rest.evidenceSha256 !== null)
    members.set('evidenceSha256', hex(rest.evidenceSha256));
  const statement =
    kind === KINDS.production
      ? productionStatement(members)
      : kind === KINDS.seal
        ? sealStatement(members)
        : undefined;
  return statement === undefined ? undefined : { statement, binding, algorithm: alg, certificate };
}

function isBinding(binding: {
  readonly bytes: unknown;
  readonly sha256: unknown;
}): binding is WholeFileBinding {
  return Number.isSafeInteger(binding.bytes) && (binding.bytes as number) >= 0 && isSha256Hex(binding.sha256);
}

function within(time: number, { notBefore, notAfter }: SignerCertificate): boolean {
  return time >= notBefore && time <= notAfter;
}

function raw(hexDigits: string): Uint8Array {
  return Buffer.from(hexDigits, 'hex');
}

/** Returns bytes as hex. The checks of the statement demand 64 digits, so only 32 bytes pass. */
function hex(value: MessagePackValue | undefined): string | undefined {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : undefined;
}
