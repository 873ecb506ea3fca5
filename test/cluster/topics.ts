/** What the topics hold, read past the consumers. */
import type { ServiceEvent } from '../../src/domain/events.js';

export interface Topics {
  /** Everything from the beginning, duplicates included. */
  read(): Promise<readonly ServiceEvent[]>;
  deadLetters(): Promise<number>;
  close(): Promise<void>;
}
