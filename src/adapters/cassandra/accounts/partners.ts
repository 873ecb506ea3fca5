import { createHash } from 'node:crypto';
import { DomainError } from '../../../domain/errors.js';
import type { Partner } from '../../../domain/partner.js';
import type { PartnerStore } from '../../../ports/stores.js';
import type { Intents } from '../commit/intents.js';
import type { RowCodes } from '../driver/row-codes.js';
import { numberIn, type Row, type Session, textIn } from '../driver/session.js';

export const SHARDS = 16;

const GET =
  'SELECT partner_id, name, plan, created_at, create_op, mac FROM partner WHERE shard = ? AND partner_id = ?';
const LIST = 'SELECT partner_id, name, plan, created_at, mac FROM partner WHERE shard = ?';
const INSERT =
  'INSERT INTO partner (shard, partner_id, name, plan, created_at, create_op, mac) VALUES (?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS';

export function partnerStore(session: Session, intents: Intents, codes: RowCodes): PartnerStore {
  const serialReads = session.serialReads();
  const creating = intents.operations<{ readonly partnerId: string }>({
    kind: 'partner_created',
    isDecided: async ({ op, target: { partnerId } }) => {
      const row = await serialReads.first(GET, [shardOf(partnerId), partnerId]);
      return row !== undefined && textIn(row, 'create_op') === op;
    },
  });
  const partnerOf = (row: Row): Partner => {
    const partner = partnerOfColumns(row);
    codes.check('partner', partner.partnerId, partnerValues(partner), textIn(row, 'mac'));
    return partner;
  };

  return {
    async createPartner(partner, audit) {
      const { partnerId, name, plan, createdAt } = partner;
      const code = codes.make('partner', partnerId, partnerValues(partner));
      const { applied, current } = await creating.commit({ partnerId }, audit, (transact, { op }) =>
        transact({
          query: INSERT,
          params: [shardOf(partnerId), partnerId, name, plan, createdAt, op, code],
          operation: { column: 'create_op', id: op },
        }),
      );
      if (applied) return;
      // Ids are drawn once, so an equal creation time is the same call again.
      if (
        current === undefined ||
        numberIn(current, 'created_at') !== createdAt ||
        textIn(current, 'name') !== name
      )
        throw new DomainError('conflict', 'This id is taken.');
    },

    async getPartner(partnerId) {
      const row = await session.first(GET, [shardOf(partnerId), partnerId]);
      return row === undefined ? undefined : partnerOf(row);
    },

    async listPartners() {
      const shards = await Promise.all(
        Array.from({ length: SHARDS }, (_, shard) => session.rows(LIST, [shard])),
      );
      return shards
        .flat()
        .map(partnerOf)
        .sort((a, b) => (a.partnerId < b.partnerId ? -1 : 1));
    },
  };
}

function shardOf(partnerId: string): number {
  return createHash('sha256').update(partnerId).digest()[0]! % SHARDS;
}

export function partnerOfColumns(row: Row): Partner {
  return {
    partnerId: textIn(row, 'partner_id')!,
    name: textIn(row, 'name')!,
    plan: textIn(row, 'plan')!,
    createdAt: numberIn(row, 'created_at')!,
  };
}

/** Members of a partner that its code covers. */
export function partnerValues({ name, plan, createdAt }: Partner): readonly (string | number)[] {
  return [name, plan, createdAt];
}
