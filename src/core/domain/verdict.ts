/**
 * Decides which of the six verdicts applies, and why. The first match wins, in the order of rule 8.8. Each
 * step is a function that returns a refusal, or undefined to continue with the next step.
 */
import type { UploadMeasurement } from './audio.js';
import { defined } from './defined.js';
import { isBreak } from './findings.js';
import {
  type CredentialReport,
  type EmbeddedParseResult,
  NAMES_THIS_SERVICE,
  type SidecarParseResult,
} from './parsed-credential.js';
import type { DecisionReason, ReasonOf } from './reference/reasons.js';
import { isRevokedAt, type SignerRevocation } from './signer-revocation.js';
import type { Verdict } from './verdicts.js';

/** The members of a registry record that a verdict depends on. */
export type RegistryRecord =
  | {
      readonly state: 'issued';
      readonly proofId: string;
      /** The time of issue in unix seconds. */
      readonly createdAt: number;
      /** The SHA-256 of the certificate, in lower-case hex. */
      readonly kid: string;
      /** The SHA-256 of the credential chunk or of the sidecar, in lower-case hex. */
      readonly credentialSha256: string;
    }
  | { readonly state: 'pending' | 'erased'; readonly proofId: string };

/** The evidence that is in the file itself. */
export interface FileEvidence {
  readonly measurement: Pick<UploadMeasurement, 'container' | 'findings' | 'credential' | 'bindingSha256'>;
  readonly embedded?: EmbeddedParseResult;
}

/** The evidence for the verdict. All of it is already read, so judging cannot fail on a read. */
export interface Evidence extends FileEvidence {
  readonly measurement: UploadMeasurement;
  /**
   * The parse result of the sidecar, if the caller sent one. The pair is then judged, and an embedded
   * credential is only reported (rule 8.5).
   */
  readonly sidecar?: SidecarParseResult;
  /** The registry record of the proof that the judged credential names. */
  readonly proof?: RegistryRecord;
  /** The revocation of the leaf that signed the proof according to the registry. */
  readonly revocation?: SignerRevocation;
}

export interface Judgement {
  readonly verdict: Verdict;
  /** The stable slugs. The first slug decided the verdict. */
  readonly reasons: readonly DecisionReason[];
  readonly carrier: 'embedded' | 'sidecar' | 'none';
  /** The proof named by the judged credential. Present if the credential is intact and was made by this service. */
  readonly proofId?: string;
  /** The time of issue in unix seconds. Present only with `valid`. */
  readonly issuedAt?: number;
  readonly report?: CredentialReport;
}

type Refused = Exclude<Verdict, 'valid'>;

interface RefusalWith<Given extends Refused> {
  readonly verdict: Given;
  readonly reasons: readonly ReasonOf<Given>[];
}
type Refusal = { [Given in Refused]: RefusalWith<Given> }[Refused];
/** A refusal by the steps that need only the file, which has or should have an embedded credential. */
export type FileRefusal = RefusalWith<'unreadable'> | RefusalWith<'tampered'>;

function refuse<Given extends Refused>(
  verdict: Given,
  ...reasons: readonly ReasonOf<Given>[]
): RefusalWith<Given> {
  return { verdict, reasons };
}

/**
 * Returns the proof id to look up in the registry, or undefined if the judged credential is not an intact one of this
 * service.
 */
export function namedProof(
  embedded: EmbeddedParseResult | undefined,
  sidecar: SidecarParseResult | undefined,
): string | undefined {
  const reading = sidecar ?? embedded;
  return reading?.kind === 'service' ? reading.statement.proofId : undefined;
}

export function judge(evidence: Evidence): Judgement {
  const { embedded, sidecar } = evidence;
  const proofId = namedProof(embedded, sidecar);
  const report = reportOf(evidence);
  const refusal = sidecar === undefined ? refuseEmbedded(evidence) : refusePair(evidence, sidecar);
  const common = {
    carrier: carrierOf(evidence),
    ...defined({ proofId, report }),
  };
  if (refusal !== undefined) return { ...refusal, ...common };
  // Only an issued proof passes the registry step.
  const issuedAt = evidence.proof?.state === 'issued' ? evidence.proof.createdAt : undefined;
  if (issuedAt === undefined) throw new Error('a verdict is valid without a registry record');
  // Only a pair can be valid with such a container, because its audio is opaque bytes.
  const isUnknown = evidence.measurement.container === 'unknown';
  return {
    verdict: 'valid',
    reasons: ['credential_verified', ...(isUnknown ? (['container_unknown'] as const) : [])],
    issuedAt,
    ...common,
  };
}

function refuseEmbedded(evidence: Evidence): Refusal | undefined {
  return refuseFile(evidence) ?? signer(evidence.embedded) ?? registry(evidence);
}

/**
 * Runs the steps that need only the file: its structure, its credential and its binding. The steps that follow
 * need the trust list and the registry of the service.
 */
export function refuseFile(evidence: FileEvidence): FileRefusal | undefined {
  return container(evidence) ?? store(evidence.embedded) ?? embeddedBinding(evidence);
}

/** Runs the steps of a pair. A pair has no container step, because its audio is opaque bytes. */
function refusePair(evidence: Evidence, sidecar: SidecarParseResult): Refusal | undefined {
  return sidecarForm(sidecar) ?? pairBinding(evidence, sidecar) ?? signer(sidecar) ?? registry(evidence);
}

/**
 * Checks the container (rule 8.9): an unreadable container, a broken RIFF structure, or no credential chunk.
 */
function container({ measurement }: FileEvidence): FileRefusal | undefined {
  if (
    measurement.container !== 'riff' &&
    measurement.container !== 'rf64' &&
    measurement.container !== 'bw64'
  )
    return refuse('unreadable', 'container_unsupported');
  const breaks = measurement.findings.filter(isBreak);
  if (breaks.length > 0) return refuse('unreadable', ...breaks.map(({ slug }) => slug));
  if (measurement.credential === undefined) return refuse('unreadable', 'credential_missing');
  // The service never issues into a 64-bit container, and C2PA readers do not know it.
  if (measurement.container !== 'riff') return refuse('unreadable', 'container_unsupported');
  return undefined;
}

/**
 * Checks the store (rules 8.9 and 8.10). A chunk that does not start like a store is unreadable. A chunk that
 * starts like a store but is not intact is tampered.
 */
function store(embedded: EmbeddedParseResult | undefined): FileRefusal | undefined {
  if (embedded === undefined) return refuse('unreadable', 'credential_missing');
  if (embedded.kind === 'not_a_store') return refuse('unreadable', embedded.reason);
  if (embedded.kind === 'altered') return refuse('tampered', embedded.reason);
  return undefined;
}

function sidecarForm(sidecar: SidecarParseResult): Refusal | undefined {
  if (sidecar.kind === 'not_a_sidecar') return refuse('unreadable', sidecar.reason);
  if (sidecar.kind === 'altered') return refuse('tampered', sidecar.reason);
  return undefined;
}

/**
 * Checks the binding of an embedded credential (rule 8.11): exactly the chunk is excluded, and all other
 * bytes have the stated digest.
 */
function embeddedBinding({ measurement, embedded }: FileEvidence): FileRefusal | undefined {
  return embedded !== undefined && bindingFails(measurement, embedded)
    ? refuse('unreadable', 'binding_mismatch')
    : undefined;
}

function bindingFails(measurement: FileEvidence['measurement'], embedded: EmbeddedParseResult): boolean {
  if (embedded.kind === 'not_a_store' || embedded.kind === 'altered') return false;
  const { binding } = embedded;
  // Only a foreign binding can be absent, because it cannot be checked here. The report then has
  // `not_checked`.
  if (binding === undefined) return false;
  const { credential } = measurement;
  return (
    credential === undefined ||
    binding.exclusion.start !== credential.offset ||
    binding.exclusion.length !== credential.length ||
    binding.sha256 !== measurement.bindingSha256
  );
}

/** Checks the binding of a pair (rule 8.11): a sidecar binds the whole file. */
function pairBinding({ measurement }: Evidence, sidecar: SidecarParseResult): Refusal | undefined {
  if (sidecar.kind === 'not_a_sidecar' || sidecar.kind === 'altered') return undefined;
  const { binding } = sidecar;
  return binding.bytes === measurement.bytes && binding.sha256 === measurement.sha256
    ? undefined
    : refuse('audioChanged', 'audio_digest_mismatch');
}

/** Checks the signer (rule 8.12): intact, but signed by an artist's device or an unknown signer. */
function signer(reading: EmbeddedParseResult | SidecarParseResult | undefined): Refusal | undefined {
  if (reading?.kind === 'local_seal') return refuse('local_seal', 'sealed_by_device');
  if (reading?.kind === 'foreign') {
    const namesService =
      'report' in reading ? reading.report.reasons.includes(NAMES_THIS_SERVICE) : reading.namesService;
    return refuse('unregistered', 'signer_unknown', ...(namesService ? [NAMES_THIS_SERVICE] : []));
  }
  return undefined;
}

/**
 * Checks the registry (rule 8.13) for an intact credential of this service. Unknown, pending and erased
 * proofs look the same from outside. Only the registered time shows whether the proof was issued before its
 * leaf was revoked: a thief of the signing key can sign any other time.
 */
function registry({ embedded, sidecar, proof, revocation }: Evidence): Refusal | undefined {
  const reading = sidecar ?? embedded;
  if (reading?.kind !== 'service') return refuse('unregistered', 'signer_unknown');
  if (proof?.state !== 'issued' || proof.proofId !== reading.statement.proofId)
    return refuse('unregistered', 'proof_not_registered');
  const presented = 'chunkSha256' in reading ? reading.chunkSha256 : reading.sidecarSha256;
  // The revocation was looked up for the leaf of the record. The same leaf must have signed the credential.
  if (presented !== proof.credentialSha256 || reading.statement.kid !== proof.kid)
    return refuse('unregistered', 'credential_not_as_issued');
  return isRevokedAt(revocation, proof.createdAt) ? refuse('unregistered', 'signer_revoked') : undefined;
}

function carrierOf({ measurement, embedded, sidecar }: Evidence): Judgement['carrier'] {
  if (sidecar !== undefined) return sidecar.kind === 'not_a_sidecar' ? 'none' : 'sidecar';
  return measurement.credential === undefined || embedded?.kind === 'not_a_store' ? 'none' : 'embedded';
}

/** Returns the report of the embedded credential, with the result of its hard binding. */
function reportOf({ measurement, embedded }: Evidence): CredentialReport | undefined {
  if (embedded === undefined || embedded.kind === 'not_a_store') return undefined;
  if (!bindingFails(measurement, embedded)) return embedded.report;
  return {
    ...embedded.report,
    integrity: 'failed',
    reasons: [...embedded.report.reasons, 'binding_mismatch'],
  };
}
