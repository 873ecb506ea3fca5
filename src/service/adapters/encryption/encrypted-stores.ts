import { createHash } from 'node:crypto';
import {
  DecryptionError,
  decryptBlock,
  decryptValue,
  encryptBlock,
  encryptValue,
} from '../../../core/codec/encrypt.js';
import { defined } from '../../../core/domain/defined.js';
import { DomainError, recordDamaged } from '../../../core/domain/errors.js';
import type { EvidenceOverlay, EvidencePart } from '../../../witness/domain/evidence.js';
import type { StoredSummary } from '../../../witness/domain/evidence-summary.js';
import { freeze } from '../../domain/freeze.js';
import type { IssuedProof, Proof } from '../../domain/proof.js';
import { briefOf, type ProofBrief } from '../../domain/proof-brief.js';
import type { ContentKeys } from '../../ports/content-keys.js';
import type { ProofStore, Stores } from '../../ports/stores.js';

const CONTENT = 'content';
const OVERLAY = 'overlay';
const BRIEF = 'brief';

/** The members of a record with which stores find and compare proofs: ids, times and digests. */
const CLEAR = [
  'state',
  'proofId',
  'partnerId',
  'createdAt',
  'originalSha256',
  'boundAudioSha256',
  'credentialSha256',
  'fileSha256',
  'samplesSha256',
  'samplesReason',
] as const satisfies readonly (keyof IssuedProof)[];

/** A record as it is stored. All else is in encrypted blocks. */
interface EncryptedProof extends Pick<IssuedProof, (typeof CLEAR)[number]> {
  readonly encrypted: Uint8Array;
  readonly overlay?: Uint8Array;
  /**
   * What a list shows, encrypted for the overlay beside which it was written. Records of earlier versions have
   * none, and after a change by an earlier version it does not open.
   */
  readonly brief?: Uint8Array;
}

/** The members of a brief that are encrypted. */
type EncryptedBrief = Pick<ProofBrief, 'song' | 'carrier' | 'unknownContainer' | 'evidence'>;

/**
 * Stores in which the content of proofs is encrypted, each with its own key: the record but for ids, times and
 * digests, the overlay and the bodies of evidence. Reserving an id makes its key. Records of a version that encrypted
 * nothing are plain. A key is destroyed with the proof's files. A record whose key is gone while
 * it is stored is DomainError `internal` / `record_damaged`.
 */
export function encryptedStores(stores: Stores, keys: ContentKeys): Stores {
  /**
   * Plaintexts of records that their store keeps, with the key that opened them. A record that is erased or changed is
   * another object, so the plaintext ends with it.
   */
  const plaintexts = new WeakMap<IssuedProof, { readonly key: Uint8Array; readonly proof: IssuedProof }>();
  /** Returns the decrypted proof, or undefined if it is being erased. */
  const opened = async (proof: IssuedProof): Promise<IssuedProof | undefined> => {
    if (!isEncrypted(proof)) return proof;
    const { proofId } = proof;
    const key = await keys.read(proofId);
    if (key !== undefined) {
      const known = plaintexts.get(proof);
      if (known?.key === key) return known.proof;
      const plaintext = decryptProof(key, proof);
      // A store freezes the records that it keeps.
      if (Object.isFrozen(proof)) {
        freeze(plaintext);
        plaintexts.set(proof, { key, proof: plaintext });
      }
      return plaintext;
    }
    // The tombstone comes before the end of the key.
    if ((await stores.getProof(proofId))?.state !== 'issued') return undefined;
    throw recordDamaged(new DecryptionError('the content key of the proof does not exist'));
  };
  /** Returns the decrypted brief, or undefined if the proof is being erased. */
  const openedBrief = async (proof: IssuedProof): Promise<ProofBrief | undefined> => {
    const key = isEncrypted(proof) && proof.brief !== undefined ? await keys.read(proof.proofId) : undefined;
    const brief = key && decryptBrief(key, proof as IssuedProof & EncryptedProof);
    if (brief !== undefined) return brief;
    const whole = await opened(proof);
    return whole && briefOf(whole);
  };
  /** Asks again where a proof was erased meanwhile: only the last page is short. */
  const allOpened = async <Opened>(
    find: () => Promise<readonly IssuedProof[]>,
    open: (proof: IssuedProof) => Promise<Opened | undefined>,
  ): Promise<readonly Opened[]> => {
    for (;;) {
      const proofs = await Promise.all((await find()).map(open));
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
    | 'listBriefs'
    | 'findProofs'
    | 'changeOverlay'
    | 'changeSummary'
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

    listProofs: (partnerId, query) => allOpened(() => stores.listProofs(partnerId, query), opened),

    listBriefs: (partnerId, query) => allOpened(() => stores.listProofs(partnerId, query), openedBrief),

    findProofs: (kind, sha256, limit) => allOpened(() => stores.findProofs(kind, sha256, limit), opened),

    async changeOverlay(proofId, change, audit) {
      const key = await keys.read(proofId);
      if (key === undefined && (await stores.getProof(proofId))?.state !== 'issued') return 'proof_gone';
      return stores.changeOverlay(
        proofId,
        (stored) => {
          if (!isEncrypted(stored)) return change(stored);
          const proof = decryptProof(present(key), stored);
          const { result, ...changed } = change(proof);
          if (changed.overlay === undefined) return { result };
          return { result, ...encryptMembers(present(key), { ...proof, ...changed }) };
        },
        audit,
      );
    },

    async changeSummary(proofId, settle) {
      const key = await keys.read(proofId);
      if (key === undefined && (await stores.getProof(proofId))?.state !== 'issued') return 'proof_gone';
      return stores.changeSummary(proofId, (stored) => {
        if (!isEncrypted(stored)) return settle(stored);
        const proof = decryptProof(present(key), stored);
        const changed = settle(proof);
        return changed && encryptMembers(present(key), { ...proof, ...changed });
      });
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
  const clear = defined(Object.fromEntries(CLEAR.map((name) => [name, proof[name]])));
  return { ...clear, ...encryptMembers(key, proof) } as unknown as IssuedProof;
}

/**
 * Encrypts all members that are not clear. Stores keep the result as it is given and never look into it, so it
 * passes for the members that changed.
 */
function encryptMembers(
  key: Uint8Array,
  proof: IssuedProof,
): { readonly overlay: EvidenceOverlay; readonly summary: StoredSummary } {
  const { overlay, ...rest } = proof;
  const content = Object.entries(rest).filter(([name]) => !CLEAR.some((each) => each === name));
  const encryptedOverlay = overlay && encryptValue(key, OVERLAY, overlay);
  const { song, carrier, unknownContainer, evidence }: EncryptedBrief = briefOf(proof);
  return {
    encrypted: encryptValue(key, CONTENT, Object.fromEntries(content)),
    ...(encryptedOverlay !== undefined && { overlay: encryptedOverlay }),
    brief: encryptValue(key, briefLabel(encryptedOverlay), { song, carrier, unknownContainer, evidence }),
  } as unknown as { readonly overlay: EvidenceOverlay; readonly summary: StoredSummary };
}

/** Returns the label of a brief, with which it opens only beside the overlay that it includes. */
function briefLabel(overlay: Uint8Array | undefined): string {
  return overlay === undefined ? BRIEF : `${BRIEF}/${createHash('sha256').update(overlay).digest('base64')}`;
}

/** Returns undefined for a brief that does not open: the whole record decides. */
function decryptBrief(
  key: Uint8Array,
  { brief, overlay, proofId, partnerId, createdAt, boundAudioSha256 }: EncryptedProof,
): ProofBrief | undefined {
  try {
    const opened = decryptValue(key, briefLabel(overlay), brief!) as EncryptedBrief;
    return { proofId, partnerId, createdAt, boundAudioSha256, ...opened };
  } catch (error) {
    if (error instanceof DecryptionError) return undefined;
    throw error;
  }
}

/** @throws DomainError `internal` / `record_damaged` */
function present(key: Uint8Array | undefined): Uint8Array {
  if (key === undefined)
    throw recordDamaged(new DecryptionError('the content key of the proof does not exist'));
  return key;
}

/** @throws DomainError `internal` / `record_damaged` */
function decryptProof(
  key: Uint8Array,
  { encrypted, overlay, brief: _brief, ...clear }: EncryptedProof,
): IssuedProof {
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
