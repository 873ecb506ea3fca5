import { randomBytes } from 'node:crypto';
import { formatIdentifier } from '../../domain/identifiers.js';
import type { Clock, Ids } from '../../ports/system.js';

export const systemClock: Clock = { now: () => Date.now() };

export function createIds(clock: Clock): Ids {
  return {
    next: (kind) => formatIdentifier(kind, clock.now(), randomBytes(10)),
    random: (length) => randomBytes(length),
  };
}
