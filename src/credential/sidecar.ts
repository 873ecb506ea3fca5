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
 * The signature is over the context and every byte before the signature element: array head, name, version
 * and body. Digests and key ids are 32 raw bytes, the certificate is DER, times are Unix seconds.
 */
const FORMAT = 'takemark.sidecar';
const VERSION = 1;
/**
 * Prefix of every sidecar, an array of four and the name: constant, so that any bytes are or are not the
 * beginning of a sidecar.
 */
const MAGIC = Buffer.concat([Buffer.from([0x94]), encodeMessagePack(FORMAT)]);
/**
 * Context of the signature, which keeps it apart from every other use of the same key; a C2PA one begins with
 * a CBOR array head.
 */
const CONTEXT = Buffer.from('takemark sidecar signature v1\0', 'latin1');
/** Length of the last element: bin 8 head and 64 bytes. */
const SIGNATURE_ELEMENT_BYTES = 66;
/**
 * Most bytes of a sidecar: ours are below 2 kB with a certificate of ours, and 16 kB of certificate is the
 * most that is read.
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
 * @throws RangeError if the statement is not the signer's to make, or the binding is none
 */
export function writeSidecar(request: SidecarRequest<LocalSigner>): Uint8Array {
  const body = unsigned(request);
  return withSignature(body, request.signer.sign(signedMessage(body)));
}

/** Signs a sidecar, wherever the key is kept. */
export async function signSidecar(request: SidecarRequest<Signer>): Promise<Uint8Array> {
  const body = unsigned(request);
  return withSignature(body, await request.signer.sign(signedMessage(body)));
}

function unsigned({ statement, binding, signer }: SidecarRequest<Signer>): Uint8Array {
  assertStatement(statement, signer.identity);
  if (!isBinding(binding)) throw new RangeError('a binding is a length and 64 lower-case hex digits');
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
    throw new RangeError('the certificate or signature does not fit a sidecar');
  return sidecar;
}

/**
 * Reads a sidecar. Findings are data: the function never throws. Classes are as for the embedded form: a
 * production record under a key of nobody's is `foreign`, a local seal under a pinned one is `altered`, and
 * so is anything that our authority signed for, unpinned.
 */
export function readSidecar(bytes: Uint8Array, trust: TrustList): SidecarParseResult {
  const opened = openSidecar(bytes);
  return 'kind' in opened ? opened : checkSigner(bytes, opened, trust);
}

/**
 * Parse result of a sidecar as far as no certificate of a stranger has to be parsed for it: whatever fails in
 * the form alone, and all of what names a pinned certificate as its own. Undefined for the rest, which is
 * intact in its form and never `service`.
 */
export function recogniseSidecar(bytes: Uint8Array, trust: TrustList): SidecarParseResult | undefined {
  const opened = openSidecar(bytes);
  if ('kind' in opened) return opened;
  return trust.find(opened.content.certificate) === undefined ? undefined : checkSigner(bytes, opened, trust);
}

interface Opened {
  readonly content: Content;
  /** Bytes that the signature covers. */
  readonly signed: Uint8Array;
  readonly signature: Uint8Array;
}

/** Content of a sidecar, or what is wrong with its form. */
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
  // Written again, the content must give the same bytes: member order, spare members and number forms are
  // pinned by it.
  const signed = signedPart(content);
  if (Buffer.compare(Buffer.concat([signed, encodeMessagePack(signature)]), bytes) !== 0)
    return { kind: 'altered', reason: 'sidecar_not_writer_form' };
  return { content, signed, signature };
}

function checkSigner(
  bytes: Uint8Array,
  { content, signed, signature }: Opened,
  trust: TrustList,
): SidecarParseResult {
  const { statement, binding } = content;
  const certificate = readCertificate(content.certificate);
  if (certificate === undefined) return { kind: 'altered', reason: 'certificate_malformed' };
  if (statement.kid !== certificate.kid) return { kind: 'altered', reason: 'kid_mismatch' };
  if (
    !checkSignature(content.algorithm, certificate.publicKey, signedMessage(signed), signature, {
      requireLowS: true,
    })
  )
    return { kind: 'altered', reason: 'signature_mismatch' };
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

/** Bytes that the signature covers: array head, name, version and body. */
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

/**
 * Digest as hex, not of 64 digits unless the value is 32 bytes; the statement's checks demand exactly that.
 */
function hex(value: MessagePackValue | undefined): string | undefined {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : undefined;
}
