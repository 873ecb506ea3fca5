import { eachOf } from '../../../../core/async/each-of.js';
import { monthOf } from '../../../domain/usage-window.js';
import type { InstallationRow, InstallationState } from '../../../ports/journals.js';
import { numberIn, type Session, storeUnavailable } from '../driver/session.js';
import { type Epochs, lastEpoch } from './epochs.js';

const GET = "SELECT epoch, beat FROM installation WHERE name = 'state'";
const SET = "UPDATE installation SET epoch = ?, beat = ? WHERE name = 'state' IF beat = ?";
const GET_MONTH = 'SELECT used, epochs FROM charge WHERE partner_id = ? AND item = ?';
const BEGIN_EPOCH =
  'UPDATE charge SET used = ?, epochs = ? WHERE partner_id = ? AND item = ? IF used = ? AND epochs = ?';

/** The attempts that may be lost to quicker processes before the caller gets 503. */
const ATTEMPTS = 100;
const PARTNERS_AT_ONCE = 16;
const LONGEST_MONTH_SECONDS = 31 * 86_400;

/**
 * Returns access to the installation's state in this keyspace. A restored backup brings an older state, which a
 * comparison with the marks in the bucket detects.
 */
export function installationRow(
  session: Session,
  partnerIds: () => Promise<readonly string[]>,
): InstallationRow {
  const serialReads = session.serialReads();

  const read = async (): Promise<InstallationState> => {
    const row = await serialReads.first(GET);
    return { epoch: (row && numberIn(row, 'epoch')) ?? 0, beat: (row && numberIn(row, 'beat')) ?? 0 };
  };

  const set = async (state: InstallationState, former: InstallationState): Promise<boolean> => {
    const params = [state.epoch, state.beat, former.beat === 0 ? null : former.beat];
    return (await session.lightweightTransaction({ query: SET, params })).applied;
  };

  const beginEpochOf = async (partnerId: string, month: string, epoch: number): Promise<void> => {
    const item = `month/${month}`;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const row = await serialReads.first(GET_MONTH, [partnerId, item]);
      const used = row && numberIn(row, 'used');
      const epochs = (row?.['epochs'] as Epochs | null | undefined) ?? undefined;
      if (lastEpoch(epochs) >= epoch) return;
      const { applied } = await session.lightweightTransaction({
        query: BEGIN_EPOCH,
        params: [
          used ?? 0,
          [...(epochs ?? []), epoch, used ?? 0],
          partnerId,
          item,
          used ?? null,
          epochs ?? null,
        ],
      });
      if (applied) return;
    }
    throw storeUnavailable();
  };

  return {
    read,

    async beat() {
      const former = await read();
      const state = { ...former, beat: former.beat + 1 };
      return (await set(state, former)) ? state : undefined;
    },

    async accept({ epoch, beat }) {
      for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
        const former = await read();
        if (former.epoch >= epoch && former.beat >= beat) return;
        const state = { epoch: Math.max(epoch, former.epoch), beat: Math.max(beat, former.beat) + 1 };
        if (await set(state, former)) return;
      }
      throw storeUnavailable();
    },

    async beginEpoch(epoch, at) {
      // A call of the last second before a month's end may be charged in the next, and a restore may take days.
      const start = Date.parse(`${monthOf(at)}-01T00:00:00Z`) / 1000;
      const months = [start - 1, start, start + LONGEST_MONTH_SECONDS].map(monthOf);
      await eachOf(await partnerIds(), PARTNERS_AT_ONCE, async (partnerId) => {
        for (const month of months) await beginEpochOf(partnerId, month, epoch);
      });
    },
  };
}
