/** Reads the rows of the store directly, without the service. */
import { Client, types } from 'cassandra-driver';
import { isReadFailure } from '../../../src/service/adapters/cassandra/driver/session.js';
import { FIRST_TOKEN, LAST_TOKEN } from '../../../src/service/adapters/cassandra/driver/token-pages.js';
import { BILLED_OPERATIONS } from '../../../src/service/domain/usage-window.js';
import { again } from '../../fixtures/again.js';

/**
 * Tables with references to proofs. None may name an erased proof. Reviews are deleted with their proof
 * without being read, so the ids in `review_proof` and `due_notice` stay until they expire. The ids in
 * idempotency records stay too, but no lookup follows them to an erased proof.
 */
export const NAMING_PROOFS = [
  'proof_by_partner',
  'proof_by_file',
  'proof_by_bound',
  'proof_by_original',
  'proof_by_samples',
  'review_by_partner',
];
/** Tables whose decisions leave acts until all consequences are done. */
const DECIDED = ['record', 'api_key', 'key_revocation', 'partner'];
/** Kinds of pointers that need no decision: an id may stay reserved, and charges have their own table. */
const OF_NO_DECISION: ReadonlySet<string> = new Set(['proof_issued', 'charges', 'calls_counted']);

const BILLED: ReadonlySet<string | undefined> = new Set(BILLED_OPERATIONS);

export class Tables {
  readonly #client: Client;

  private constructor(client: Client) {
    this.#client = client;
  }

  static async open(settings: Readonly<Record<string, string>>): Promise<Tables> {
    const client = new Client({
      contactPoints: settings['TAKEMARK_CASSANDRA']!.split(','),
      localDataCenter: settings['TAKEMARK_CASSANDRA_DC']!,
      keyspace: settings['TAKEMARK_CASSANDRA_KEYSPACE']!,
      queryOptions: { consistency: types.consistencies.localQuorum, isIdempotent: true },
    });
    await again(() => client.connect());
    return new Tables(client);
  }

  async proofRows(): Promise<readonly { readonly table: string; readonly proofId: string }[]> {
    const rows: { table: string; proofId: string }[] = [];
    for (const table of NAMING_PROOFS) {
      for (const row of await this.#all(table, 'proof_id')) {
        const proofId = row['proof_id'] as string | null;
        if (proofId !== null) rows.push({ table, proofId });
      }
    }
    // The head of an erased proof stays. Its acts stay until they are done.
    for (const row of await this.#all('record', 'proof_id, part')) {
      const part = row['part'] as string;
      if (part >= 'b')
        rows.push({ table: `record ${part.split('/')[0]!}`, proofId: row['proof_id'] as string });
    }
    return rows;
  }

  /**
   * Returns the number of unfinished operations. Their audit entries, events and indexes may still appear.
   * @param afterRestore whether to ignore acts without a pointer: an operation that ended while the backup was made
   * left them
   */
  async unfinished({ afterRestore }: { readonly afterRestore: boolean }): Promise<number> {
    const ops = new Set<string>();
    for (const table of afterRestore ? [] : DECIDED)
      for (const row of await this.#all(table, 'part')) {
        const part = row['part'] as string;
        if (part.startsWith('act/')) ops.add(part.slice('act/'.length));
      }
    for (const row of await this.#all('pointer', 'op, kind'))
      if (!OF_NO_DECISION.has(row['kind'] as string)) ops.add(row['op'] as string);
    return ops.size;
  }

  /** Returns the installation's counter. */
  async beat(): Promise<number> {
    const rows = await this.#all('installation', 'name, beat');
    return (rows.find((row) => row['name'] === 'state')?.['beat'] as number | null | undefined) ?? 0;
  }

  /** Returns the planned announcements, by case. */
  async notices(): Promise<ReadonlyMap<string, readonly string[]>> {
    const planned = new Map<string, string[]>();
    for (const row of await this.#all('due_notice', 'review_id, kind')) {
      const reviewId = row['review_id'] as string;
      planned.set(reviewId, [...(planned.get(reviewId) ?? []), row['kind'] as string].toSorted());
    }
    return planned;
  }

  /** Returns the billed units that consumers have added up over all days, by partner. */
  async folded(partnerIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const units = new Map<string, number>();
    for (const row of await this.#all('consumption', 'partner_id, item, units')) {
      const partnerId = row['partner_id'] as string;
      const [what, , operation] = (row['item'] as string).split('/');
      if (what === 'day' && BILLED.has(operation) && partnerIds.includes(partnerId))
        units.set(partnerId, (units.get(partnerId) ?? 0) + ((row['units'] as number | null) ?? 0));
    }
    return units;
  }

  /** Returns all rows of a table. A range of tokens with too many tombstones for one read is halved. */
  #all(table: string, columns: string): Promise<readonly types.Row[]> {
    return again(async () => {
      const { partitionKeys } = await this.#client.metadata.getTable(this.#client.keyspace, table);
      const token = `token(${partitionKeys.map(({ name }) => name).join(', ')})`;
      const statement = `SELECT ${columns} FROM ${table} WHERE ${token} > ? AND ${token} <= ?`;
      const rows: types.Row[] = [];
      const left: [bigint, bigint][] = [[FIRST_TOKEN, LAST_TOKEN]];
      for (let range = left.pop(); range !== undefined; range = left.pop()) {
        const [from, to] = range;
        try {
          const found: types.Row[] = [];
          // The iteration fetches the next page when needed.
          for await (const row of await this.#client.execute(statement, [String(from), String(to)], {
            prepare: true,
          }))
            found.push(row);
          rows.push(...found);
        } catch (error) {
          if (!isReadFailure(error) || to - from < 2n) throw error;
          const middle = from + (to - from) / 2n;
          left.push([from, middle], [middle, to]);
        }
      }
      return rows;
    });
  }

  async close(): Promise<void> {
    await this.#client.shutdown();
  }
}
