import { strict as assert } from 'node:assert';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { wav } from '../../fixtures/wav.js';
import type { Attack } from './attack.js';
import type { ConfinedService } from './confined-service.js';

const CALLS = 2000;
const AT_ONCE = 8;
/**
 * The largest growth of the store for each refused call, in bytes. Jobs and times of use write a few bytes
 * too.
 */
const MOST_BYTES = 50;

/** Sends creations that are refused as fast as the plan allows, each under its own Idempotency-Key. */
export const attack: Attack = {
  id: 'refused-reviews',
  title: 'creations of reviews that are refused leave nothing in the store',

  async run({ service, say }) {
    const { partnerId, apiKey } = await service.partner('volume');
    const proofId = await service.issue(partnerId, wav(20_000, {}, 1));
    const create = async (idempotencyKey: string): Promise<number> => {
      const response = await fetch(`${service.partnerUrl}/v1/partner/reviews`, {
        method: 'POST',
        headers: {
          'x-api-key': apiKey,
          'content-type': 'application/json',
          'idempotency-key': idempotencyKey,
        },
        body: JSON.stringify({
          proofId,
          bindings: { creatorId: 'c', accountId: 'a', submissionId: 's', trackId: 't' },
        }),
      });
      await response.text();
      return response.status;
    };
    assert.equal(await create('the-key-of-the-review'), 201);
    const before = await bytesOfStore(service);
    const statuses: number[] = [];
    await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, client) => {
        for (let i = 0; i < CALLS / AT_ONCE; i += 1)
          statuses.push(await create(`refused-${client}-${i}`.padEnd(16, '-')));
      }),
    );
    const growth = ((await bytesOfStore(service)) - before) / CALLS;
    const refused = statuses.filter((status) => status === 409).length;
    say(`${refused} of ${CALLS} calls were refused, ${growth.toFixed(0)} bytes a call`);
    assert.equal(refused, CALLS);
    assert.ok(growth <= MOST_BYTES, `${growth} bytes a call`);
  },
};

async function bytesOfStore({ dataDirectory }: ConfinedService): Promise<number> {
  const directory = join(dataDirectory, 'store');
  const sizes = (await readdir(directory)).map(async (name) => (await stat(join(directory, name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
