import type { Secrets } from '../../ports/secrets.js';
import type { ProofStore } from '../../ports/stores.js';
import { findIssued } from './find-proof.js';
import { type CheckedDeclaration, readDeclarations } from './read-evidence.js';

/** What was declared of an issued proof, in the order of recording. */
export async function listDeclarations(
  { stores, secrets }: { readonly stores: ProofStore; readonly secrets: Secrets },
  proofId: string,
): Promise<readonly CheckedDeclaration[]> {
  const { declarations = [] } = await findIssued(stores, proofId);
  return readDeclarations(secrets, proofId, declarations);
}
