import { createHash } from 'node:crypto';
import { DomainError } from '../../domain/errors.js';
import type { Partner } from '../../domain/partner.js';
import type { PartnerStore } from '../../ports/stores.js';
import type { Intent, Intents } from './intents.js';
import { numberIn, type Row, type Session, textIn } from './session.js';

const SHARDS = 16;

const GET = 'SELECT partner_id, name, plan, created_at, create_op FROM partner WHERE shard = ? AND partner_id = ?';
const OF_SHARD = 'SELECT partner_id, name, plan, created_at FROM partner WHERE shard = ?';
const INSERT = 'INSERT INTO partner (shard, partner_id, name, plan, created_at, create_op) VALUES (?, ?, ?, ?, ?, ?) IF NOT EXISTS';

export function partnerStore(session: Session, intents: Intents): PartnerStore {
  intents.onAbandoned('partner_created', async (intent: Intent<{ readonly partnerId: string }>) => {
    const { partnerId } = intent.target;
    const row = await session.settled().first(GET, [shardOf(partnerId), partnerId]);
    if (row !== undefined && textIn(row, 'create_op') === intent.op) await intents.finish(intent);
  });

  return {
    async createPartner(partner, audit) {
      const { partnerId, name, plan, createdAt } = partner;
      const intent = await intents.begin('partner_created', { partnerId }, audit);
      intents.assertTimely(intent);
      const { applied, current } = await session.decide({ query: INSERT, params: [shardOf(partnerId), partnerId, name, plan, createdAt, intent.op] });
      if (applied || (current !== undefined && textIn(current, 'create_op') === intent.op)) return intents.finish(intent);
      intents.drop(intent);
      if (current === undefined || numberIn(current, 'created_at') !== createdAt || textIn(current, 'name') !== name) throw new DomainError('conflict', 'This id is taken.');
    },

    async getPartner(partnerId) {
      const row = await session.first(GET, [shardOf(partnerId), partnerId]);
      return row === undefined ? undefined : partnerOf(row);
    },

    async listPartners() {
      const shards = await Promise.all(Array.from({ length: SHARDS }, (_, shard) => session.rows(OF_SHARD, [shard])));
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

function partnerOf(row: Row): Partner {
  return { partnerId: textIn(row, 'partner_id')!, name: textIn(row, 'name')!, plan: textIn(row, 'plan')!, createdAt: numberIn(row, 'created_at')! };
}
