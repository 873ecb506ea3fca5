import { defined } from '../../core/domain/defined.js';
import { type StoredSummary, SUMMARY_VERSION } from '../../witness/domain/evidence-summary.js';
import type { IssuedProof } from './proof.js';

/** A proof as a list shows it. */
export interface ProofBrief
  extends Pick<
    IssuedProof,
    'proofId' | 'partnerId' | 'createdAt' | 'boundAudioSha256' | 'carrier' | 'unknownContainer'
  > {
  readonly song: Pick<IssuedProof['song'], 'title'>;
  /**
   * The summary of the evidence. `none`: the proof has no report. `untraced`: it has neither a trace nor
   * declarations. `unsettled`: no summary of this version and of the current overlay is stored.
   */
  readonly evidence: StoredSummary | 'none' | 'untraced' | 'unsettled';
}

export function briefOf(proof: IssuedProof): ProofBrief {
  const { proofId, partnerId, createdAt, boundAudioSha256, song, carrier, unknownContainer } = proof;
  return defined({
    proofId,
    partnerId,
    createdAt,
    boundAudioSha256,
    song: { title: song.title },
    carrier,
    unknownContainer,
    evidence: evidenceOf(proof),
  });
}

function evidenceOf({ summary, overlay, evidence, legacy }: IssuedProof): ProofBrief['evidence'] {
  if (overlay === undefined && legacy !== undefined) return 'none';
  if (overlay === undefined && evidence === undefined) return 'untraced';
  return summary?.version === SUMMARY_VERSION && summary.overlayMac === (overlay?.mac ?? '')
    ? summary
    : 'unsettled';
}
