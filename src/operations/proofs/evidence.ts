import { defined } from '../../domain/defined.js';
import type { EvidenceFacts } from '../../domain/evidence.js';
import type { EvidenceFact, EvidenceReport } from '../../domain/evidence-report.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { SourceDetail } from '../../domain/session-evidence.js';
import { composeReport } from '../../evidence/compose-report.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Devices } from '../system/devices.js';
import { readPart } from './evidence-parts.js';
import { checkOverlay } from './overlay.js';
import { type DeliverDetailDeps, deliverableDetail } from './source-detail.js';

export interface ReadReportDeps extends DeliverDetailDeps {
  readonly stores: DeliverDetailDeps['stores'] & Pick<ProofStore, 'getProof'>;
  readonly devices: Pick<Devices, 'standing'>;
}

/** The reader of a report. Only approved partners receive source detail. */
export interface ReportReader {
  readonly partnerId: string;
}

/**
 * Returns the evidence report of a proof that was already read. Verify, proof, list and record all get their
 * report here. A proof with a trace costs one further read, and a proof without a trace costs none. An
 * imported proof without declarations has no report (rule 9.28). Evidence never changes the validity of a
 * credential. The report shows altered evidence, and the call does not fail (rule 9.29).
 * @returns `erased` when the proof was erased meanwhile. The caller must treat the proof as erased
 */
export async function readReport(
  deps: ReadReportDeps,
  reader: ReportReader,
  proof: IssuedProof,
): Promise<EvidenceReport | 'erased' | undefined> {
  const overlay = checkOverlay(deps.secrets, proof);
  if (overlay === undefined && proof.legacy !== undefined) return undefined;
  const { declarations = [], altered = 0 } = overlay ?? {};
  const content = defined({ overlay, declarations, altered });
  if (proof.evidence === undefined) return composeReport(content);

  const [facts, detail] = await Promise.all([
    readPart(deps, proof, 'facts'),
    deliverableDetail(deps, reader, proof),
  ]);
  const isAltered = facts === 'altered' || detail === 'altered';
  if (isAltered && (await deps.stores.getProof(proof.proofId))?.state !== 'issued') return 'erased';
  const sound = facts === 'altered' ? undefined : facts;
  const report = composeReport(defined({ ...content, facts: sound, ...deliver(sound && detail) }));
  const found = [...(isAltered ? [FACTS_ALTERED] : []), ...(await findRevocation(deps, proof, sound))];
  return found.length === 0 ? report : { ...report, unverifiable: [...report.unverifiable, ...found] };
}

const FACTS_ALTERED: EvidenceFact = {
  code: 'evidence_facts_altered',
  contentClass: 'unverifiable_coverage_gap',
  status: 'needs_review',
};

function deliver(detail: SourceDetail | 'altered' | undefined) {
  return detail === undefined || detail === 'altered' ? {} : { detail, consent: detail };
}

/**
 * Returns a finding when the device was revoked after issuing, with effect from a time before issuing (rule
 * 9.32). Facts that already include the revocation have their own finding.
 */
async function findRevocation(
  { devices }: Pick<ReadReportDeps, 'devices'>,
  { createdAt }: IssuedProof,
  facts: EvidenceFacts | undefined,
): Promise<readonly EvidenceFact[]> {
  if (facts === undefined || facts.session.device.standing === 'revoked') return [];
  const { standing, revokedFrom } = await devices.standing(facts.session.device.deviceId, createdAt);
  if (standing !== 'revoked') return [];
  const values = revokedFrom === undefined ? undefined : { revokedFrom };
  return [
    defined({
      code: 'trace_device_revoked',
      contentClass: 'unverifiable_coverage_gap' as const,
      status: 'needs_review' as const,
      values,
    }),
  ];
}
