import { defined } from '../../../core/domain/defined.js';
import type { EvidencePart } from '../../../witness/domain/evidence.js';
import type { EvidenceFact } from '../../../witness/domain/evidence-report.js';
import { DEVICE_REVOKED } from '../../../witness/domain/evidence-summary.js';
import {
  type ComposedReport,
  composeStored,
  type SentReport,
  type StoredBody,
  type StoredEvidence,
} from '../../../witness/report/compose-stored.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Caller } from '../caller.js';
import type { Devices } from '../system/devices.js';
import type { HeavyReads } from '../usage/heavy-reads.js';
import { type RateLimits, weigh } from '../usage/rate-limits.js';
import { readBody } from './evidence-parts.js';
import { checkOverlay, contentOf } from './overlay.js';
import { type DeliverDetailDeps, deliveredConsent } from './source-detail.js';

export interface ComposeDeps extends DeliverDetailDeps {
  readonly stores: DeliverDetailDeps['stores'] & Pick<ProofStore, 'getProof'>;
  readonly devices: Pick<Devices, 'standing'>;
  /** Composes a report. A large report is composed outside the thread that serves callers. */
  readonly compose: (stored: StoredEvidence) => Promise<SentReport>;
}

export interface ReadReportDeps extends ComposeDeps {
  readonly reads: Pick<HeavyReads, 'run'>;
  readonly limits: Pick<RateLimits, 'weigh'>;
  /** The signal that aborts when the call is given up. */
  readonly signal?: AbortSignal;
}

/** The reader of a report. Only approved partners receive source detail. */
export type ReportReader = Pick<Caller, 'partnerId' | 'plan'>;

/** The size of the stored report, in bytes, above which a read of the proof is a heavy read. */
const HEAVY_BYTES = 16_384;

/**
 * Returns the evidence report of a proof that was already read, for verify, proof and record. A proof with a
 * trace costs one further read, and a proof without a trace costs none. A large report waits for the
 * partner's turn, and weighs in the partner's rate. An imported proof without declarations has no report
 * (rule 9.28). Evidence never changes the validity of a credential. The report shows altered evidence, and
 * the call does not fail (rule 9.29).
 * @returns `erased` when the proof was erased meanwhile. The caller must treat the proof as erased
 */
export async function readReport(
  deps: ReadReportDeps,
  reader: ReportReader,
  proof: IssuedProof,
): Promise<SentReport | 'erased' | undefined> {
  const reportBytes = reportSize(proof);
  weigh(deps, reader, { reportBytes });
  return reportBytes <= HEAVY_BYTES
    ? composeFor(deps, reader, proof)
    : deps.reads.run(reader, () => composeFor(deps, reader, proof), deps.signal);
}

/** Composes the report as `readReport` does, for a caller that already has its turn. It does not weigh the read. */
export async function composeFor(
  deps: ComposeDeps,
  reader: Pick<ReportReader, 'partnerId'>,
  proof: IssuedProof,
): Promise<SentReport | 'erased' | undefined> {
  const overlay = checkOverlay(deps.secrets, proof);
  if (overlay === undefined && proof.legacy !== undefined) return undefined;
  const content = contentOf(overlay);
  if (proof.evidence === undefined) return composeStored(content);
  const consentVersion = await deliveredConsent(deps, reader, proof, overlay);
  const [facts, body] = await Promise.all([
    bodyOf(deps, proof, 'facts'),
    consentVersion === undefined ? undefined : bodyOf(deps, proof, 'detail'),
  ]);
  const detail = body && consentVersion !== undefined ? { ...body, consentVersion } : undefined;
  const stored = defined({ ...content, facts, detail });
  const report = await deps.compose(stored);
  if (report.isAltered && (await deps.stores.getProof(proof.proofId))?.state !== 'issued') return 'erased';
  const revoked = await findRevocation(deps, proof, report);
  return revoked === undefined ? report : deps.compose({ ...stored, found: [revoked] });
}

/** Returns the size in bytes of the bodies that a report of a proof is composed of, at most. */
export function reportSize({ evidence, overlay }: IssuedProof): number {
  const parts = overlay?.consent === undefined ? ['facts'] : ['facts', 'detail'];
  return (evidence?.parts ?? []).reduce(
    (sum, { part, bytes }) => sum + (parts.includes(part) ? bytes : 0),
    0,
  );
}

/** Reads a body. Returns undefined when issuing stored no such part. */
export async function bodyOf(
  deps: Pick<ComposeDeps, 'stores' | 'assets'>,
  proof: IssuedProof,
  part: EvidencePart,
): Promise<StoredBody | undefined> {
  const settled = proof.evidence?.parts.find((one) => one.part === part);
  return settled && defined({ sha256: settled.sha256, bytes: await readBody(deps, proof.proofId, settled) });
}

/**
 * Returns a finding when the device was revoked after issuing, with effect from a time at or before issuing (rule
 * 9.32). Facts that already include the revocation have their own finding.
 */
async function findRevocation(
  { devices }: Pick<ComposeDeps, 'devices'>,
  { createdAt }: IssuedProof,
  { device }: Pick<ComposedReport, 'device'>,
): Promise<EvidenceFact | undefined> {
  if (device === undefined || device.standing === 'revoked') return undefined;
  const { standing, revokedFrom } = await devices.standing(device.deviceId, createdAt);
  if (standing !== 'revoked') return undefined;
  return defined({
    code: DEVICE_REVOKED,
    contentClass: 'unverifiable_coverage_gap' as const,
    status: 'needs_review' as const,
    values: revokedFrom === undefined ? undefined : { revokedFrom },
  });
}
