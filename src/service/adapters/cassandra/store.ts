import { randomUUID } from 'node:crypto';
import type { Authenticator } from '../../../core/codec/authenticator.js';
import type { AuditDraft } from '../../domain/audit.js';
import type { AuditedStore } from '../../ports/audited-store.js';
import type { AuditHeads, InstallationRow } from '../../ports/journals.js';
import type { MoveTarget } from '../../ports/moved-rows.js';
import type { ServingProcesses } from '../../ports/serving-processes.js';
import type { Stores } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';
import { keyStore } from './accounts/partner-keys.js';
import { partnerStore } from './accounts/partners.js';
import { uploadStore } from './accounts/uploads.js';
import { auditedStore } from './audited-store.js';
import { auditHeads } from './commit/audit-heads.js';
import { AuditLog, type AuditOptions } from './commit/audit-log.js';
import { Decisions } from './commit/decisions.js';
import { Outbox } from './commit/outbox.js';
import { Pointers } from './commit/pointers.js';
import { Blobs } from './driver/blobs.js';
import { ClockWatch, nodeClocks } from './driver/clock-watch.js';
import { SCHEMA_VERSION, schemaState } from './driver/migrations.js';
import { CassandraOpenError } from './driver/open-error.js';
import { RowCodes } from './driver/row-codes.js';
import {
  CALL_DEADLINE_MS,
  type ConnectionOptions,
  connect,
  type Session,
  storeUnavailable,
  within,
} from './driver/session.js';
import { checkTopology, topologyOf } from './driver/topology.js';
import { moveTarget } from './moved-rows.js';
import { ProofRows } from './proofs/proof-rows.js';
import { proofStore } from './proofs/proofs.js';
import { reminderStore } from './reviews/reminders.js';
import { reviewStore } from './reviews/reviews.js';
import { servingProcesses } from './serving-processes.js';
import { ChargeEvents } from './usage/charge-events.js';
import { Consumption } from './usage/consumption.js';
import { FoldLeft } from './usage/fold-left.js';
import { installationRow } from './usage/installation.js';
import { usageStore } from './usage/usage.js';

export interface CassandraStoreOptions extends ConnectionOptions {
  /** The keyspace, which `takemark operator migrate` has made. */
  readonly keyspace: string;
  /** The secret of the audit logs, and their heads. The default heads are in the cluster. */
  readonly audit: Pick<AuditOptions, 'key'> & { readonly heads?: AuditHeads };
  /** Makes and checks the codes of rows and blobs. */
  readonly authenticator: Authenticator;
  /** The most events of a topic that wait in this process, of some 500 bytes each. The default is 100,000. */
  readonly outboxLimit?: number;
  /** This process's clock, which is compared with the nodes'. The default is the system's. */
  readonly clock?: Clock;
}

/**
 * The store of a cluster, with the heads that its audit logs are checked against, the watch over its clocks, the row
 * of the installation, the processes that serve, the reads of the auditor, and the target of a move.
 */
export type CassandraStore = Stores & {
  readonly heads: AuditHeads;
  readonly clocks: ClockWatch;
  readonly installation: InstallationRow;
  readonly serving: ServingProcesses;
  readonly audited: AuditedStore;
  readonly moveTarget: MoveTarget;
};

const OUTBOX_LIMIT = 100_000;

const SET_PING = "INSERT INTO ping (name, at) VALUES ('ping', ?)";
const GET_PING = "SELECT at FROM ping WHERE name = 'ping'";

/**
 * Opens the store of a cluster, in which any number of processes use one keyspace. A process keeps nothing but
 * queues, so a process that dies loses nothing but what the sweep of another process finishes.
 * @throws CassandraOpenError where the cluster cannot be reached, or its schema or topology does not fit
 * @throws DomainError `unavailable` where no node reports its clock
 */
export async function openCassandraStore(options: CassandraStoreOptions): Promise<CassandraStore> {
  const session = await connectTo(options);
  const clocks = new ClockWatch(
    nodeClocks(session, options.localDataCenter),
    options.clock ?? { now: () => Date.now() },
  );
  const blobs = new Blobs(options.authenticator);
  const heads = options.audit.heads ?? auditHeads(session);
  const log = new AuditLog(session, blobs, { key: options.audit.key, heads });
  const pointers = new Pointers(session, clocks);
  const outbox = new Outbox(pointers, blobs, options.outboxLimit ?? OUTBOX_LIMIT);
  const decisions = new Decisions({ session, blobs, log, pointers, outbox });
  const consumption = new Consumption(session);
  const writer = randomUUID();
  const events = new ChargeEvents({ session, blobs, pointers, outbox, consumption, writer });
  const codes = new RowCodes(options.authenticator);
  const proofs = new ProofRows(session, blobs, codes);
  try {
    const { version, minCompatible } = await schemaState(session, options.keyspace);
    if (version < SCHEMA_VERSION || minCompatible > SCHEMA_VERSION) {
      throw new CassandraOpenError(
        `The keyspace ${options.keyspace} has schema version ${version}, which needs a service with schema version ${minCompatible} or later. This service has ${SCHEMA_VERSION}. ${version < SCHEMA_VERSION ? 'Run takemark operator migrate.' : 'Use the service version that migrated the keyspace, or a later version.'}`,
      );
    }
    await checkTopology(session, options.keyspace, topologyOf(options));
    await clocks.look();
    // By the clocks of the nodes: a first process whose own is ahead would have every pass begin in the future.
    await pointers.start(Date.now() - clocks.processSeconds * 1000);
  } catch (error) {
    await session.close();
    throw error;
  }
  const reviews = reviewStore(session, decisions, blobs, proofs, outbox);
  const { collectReservations, confirmErasure, ...proofCalls } = proofStore({
    session,
    decisions,
    pointers,
    outbox,
    blobs,
    rows: proofs,
    forgetReviews: reviews.forgetReviews,
  });
  const { partnerIds, insertPartner, ...partners } = partnerStore(session, decisions, codes);
  const left = new FoldLeft(session, events, consumption, partnerIds);
  const { aggregateUsage, ...usageCalls } = usageStore({ session, outbox, events, consumption, writer });
  const stores: Omit<CassandraStore, 'moveTarget'> = {
    ...withDeadlines({
      ...partners,
      ...keyStore(session, decisions, blobs, codes),
      ...uploadStore(session, blobs),
      ...proofCalls,
      ...usageCalls,
      ...reviews.store,
      ...reminderStore(session, proofs, outbox),
      readAudit: (partnerId: string, fromSequence: number, limit: number) =>
        log.readAudit(partnerId, fromSequence, limit),
      appendAudit: (draft: AuditDraft) => log.appendAudit(draft),
      async ping() {
        const schema = schemaState(session, options.keyspace);
        const answered = session
          .write(SET_PING, [Math.floor(Date.now() / 1000)])
          .then(() => session.first(GET_PING));
        const [{ minCompatible }] = await Promise.all([schema, answered]);
        // A later version has migrated the keyspace, and this one no longer knows what it reads and writes.
        if (minCompatible > SCHEMA_VERSION) throw storeUnavailable();
      },
    }),
    // Calls that work through lists have no deadline: each of their steps has one, and the first failure ends
    // them.
    collectReservations,
    confirmErasure,
    aggregateUsage,
    waitingEvents: (limit, isHeldBack) => outbox.waitingEvents(limit, isHeldBack),
    markPublished: (published) => outbox.markPublished(published),
    countWaiting: (topic) => outbox.countWaiting(topic),
    onWaiting: (listener) => outbox.onWaiting(listener),
    heads,
    clocks,
    audited: auditedStore({
      session,
      blobs,
      proofs,
      usage: { session, events, consumption },
      partnerIds,
    }),
    installation: installationRow(session, partnerIds),
    serving: servingProcesses(session),

    // Rows expire by themselves; only what crashed processes left is finished and taken over.
    async collectExpired(now, limit) {
      reviews.expireUpTo(now);
      // Each step runs even if another failed: a step that fails must not delay the rest.
      const failures: unknown[] = [];
      const step = async <Result>(run: (now: number) => Promise<Result>): Promise<Result | undefined> => {
        try {
          // The clock may have been set since the collection began.
          return await run(clocks.now());
        } catch (error) {
          failures.push(error);
          return undefined;
        }
      };
      const finished = await step((at) => pointers.sweep(at));
      await step((at) => events.compact(at));
      await step((at) => left.run(at));
      if (failures.length > 0) throw failures[0];
      return Math.min(finished ?? 0, limit - 1);
    },

    async close() {
      // Answered operations are chained, and nothing is left of what was published, as long as the servers answer.
      const settled = Promise.all([log.settle(), decisions.settle()]);
      await within(CALL_DEADLINE_MS, settled).catch(() => undefined);
      await session.close();
    },
  };
  return {
    ...stores,
    moveTarget: moveTarget({ session, blobs, codes, proofs, log, consumption, stores, insertPartner }),
  };
}

/**
 * Returns the same calls, each with a deadline. The work of a call that reaches its deadline may still take effect. A
 * second question shows it.
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
