import { randomBytes } from 'node:crypto';
import { formatIdentifier } from '../../../core/domain/identifiers.js';
import type { Clock, Ids } from '../../ports/system.js';

export const systemClock: Clock = { now: () => Date.now() };

/** The number of random bytes of an identifier. */
const ID_BYTES = 10;
/** The number of identifiers per draw of randomness. A draw costs more than all else of an identifier. */
const IDS_AT_ONCE = 128;

export function createIds(clock: Clock): Ids {
  let drawn = Buffer.alloc(0);
  let used = 0;
  return {
    next: (kind) => {
      if (used === drawn.length) {
        drawn = randomBytes(ID_BYTES * IDS_AT_ONCE);
        used = 0;
      }
      used += ID_BYTES;
      return formatIdentifier(kind, clock.now(), drawn.subarray(used - ID_BYTES, used));
    },
    random: (length) => randomBytes(length),
  };
}
