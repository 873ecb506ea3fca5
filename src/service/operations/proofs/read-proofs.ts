import { defined } from '../../../core/domain/defined.js';
import type { Reported, ResultOf } from '../../contract/results.js';
import { legacyValues } from '../../domain/legacy-proof.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { ProofBrief } from '../../domain/proof-brief.js';
import { neededPurpose } from '../../domain/upload.js';
import type { PartnerStore, ProofStore } from '../../ports/stores.js';
import type { Caller } from '../caller.js';
import { type Cursors, cutPage } from '../page.js';
import { weigh } from '../usage/rate-limits.js';
import { composeFor, type ReadReportDeps, readReport, reportSize } from './evidence.js';
import { findIssued, findOwnIssued, noSuchProof } from './find-proof.js';
import { readSummary, type SummariseDeps } from './summaries.js';

export type ProofDetail = Reported<ResultOf<'readProof'>>;
type ProofRecord = Reported<ResultOf<'readRecord'>>;
type ProofPage = Omit<ResultOf<'listProofs'>, 'proofs'> & { readonly proofs: readonly ListedProof[] };
/** An entry of a list (rule 9.30). */
type ListedProof = Reported<ResultOf<'listProofs'>['proofs'][number]>;
type ProofEntry = Omit<ListedProof, 'evidenceSummary' | 'evidenceReport'>;

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

export interface ListProofsDeps extends ReadReportDeps, SummariseDeps {
  readonly stores: ReadReportDeps['stores'] &
    SummariseDeps['stores'] &
    Pick<ProofStore, 'listProofs' | 'listBriefs'>;
  readonly cursors: Cursors;
}

export interface ListQuery {
  readonly limit?: number;
  readonly cursor?: string;
  readonly issuedAfter?: number;
  readonly issuedBefore?: number;
  readonly include?: 'evidenceReport';
}

/**
 * Returns the partner's issued proofs, newest first. Both time bounds are inclusive. A list waits for the
 * partner's turn, and weighs in the partner's rate by what it reads.
 */
export function listProofs(deps: ListProofsDeps, caller: Caller, query: ListQuery): Promise<ProofPage> {
  return deps.reads.run(caller, () => readPage(deps, caller, query), deps.signal);
}

async function readPage(deps: ListProofsDeps, caller: Caller, query: ListQuery): Promise<ProofPage> {
  const { issuedAfter, issuedBefore, include } = query;
  const scope = {
    partnerId: caller.partnerId,
    route: 'GET /proofs',
    filter: [issuedAfter ?? null, issuedBefore ?? null],
  };
  const before = query.cursor === undefined ? undefined : deps.cursors.read(scope, query.cursor);
  const wanted = Math.min(query.limit ?? DEFAULT_LIMIT, include === undefined ? Infinity : REPORTS_LIMIT);
  const range = defined({
    issuedAfter,
    issuedBefore,
    before: before && { createdAt: before.createdAt, proofId: before.id },
    // One entry more than the page shows whether another page follows.
    limit: wanted + 1,
  });
  const { proofs, last } =
    include === undefined
      ? await listSummaries(deps, caller, range, wanted)
      : await listReports(deps, caller, range, wanted);
  return defined({
    proofs: proofs.filter((entry) => entry !== undefined),
    nextCursor: last && deps.cursors.write(scope, { createdAt: last.createdAt, id: last.proofId }),
  });
}

interface FoundPage {
  /** Undefined for a proof that was erased after it was listed. */
  readonly proofs: readonly (ListedProof | undefined)[];
  readonly last: Pick<IssuedProof, 'createdAt' | 'proofId'> | undefined;
}
type ListRange = Parameters<ProofStore['listProofs']>[1];

async function listSummaries(
  deps: ListProofsDeps,
  caller: Caller,
  range: ListRange,
  wanted: number,
): Promise<FoundPage> {
  const { entries, last } = cutPage(await deps.stores.listBriefs(caller.partnerId, range), wanted);
  weigh(deps, caller, { entries: entries.length });
  const proofs = await inSteps(entries, async (brief) => {
    const evidenceSummary = await readSummary(deps, caller, brief);
    return evidenceSummary === 'erased' ? undefined : defined({ ...proofEntry(brief), evidenceSummary });
  });
  return { proofs, last };
}

async function listReports(
  deps: ListProofsDeps,
  caller: Caller,
  range: ListRange,
  wanted: number,
): Promise<FoundPage> {
  const found = await deps.stores.listProofs(caller.partnerId, range);
  const { entries, last } = cutPage(found, Math.min(wanted, countFitting(found)));
  weigh(deps, caller, {
    entries: entries.length,
    reportBytes: entries.reduce((sum, proof) => sum + reportSize(proof), 0),
  });
  const proofs = await inSteps(entries, async (proof) => {
    const composed = await composeFor(deps, caller, proof);
    if (composed === 'erased') return undefined;
    return defined({
      ...proofEntry(proof),
      evidenceSummary: composed?.outline.summary,
      evidenceReport: composed?.report,
    });
  });
  return { proofs, last };
}

/** Makes the entries of a page, a few at once. */
async function inSteps<Found, Entry>(
  found: readonly Found[],
  make: (one: Found) => Promise<Entry>,
): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for (let at = 0; at < found.length; at += READS_AT_ONCE)
    entries.push(...(await Promise.all(found.slice(at, at + READS_AT_ONCE).map(make))));
  return entries;
}

/** Returns a proof, for its owner only. */
export async function readProof(
  deps: ReadProofsDeps,
  caller: Caller,
  { proofId }: { readonly proofId: string },
): Promise<ProofDetail> {
  const proof = await findOwnIssued(deps.stores, caller, proofId);
  const composed = await readReport(deps, caller, proof);
  if (composed === 'erased') throw noSuchProof();
  return defined({
    ...proofEntry(proof),
    song: proof.song,
    issuer: proof.issuer,
    createdAt: proof.createdAt,
    originalSha256: proof.originalSha256,
    delivery: deliveryOf(proof),
    evidenceReport: composed?.report,
    processNote: composed?.processNote,
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
  const { song, issuer, createdAt, boundAudioSha256, unknownContainer } = proof;
  const composed = await readReport(deps, caller, proof);
  if (composed === 'erased') throw noSuchProof();
  return defined({
    proofId,
    song,
    issuer,
    issuedAt: createdAt,
    boundAudioSha256,
    unknownContainer,
    evidenceReport: composed?.report,
    processNote: composed?.processNote,
    delivery: deliveryOf(proof),
  });
}

function deliveryOf({ carrier, asset }: IssuedProof): ProofDetail['delivery'] {
  const { bytes, sha256, mediaType, fileName } = asset;
  return defined({ carrier, bytes, sha256, mediaType, fileName, uploadPurpose: neededPurpose(bytes) });
}

/** Returns how many proofs, from the first on, have reports that fit on a page. At least one. */
function countFitting(found: readonly IssuedProof[]): number {
  let bytes = 0;
  const fitting = found.findIndex((proof, at) => {
    bytes += reportSize(proof);
    return at > 0 && bytes > REPORTS_BYTES;
  });
  return fitting === -1 ? found.length : fitting;
}

type ListedMembers = Pick<
  ProofBrief,
  'proofId' | 'createdAt' | 'song' | 'carrier' | 'boundAudioSha256' | 'unknownContainer'
>;

/** Returns the entry of a proof. Its `issuedAt` is the proof's `createdAt`. */
function proofEntry({
  proofId,
  createdAt,
  song,
  carrier,
  boundAudioSha256,
  unknownContainer,
}: ListedMembers): ProofEntry {
  return defined({
    proofId,
    issuedAt: createdAt,
    song: { title: song.title },
    carrier,
    boundAudioSha256,
    unknownContainer,
  });
}
