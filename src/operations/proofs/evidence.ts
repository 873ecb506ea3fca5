import { defined } from '../../domain/defined.js';
import type { EvidenceFacts } from '../../domain/evidence.js';
import { type EvidenceFact, type EvidenceReport, reportEvidence } from '../../domain/evidence-report.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { Secrets } from '../../ports/secrets.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Devices } from '../system/devices.js';
import { readPart } from './evidence-parts.js';
import { type CheckedOverlay, checkOverlay } from './overlay.js';

export interface ReadReportDeps {
  readonly stores: Pick<ProofStore, 'readEvidence'>;
  readonly secrets: Secrets;
  readonly devices: Pick<Devices, 'standing'>;
}

/**
 * The evidence report of a proof that was read already; the one place where verify, proof, list and record get it.
 * A proof without a trace costs no further read, one with a trace costs one. Absent on an imported proof of which
 * nothing was declared (rule 9.28). Evidence never changes the validity of a credential: what was altered of it is
 * told of in the report and fails no call (rule 9.29).
 */
export async function readReport(
  deps: ReadReportDeps,
  proof: IssuedProof,
): Promise<EvidenceReport | undefined> {
  const overlay = checkOverlay(deps.secrets, proof);
  if (overlay === undefined && proof.legacy !== undefined) return undefined;
  const facts = await readPart(deps, proof, 'facts');
  const report = compose(overlay, facts === 'altered' ? undefined : facts);
  const found = facts === 'altered' ? [FACTS_ALTERED] : await findRevocation(deps, proof, facts);
  return found.length === 0 ? report : { ...report, unverifiable: [...report.unverifiable, ...found] };
}

const FACTS_ALTERED: EvidenceFact = {
  code: 'evidence_facts_altered',
  contentClass: 'unverifiable_coverage_gap',
  status: 'needs_review',
};

/** Facts as they were settled, and over them what was declared since. */
function compose(overlay: CheckedOverlay | undefined, facts: EvidenceFacts | undefined): EvidenceReport {
  const { declarations = [], altered = 0, facts: concluded = [] } = overlay ?? {};
  const declared = reportEvidence(declarations, altered);
  if (facts === undefined) return declared;
  const settled = [...facts.facts, ...concluded];
  const of = (contentClass: EvidenceFact['contentClass']) =>
    settled.filter((fact) => fact.contentClass === contentClass);
  const gaps = declared.unverifiable.filter(({ status }) => status !== 'unverifiable');
  return {
    ...declared,
    facts: [...of('direct_observation'), ...of('rule_inference'), ...declared.facts],
    conflicts: of('explicit_conflict'),
    unverifiable: [...of('unverifiable_coverage_gap'), ...gaps],
    engine: defined({
      facts: facts.engineVersion,
      overlay: overlay?.engineVersion ?? facts.engineVersion,
      revision: overlay?.revision ?? 0,
    }),
    session: { evidence: facts.session },
    importedSources: facts.importedSources,
    importedSourceCount: facts.importedSourceCount,
  };
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
  return standing !== 'revoked'
    ? []
    : [
        {
          code: 'trace_device_revoked',
          contentClass: 'unverifiable_coverage_gap',
          status: 'needs_review',
          ...(revokedFrom === undefined ? {} : { values: { revokedFrom } }),
        },
      ];
}
