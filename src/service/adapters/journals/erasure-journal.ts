import { join } from 'node:path';
import type { ErasureJournal } from '../../ports/journals.js';
import type { Secrets } from '../../ports/secrets.js';
import { SignedLog } from './signed-log.js';

export const ERASURE_JOURNAL_FILE = 'erasures.log';

type Erasure = Parameters<ErasureJournal['record']>[0];

/**
 * Opens the file of erasures, which is apart from the store. It grows by two lines an erasure, the call's and
 * its consumer's, and is never compacted, because a backup of any age may come back.
 * @throws JournalOpenError
 */
export async function openErasureJournal({
  directory,
  secrets,
}: {
  readonly directory: string;
  readonly secrets: Secrets;
}): Promise<ErasureJournal> {
  const log = await SignedLog.open({
    path: join(directory, ERASURE_JOURNAL_FILE),
    purpose: 'erasure journal',
    secrets,
  });
  return {
    record: ({ proofId, partnerId, erasedAt }) => log.append([proofId, partnerId, erasedAt]),
    async *read() {
      for await (const entry of log.read()) {
        const [proofId, partnerId, erasedAt] = entry as [string, string, number];
        yield { proofId, partnerId, erasedAt } satisfies Erasure;
      }
    },
    close: () => log.close(),
  };
}
