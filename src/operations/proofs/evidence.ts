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

/** Reader of a report: source detail is delivered to approved partners alone. */
export interface ReportReader {
  readonly partnerId: string;
}

/**
 * The evidence report of a proof that was read already; the one place where verify, proof, list and record get it.
 * A proof without a trace costs no further read, one with a trace costs one. Absent on an imported proof of which
 * nothing was declared (rule 9.28). Evidence never changes the validity of a credential: what was altered of it is
 * told of in the report and fails no call (rule 9.29).
 * @returns `erased` where an erasure took the evidence away meanwhile: the proof is none any more
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
 * Finding that the device was revoked since, from a time before the issuing on (rule 9.32). Where the facts know it
 * already, they have a finding of their own.
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
