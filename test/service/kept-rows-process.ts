/**
 * A service that changes rows which it keeps decoded, reads them again, and reports each change, a line each.
 * Arguments: the data directory, the file of the changes that earlier processes reported, the number of rounds (0: until
 * it is killed), a planted defect.
 */
import { readFileSync, writeSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { DomainError } from '../../src/core/domain/errors.js';
import { KeptRows } from '../../src/service/adapters/embedded/kept-rows.js';
import { TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import type { KeptRowsPlant, Reported } from './kept-rows-reports.js';

/** The delay in milliseconds of a late drop. It is longer than a call takes from its store's answer to its own. */
const LATE_MS = 2000;
const READS = 3;
const PLANS = ['trial', 'standard', 'volume'] as const;

/** The defects. Each takes one of the three measures from the service that keep old rows from readers. */
const PLANTS: Readonly<Record<KeptRowsPlant, () => void>> = {
  'no-drop': () => {
    KeptRows.prototype.drop = () => undefined;
  },
  'late-drop': () => {
    const { drop } = KeptRows.prototype;
    KeptRows.prototype.drop = function (key) {
      setTimeout(() => drop.call(this, key), LATE_MS).unref();
    };
  },
  'kept-plaintext': () => {
    const held: unknown[] = [];
    globalThis.WeakMap = class<Key extends WeakKey, Value> extends WeakMap<Key, Value> {
      override set(key: Key, value: Value): this {
        held.push(value);
        return super.set(key, value);
      }
    };
  },
};

const [directory, reportedPath, rounds, plant] = process.argv.slice(2) as [
  string,
  string,
  string,
  KeptRowsPlant?,
];
if (plant !== undefined) PLANTS[plant]();
const service = await TestService.start({ TAKEMARK_DATA_DIR: directory, TAKEMARK_LOG_LEVEL: 'silent' });
const { operator, partner } = service.service.operations;
/** Writes a line to the pipe, synchronously: the line is there before anything else happens. */
const say = (...words: readonly string[]): void => void writeSync(1, `${words.join(' ')}\n`);

const isRevoked = (apiKey: string): Promise<boolean> => isRefused('forbidden', partner.authenticate(apiKey));
const isErased = async (apiKey: string, proofId: string): Promise<boolean> =>
  isRefused('not_found', partner.readProof(await partner.authenticate(apiKey), { proofId }));
const planOf = async (apiKey: string): Promise<string> => (await partner.authenticate(apiKey)).plan.name;

await checkReported(JSON.parse(readFileSync(reportedPath, 'utf8')) as Reported);
say('ready');
for (let round = 0; rounds === '0' || round < Number(rounds); round += 1) await changeOneOfEach(round);
say('ended');
setInterval(() => undefined, 1000);

/** Reads what earlier processes changed twice each, because the first read keeps the row. */
async function checkReported({ revoked, erased, plans }: Reported): Promise<void> {
  for (let read = 0; read < 2; read += 1) {
    for (const apiKey of revoked) if (!(await isRevoked(apiKey))) say('stale', 'revoked', apiKey);
    for (const { apiKey, proofId } of erased)
      if (!(await isErased(apiKey, proofId))) say('stale', 'erased', apiKey, proofId);
    for (const { apiKey, possible } of plans)
      if (!possible.includes(await planOf(apiKey))) say('stale', 'plan', apiKey, possible.join());
  }
}

async function changeOneOfEach(round: number): Promise<void> {
  const { partnerId, apiKey } = await service.partner('volume');
  const { apiKey: revoked, keyId } = await operator.createKey({ partnerId, name: 'revoked' });
  const { proofId } = await service.issue(partnerId, wav(8000, {}, round + 1), { song: 'Erased song' });
  await Promise.all([
    change(
      ['revoked', revoked],
      () => isRevoked(revoked),
      () => operator.revokeKey({ partnerId, keyId }),
    ),
    change(
      ['erased', apiKey, proofId],
      () => isErased(apiKey, proofId),
      async () => partner.eraseProof(await partner.authenticate(apiKey), { proofId }),
    ),
    ...PLANS.slice(round % 2, (round % 2) + 1).map((plan) =>
      change(
        ['plan', apiKey, plan],
        async () => (await planOf(apiKey)) === plan,
        () => operator.assignPlan({ partnerId, plan, effect: 'at_once' }),
      ),
    ),
  ]);
  await turn();
  say('plaintexts', String(await countPlaintexts()));
}

/** Changes a row while a reader comes at every turn of the event loop. No read after the answer may see the old row. */
async function change(
  label: readonly string[],
  isChanged: () => Promise<boolean>,
  act: () => Promise<unknown>,
): Promise<void> {
  let isAnswered = false;
  const readOn = async (): Promise<void> => {
    while (!isAnswered) {
      await isChanged();
      await turn();
    }
  };
  await isChanged();
  const reader = readOn();
  say('begun', ...label);
  await act();
  isAnswered = true;
  say('answered', ...label);
  for (let read = 0; read < READS; read += 1) {
    if (!(await isChanged())) say('stale', ...label);
    await turn();
  }
  await reader;
}

/** Returns whether a call is refused with this code. Another refusal comes from rows that do not fit together. */
async function isRefused(code: string, call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return false;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    if (error.code !== code) say('unfit', error.reason ?? error.code);
    return error.code === code;
  }
}

/** Counts the records of proofs whose song is in the memory of this thread. All of them are erased. */
async function countPlaintexts(): Promise<number> {
  const session = new Session();
  session.connect();
  try {
    const { result } = await session.post('Runtime.evaluate', { expression: 'Object.prototype' });
    const { objects } = await session.post('Runtime.queryObjects', { prototypeObjectId: result.objectId! });
    const counted = await session.post('Runtime.callFunctionOn', {
      objectId: objects.objectId!,
      functionDeclaration: `function () {
        return this.filter(({ proofId, song }) => proofId !== undefined && song?.title === 'Erased song').length;
      }`,
      returnByValue: true,
    });
    return counted.result.value as number;
  } finally {
    session.disconnect();
  }
}
