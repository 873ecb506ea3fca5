import { randomBytes } from 'node:crypto';
import { createAuditHeads } from '../../src/adapters/journals/audit-heads.js';
import { openErasureJournal } from '../../src/adapters/journals/erasure-journal.js';
import type { Clock } from '../../src/ports/clock.js';
import type { Secret, SecretPurpose, Secrets } from '../../src/ports/secrets.js';
import { SECRET_PURPOSES } from '../../src/ports/secrets.js';

/** A clock that stands until it is moved. */
export function stillClock(now = 1_700_000_000_000): Clock & { advanceMs(ms: number): void } {
  return {
    now: () => now,
    advanceMs: (ms) => void (now += ms),
  };
}

export interface TestSecrets extends Secrets {
  /** The same with a new current secret of every purpose; the former ones still verify. */
  replaced(): TestSecrets;
}

export function secretsOf(former: ReadonlyMap<SecretPurpose, readonly Secret[]> = new Map()): TestSecrets {
  const known = new Map(SECRET_PURPOSES.map((purpose) => [purpose, [{ id: randomBytes(4).toString('hex'), key: randomBytes(32) }, ...(former.get(purpose) ?? [])]]));
  return {
    current: (purpose) => known.get(purpose)![0]!,
    find: (purpose, id) => known.get(purpose)!.find((secret) => secret.id === id),
    all: (purpose) => known.get(purpose)!,
    replaced: () => secretsOf(known),
  };
}

export async function openLogs(directory: string, secrets: Secrets, surplus?: number) {
  const heads = createAuditHeads({ directory, secrets, ...(surplus === undefined ? {} : { surplus }) });
  await heads.get('ptr_0');
  const journal = await openErasureJournal({ directory, secrets });
  return {
    heads,
    journal,
    async close() {
      await heads.close();
      await journal.close();
    },
  };
}
