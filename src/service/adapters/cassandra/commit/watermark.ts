import type { Session } from '../driver/session.js';

const GET = 'SELECT bucket FROM watermark WHERE name = ?';
const SET = 'INSERT INTO watermark (name, bucket) VALUES (?, ?)';

/**
 * How far the periodic pass over a time-bucketed table has come, for all processes together: the number of
 * the first time bucket that is not done, of 15 s for `pointer` and of an hour for the reminders.
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
    return (await this.#session.first(GET, [this.#name]))?.['bucket'] as number | undefined;
  }

  async write(timeBucket: number): Promise<void> {
    await this.#session.write(SET, [this.#name, timeBucket]);
  }
}
