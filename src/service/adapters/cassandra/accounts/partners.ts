import { createHash } from 'node:crypto';
import { defined } from '../../../../core/domain/defined.js';
import { DomainError } from '../../../../core/domain/errors.js';
import type { Partner } from '../../../domain/partner.js';
import type { PartnerStore } from '../../../ports/stores.js';
import type { DecidedTable, Decisions } from '../commit/decisions.js';
import type { RowCodes } from '../driver/row-codes.js';
import { numberIn, type Row, type Session, type Statement, textIn } from '../driver/session.js';

const SHARDS = 16;

const COLUMNS = 'partner_id, part, gen, name, plan, created_at, source_detail, source_detail_at, mac';
const GET = `SELECT ${COLUMNS} FROM partner WHERE shard = ? AND partner_id = ? AND part = ''`;
const LIST = `SELECT ${COLUMNS} FROM partner WHERE shard = ?`;
const LIST_IDS = 'SELECT partner_id, part, name FROM partner WHERE shard = ?';
const INSERT =
  "INSERT INTO partner (shard, partner_id, part, gen, name, plan, created_at, source_detail, source_detail_at, mac) VALUES (?, ?, '', 1, ?, ?, ?, ?, ?, ?) IF NOT EXISTS";
// The code in the condition covers all columns. The same code returns when an approval is withdrawn, so the change
// raises `gen` as well: an earlier sending that arrives late is refused.
const SET_SOURCE_DETAIL =
  "UPDATE partner SET source_detail = ?, source_detail_at = ?, mac = ?, gen = ? WHERE shard = ? AND partner_id = ? AND part = '' IF gen = ? AND mac = ?";
const VOID =
  "INSERT INTO partner (shard, partner_id, part, gen) VALUES (?, ?, '', 1) IF NOT EXISTS USING TTL 2592000";
const FENCE = "UPDATE partner SET gen = ? WHERE shard = ? AND partner_id = ? AND part = '' IF gen = ?";

export interface CassandraPartners extends PartnerStore {
  /**
   * Returns the ids of all partners, for work that goes through each of them and needs no more. So a damaged row
   * delays none of the others.
   */
  partnerIds(): Promise<readonly string[]>;
  /** Inserts a partner of another store, without an audit entry. An existing partner stays as it is. */
  insertPartner(partner: Partner): Promise<void>;
}

export function partnerStore(session: Session, decisions: Decisions, codes: RowCodes): CassandraPartners {
  const keyValues = (partnerId: string) => [shardOf(partnerId), partnerId];
  const rowOf = async (reader: Session, partnerId: string): Promise<Row | undefined> =>
    reader.first(GET, keyValues(partnerId));
  const table: DecidedTable = {
    name: 'partner',
    keyColumns: ['shard', 'partner_id'],
    keyValues,
    async fence(partnerId) {
      const row = await rowOf(session.serialReads(), partnerId);
      await session.lightweightTransaction(
        row === undefined
          ? { query: VOID, params: keyValues(partnerId) }
          : { query: FENCE, params: [row['gen'] + 1, ...keyValues(partnerId), row['gen']] },
      );
    },
  };
  const creating = decisions.operations<undefined>({ kind: 'partner_created', table });
  const approving = decisions.operations<undefined>({ kind: 'source_detail_changed', table });
  /** Returns the rows of the partners in all shards. */
  const list = async (query: string): Promise<readonly Row[]> => {
    const shards = await Promise.all(
      Array.from({ length: SHARDS }, (_, shard) => session.rows(query, [shard])),
    );
    return shards.flat().filter((row) => textIn(row, 'part') === '' && !isVoid(row));
  };
  const partnerOf = (row: Row): Partner => {
    const partner = partnerOfColumns(row);
    codes.check('partner', partner.partnerId, partnerValues(partner), textIn(row, 'mac'));
    return partner;
  };

  const insertion = (partner: Partner): Statement => {
    const { partnerId, name, plan, createdAt, sourceDetail } = partner;
    const code = codes.make('partner', partnerId, partnerValues(partner));
    return {
      query: INSERT,
      params: [
        ...keyValues(partnerId),
        name,
        plan,
        createdAt,
        sourceDetail?.consentVersion,
        sourceDetail?.approvedAt,
        code,
      ],
    };
  };

  return {
    async createPartner(partner, audit) {
      const { partnerId, name, createdAt } = partner;
      const { applied, current } = await creating.commit({
        key: partnerId,
        audit,
        data: undefined,
        statements: () => [insertion(partner)],
      });
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
      const row = await rowOf(session, partnerId);
      return row === undefined || isVoid(row) ? undefined : partnerOf(row);
    },

    async setSourceDetail(partnerId, approval, audit) {
      for (;;) {
        const row = await rowOf(session, partnerId);
        if (row === undefined || isVoid(row)) return 'not_found';
        const { sourceDetail, ...others } = partnerOf(row);
        if (sourceDetail?.consentVersion === approval?.consentVersion) return 'unchanged';
        const code = codes.make(
          'partner',
          partnerId,
          partnerValues(defined({ ...others, sourceDetail: approval })),
        );
        const { applied } = await approving.commit({
          key: partnerId,
          audit,
          data: undefined,
          statements: () => [
            {
              query: SET_SOURCE_DETAIL,
              params: [
                // Undefined would leave the column as it is.
                approval?.consentVersion ?? null,
                approval?.approvedAt ?? null,
                code,
                row['gen'] + 1,
                ...keyValues(partnerId),
                row['gen'],
                textIn(row, 'mac') ?? null,
              ],
            },
          ],
        });
        if (applied) return 'changed';
        // Another process changed the partner meanwhile.
      }
    },

    async listPartners() {
      return (await list(LIST)).map(partnerOf).sort((a, b) => (a.partnerId < b.partnerId ? -1 : 1));
    },

    async insertPartner(partner) {
      await session.lightweightTransaction(insertion(partner));
    },

    async partnerIds() {
      return (await list(LIST_IDS)).map((row) => textIn(row, 'partner_id')!).sort();
    },
  };
}

/** Returns whether a row is that of a creation that was given up. */
function isVoid(row: Row): boolean {
  return textIn(row, 'name') === undefined;
}

function shardOf(partnerId: string): number {
  return createHash('sha256').update(partnerId).digest()[0]! % SHARDS;
}

function partnerOfColumns(row: Row): Partner {
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

/** Returns the members of a partner that its code covers. */
function partnerValues({
  name,
  plan,
  createdAt,
  sourceDetail,
}: Partner): readonly (string | number | undefined)[] {
  return [name, plan, createdAt, sourceDetail?.consentVersion, sourceDetail?.approvedAt];
}
