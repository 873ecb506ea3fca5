import t from 'tap';
import { openEmbeddedStore } from '../../src/adapters/embedded/store.js';
import { type OpenedStore, storeContract } from '../store-contract/suite.js';

storeContract(t, 'the embedded store', () => openAt(t.testdir()));

async function openAt(directory: string): Promise<OpenedStore> {
  const stores = await openEmbeddedStore({ directory });
  return {
    stores,
    close: () => stores.close(),
    reopen: async () => {
      await stores.close();
      return openAt(directory);
    },
  };
}
