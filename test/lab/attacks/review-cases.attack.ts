import { strict as assert } from 'node:assert';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openEmbeddedStore } from '../../../src/service/adapters/embedded/store.js';
import { createAuditHeads } from '../../../src/service/adapters/journals/audit-heads.js';
import { openErasureJournal } from '../../../src/service/adapters/journals/erasure-journal.js';
import { loadSecrets } from '../../../src/service/adapters/signing/secrets.js';
import { REVIEW_BOUNDS, REVIEW_LIFE_SECONDS } from '../../../src/service/domain/review.js';
import { authenticatorWith } from '../../fixtures/authentication.js';
import { wav } from '../../fixtures/wav.js';
import type { Attack } from './attack.js';
import type { ConfinedService } from './confined-service.js';
import { HealthPulse } from './health-pulse.js';

/** The number of creations that a key holder sends over HTTP. */
const ATTEMPTS = REVIEW_BOUNDS.perProof + 200;
const AT_ONCE = 8;
/** The number of partners that each have the most cases on one proof. */
const PARTNERS = 20;
/**
 * The largest ratio of a call's latency during the cleanup of an erasure to its latency at rest. `LEAST_MS`
 * is the smallest latency at rest.
 */
const SLOWER = 12;
const LEAST_MS = 10;

interface ErasureStatus {
  readonly state: string;
  readonly confirmedAt?: number;
}

/** Prepares as many cases on a proof as possible. Then the owner erases the proof. */
export const attack: Attack = {
  id: 'review-cases',
  title:
    'the cases of a proof are bounded, and neither an erasure of any size nor a start during it delays other calls',
  limitSeconds: 600,
  async run({ service, say }) {
    const owner = await service.partner('volume');
    const [first, second] = [
      await service.issue(owner.partnerId, wav(20_000, {}, 1)),
      await service.issue(owner.partnerId, wav(20_000, {}, 2)),
    ];

    const stranger = await service.partner('volume');
    const accepted = await createCases(service, stranger.apiKey, first);
    say(`${accepted} of ${ATTEMPTS} cases of one key on one proof were accepted`);
    assert.ok(
      accepted >= REVIEW_BOUNDS.perProof && accepted <= REVIEW_BOUNDS.perProof + AT_ONCE,
      `${accepted} cases were accepted`,
    );

    await service.stop();
    for (const proofId of [first, second]) await prepareCases(service.dataDirectory, proofId);
    await service.restart();
    await settled(
      async () => (await service.metric('takemark_outbox_waiting')) === 0,
      'the announcements of the cases were taken',
    );

    const resting = new HealthPulse(service.partnerUrl);
    await delay(3000);
    const rest = await resting.stop();
    const during = new HealthPulse(service.partnerUrl, { everyMs: 5 });
    assert.equal(await erase(service, owner.apiKey, first), 200);
    await settled(
      async () => (await statusOf(service, first)).confirmedAt !== undefined,
      'the erasure was confirmed',
    );
    const busy = await during.stop();
    say(
      `health p99 ${rest.p99.toFixed(1)} ms at rest, ${busy.p99.toFixed(1)} (worst ${busy.worst.toFixed(1)}) while ${PARTNERS * REVIEW_BOUNDS.perProof} cases are removed`,
    );
    assert.equal(busy.unanswered, 0);
    assert.ok(
      busy.worst <= SLOWER * Math.max(LEAST_MS, rest.p99),
      `others waited ${busy.worst.toFixed(0)} ms`,
    );

    // The journal has an erasure that the store lacks, like a restored store.
    await service.stop('SIGKILL');
    await record(service.dataDirectory, second, owner.partnerId);
    const began = performance.now();
    await service.restart();
    const atStart = await statusOf(service, second);
    say(
      `a start amid an erasure served after ${(performance.now() - began).toFixed(0)} ms, the cases ${atStart.confirmedAt === undefined ? 'still' : 'no longer'} there; ${(await service.rssMiB()).toFixed(0)} MiB`,
    );
    assert.equal(atStart.state, 'erased', 'the erased proof is not served');
    await service.stop('SIGKILL');
    await service.restart();
    await settled(
      async () => (await statusOf(service, second)).confirmedAt !== undefined,
      'what two deaths cut short was finished',
    );
    assert.equal(await service.oomKills(), 0);
  },
};

/** @returns the number of accepted creations; the others were refused at the limit */
async function createCases(service: ConfinedService, apiKey: string, proofId: string): Promise<number> {
  let accepted = 0;
  let next = 0;
  const caller = async (): Promise<void> => {
    for (let number = next++; number < ATTEMPTS; number = next++) {
      for (;;) {
        const response = await fetch(`${service.partnerUrl}/v1/partner/reviews`, {
          method: 'POST',
          headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
          body: JSON.stringify({
            proofId,
            bindings: { creatorId: `c${number}`, accountId: 'a', submissionId: 's', trackId: 't' },
          }),
        });
        const { reason } = (await response.json()) as { reason?: string };
        if (response.status === 429 && reason === 'rate_exceeded') {
          await delay(50);
          continue;
        }
        if (response.status === 201) accepted += 1;
        else {
          assert.deepEqual([response.status, reason], [429, 'review_limit']);
          const retryAfter = Number(response.headers.get('retry-after'));
          assert.ok(
            retryAfter > REVIEW_LIFE_SECONDS - 3600 && retryAfter <= REVIEW_LIFE_SECONDS,
            `Retry-After: ${retryAfter}`,
          );
        }
        break;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
  return accepted;
}

/**
 * Writes cases into the data directory of a stopped service. The keys of many partners could create as many
 * in days.
 */
async function prepareCases(directory: string, proofId: string): Promise<void> {
  const { secrets } = await loadSecrets({ directory, environment: 'production', random: randomBytes });
  const heads = createAuditHeads({ directory: join(directory, 'journals'), secrets });
  const stores = await openEmbeddedStore({
    directory: join(directory, 'store'),
    audit: { key: secrets.current('audit').key, heads },
    authenticator: authenticatorWith(secrets, 'row', 'production'),
  });
  const at = Math.floor(Date.now() / 1000);
  try {
    for (let partner = 0; partner < PARTNERS; partner += 1) {
      const partnerId = `ptr_prepared-${partner}`;
      await Promise.all(
        Array.from({ length: REVIEW_BOUNDS.perProof }, async (_, number) => {
          const reviewId = `rev_${proofId}-${partner}-${number}`;
          const bindings = { creatorId: `c${number}`, accountId: 'a', submissionId: 's', trackId: 't' };
          const review = {
            reviewId,
            partnerId,
            proofId,
            bindings,
            status: 'open' as const,
            createdAt: at,
            updatedAt: at,
            expiresAt: at + REVIEW_LIFE_SECONDS,
            evidenceRequests: [],
          };
          const { outcome } = await stores.createReview(review, review.createdAt, {
            partnerId,
            action: 'review_created',
            at,
            actor: 'operator',
            subjects: [reviewId, proofId],
          });
          assert.equal(outcome, 'created');
        }),
      );
    }
  } finally {
    await stores.close();
    await heads.close();
  }
}

async function record(directory: string, proofId: string, partnerId: string): Promise<void> {
  const { secrets } = await loadSecrets({ directory, environment: 'production', random: randomBytes });
  const journal = await openErasureJournal({ directory: join(directory, 'journals'), secrets });
  await journal.record({ proofId, partnerId, erasedAt: Math.floor(Date.now() / 1000) });
  await journal.close();
}

async function erase(service: ConfinedService, apiKey: string, proofId: string): Promise<number> {
  const response = await fetch(`${service.partnerUrl}/v1/proofs/${proofId}`, {
    method: 'DELETE',
    headers: { 'x-api-key': apiKey },
  });
  await response.arrayBuffer();
  return response.status;
}

async function statusOf(service: ConfinedService, proofId: string): Promise<ErasureStatus> {
  return (await service.operator('GET', `/proofs/${proofId}/erasure`)) as ErasureStatus;
}

async function settled(condition: () => Promise<boolean>, what: string): Promise<void> {
  for (const deadline = Date.now() + 120_000; !(await condition()); await delay(50))
    assert.ok(Date.now() < deadline, `never: ${what}`);
}
