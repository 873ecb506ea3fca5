import { DISPLAY_NAME_PATTERN } from '../domain/display-name.js';
import { IDENTIFIER_PATTERN } from '../domain/identifiers.js';
import type { ProductionStatement, SealStatement } from '../domain/parsed-credential.js';
import type { SigningIdentity } from '../ports/signing.js';
import { readCertificate } from './certificate.js';

/**
 * The statements that a credential of ours may contain, and the allowed values of each member. The labels
 * belong to the format and must not change with the name of the product.
 */
export type Statement = ProductionStatement | SealStatement;

/**
 * The labels. Their prefix is a reverse domain (C2PA 2.2 section 6.2). They have no `.v1` suffix, because
 * c2pa-rs strips that suffix and then misses the assertion.
 */
export const PRODUCTION_LABEL = 'io.takemark.production-record';
export const SEAL_LABEL = 'io.takemark.local-seal';

const SHA256_HEX = /^[0-9a-f]{64}$/;
/**
 * The last second that a statement may name, 9999-12-31T23:59:59Z. It is the last time that a certificate can
 * contain (RFC 5280 section 4.1.2.5).
 */
const MAX_TIME = 253_402_300_799;

export function isProduction(statement: Statement): statement is ProductionStatement {
  return 'proofId' in statement;
}

export function isSha256Hex(value: unknown): value is string {
  return typeof value === 'string' && SHA256_HEX.test(value);
}

export function isName(value: unknown): value is string {
  return typeof value === 'string' && DISPLAY_NAME_PATTERN.test(value);
}

/**
 * Returns the production statement of the members. Returns undefined unless the members are exactly the
 * members of a production statement.
 */
export function productionStatement(members: ReadonlyMap<unknown, unknown>): ProductionStatement | undefined {
  const version = members.get('version');
  const proofId = members.get('proofId');
  const createdAt = members.get('createdAt');
  const kid = members.get('kid');
  const issuer = members.get('issuer');
  const evidenceSha256 = members.get('evidenceSha256');
  if (members.size !== 6 || version !== 1 || !isTime(createdAt) || !isSha256Hex(kid) || !isName(issuer))
    return undefined;
  if (typeof proofId !== 'string' || !IDENTIFIER_PATTERN.test(proofId)) return undefined;
  if (evidenceSha256 !== null && !isSha256Hex(evidenceSha256)) return undefined;
  return { version, proofId, createdAt, kid, issuer, evidenceSha256 };
}

/**
 * Returns the seal statement of the members. Returns undefined unless they are exactly the members of a seal
 * statement.
 */
export function sealStatement(members: ReadonlyMap<unknown, unknown>): SealStatement | undefined {
  const version = members.get('version');
  const sealedAt = members.get('sealedAt');
  const kid = members.get('kid');
  const device = members.get('device');
  if (members.size !== 4 || version !== 1 || !isTime(sealedAt) || !isSha256Hex(kid) || !isName(device))
    return undefined;
  return { version, sealedAt, kid, device };
}

/**
 * Creates the statement that this identity signs about a proof.
 * @param about.createdAt unix seconds
 */
export function stateProduction(
  identity: SigningIdentity,
  about: { readonly proofId: string; readonly createdAt: number; readonly evidenceSha256: string | null },
): ProductionStatement {
  return {
    version: 1,
    proofId: about.proofId,
    createdAt: about.createdAt,
    kid: identity.kid,
    issuer: identity.issuer,
    evidenceSha256: about.evidenceSha256,
  };
}

/**
 * Creates the statement that a device signs. The `issuer` of its identity is the name of the device.
 * @param sealedAt unix seconds by the device's clock
 */
export function stateSeal(identity: SigningIdentity, sealedAt: number): SealStatement {
  return { version: 1, sealedAt, kid: identity.kid, device: identity.issuer };
}

/**
 * Checks a statement before it is signed.
 * @throws RangeError for a statement that no reader would accept, which is a fault of the writer
 */
export function assertStatement(statement: Statement, identity: SigningIdentity): void {
  const members = new Map<unknown, unknown>(Object.entries(statement));
  if ((isProduction(statement) ? productionStatement(members) : sealStatement(members)) === undefined)
    throw new RangeError('the statement is not a valid statement of version 1');
  if (statement.kid !== identity.kid)
    throw new RangeError('the statement names a different certificate than the certificate of its signer');
  const time = isProduction(statement) ? statement.createdAt : statement.sealedAt;
  const certificate = readCertificate(identity.certificate);
  if (certificate === undefined || time < certificate.notBefore || time > certificate.notAfter)
    throw new RangeError('the time of the statement is outside the validity of the certificate');
  if (isProduction(statement) && statement.issuer !== identity.issuer)
    throw new RangeError('the statement names a different issuer than the signing certificate');
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MAX_TIME;
}
