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
import { CassandraOpenError, SCHEMA_VERSION, schemaVersion } from './driver/migrations.js';
import { RowCodes } from './driver/row-codes.js';
import { CALL_DEADLINE_MS, type ConnectionOptions, connect, type Session, within } from './driver/session.js';
import { ProofRows } from './proofs/proof-rows.js';
import { proofStore } from './proofs/proofs.js';
import { reminderStore } from './reviews/reminders.js';
import { reviewStore } from './reviews/reviews.js';
import { ChargeEvents } from './usage/charge-events.js';
import { Consumption } from './usage/consumption.js';
import { usageStore } from './usage/usage.js';

export interface CassandraStoreOptions extends ConnectionOptions {
  /** Keyspace that `takemark operator migrate` has made. */
  readonly keyspace: string;
  /** Secret of the audit logs, and their heads: by default the cluster's own. */
  readonly audit: Pick<AuditOptions, 'key'> & { readonly heads?: AuditHeads };
  /** Makes and checks the codes of rows and blobs. */
  readonly authenticator: Authenticator;
  /**
   * Takes rows and blobs without a right code, while a version that made none is being replaced. False by
   * default.
   */
  readonly acceptUnauthenticated?: boolean;
  /** Events that may wait in this process, of some 500 bytes each; 100,000 by default. */
  readonly outboxLimit?: number;
}

/** Store of a cluster, with the heads that its audit logs are held against. */
export type CassandraStore = Stores & { readonly heads: AuditHeads };

const OUTBOX_LIMIT = 100_000;

const SET_PING = "INSERT INTO ping (name, at) VALUES ('ping', ?)";
const GET_PING = "SELECT at FROM ping WHERE name = 'ping'";

/**
 * Store of a cluster: any number of processes over one keyspace. A process keeps nothing but queues, so a
 * process that dies takes nothing with it but what `Intents` finishes and the outbox of another process takes
 * over.
 * @throws CassandraOpenError where the cluster cannot be reached, or its schema is not of this version
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
    ...withDeadlines({
      ...partnerStore(session, intents, codes),
      ...keyStore(session, intents, blobs, codes),
      ...uploadStore(session, blobs),
      ...proofCalls,
      ...usageCalls,
      ...reviews.store,
      ...reminderStore(session, outbox),
      readAudit: (partnerId: string, fromSequence: number, limit: number) =>
        log.readAudit(partnerId, fromSequence, limit),
      appendAudit: (draft: AuditDraft) => log.appendAudit(draft),
      async ping() {
        await session.write(SET_PING, [Math.floor(Date.now() / 1000)]);
        await session.first(GET_PING);
      },
    }),
    // Calls that work through lists have no deadline: each of their steps has one, and the first failure ends
    // them.
    collectReservations,
    confirmErasure,
    aggregateUsage,
    waitingEvents: (limit) => outbox.waitingEvents(limit),
    markPublished: (published) => outbox.markPublished(published),
    countWaiting: () => outbox.countWaiting(),
    onWaiting: (listener) => outbox.onWaiting(listener),
    heads,

    // Rows expire by themselves; only what crashed processes left is finished and taken over.
    async collectExpired(now, limit) {
      reviews.expireUpTo(now);
      // Each step runs whatever became of the others: a step that fails now must not keep the rest waiting.
      const failures: unknown[] = [];
      const failed = (error: unknown) => void failures.push(error);
      const finished = await intents.sweep(Date.now()).catch(failed);
      await outbox.takeOver(Date.now(), (minute, charges) => events.takeOver(minute, charges)).catch(failed);
      await events.compact(Date.now()).catch(failed);
      if (failures.length > 0) throw failures[0];
      return Math.min(finished ?? 0, limit - 1);
    },

    close: () => session.close(),
  };
}

/**
 * The same calls, each with a deadline. The work of a call that comes to its deadline may still take effect;
 * asking again tells.
 */
function withDeadlines<Calls extends object>(calls: Calls): Calls {
  return Object.fromEntries(
    Object.entries(calls).map(([name, call]) => [
      name,
      (...args: unknown[]) =>
        within(CALL_DEADLINE_MS, (call as (...args: unknown[]) => Promise<unknown>)(...args)),
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
