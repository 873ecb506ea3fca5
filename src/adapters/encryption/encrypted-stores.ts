import {
  DecryptionError,
  decryptBlock,
  decryptValue,
  encryptBlock,
  encryptValue,
} from '../../codec/encrypt.js';
import { DomainError, recordDamaged } from '../../domain/errors.js';
import type { EvidenceOverlay, EvidencePart } from '../../domain/evidence.js';
import type { IssuedProof, Proof } from '../../domain/proof.js';
import type { ContentKeys } from '../../ports/content-keys.js';
import type { ProofStore, Stores } from '../../ports/stores.js';

const CONTENT = 'content';
const OVERLAY = 'overlay';

/** Members of a record by which stores find and compare proofs: ids, times and digests. */
const CLEAR = [
  'state',
  'proofId',
  'partnerId',
  'createdAt',
  'originalSha256',
  'boundAudioSha256',
  'credentialSha256',
] as const satisfies readonly (keyof IssuedProof)[];

/** Record as it lies in a store: all else is in encrypted blocks. */
interface EncryptedProof extends Pick<IssuedProof, (typeof CLEAR)[number]> {
  readonly encrypted: Uint8Array;
  readonly overlay?: Uint8Array;
}

/**
 * Stores in which the content of proofs lies encrypted, each with its own key: the record but for ids, times and
 * digests, the overlay and the bodies of evidence. Reserving an id makes its key. Records of a version that encrypted
 * nothing are as they lie. A key is destroyed with the proof's files. A record whose key is gone while
 * it stands is DomainError `internal` / `record_damaged`.
 */
export function encryptedStores(stores: Stores, keys: ContentKeys): Stores {
  /** The proof; undefined where it is being erased. */
  const opened = async (proof: IssuedProof): Promise<IssuedProof | undefined> => {
    if (!isEncrypted(proof)) return proof;
    const { proofId } = proof;
    const key = await keys.read(proofId);
    if (key !== undefined) return decryptProof(key, proof);
    // The tombstone comes before the end of the key.
    if ((await stores.getProof(proofId))?.state !== 'issued') return undefined;
    throw recordDamaged(new DecryptionError('the content key of the proof does not exist'));
  };
  /** Asks again where a proof was erased meanwhile: only the last page is short. */
  const allOpened = async (find: () => Promise<readonly IssuedProof[]>): Promise<readonly IssuedProof[]> => {
    for (;;) {
      const proofs = await Promise.all((await find()).map(opened));
      if (proofs.every((proof) => proof !== undefined)) return proofs;
    }
  };

  const proofs: Pick<
    ProofStore,
    | 'reserveProof'
    | 'issueProof'
    | 'readEvidence'
    | 'getProof'
    | 'listProofs'
    | 'findProofs'
    | 'changeOverlay'
  > = {
    async reserveProof(proofId, ...rest) {
      // In this order, because a reservation leads to what a kill leaves.
      await stores.reserveProof(proofId, ...rest);
      await keys.obtain(proofId);
    },

    async issueProof(proof, audit, replay, evidence = []) {
      const key = await keys.read(proof.proofId);
      // The id was taken back: nothing would lead to a key that is made for it now.
      if (key === undefined) throw new DomainError('conflict', 'This id is no longer reserved.');
      const bodies = evidence.map(({ part, body }) => ({
        part,
        body: encryptBlock(key, labelOf(part), body),
      }));
      return stores.issueProof(encryptProof(key, proof), audit, replay, bodies);
    },

    async readEvidence(proofId, part) {
      const body = await stores.readEvidence(proofId, part);
      if (body === undefined) return undefined;
      const key = await keys.read(proofId);
      if (key !== undefined) return damagedUnless(() => decryptBlock(key, labelOf(part), body));
      const proof = await stores.getProof(proofId);
      return proof?.state === 'issued' && !isEncrypted(proof) ? body : undefined;
    },

    async getProof(proofId) {
      let proof: Proof | undefined;
      do {
        const found = await stores.getProof(proofId);
        if (found?.state !== 'issued') return found;
        proof = await opened(found);
      } while (proof === undefined);
      return proof;
    },

    listProofs: (partnerId, query) => allOpened(() => stores.listProofs(partnerId, query)),

    findProofs: (kind, sha256, limit) => allOpened(() => stores.findProofs(kind, sha256, limit)),

    async changeOverlay(proofId, change, audit) {
      const key = await keys.read(proofId);
      if (key === undefined && (await stores.getProof(proofId))?.state !== 'issued') return 'proof_gone';
      return stores.changeOverlay(
        proofId,
        (stored) => {
          if (!isEncrypted(stored)) return change(stored);
          if (key === undefined)
            throw recordDamaged(new DecryptionError('the content key of the proof does not exist'));
          const { result, overlay } = change(decryptProof(key, stored));
          return overlay === undefined ? { result } : { result, overlay: encryptOverlay(key, overlay) };
        },
        audit,
      );
    },
  };
  return { ...stores, ...proofs };
}

function labelOf(part: EvidencePart): string {
  return `body/${part}`;
}

function isEncrypted(proof: IssuedProof): proof is IssuedProof & EncryptedProof {
  return 'encrypted' in proof;
}

function encryptProof(key: Uint8Array, proof: IssuedProof): IssuedProof {
  const { overlay, ...rest } = proof;
  const clear = Object.fromEntries(CLEAR.map((name) => [name, rest[name]]));
  const content = Object.fromEntries(
    Object.entries(rest).filter(([name]) => !CLEAR.some((each) => each === name)),
  );
  return {
    ...clear,
    encrypted: encryptValue(key, CONTENT, content),
    ...(overlay !== undefined && { overlay: encryptOverlay(key, overlay) }),
  } as unknown as IssuedProof;
}

/** Stores keep an overlay as it is given and never look into it. */
function encryptOverlay(key: Uint8Array, overlay: EvidenceOverlay): EvidenceOverlay {
  return encryptValue(key, OVERLAY, overlay) as unknown as EvidenceOverlay;
}

/** @throws DomainError `internal` / `record_damaged` */
function decryptProof(key: Uint8Array, { encrypted, overlay, ...clear }: EncryptedProof): IssuedProof {
  return damagedUnless(() => ({
    ...clear,
    ...(decryptValue(key, CONTENT, encrypted) as Omit<IssuedProof, (typeof CLEAR)[number] | 'overlay'>),
    ...(overlay !== undefined && { overlay: decryptValue(key, OVERLAY, overlay) as EvidenceOverlay }),
  }));
}

function damagedUnless<Value>(open: () => Value): Value {
  try {
    return open();
  } catch (error) {
    throw error instanceof DecryptionError ? recordDamaged(error) : error;
  }
}
