import { writeSync } from 'node:fs';
import { openEmbeddedStore } from '../../src/service/adapters/embedded/store.js';
import type { UsageEvent } from '../../src/service/domain/events.js';
import {
  EVIDENCE_KINDS,
  openEvidence,
  resolveReview,
  stepEvidence,
} from '../../src/service/domain/review.js';
import { authenticator } from '../fixtures/authentication.js';
import {
  audit,
  issuedProof,
  issuingReplay,
  NOW,
  nextBatch,
  partnerKey,
  reviewCase,
  rotation,
  uploadFacts,
  uploadSlot,
  usageCharge,
} from '../store-contract/samples.js';
import { AUDIT_KEY, fileHeads } from './embedded-process.js';

/**
 * A process that writes to a store and reports each acknowledgement in one line, in order. Arguments: the
 * task, the directory, a number.
 */
const [mode, directory, argument] = process.argv.slice(2) as [string, string, string];
const stores = await openEmbeddedStore({
  directory,
  authenticator,
  audit: { key: AUDIT_KEY, heads: fileHeads(directory) },
});
/** Writes a line to the pipe synchronously, before anything else happens. */
const say = (line: string) => writeSync(1, `${line}\n`);
say('ready');

switch (mode) {
  case 'hold':
    setInterval(() => undefined, 1000);
    break;
  case 'charge-once':
    await stores.charge(usageCharge('ptr_once', 'a'));
    say('acknowledged');
    await stores.close();
    break;
  case 'charge-together':
    await Promise.all(
      Array.from({ length: Number(argument) }, (_, i) =>
        stores.charge(usageCharge('ptr_group', `call-${i}`)),
      ),
    );
    say('acknowledged');
    await stores.close();
    break;
  case 'fill':
    await fill();
    break;
  case 'everything':
    void everything(argument);
    break;
}

/** Charges until the disk is full, then until it has space again. */
async function fill(): Promise<void> {
  let next = 0;
  let full = false;
  const charger = async () => {
    while (!full) {
      const key = `before-${(next += 1)}`;
      try {
        await stores.charge(usageCharge('ptr_full', key));
        say(`charged ${key}`);
      } catch (error) {
        if (!full) say(`full ${(error as { code: string }).code} ${(error as { reason: string }).reason}`);
        full = true;
      }
    }
  };
  await Promise.all(Array.from({ length: 32 }, charger));
  const patience = Date.now() + 60_000;
  for (let working = false; !working; ) {
    if (Date.now() > patience) throw new Error('it does not come back');
    working = await stores.ping().then(
      () => true,
      () => new Promise((resolve) => setTimeout(resolve, 50, false)),
    );
  }
  say('back');
  for (let i = 0; i < 50; i += 1) {
    await stores.charge(usageCharge('ptr_full', `after-${i}`));
    say(`charged after-${i}`);
  }
  await stores.close();
}

/**
 * Makes charges, facts, proofs, rotations, erasures, reviews, free calls and their events, until the process
 * is killed.
 */
async function everything(round: string): Promise<void> {
  /** A partner whose log spans several kills. */
  const partnerId = `ptr_audited-${Math.floor(Number(round) / 5)}`;
  const workers = (
    kind: string,
    count: number,
    work: (i: number) => Promise<string>,
  ): readonly Promise<void>[] => {
    let next = 0;
    return Array.from({ length: count }, async () => {
      for (;;) {
        const i = next++;
        say(`begin ${kind} ${i}`);
        say(`done ${kind} ${i} ${await work(i)}`);
      }
    });
  };
  const issue = async (proofId: string, replay: string) => {
    await stores.reserveProof(proofId, partnerId, 1000);
    return stores.issueProof(
      issuedProof(proofId, partnerId),
      audit(partnerId, 'proof_issued', proofId),
      issuingReplay(replay, proofId),
    );
  };
  const create = (reviewId: string, proofId: string, of: string) =>
    stores.createReview(
      reviewCase(reviewId, partnerId, proofId, {
        bindings: { creatorId: of, accountId: 'a', submissionId: 's', trackId: 't' },
      }),
      NOW,
      audit(partnerId, 'review_created', reviewId),
    );

  await Promise.all([
    ...workers(
      'charge',
      16,
      async (i) => (await stores.charge(usageCharge('ptr_kill', `${round}-${i}`))).outcome,
    ),
    ...workers('quota', 4, async (i) => {
      const outcomes = await Promise.all(
        Array.from({ length: 12 }, (_, j) =>
          stores.charge(usageCharge(`ptr_quota-${round}-${i}`, `${j}`, { monthlyQuota: 5 })),
        ),
      );
      return String(outcomes.filter(({ outcome }) => outcome === 'charged').length);
    }),
    ...workers('slot', 4, async (i) => {
      const slot = uploadSlot(`upl_${round}-${i}`);
      await stores.createSlot(slot);
      const marks = ['a', 'b'];
      const outcomes = await Promise.all(marks.map((mark) => stores.putFacts(uploadFacts(slot, mark))));
      return marks.filter((_, j) => outcomes[j] === 'stored').join();
    }),
    ...workers('proof', 4, async (i) => {
      const ids = ['a', 'b'].map((letter) => `prf_${round}-${i}${letter}`);
      const outcomes = await Promise.all(ids.map((proofId) => issue(proofId, `replay_${round}-${i}`)));
      return ids.filter((_, j) => outcomes[j] === 'issued').join();
    }),
    ...workers('rotation', 4, async (i) => {
      const key = partnerKey(`key_${round}-${i}`, partnerId);
      await stores.createKey(key, audit(partnerId, 'key_created', key.keyId));
      const tries = ['a', 'b', 'c', 'd'].map((letter, j) => rotation(key, `${key.keyId}${letter}`, j));
      const results = await Promise.all(
        tries.map((each) =>
          stores.rotateKey(
            each,
            partnerKey(each.newKeyId, partnerId),
            audit(partnerId, 'key_rotated', key.keyId),
          ),
        ),
      );
      return [...new Set(results.map((result) => result?.newKeyId))].join();
    }),
    ...workers('revocation', 2, async (i) => {
      const key = partnerKey(`key_revoked-${round}-${i}`, partnerId);
      await stores.createKey(key, audit(partnerId, 'key_created', key.keyId));
      const outcomes = await Promise.all(
        [1, 2].map((at) => stores.revokeKey({ partnerId, keyId: key.keyId, at })),
      );
      return String(outcomes.findIndex(({ outcome }) => outcome === 'revoked') + 1);
    }),
    ...workers('erasure', 4, async (i) => {
      const proofId = `prf_erased-${round}-${i}`;
      await issue(proofId, `replay_erased-${round}-${i}`);
      await Promise.all(['a', 'b'].map((of) => create(`rev_erased-${round}-${i}${of}`, proofId, of)));
      const erase = (at: number) =>
        stores.eraseProof(proofId, partnerId, at, audit(partnerId, 'proof_erased', proofId));
      const [first, , second] = await Promise.all([
        erase(1),
        create(`rev_erased-${round}-${i}c`, proofId, 'c'),
        erase(2),
      ]);
      return [first, second].map((each) => (each === 'not_found' ? each : each.proof.erasedAt)).join();
    }),
    ...workers('review', 4, async (i) => {
      const proofId = `prf_reviewed-${round}-${i}`;
      await issue(proofId, `replay_reviewed-${round}-${i}`);
      const ids = ['a', 'b', 'c'].map((letter) => `rev_${round}-${i}${letter}`);
      const outcomes = await Promise.all(ids.map((reviewId) => create(reviewId, proofId, 'same')));
      const reviewId = ids[outcomes.findIndex(({ outcome }) => outcome === 'created')]!;
      say(`done case ${i} ${reviewId}`);
      await Promise.all(
        [...EVIDENCE_KINDS, ...EVIDENCE_KINDS].map((kind) =>
          stores.changeReview(
            partnerId,
            reviewId,
            NOW,
            (review) => openEvidence(review, kind, `req_${kind}`, NOW),
            audit(partnerId, 'review_evidence_opened', reviewId),
          ),
        ),
      );
      say(`done evidence ${i} ${reviewId}`);
      await Promise.all(
        EVIDENCE_KINDS.map((kind) =>
          stores.changeReview(
            partnerId,
            reviewId,
            NOW,
            (review) => stepEvidence(review, `req_${kind}`, 'accept', undefined, NOW),
            audit(partnerId, 'review_evidence_closed', reviewId),
          ),
        ),
      );
      await Promise.all(
        [1, 2].map(() =>
          stores.changeReview(
            partnerId,
            reviewId,
            NOW,
            (review) => resolveReview(review, 'accepted', NOW),
            audit(partnerId, 'review_resolved', reviewId),
          ),
        ),
      );
      return reviewId;
    }),
    ...workers('meter', 4, async () => {
      await stores.meter(
        [
          { partnerId: `ptr_meter-${round}`, operation: 'read_record', count: 1 },
          { partnerId: `ptr_meter-${round}`, operation: 'list_proofs', count: 2 },
        ],
        NOW,
        nextBatch(),
      );
      return 'counted';
    }),
    relay(),
  ]);
}

/** Publishes events by reporting them. Consumers get some before the mark and some after it. */
async function relay(): Promise<void> {
  let behind: UsageEvent[] = [];
  for (let turn = 0; ; turn += 1) {
    const waiting = await stores.waitingEvents(20);
    for (const { event } of waiting) say(`event ${JSON.stringify(event)}`);
    const usage = waiting.map(({ event }) => event).filter((event) => event.topic === 'usage');
    const late = usage.filter((_, i) => (i + turn) % 3 === 0);
    const confirm = async (proofId: string) => {
      await stores.confirmErasure(proofId, NOW);
      say(`confirmed ${proofId}`);
    };
    await Promise.all([
      stores.markPublished(waiting).then(() => {
        for (const { event } of waiting) say(`marked ${event.id}`);
      }),
      stores.aggregateUsage([...behind.reverse(), ...usage.filter((event) => !late.includes(event))]),
      ...waiting.map(({ event }) => (event.topic === 'erasure' ? confirm(event.data.proofId) : undefined)),
    ]);
    behind = late;
    if (waiting.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
