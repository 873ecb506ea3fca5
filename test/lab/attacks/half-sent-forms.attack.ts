import type { Attack } from './attack.js';
import { halfForm, renew } from './post.js';
import { assertServed } from './victim.js';

const FORMS = 512;
const PATH = '/uploads/upl_01ARZ3NDEKTSV4RRFFQ69G5FAV';

export const attack: Attack = {
  id: 'half-sent-forms',
  title: 'upload forms that never show their signed fields, sent without a key, keep no place',
  limitSeconds: 180,
  async run({ service, say }) {
    const { apiKey } = await service.partner('standard');
    for (const addresses of [1, 16]) {
      const end = new AbortController();
      const began = performance.now();
      const forms = Array.from({ length: FORMS }, (_, i) =>
        renew(
          service.port,
          end.signal,
          async (socket) => void socket.write(halfForm(PATH)),
          `127.0.0.${1 + (i % addresses)}`,
        ),
      );
      try {
        say(`${addresses} addresses: ${await assertServed(service, apiKey)}`);
      } finally {
        end.abort();
        const bytes = (await Promise.all(forms)).reduce((sum, sent) => sum + sent, 0);
        say(
          `the attacker sent ${Math.round(bytes / (performance.now() - began))} KB/s; displaced ${await service.metric('takemark_displaced_total')}`,
        );
      }
    }
  },
};
