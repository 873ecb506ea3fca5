import { SIGNATURE_ALGORITHMS } from '../../../core/credential/signature.js';
import { isSha256Hex, sealStatement } from '../../../core/credential/statement.js';
import { defined } from '../../../core/domain/defined.js';
import { shownText } from '../../../core/domain/display-name.js';
import type {
  CredentialReport,
  EmbeddedParseResult,
  HardBinding,
  SidecarParseResult,
  WholeFileBinding,
} from '../../../core/domain/parsed-credential.js';
import {
  DECISION_REASONS,
  REPORT_REASON_MEANINGS,
  type ReasonOf,
  type ReportReason,
  STORE_FAULTS,
  type StoreFault,
} from '../../../core/domain/reference/reasons.js';

/**
 * Checks the replies of the reading process member by member. The sender of a certificate may have taken over that
 * process, so its replies count as a stranger's bytes. It cannot reply `service`: the service itself recognizes what
 * it signed.
 */

/** Bytes of a reply's frame. A reading has a dozen short texts. */
export const MAX_REPLY_BYTES = 65_536;
/** The findings are the reader's own, and each occurs once. */
const MAX_REASONS = 32;

type Members = Readonly<Record<string, unknown>>;

/** @throws TypeError if the reply is not that of a stranger's store */
export function embeddedReply(payload: Buffer): EmbeddedParseResult {
  const reply = parse(payload);
  const { kind } = reply;
  if (kind === 'altered')
    return {
      kind,
      reason: word<StoreFault>(STORE_FAULTS, reply.reason),
      report: report(reply.report, ['failed'], ['unknown']),
    };
  if (kind === 'foreign') {
    const shown = report(reply.report, ['verified', 'not_checked', 'failed'], ['unknown']);
    return { kind, ...defined({ binding: ifGiven(reply.binding, hardBinding) }), report: shown };
  }
  if (kind !== 'local_seal') throw new TypeError('no such kind of reading');
  const shown = report(reply.report, ['verified'], ['device']);
  return {
    kind,
    statement: seal(reply.statement),
    binding: hardBinding(reply.binding),
    chunkSha256: sha256(reply.chunkSha256),
    report: shown,
  };
}

/** @throws TypeError if the reply is not that of a stranger's sidecar */
export function sidecarReply(payload: Buffer): SidecarParseResult {
  const reply = parse(payload);
  const { kind } = reply;
  if (kind === 'altered')
    return { kind, reason: word<ReasonOf<'tampered'>>(DECISION_REASONS.tampered, reply.reason) };
  const bound = { binding: fileBinding(reply.binding), sidecarSha256: sha256(reply.sidecarSha256) };
  if (kind === 'foreign')
    return { kind, reason: 'signer_unknown', namesService: reply.namesService === true, ...bound };
  if (kind !== 'local_seal') throw new TypeError('no such kind of reading');
  return { kind, statement: seal(reply.statement), ...bound };
}

/** Returns true if the process reports that it has its anchors. */
export function isReady(payload: Buffer): boolean {
  return parse(payload).ready === true;
}

function parse(payload: Buffer): Members {
  return members(JSON.parse(payload.toString()));
}

function report(
  value: unknown,
  integrities: readonly CredentialReport['integrity'][],
  trusts: readonly CredentialReport['trust'][],
): CredentialReport {
  const {
    format,
    issuer,
    device,
    generator,
    algorithm,
    claimVersion,
    manifestLabel,
    integrity,
    trust,
    reasons,
  } = members(value);
  if (format !== 'c2pa' || !Array.isArray(reasons) || reasons.length > MAX_REASONS)
    throw new TypeError('no report');
  return {
    format,
    ...defined({
      issuer: ifGiven(issuer, shown),
      device: ifGiven(device, shown),
      generator: ifGiven(generator, shown),
      algorithm: ifGiven(algorithm, (value) => oneOf(SIGNATURE_ALGORITHMS, value)),
      claimVersion: ifGiven(claimVersion, (value) => oneOf([1, 2], value)),
      manifestLabel: ifGiven(manifestLabel, shown),
    }),
    integrity: oneOf(integrities, integrity),
    trust: oneOf(trusts, trust),
    reasons: reasons.map((reason) => word<ReportReason>(REPORT_REASON_MEANINGS, reason)),
  };
}

function ifGiven<Value>(value: unknown, read: (value: unknown) => Value): Value | undefined {
  return value === undefined ? undefined : read(value);
}

function hardBinding(value: unknown): HardBinding {
  const { exclusion, sha256: digest } = members(value);
  const { start, length } = members(exclusion);
  return { exclusion: { start: integer(start), length: integer(length) }, sha256: sha256(digest) };
}

function fileBinding(value: unknown): WholeFileBinding {
  const { bytes, sha256: digest } = members(value);
  return { bytes: integer(bytes), sha256: sha256(digest) };
}

function seal(value: unknown): Extract<EmbeddedParseResult, { kind: 'local_seal' }>['statement'] {
  return given(sealStatement(new Map(Object.entries(members(value)))));
}

function members(value: unknown): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('no object');
  return value as Members;
}

function shown(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError('no text');
  return shownText(value);
}

function word<Word extends string>(known: Readonly<Record<Word, unknown>>, value: unknown): Word {
  if (typeof value !== 'string' || !Object.hasOwn(known, value)) throw new TypeError('no known word');
  return value as Word;
}

function sha256(value: unknown): string {
  if (!isSha256Hex(value)) throw new TypeError('no digest');
  return value;
}

function integer(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw new TypeError('no integer');
  return value as number;
}

function oneOf<Value>(values: readonly Value[], value: unknown): Value {
  return given(values.find((known) => known === value));
}

function given<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new TypeError('no known value');
  return value;
}
