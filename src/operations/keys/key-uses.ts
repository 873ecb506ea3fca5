import type { KeyStore } from '../../ports/stores.js';

/** Keys whose use is remembered between two batches; the least recently noted go first. */
const HELD = 100_000;

/**
 * When keys were last used, gathered here and written in batches: `lastUsedAt` is exact to within a minute.
 */
export interface KeyUses {
  /** Never fails and never waits. */
  note(partnerId: string, keyId: string, at: number): void;
  /** Writes what has come in since the last time. What fails stays for the next time. */
  flush(): Promise<void>;
}

export function createKeyUses(stores: Pick<KeyStore, 'touchKeys'>): KeyUses {
  let held = new Map<string, { readonly partnerId: string; readonly keyId: string; readonly at: number }>();
  return {
    note(partnerId, keyId, at) {
      if (held.get(keyId)?.at === at) return;
      if (held.size >= HELD && !held.has(keyId)) held.delete(held.keys().next().value!);
      held.set(keyId, { partnerId, keyId, at });
    },
    async flush() {
      if (held.size === 0) return;
      const batch = held;
      held = new Map();
      try {
        await stores.touchKeys([...batch.values()]);
      } catch (error) {
        for (const [keyId, use] of batch) if (!held.has(keyId) && held.size < HELD) held.set(keyId, use);
        throw error;
      }
    },
  };
}
