import { strict as assert } from 'node:assert';
import { wav } from '../../fixtures/wav.js';
import type { Attack } from './attack.js';
import { HealthPulse } from './health-pulse.js';
import { uploadOnce, verifyOnce } from './partner-calls.js';

/** No attack. Shows that the confined service works, so that the other results mean something. */
export const attack: Attack = {
  id: 'none',
  title: 'an undisturbed service serves in a container of this size',
  async run({ service, say }) {
    const { partnerId, apiKey } = await service.partner('standard');
    await service.issue(partnerId, wav(100_000));
    const pulse = new HealthPulse(service.partnerUrl);
    for (let uploads = 0; uploads < 5; uploads += 1) {
      const { status, uploadId } = await uploadOnce(service, apiKey, wav(1_000_000));
      assert.equal(status, 201);
      assert.equal((await verifyOnce(service, apiKey, uploadId!)).verdict, 'unreadable');
    }
    const { p99, unanswered } = await pulse.stop();
    assert.equal(unanswered, 0);
    say(`health p99 ${p99.toFixed(1)} ms, ${(await service.rssMiB()).toFixed(0)} MiB`);
  },
};
