import type { IssuedProof } from '../../domain/proof.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Cursors } from '../cursors.js';
import { cutPage } from '../cut-page.js';
import type { Caller, ProofEntry } from '../operations.js';
import { requireScope } from '../require-scope.js';

const DEFAULT_LIMIT = 50;

export interface ListProofsDeps {
  readonly stores: ProofStore;
  readonly cursors: Cursors;
}

/** The partner's issued proofs, newest first; both bounds are inclusive. */
export async function listProofs(
  deps: ListProofsDeps,
  caller: Caller,
  query: {
    readonly limit?: number;
    readonly cursor?: string;
    readonly issuedAfter?: number;
    readonly issuedBefore?: number;
  },
): Promise<{ readonly proofs: readonly ProofEntry[]; readonly nextCursor?: string }> {
  requireScope(caller, 'proofs');
  const { issuedAfter, issuedBefore, limit = DEFAULT_LIMIT } = query;
  const scope = {
    partnerId: caller.partnerId,
    route: 'GET /proofs',
    filter: [issuedAfter ?? null, issuedBefore ?? null],
  };
  const before = query.cursor === undefined ? undefined : deps.cursors.read(scope, query.cursor);
  const found = await deps.stores.listProofs(caller.partnerId, {
    ...(issuedAfter === undefined ? {} : { issuedAfter }),
    ...(issuedBefore === undefined ? {} : { issuedBefore }),
    ...(before === undefined ? {} : { before: { createdAt: before.createdAt, proofId: before.id } }),
    // One more than asked for tells whether there is another page.
    limit: limit + 1,
  });
  const { entries, last } = cutPage(found, limit);
  return {
    proofs: entries.map(proofEntry),
    ...(last === undefined
      ? {}
      : { nextCursor: deps.cursors.write(scope, { createdAt: last.createdAt, id: last.proofId }) }),
  };
}

/** "`issuedAt` equals that proof's canonical `ProofDocument.createdAt`." */
export function proofEntry({ proofId, createdAt, song, carrier, boundAudioSha256 }: IssuedProof): ProofEntry {
  return { proofId, issuedAt: createdAt, song: { title: song.title }, carrier, boundAudioSha256 };
}
