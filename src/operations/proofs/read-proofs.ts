import { defined } from '../../domain/defined.js';
import {
  type EvidenceReport,
  type EvidenceSummary,
  summariseEvidence,
} from '../../domain/evidence-report.js';
import { type LegacyValues, legacyValues } from '../../domain/legacy-proof.js';
import type { Carrier, IssuedProof } from '../../domain/proof.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Caller } from '../caller.js';
import { type Cursors, cutPage } from '../page.js';
import { type ReadReportDeps, readReport } from './evidence.js';
import { findIssued, findOwnIssued } from './find-proof.js';

export interface ProofEntry {
  readonly proofId: string;
  readonly issuedAt: number;
  readonly song: { readonly title: string };
  readonly carrier: Carrier;
  readonly boundAudioSha256: string;
}

/** Entry of a list (rule 9.30). */
export interface ListedProof extends ProofEntry {
  readonly evidenceSummary?: EvidenceSummary;
  readonly evidenceReport?: EvidenceReport;
}

export interface ProofDetail extends ProofEntry, LegacyValues {
  readonly createdAt: number;
  readonly originalSha256: string;
  readonly evidenceReport?: EvidenceReport;
}

export interface ProofRecord {
  readonly proofId: string;
  readonly song: { readonly title: string };
  readonly issuedAt: number;
  readonly boundAudioSha256: string;
  readonly evidenceReport?: EvidenceReport;
  readonly delivery: {
    readonly carrier: Carrier;
    readonly bytes: number;
    readonly sha256: string;
    readonly mediaType: string;
    readonly fileName: string;
  };
}

export interface ReadProofsDeps extends ReadReportDeps {
  readonly stores: ProofStore;
}

const DEFAULT_LIMIT = 50;
/** Entries of a page with whole reports. */
const REPORTS_LIMIT = 20;

/** The partner's issued proofs, newest first; both bounds are inclusive. */
export async function listProofs(
  deps: ReadProofsDeps & { readonly cursors: Cursors },
  caller: Caller,
  query: {
    readonly limit?: number;
    readonly cursor?: string;
    readonly issuedAfter?: number;
    readonly issuedBefore?: number;
    readonly include?: 'evidenceReport';
  },
): Promise<{ readonly proofs: readonly ListedProof[]; readonly nextCursor?: string }> {
  const { issuedAfter, issuedBefore, include } = query;
  const limit = Math.min(query.limit ?? DEFAULT_LIMIT, include === undefined ? Infinity : REPORTS_LIMIT);
  const scope = {
    partnerId: caller.partnerId,
    route: 'GET /proofs',
    filter: [issuedAfter ?? null, issuedBefore ?? null],
  };
  const before = query.cursor === undefined ? undefined : deps.cursors.read(scope, query.cursor);
  const found = await deps.stores.listProofs(
    caller.partnerId,
    defined({
      issuedAfter,
      issuedBefore,
      before: before && { createdAt: before.createdAt, proofId: before.id },
      // An entry more than asked for tells whether there is another page.
      limit: limit + 1,
    }),
  );
  const { entries, last } = cutPage(found, limit);
  return defined({
    proofs: await Promise.all(entries.map((proof) => listedProof(deps, proof, include !== undefined))),
    nextCursor: last && deps.cursors.write(scope, { createdAt: last.createdAt, id: last.proofId }),
  });
}

/** A proof, for its owner alone. */
export async function readProof(
  deps: ReadProofsDeps,
  caller: Caller,
  { proofId }: { readonly proofId: string },
): Promise<ProofDetail> {
  const proof = await findOwnIssued(deps.stores, caller, proofId);
  return defined({
    ...proofEntry(proof),
    createdAt: proof.createdAt,
    originalSha256: proof.originalSha256,
    evidenceReport: await readReport(deps, proof),
    ...legacyValues(proof.legacy),
  });
}

/** The registered record of a proof, for any key of the environment. It claims of no file that it matches. */
export async function readRecord(
  deps: ReadProofsDeps,
  _caller: Caller,
  { proofId }: { readonly proofId: string },
): Promise<ProofRecord> {
  const proof = await findIssued(deps.stores, proofId);
  const { song, createdAt, boundAudioSha256, carrier, asset } = proof;
  const { bytes, sha256, mediaType, fileName } = asset;
  return defined({
    proofId,
    song: { title: song.title },
    issuedAt: createdAt,
    boundAudioSha256,
    evidenceReport: await readReport(deps, proof),
    delivery: { carrier, bytes, sha256, mediaType, fileName },
  });
}

async function listedProof(deps: ReadReportDeps, proof: IssuedProof, whole: boolean): Promise<ListedProof> {
  const report = await readReport(deps, proof);
  return defined({
    ...proofEntry(proof),
    evidenceSummary: report && summariseEvidence(report),
    evidenceReport: whole ? report : undefined,
  });
}

/** `issuedAt` of an entry is the proof's `createdAt`. */
function proofEntry({ proofId, createdAt, song, carrier, boundAudioSha256 }: IssuedProof): ProofEntry {
  return { proofId, issuedAt: createdAt, song: { title: song.title }, carrier, boundAudioSha256 };
}
