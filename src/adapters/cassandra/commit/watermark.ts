import type { Session } from '../driver/session.js';

const GET = 'SELECT minute FROM intent_position WHERE name = ?';
const SET = 'INSERT INTO intent_position (name, minute) VALUES (?, ?)';

/**
 * How far the periodic pass over a time-bucketed table has come, for all processes together: the number of
 * the first time bucket that is not done. The column `minute` holds this number whatever the length of the
 * table's time buckets is: minutes for `intent` and `outbox`, hours for the reminders.
 */
export class Watermark {
  readonly #session: Session;
  readonly #name: string;

  /** @param name key of the watermark's row */
  constructor(session: Session, name: string) {
    this.#session = session;
    this.#name = name;
  }

  async read(): Promise<number | undefined> {
    return (await this.#session.first(GET, [this.#name]))?.['minute'] as number | undefined;
  }

  async write(timeBucket: number): Promise<void> {
    await this.#session.write(SET, [this.#name, timeBucket]);
  }
}
