import { createHash } from 'node:crypto';
import { defined } from '../../../domain/defined.js';
import { DomainError } from '../../../domain/errors.js';
import type { Partner } from '../../../domain/partner.js';
import type { PartnerStore } from '../../../ports/stores.js';
import type { Intents } from '../commit/intents.js';
import type { RowCodes } from '../driver/row-codes.js';
import { numberIn, type Row, type Session, textIn } from '../driver/session.js';

export const SHARDS = 16;

const GET =
  'SELECT partner_id, name, plan, created_at, source_detail, source_detail_at, source_detail_op, create_op, mac FROM partner WHERE shard = ? AND partner_id = ?';
const LIST =
  'SELECT partner_id, name, plan, created_at, source_detail, source_detail_at, mac FROM partner WHERE shard = ?';
const SET_SOURCE_DETAIL =
  'UPDATE partner SET source_detail = ?, source_detail_at = ?, source_detail_op = ?, mac = ? WHERE shard = ? AND partner_id = ? IF source_detail_op = ? AND mac = ?';

/** Latest operations on a partner's approval whose ids stay in its row, so that the sweep finds them decided. */
const REMEMBERED = 16;
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
  const opsOf = async (reader: Session, partnerId: string): Promise<readonly string[]> => {
    const row = await reader.first(GET, [shardOf(partnerId), partnerId]);
    return (row && textIn(row, 'source_detail_op'))?.split(' ') ?? [];
  };
  const approving = intents.operations<{ readonly partnerId: string }>({
    kind: 'source_detail_changed',
    isDecided: async ({ op, target: { partnerId } }) => (await opsOf(serialReads, partnerId)).includes(op),
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

    async setSourceDetail(partnerId, approval, audit) {
      for (;;) {
        const row = await session.first(GET, [shardOf(partnerId), partnerId]);
        if (row === undefined) return 'not_found';
        const { sourceDetail, ...others } = partnerOf(row);
        if (sourceDetail?.consentVersion === approval?.consentVersion) return 'unchanged';
        const former = textIn(row, 'source_detail_op');
        const code = codes.make(
          'partner',
          partnerId,
          partnerValues(defined({ ...others, sourceDetail: approval })),
        );
        const { applied } = await approving.commit({ partnerId }, audit, async (transact, { op }) => {
          const ops = [op, ...(former?.split(' ') ?? [])].slice(0, REMEMBERED).join(' ');
          const outcome = await transact({
            query: SET_SOURCE_DETAIL,
            params: [
              // Undefined would leave the column as it is.
              approval?.consentVersion ?? null,
              approval?.approvedAt ?? null,
              ops,
              code,
              shardOf(partnerId),
              partnerId,
              former ?? null,
              textIn(row, 'mac') ?? null,
            ],
          });
          // A refused statement may be the repetition of one that was carried out.
          return { applied: outcome.applied || (await opsOf(session, partnerId)).includes(op) };
        });
        if (applied) return 'changed';
        // Another process changed the partner meanwhile.
      }
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
  const consentVersion = textIn(row, 'source_detail');
  return defined({
    partnerId: textIn(row, 'partner_id')!,
    name: textIn(row, 'name')!,
    plan: textIn(row, 'plan')!,
    createdAt: numberIn(row, 'created_at')!,
    sourceDetail:
      consentVersion === undefined
        ? undefined
        : { consentVersion, approvedAt: numberIn(row, 'source_detail_at')! },
  });
}

/** Members of a partner that its code covers. */
export function partnerValues({
  name,
  plan,
  createdAt,
  sourceDetail,
}: Partner): readonly (string | number)[] {
  const values = [name, plan, createdAt];
  // Rows from before approvals have the shorter list.
  return sourceDetail === undefined
    ? values
    : [...values, sourceDetail.consentVersion, sourceDetail.approvedAt];
}
