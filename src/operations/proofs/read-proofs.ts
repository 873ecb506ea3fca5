import { defined } from '../../domain/defined.js';
import {
  type EvidenceReport,
  type EvidenceSummary,
  summariseEvidence,
} from '../../domain/evidence-report.js';
import { type LegacyValues, legacyValues } from '../../domain/legacy-proof.js';
import type { ProcessNote } from '../../domain/process-note.js';
import type { Carrier, IssuedProof } from '../../domain/proof.js';
import { writeProcessNote } from '../../evidence/process-note.js';
import type { PartnerStore, ProofStore } from '../../ports/stores.js';
import type { Caller } from '../caller.js';
import { type Cursors, cutPage } from '../page.js';
import { type ReadReportDeps, readReport } from './evidence.js';
import { findIssued, findOwnIssued, noSuchProof } from './find-proof.js';

export interface ProofEntry {
  readonly proofId: string;
  readonly issuedAt: number;
  readonly song: { readonly title: string };
  readonly carrier: Carrier;
  readonly boundAudioSha256: string;
  readonly unknownContainer?: true;
}

/** An entry of a list (rule 9.30). */
export interface ListedProof extends ProofEntry {
  readonly evidenceSummary?: EvidenceSummary;
  readonly evidenceReport?: EvidenceReport;
}

export interface ProofDetail extends ProofEntry, LegacyValues {
  readonly createdAt: number;
  readonly originalSha256: string;
  readonly evidenceReport?: EvidenceReport;
  readonly processNote?: ProcessNote;
}

export interface ProofRecord {
  readonly proofId: string;
  readonly song: { readonly title: string };
  readonly issuedAt: number;
  readonly boundAudioSha256: string;
  readonly unknownContainer?: true;
  readonly evidenceReport?: EvidenceReport;
  readonly processNote?: ProcessNote;
  readonly delivery: {
    readonly carrier: Carrier;
    readonly bytes: number;
    readonly sha256: string;
    readonly mediaType: string;
    readonly fileName: string;
  };
}

export interface ReadProofsDeps extends ReadReportDeps {
  readonly stores: ProofStore & PartnerStore;
}

const DEFAULT_LIMIT = 50;
/** The largest number of entries on a page with whole reports. */
const REPORTS_LIMIT = 20;
/**
 * The largest total size of the stored reports on a page with whole reports, in bytes. The first entry is
 * always included.
 */
const REPORTS_BYTES = 1_048_576;
/** The number of entries whose evidence is read concurrently. */
const READS_AT_ONCE = 8;

/** Returns the partner's issued proofs, newest first. Both time bounds are inclusive. */
export async function listProofs(
  deps: ReadReportDeps & { readonly stores: Pick<ProofStore, 'listProofs'>; readonly cursors: Cursors },
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
  const whole = include !== undefined;
  const wanted = Math.min(query.limit ?? DEFAULT_LIMIT, whole ? REPORTS_LIMIT : Infinity);
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
      // One entry more than the page shows whether another page follows.
      limit: wanted + 1,
    }),
  );
  const { entries, last } = cutPage(found, whole ? Math.min(wanted, countFitting(found)) : wanted);
  const proofs: ListedProof[] = [];
  for (let at = 0; at < entries.length; at += READS_AT_ONCE) {
    const listed = await Promise.all(
      entries.slice(at, at + READS_AT_ONCE).map((proof) => listedProof(deps, caller, proof, whole)),
    );
    proofs.push(...listed.filter((entry) => entry !== undefined));
  }
  return defined({
    proofs,
    nextCursor: last && deps.cursors.write(scope, { createdAt: last.createdAt, id: last.proofId }),
  });
}

/** Returns a proof, for its owner only. */
export async function readProof(
  deps: ReadProofsDeps,
  caller: Caller,
  { proofId }: { readonly proofId: string },
): Promise<ProofDetail> {
  const proof = await findOwnIssued(deps.stores, caller, proofId);
  const evidenceReport = await readReport(deps, caller, proof);
  if (evidenceReport === 'erased') throw noSuchProof();
  return defined({
    ...proofEntry(proof),
    createdAt: proof.createdAt,
    originalSha256: proof.originalSha256,
    evidenceReport,
    processNote: evidenceReport && writeProcessNote(evidenceReport),
    ...legacyValues(proof.legacy),
  });
}

/**
 * Returns the registered record of a proof, for any key of the environment. The record does not claim that
 * any file matches it.
 */
export async function readRecord(
  deps: ReadProofsDeps,
  caller: Caller,
  { proofId }: { readonly proofId: string },
): Promise<ProofRecord> {
  const proof = await findIssued(deps.stores, proofId);
  const { song, createdAt, boundAudioSha256, carrier, asset, unknownContainer } = proof;
  const evidenceReport = await readReport(deps, caller, proof);
  if (evidenceReport === 'erased') throw noSuchProof();
  const { bytes, sha256, mediaType, fileName } = asset;
  return defined({
    proofId,
    song: { title: song.title },
    issuedAt: createdAt,
    boundAudioSha256,
    unknownContainer,
    evidenceReport,
    processNote: evidenceReport && writeProcessNote(evidenceReport),
    delivery: { carrier, bytes, sha256, mediaType, fileName },
  });
}

/** Returns how many proofs, from the first on, have reports that fit on a page. At least one. */
function countFitting(found: readonly IssuedProof[]): number {
  let bytes = 0;
  const fitting = found.findIndex(({ evidence }, at) => {
    for (const { part, bytes: length } of evidence?.parts ?? []) bytes += part === 'trace' ? 0 : length;
    return at > 0 && bytes > REPORTS_BYTES;
  });
  return fitting === -1 ? found.length : fitting;
}

/**
 * Returns the list entry of a proof.
 * @returns undefined for a proof that was erased after it was listed
 */
async function listedProof(
  deps: ReadReportDeps,
  caller: Caller,
  proof: IssuedProof,
  whole: boolean,
): Promise<ListedProof | undefined> {
  const report = await readReport(deps, caller, proof);
  if (report === 'erased') return undefined;
  return defined({
    ...proofEntry(proof),
    evidenceSummary: report && summariseEvidence(report),
    evidenceReport: whole ? report : undefined,
  });
}

/** Returns the entry of a proof. Its `issuedAt` is the proof's `createdAt`. */
function proofEntry({
  proofId,
  createdAt,
  song,
  carrier,
  boundAudioSha256,
  unknownContainer,
}: IssuedProof): ProofEntry {
  return defined({
    proofId,
    issuedAt: createdAt,
    song: { title: song.title },
    carrier,
    boundAudioSha256,
    unknownContainer,
  });
}
