import { HookFile, type HookWord } from './hook-file.js';
import type { Ledger } from './ledger.js';

/** The silence of the hook, which writes once a second, after which its observations have a gap. */
const SILENT_MICROSECONDS = 4_000_000;

const EVENTS = {
  roll: 'transport.started',
  stop: 'transport.stopped',
  locate: 'transport.located',
} as const satisfies Readonly<Partial<Record<HookWord, string>>>;

/** The playback that the hook in Ardour's window reports. */
export class Transport {
  readonly #file: HookFile;
  readonly #ledger: Ledger;
  readonly #clock: () => number;
  #lookedAt: number;
  #heardAt: number;

  constructor(path: string, ledger: Ledger, clock: () => number) {
    this.#file = new HookFile(path);
    this.#ledger = ledger;
    this.#clock = clock;
    this.#lookedAt = clock();
    this.#heardAt = this.#lookedAt;
  }

  /** Reports what the hook has written since the last look. A time that cannot be right becomes an interval. */
  poll(): void {
    const { lines, isBroken } = this.#file.look();
    const now = this.#clock();
    if (isBroken) this.#addGap(this.#lookedAt, now, 'unreadable');
    for (const { word, ageMs, seconds } of lines) {
      const at = ageMs === undefined ? now : Math.max(0, Math.round(now - ageMs * 1000));
      if (at - this.#heardAt > SILENT_MICROSECONDS) this.#addGap(this.#heardAt, at, 'agent_stopped');
      this.#heardAt = Math.max(this.#heardAt, at);
      if (word === 'beat') continue;
      const when = ageMs === undefined ? { at, since: this.#lookedAt } : { at };
      this.#ledger.add({ kind: EVENTS[word], start: seconds }, when);
    }
    this.#lookedAt = now;
  }

  /**
   * Reports a silence that lasted to the end.
   * @param savedAt time of the last save: after it, nothing that was seen happened in Ardour any more
   */
  end(savedAt: number): void {
    this.poll();
    if (savedAt - this.#heardAt > SILENT_MICROSECONDS) this.#addGap(this.#heardAt, savedAt, 'agent_stopped');
  }

  #addGap(since: number, at: number, reason: 'agent_stopped' | 'unreadable'): void {
    this.#ledger.add({ kind: 'capture.gap', scope: 'transport', reason }, { at, since });
  }
}
