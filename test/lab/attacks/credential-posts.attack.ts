import { strict as assert } from 'node:assert';
import { setTimeout as delay } from 'node:timers/promises';
import type { Attack } from './attack.js';
import { beganForm, openSlot, renew } from './post.js';
import { assertServed } from './victim.js';

const PARTNERS = 8;
const POSTS = 64;
const CREDENTIAL_BYTES = 1_048_000;
const BEAT_MS = 1000;
/** A piece that exceeds the lowest rate of an upload, 4 KiB a second. */
const PIECE = Buffer.alloc(4400);
/** The time for which all posts continue before the other partner begins, in milliseconds. */
const HELD_MS = 20_000;

export const attack: Attack = {
  id: 'credential-posts',
  title:
    'posts that trickle on after a credential of 1 MiB, as many as the plans of eight volume partners allow, hold little memory',
  limitSeconds: 300,
  async run({ service, say }) {
    const { apiKey } = await service.partner('standard');
    const end = new AbortController();
    const posts: Promise<number>[] = [];
    const start = beganFile();
    for (let partner = 0; partner < PARTNERS; partner += 1) {
      const { apiKey: attacker } = await service.partner('volume');
      const slots = await Promise.all(Array.from({ length: POSTS }, () => openSlot(service, attacker)));
      for (const slot of slots)
        posts.push(
          renew(
            service.port,
            end.signal,
            async (socket) => {
              socket.write(beganForm(slot));
              socket.write(start);
              while (!socket.destroyed) {
                socket.write(PIECE);
                await delay(BEAT_MS, undefined, { ref: false });
              }
            },
            `127.0.0.${2 + partner}`,
          ),
        );
    }
    try {
      await delay(HELD_MS);
      assert.ok(service.running(), 'the process lives');
      say(await assertServed(service, apiKey));
      const inFlight = await service.metric('takemark_engine_uploads_in_flight');
      assert.ok(inFlight > 0, 'the posts are under way');
      say(`${inFlight} in flight, ${(await service.rssMiB()).toFixed(0)} MiB resident`);
    } finally {
      end.abort();
      await Promise.all(posts);
    }
  },
};

/** Returns the start of a file whose first chunk is a credential of 1 MiB, up to the first audio. */
function beganFile(): Buffer {
  const chunk = (id: string, size: number): Buffer => {
    const head = Buffer.alloc(8);
    head.write(id, 'latin1');
    head.writeUInt32LE(size, 4);
    return head;
  };
  const format = Buffer.alloc(16);
  format.writeUInt16LE(1, 0);
  format.writeUInt16LE(2, 2);
  format.writeUInt32LE(48_000, 4);
  format.writeUInt32LE(192_000, 8);
  format.writeUInt16LE(4, 12);
  format.writeUInt16LE(16, 14);
  return Buffer.concat([
    chunk('RIFF', 59_000_000),
    Buffer.from('WAVE'),
    chunk('fmt ', format.length),
    format,
    chunk('C2PA', CREDENTIAL_BYTES),
    Buffer.alloc(CREDENTIAL_BYTES, 1),
    chunk('data', 57_000_000),
  ]);
}
