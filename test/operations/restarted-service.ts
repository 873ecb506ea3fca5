/** A whole service with a clock that moves in seconds. It can be stopped and started again on its data. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReviewBindings } from '../../src/service/domain/review.js';
import type { Caller } from '../../src/service/operations/caller.js';
import type { OperatorOperations, PartnerOperations } from '../../src/service/operations/operations.js';
import { TestClock, TestService } from '../fixtures/service.js';

/** A clock that pauses between two moves. */
class StillClock extends TestClock {
  #at = Math.floor(Date.now() / 1000) * 1000;

  override now(): number {
    return this.#at;
  }

  override advance(seconds: number): void {
    this.#at += seconds * 1000;
  }

  moveTo(seconds: number): void {
    this.#at = seconds * 1000;
  }
}

export class RestartedService {
  readonly clock = new StillClock();
  readonly directory: string;
  readonly #settings: Readonly<Record<string, string>>;
  #service: TestService | undefined;

  private constructor(directory: string, settings: Readonly<Record<string, string>>) {
    this.directory = directory;
    this.#settings = { ...settings, TAKEMARK_DATA_DIR: directory };
  }

  static async start(settings: Readonly<Record<string, string>> = {}): Promise<RestartedService> {
    const restarted = new RestartedService(await mkdtemp(join(tmpdir(), 'takemark-contract-')), settings);
    await restarted.restart();
    return restarted;
  }

  get service(): TestService {
    return this.#service!;
  }

  get partner(): PartnerOperations {
    return this.service.service.operations.partner;
  }

  get operator(): OperatorOperations {
    return this.service.service.operations.operator;
  }

  seconds(): number {
    return Math.floor(this.clock.now() / 1000);
  }

  /** @param settings of this start alone */
  async restart(
    between: () => Promise<unknown> = async () => undefined,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    await this.#service?.stop({ keep: true });
    await between();
    this.#service = await TestService.start({ ...this.#settings, ...settings }, this.clock);
  }

  async stop(): Promise<void> {
    await this.service.stop();
    await rm(this.directory, { recursive: true, force: true });
  }

  async upload(caller: Caller, purpose: 'verify' | 'identify', audio: Uint8Array): Promise<string> {
    const slot = await this.partner.createUpload(caller, { purpose });
    const receiver = await this.partner.receiveUpload(slot.uploadId, new Map(Object.entries(slot.fields)));
    await receiver.write(audio);
    await receiver.finish();
    return slot.uploadId;
  }

  /** Returns all files below the data directory as one text. */
  async diskText(): Promise<string> {
    const names = await readdir(this.directory, { recursive: true });
    // Directories have no text.
    return (
      await Promise.all(names.map((name) => readFile(join(this.directory, name), 'latin1').catch(() => '')))
    ).join('\n');
  }
}

export const bindings = (submissionId: string): ReviewBindings => ({
  creatorId: 'creator-1',
  accountId: 'account-1',
  submissionId,
  trackId: 'track-1',
});

export const notFound = { code: 'not_found' };
