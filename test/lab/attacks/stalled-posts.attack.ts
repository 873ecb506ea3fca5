import type { Attack } from './attack.js';
import { beganForm, openSlot, renew } from './post.js';
import { assertServed } from './victim.js';

const PARTNERS = 8;
const POSTS = 64;

export const attack: Attack = {
  id: 'stalled-posts',
  title:
    'posts that stop after four bytes, as many as the plans of eight volume partners and the bound of an address allow, keep no place',
  async run({ service, say }) {
    const { apiKey } = await service.partner('standard');
    const end = new AbortController();
    const began = performance.now();
    const posts: Promise<number>[] = [];
    for (let partner = 0; partner < PARTNERS; partner += 1) {
      const { apiKey: attacker } = await service.partner('volume');
      const slots = await Promise.all(Array.from({ length: POSTS }, () => openSlot(service, attacker)));
      for (const slot of slots)
        posts.push(
          renew(
            service.port,
            end.signal,
            async (socket) => void socket.write(Buffer.concat([beganForm(slot), Buffer.from('RIFF')])),
            `127.0.0.${2 + partner}`,
          ),
        );
    }
    try {
      say(await assertServed(service, apiKey));
    } finally {
      say(
        `${await service.metric('takemark_engine_uploads_in_flight')} in flight, ${await service.metric('takemark_engine_slabs_in_use')} slabs in use, displaced ${await service.metric('takemark_displaced_total')}`,
      );
      end.abort();
      const bytes = (await Promise.all(posts)).reduce((sum, sent) => sum + sent, 0);
      say(`the attackers sent ${Math.round(bytes / (performance.now() - began))} KB/s`);
    }
  },
};
