import { setTimeout as delay } from 'node:timers/promises';
import type { Attack } from './attack.js';
import { beganForm, openSlot, renew } from './post.js';
import { assertServed } from './victim.js';

const POSTS = 64;
const BEAT_MS = 200;
/** A piece that makes 17 KB/s for each post. */
const PIECE = Buffer.alloc(3400);

export const attack: Attack = {
  id: 'slow-posts',
  title: 'slow posts of one volume partner, as many as there are places, take no share of another',
  settings: { TAKEMARK_MAX_UPLOADS: String(POSTS) },
  async run({ service, say }) {
    const { apiKey } = await service.partner('standard');
    const { apiKey: attacker } = await service.partner('volume');
    const slots = await Promise.all(Array.from({ length: POSTS }, () => openSlot(service, attacker)));
    const end = new AbortController();
    const began = performance.now();
    const posts = slots.map((slot) =>
      renew(service.port, end.signal, async (socket) => {
        socket.write(beganForm(slot));
        while (!socket.destroyed) {
          socket.write(PIECE);
          await delay(BEAT_MS, undefined, { ref: false });
        }
      }),
    );
    try {
      say(await assertServed(service, apiKey));
    } finally {
      say(
        `${await service.metric('takemark_engine_uploads_in_flight')} in flight, displaced ${await service.metric('takemark_displaced_total')}`,
      );
      end.abort();
      const bytes = (await Promise.all(posts)).reduce((sum, sent) => sum + sent, 0);
      say(`the attacker sent ${Math.round(bytes / (performance.now() - began))} KB/s`);
    }
  },
};
