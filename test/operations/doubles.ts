import { randomBytes } from 'node:crypto';
import { SECRET_PURPOSES, type SecretPurpose } from '../../src/core/domain/secret-purposes.js';
import type { Secret, Secrets } from '../../src/service/ports/secrets.js';
import type { Clock } from '../../src/service/ports/system.js';

/** Returns a clock that advances only when it is moved. */
export function stillClock(start = 1_700_000_000_000): Clock & { advanceMs(ms: number): void } {
  let now = start;
  return {
    now: () => now,
    advanceMs: (ms) => void (now += ms),
  };
}

export interface TestSecrets extends Secrets {
  /** Returns the same secrets with a new current one of every purpose. The former ones still verify. */
  replaced(): TestSecrets;
}

export function secretsOf(former: ReadonlyMap<SecretPurpose, readonly Secret[]> = new Map()): TestSecrets {
  const known = new Map(
    SECRET_PURPOSES.map((purpose) => [
      purpose,
      [{ id: randomBytes(4).toString('hex'), key: randomBytes(32) }, ...(former.get(purpose) ?? [])],
    ]),
  );
  return {
    current: (purpose) => known.get(purpose)![0]!,
    find: (purpose, id) => known.get(purpose)!.find((secret) => secret.id === id),
    all: (purpose) => known.get(purpose)!,
    replaced: () => secretsOf(known),
  };
}
