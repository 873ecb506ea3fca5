import { defined } from '../../domain/defined.js';
import type { EvidenceReport } from '../../domain/evidence-report.js';
import type { Carrier, IssuedProof } from '../../domain/proof.js';
import type { Secrets } from '../../ports/secrets.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Caller } from '../caller.js';
import { type Cursors, cutPage } from '../page.js';
import { readEvidence } from './declarations.js';
import { findIssued, findOwnIssued } from './find-proof.js';

export interface ProofEntry {
  readonly proofId: string;
  readonly issuedAt: number;
  readonly song: { readonly title: string };
  readonly carrier: Carrier;
  readonly boundAudioSha256: string;
}

export interface ProofDetail extends ProofEntry {
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

const DEFAULT_LIMIT = 50;

/** The partner's issued proofs, newest first; both bounds are inclusive. */
export async function listProofs(
  deps: { readonly stores: ProofStore; readonly cursors: Cursors },
  caller: Caller,
  query: {
    readonly limit?: number;
    readonly cursor?: string;
    readonly issuedAfter?: number;
    readonly issuedBefore?: number;
  },
): Promise<{ readonly proofs: readonly ProofEntry[]; readonly nextCursor?: string }> {
  const { issuedAfter, issuedBefore, limit = DEFAULT_LIMIT } = query;
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
    proofs: entries.map(proofEntry),
    nextCursor: last && deps.cursors.write(scope, { createdAt: last.createdAt, id: last.proofId }),
  });
}

/** A proof, for its owner alone. */
export async function readProof(
  { stores, secrets }: { readonly stores: ProofStore; readonly secrets: Secrets },
  caller: Caller,
  { proofId }: { readonly proofId: string },
): Promise<ProofDetail> {
  const proof = await findOwnIssued(stores, caller, proofId);
  return defined({
    ...proofEntry(proof),
    createdAt: proof.createdAt,
    originalSha256: proof.originalSha256,
    evidenceReport: readEvidence(secrets, proof),
  });
}

/** The registered record of a proof, for any key of the environment. It claims of no file that it matches. */
export async function readRecord(
  { stores, secrets }: { readonly stores: ProofStore; readonly secrets: Secrets },
  _caller: Caller,
  { proofId }: { readonly proofId: string },
): Promise<ProofRecord> {
  const proof = await findIssued(stores, proofId);
  const { song, createdAt, boundAudioSha256, carrier, asset } = proof;
  const { bytes, sha256, mediaType, fileName } = asset;
  return defined({
    proofId,
    song: { title: song.title },
    issuedAt: createdAt,
    boundAudioSha256,
    evidenceReport: readEvidence(secrets, proof),
    delivery: { carrier, bytes, sha256, mediaType, fileName },
  });
}

/** `issuedAt` of an entry is the proof's `createdAt`. */
function proofEntry({ proofId, createdAt, song, carrier, boundAudioSha256 }: IssuedProof): ProofEntry {
  return { proofId, issuedAt: createdAt, song: { title: song.title }, carrier, boundAudioSha256 };
}
