import type { Stores } from '../../ports/stores.js';
import { AuditLog, type AuditOptions } from './audit-log.js';
import { Blobs } from './blobs.js';
import { Intents } from './intents.js';
import { SCHEMA_VERSION, schemaVersion } from './migrations.js';
import { CassandraOpenError } from './open-error.js';
import { keyStore } from './partner-keys.js';
import { partnerStore } from './partners.js';
import { ProofRows } from './proof-rows.js';
import { proofStore } from './proofs.js';
import { reviewStore } from './reviews.js';
import { connect, type ConnectionOptions, type Session } from './session.js';
import { uploadStore } from './uploads.js';
import { usageStore } from './usage.js';

export interface CassandraStoreOptions extends ConnectionOptions {
  /** Made and filled by `takemark operator migrate`. */
  readonly keyspace: string;
  readonly audit: AuditOptions;
}

const SET_PING = "INSERT INTO ping (name, at) VALUES ('ping', ?)";
const GET_PING = "SELECT at FROM ping WHERE name = 'ping'";

/**
 * The store of a cluster: any number of processes over one keyspace. Nothing is kept in a process but queues, so a process that
 * dies takes nothing with it but what `Intents` finishes.
 * @throws CassandraOpenError where it cannot be reached, or its schema is not this version's
 */
export async function openCassandraStore(options: CassandraStoreOptions): Promise<Stores> {
  const session = await connectTo(options);
  const blobs = new Blobs();
  const log = new AuditLog(session, options.audit);
  const intents = new Intents(session, blobs, log);
  const proofs = new ProofRows(session, blobs);
  try {
    const version = await schemaVersion(session, options.keyspace);
    if (version !== SCHEMA_VERSION) {
      throw new CassandraOpenError(`The keyspace ${options.keyspace} has schema version ${version}; this version needs ${SCHEMA_VERSION}. ${version < SCHEMA_VERSION ? 'Run takemark operator migrate.' : 'Use the version that migrated it, or a later one.'}`);
    }
    await intents.start(Date.now());
  } catch (error) {
    await session.close();
    throw error;
  }
  const reviews = reviewStore(session, intents, blobs, proofs);
  return {
    ...partnerStore(session, intents),
    ...keyStore(session, intents, blobs),
    ...uploadStore(session, blobs),
    ...proofStore(session, intents, blobs, proofs, reviews.removeReviewsOf),
    ...usageStore(session),
    ...reviews.store,
    // stub
    waitingEvents: async () => [],
    markPublished: async () => undefined,
    countWaiting: () => 0,
    onWaiting: () => undefined,
    scheduleNotices: async () => undefined,
    dueNotices: async () => [],
    settleNotice: async () => undefined,
    readAudit: (partnerId, fromSequence, limit) => log.readAudit(partnerId, fromSequence, limit),

    // Rows expire by themselves; what is swept is what crashed processes left.
    async sweepExpired(now, limit) {
      reviews.passed(now);
      return Math.min(await intents.sweep(Date.now()), limit - 1);
    },

    async ping() {
      await session.write(SET_PING, [Math.floor(Date.now() / 1_000)]);
      await session.first(GET_PING);
    },

    close: () => session.close(),
  };
}

async function connectTo(options: CassandraStoreOptions): Promise<Session> {
  try {
    return await connect(options, options.keyspace);
  } catch (cause) {
    throw new CassandraOpenError(`Cassandra at ${options.contactPoints.join(', ')} could not be opened: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
