import { setTimeout as delay } from 'node:timers/promises';
import { eachOf } from '../../../src/core/async/each-of.js';
import { systemClock } from '../../../src/service/adapters/system/system.js';
import { startEvents } from '../../../src/service/compose/infrastructure.js';
import { listen } from '../../../src/service/consumers/listen.js';
import { resolveReview } from '../../../src/service/domain/review.js';
import { audit, issuingReplay, partner, partnerKey, rotation } from '../../store-contract/samples.js';
import { withInfrastructure } from './opened.js';
import {
  chargeOf,
  fileOf,
  has,
  PARTNERS,
  partnerOf,
  proofIdOf,
  proofOf,
  reviewIdOf,
  reviewOf,
  traceOf,
} from './rows.js';

const LANES = 64;
const DAY_SECONDS = 24 * 3600;
const POLL_MS = 20;

/**
 * Fills the store of one machine through its ports, past HTTP, signatures and audio. Resolves when the consumers have
 * handled every event.
 * @param now unix seconds of all rows
 */
export async function fillStore(
  settings: Readonly<Record<string, string>>,
  proofs: number,
  now: number,
): Promise<void> {
  await withInfrastructure(settings, async (infrastructure, disposer) => {
    const { stores, assets, bus, journal, telemetry } = infrastructure;
    listen(bus, {
      stores: infrastructure.encrypted,
      assets,
      journal,
      clock: systemClock,
      observer: telemetry.observer,
    });
    await startEvents(infrastructure, disposer);
    for (const partnerId of PARTNERS) {
      await stores.createPartner(partner(partnerId), audit(partnerId, 'partner_created', partnerId));
      const [first, second, third] = ['a', 'b', 'c'].map((name) =>
        partnerKey(`key_${partnerId}-${name}`, partnerId, { createdAt: now }),
      );
      for (const key of [first!, third!])
        await stores.createKey(key, audit(partnerId, 'key_created', key.keyId));
      await stores.rotateKey(
        rotation(first!, second!.keyId, 1),
        second!,
        audit(partnerId, 'key_rotated', first!.keyId),
      );
      await stores.touchKeys([{ partnerId, keyId: second!.keyId, at: now }]);
    }
    await eachOf(Array(proofs).keys(), LANES, async (i) => {
      const [proofId, partnerId] = [proofIdOf(i), partnerOf(i)];
      await stores.reserveProof(proofId, partnerId, now);
      if (has(i, 'file')) {
        const staged = await assets.stage(proofId);
        await staged.append(fileOf(i));
        await staged.publish();
      }
      await stores.issueProof(
        proofOf(i, now),
        audit(partnerId, 'proof_issued', proofId),
        has(i, 'replay') ? issuingReplay(`replay-${i}`, proofId, now + DAY_SECONDS) : undefined,
        has(i, 'evidence') ? [{ part: 'trace', body: traceOf(i) }] : [],
      );
      if (has(i, 'charge')) await stores.charge(chargeOf(i, now));
      if (has(i, 'review'))
        await stores.createReview(reviewOf(i, now), now, audit(partnerId, 'review_created', reviewIdOf(i)));
      if (has(i, 'resolved'))
        await stores.changeReview(
          partnerId,
          reviewIdOf(i),
          now,
          (review) => resolveReview(review, 'accepted', now),
          audit(partnerId, 'review_resolved', reviewIdOf(i)),
        );
      if (has(i, 'erased'))
        await stores.eraseProof(proofId, partnerId, now, audit(partnerId, 'proof_erased', proofId));
    });
    while (stores.countWaiting() > 0 || [...bus.lag().values()].some((waiting) => waiting > 0))
      await delay(POLL_MS);
  });
}
