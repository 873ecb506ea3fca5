import { randomUUID } from 'node:crypto';
import type { ServingProcesses } from '../../ports/serving-processes.js';
import type { Session } from './driver/session.js';

/** The life of an entry that is not renewed, in seconds: six times the interval of the renewals. */
const LIFE_SECONDS = 30;
/** The most entries of one read, which is the largest number that `TAKEMARK_PROCESSES` accepts. */
const MOST = 10_000;

const RENEW = "INSERT INTO serving_process (name, process) VALUES ('partners', ?) USING TTL ?";
const LIST = "SELECT process FROM serving_process WHERE name = 'partners' LIMIT ?";
const LEAVE = "DELETE FROM serving_process WHERE name = 'partners' AND process = ?";

/**
 * Registers one process in the keyspace. Its id is new at each start.
 * @param lifeSeconds the life of an entry that is not renewed
 */
export function servingProcesses(session: Session, lifeSeconds = LIFE_SECONDS): ServingProcesses {
  const process = randomUUID();
  return {
    async renew() {
      await session.write(RENEW, [process, lifeSeconds]);
      return (await session.rows(LIST, [MOST])).length;
    },
    async leave() {
      await session.write(LEAVE, [process]);
    },
  };
}
