import { randomUUID } from 'node:crypto';
import type { Authenticator } from '../../codec/authenticator.js';
import type { AuditDraft } from '../../domain/audit.js';
import type { AuditHeads } from '../../ports/journals.js';
import type { Stores } from '../../ports/stores.js';
import { keyStore } from './accounts/partner-keys.js';
import { partnerStore } from './accounts/partners.js';
import { uploadStore } from './accounts/uploads.js';
import { auditHeads } from './commit/audit-heads.js';
import { AuditLog, type AuditOptions } from './commit/audit-log.js';
import { Intents } from './commit/intents.js';
import { Outbox } from './commit/outbox.js';
import { Blobs } from './driver/blobs.js';
import { SCHEMA_VERSION, schemaVersion } from './driver/migrations.js';
import { CassandraOpenError } from './driver/open-error.js';
import { RowCodes } from './driver/row-codes.js';
import { type ConnectionOptions, connect, GIVE_UP_MS, type Session, within } from './driver/session.js';
import { ProofRows } from './proofs/proof-rows.js';
import { proofStore } from './proofs/proofs.js';
import { noticeStore } from './reviews/reminders.js';
import { reviewStore } from './reviews/reviews.js';
import { ChargeEvents } from './usage/charge-events.js';
import { Consumption } from './usage/consumption.js';
import { usageStore } from './usage/usage.js';

export interface CassandraStoreOptions extends ConnectionOptions {
  /** Made and filled by `takemark operator migrate`. */
  readonly keyspace: string;
  /** `heads` by default are the cluster's own. */
  readonly audit: Pick<AuditOptions, 'key'> & { readonly heads?: AuditHeads };
  /** Makes and checks the codes of rows and blobs. */
  readonly authenticator: Authenticator;
  /**
   * Takes what has no code, or another's: while a version that made none is being replaced. False by default.
   */
  readonly acceptUnauthenticated?: boolean;
  /** Events that may wait in this process; 100,000 by default, of some 500 bytes each. */
  readonly outboxLimit?: number;
}

/** A cluster's store, and the heads that its audit logs are held against. */
export type CassandraStore = Stores & { readonly heads: AuditHeads };

const OUTBOX_LIMIT = 100_000;

const SET_PING = "INSERT INTO ping (name, at) VALUES ('ping', ?)";
const GET_PING = "SELECT at FROM ping WHERE name = 'ping'";

/**
 * The store of a cluster: any number of processes over one keyspace. Nothing is kept in a process but queues,
 * so a process that dies takes nothing with it but what `Intents` finishes and the outbox's sweep finds.
 * @throws CassandraOpenError where it cannot be reached, or its schema is not this version's
 */
export async function openCassandraStore(options: CassandraStoreOptions): Promise<CassandraStore> {
  const session = await connectTo(options);
  const blobs = new Blobs(options.authenticator, options.acceptUnauthenticated ?? false);
  const heads = options.audit.heads ?? auditHeads(session);
  const log = new AuditLog(session, { key: options.audit.key, heads });
  const intents = new Intents(session, blobs, log);
  const outbox = new Outbox(session, blobs, options.outboxLimit ?? OUTBOX_LIMIT);
  const consumption = new Consumption(session);
  const writer = randomUUID();
  const events = new ChargeEvents(session, blobs, outbox, consumption, writer);
  const codes = new RowCodes(options.authenticator, options.acceptUnauthenticated ?? false);
  const proofs = new ProofRows(session, blobs, codes);
  try {
    const version = await schemaVersion(session, options.keyspace);
    if (version !== SCHEMA_VERSION) {
      throw new CassandraOpenError(
        `The keyspace ${options.keyspace} has schema version ${version}; this version needs ${SCHEMA_VERSION}. ${version < SCHEMA_VERSION ? 'Run takemark operator migrate.' : 'Use the version that migrated it, or a later one.'}`,
      );
    }
    await intents.start(Date.now());
    await outbox.start(Date.now());
  } catch (error) {
    await session.close();
    throw error;
  }
  const reviews = reviewStore(session, intents, blobs, proofs, outbox);
  const { collectReservations, confirmErasure, ...proofCalls } = proofStore(
    session,
    intents,
    blobs,
    proofs,
    outbox,
    reviews.removeReviewsOf,
  );
  const { aggregateUsage, ...usageCalls } = usageStore({ session, outbox, events, consumption, writer });
  return {
    ...inTime({
      ...partnerStore(session, intents, codes),
      ...keyStore(session, intents, blobs, codes),
      ...uploadStore(session, blobs),
      ...proofCalls,
      ...usageCalls,
      ...reviews.store,
      ...noticeStore(session, outbox),
      readAudit: (partnerId: string, fromSequence: number, limit: number) =>
        log.readAudit(partnerId, fromSequence, limit),
      appendAudit: (draft: AuditDraft) => log.appendAudit(draft),
      async ping() {
        await session.write(SET_PING, [Math.floor(Date.now() / 1000)]);
        await session.first(GET_PING);
      },
    }),
    // Work through lists: each of their steps ends in time, and they end with the first that fails.
    collectReservations,
    confirmErasure,
    aggregateUsage,
    waitingEvents: (limit) => outbox.waitingEvents(limit),
    markPublished: (published) => outbox.markPublished(published),
    countWaiting: () => outbox.countWaiting(),
    onWaiting: (listener) => outbox.onWaiting(listener),
    heads,

    // Rows expire by themselves; what is swept is what crashed processes left.
    async collectExpired(now, limit) {
      reviews.passed(now);
      // Each whatever became of the others: what one cannot do now must not keep the rest waiting.
      const failures: unknown[] = [];
      const failed = (error: unknown) => void failures.push(error);
      const finished = await intents.sweep(Date.now()).catch(failed);
      await outbox.sweep(Date.now(), (minute, charges) => events.adopt(minute, charges)).catch(failed);
      await events.tidy(Date.now()).catch(failed);
      if (failures.length > 0) throw failures[0];
      return Math.min(finished ?? 0, limit - 1);
    },

    close: () => session.close(),
  };
}

/**
 * The same calls, each of which ends within a bound; what it was at may still come to be, and asking again
 * tells.
 */
function inTime<Calls extends object>(calls: Calls): Calls {
  return Object.fromEntries(
    Object.entries(calls).map(([name, call]) => [
      name,
      (...args: unknown[]) => within(GIVE_UP_MS, (call as (...args: unknown[]) => Promise<unknown>)(...args)),
    ]),
  ) as Calls;
}

async function connectTo(options: CassandraStoreOptions): Promise<Session> {
  try {
    return await connect(options, options.keyspace);
  } catch (cause) {
    throw new CassandraOpenError(
      `Cassandra at ${options.contactPoints.join(', ')} could not be opened: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}
