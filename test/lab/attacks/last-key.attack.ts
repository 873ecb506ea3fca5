import { strict as assert } from 'node:assert';
import type { Attack } from './attack.js';

const PARTNERS = 60;

/**
 * Lets both keys of a partner revoke a key at the same moment. For half of the partners each key revokes itself, for
 * the others it revokes the other key. Without an active key the partner would need the operator.
 */
export const attack: Attack = {
  id: 'last-key',
  title: 'keys that revoke themselves or each other at once leave their partner an active key',

  async run({ service, say }) {
    let without = 0;
    for (let i = 0; i < PARTNERS; i += 1) {
      const { partnerId, ...first } = await service.partner('standard');
      const second = (await service.operator('POST', `/partners/${partnerId}/keys`, {
        name: 'key',
      })) as typeof first;
      const targets = i % 2 === 0 ? [first, second] : [second, first];
      await Promise.all(
        [first, second].map(({ apiKey }, at) =>
          fetch(`${service.partnerUrl}/v1/partner/keys/${targets[at]!.keyId}`, {
            method: 'DELETE',
            headers: { 'x-api-key': apiKey },
          }).then((response) => response.text()),
        ),
      );
      const { keys } = (await service.operator('GET', `/partners/${partnerId}/keys`)) as {
        readonly keys: readonly { readonly status: string }[];
      };
      if (keys.every(({ status }) => status !== 'active')) without += 1;
    }
    say(`${without} of ${PARTNERS} partners have no active key`);
    assert.equal(without, 0);
  },
};
