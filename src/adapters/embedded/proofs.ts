import { DomainError } from '../../domain/errors.js';
import type { IssuedProof } from '../../domain/proof.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Transaction } from './commit-queue.js';
import { before, digestKey, expiryKey, lastPart, pendingKey, proofKey, proofTimeKey, replayKey } from './keys.js';
import type { Rows } from './rows.js';

/** Reserved ids taken back in one batch. */
const SWEEP_STEP = 256;

export function proofStore(rows: Rows): ProofStore {
  return {
    reserveProof: (proofId, partnerId, now) =>
      rows.run((tx) => {
        const existing = tx.get(proofKey(proofId));
        if (existing !== undefined) {
          if (existing.state === 'pending' && existing.partnerId === partnerId) return;
          throw new DomainError('conflict', 'This id is taken.');
        }
        tx.put(proofKey(proofId), { state: 'pending', proofId, partnerId, reservedAt: now });
        tx.put(pendingKey(now, proofId), null);
      }),

    issueProof: (proof, replay) =>
      rows.run((tx) => {
        const row = tx.get(proofKey(proof.proofId));
        if (row?.state === 'issued' && row.partnerId === proof.partnerId && row.credentialSha256 === proof.credentialSha256) return 'issued';
        const earlier = replay && tx.get(replayKey(replay.key));
        // One that has expired gives way; the time is that of the statement.
        if (earlier !== undefined && earlier.expiresAt > proof.createdAt) return 'replay_exists';
        if (row?.state !== 'pending' || row.partnerId !== proof.partnerId) throw new DomainError('conflict', 'This id is not reserved any more.');
        tx.delete(pendingKey(row.reservedAt, proof.proofId));
        putIssued(tx, proof);
        if (earlier !== undefined) tx.delete(expiryKey(earlier.expiresAt, replayKey(earlier.key)));
        if (replay !== undefined) {
          tx.put(replayKey(replay.key), replay);
          tx.put(expiryKey(replay.expiresAt, replayKey(replay.key)), null);
        }
        return 'issued';
      }),

    getProof: async (proofId) => rows.get(proofKey(proofId)),

    async getIssuingReplay(key, now) {
      const replay = rows.get(replayKey(key));
      return replay !== undefined && replay.expiresAt > now ? replay : undefined;
    },

    async sweepPending(end) {
      const swept: string[] = [];
      for (;;) {
        const entries = await rows.keys(before(end, 'pending'), SWEEP_STEP);
        if (entries.length === 0) return swept;
        const taken = await rows.run((tx) => {
          const ids: string[] = [];
          for (const entry of entries) {
            const proofId = lastPart(entry);
            tx.delete(entry);
            // It may have been issued since the entry was read.
            if (tx.get(proofKey(proofId))?.state !== 'pending') continue;
            tx.delete(proofKey(proofId));
            ids.push(proofId);
          }
          return ids;
        });
        swept.push(...taken);
      }
    },
  };
}

function putIssued(tx: Transaction, proof: IssuedProof): void {
  tx.put(proofKey(proof.proofId), proof);
  tx.put(proofTimeKey(proof.partnerId, proof.createdAt, proof.proofId), null);
  tx.put(digestKey('bound', proof.boundAudioSha256, proof.proofId), null);
  tx.put(digestKey('original', proof.originalSha256, proof.proofId), null);
  tx.put(digestKey('credential', proof.credentialSha256, proof.proofId), null);
}
