import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Authenticator } from '../../src/core/codec/authenticator.js';
import { type EmbeddedStore, openEmbeddedStore } from '../../src/service/adapters/embedded/store.js';
import { createAuditHeads } from '../../src/service/adapters/journals/audit-heads.js';
import { loadSecrets } from '../../src/service/adapters/signing/secrets.js';

export interface LeftStore {
  readonly stores: EmbeddedStore;
  close(): Promise<void>;
}

/** Opens the store that a service has left in its data directory, with the service's own secrets. */
export async function openLeftStore(dataDir: string): Promise<LeftStore> {
  const environment = 'production';
  const { secrets } = await loadSecrets({ directory: dataDir, environment, random: randomBytes });
  const heads = createAuditHeads({ directory: join(dataDir, 'journals'), secrets });
  const stores = await openEmbeddedStore({
    directory: join(dataDir, 'store'),
    audit: { key: secrets.current('audit').key, heads },
    authenticator: new Authenticator(
      { current: () => secrets.current('row'), find: (id) => secrets.find('row', id) },
      environment,
    ),
  });
  return {
    stores,
    async close() {
      await stores.close();
      await heads.close();
    },
  };
}
