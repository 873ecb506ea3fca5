import { writeSync } from 'node:fs';
import { openEmbeddedStore } from '../../src/adapters/embedded/store.js';
import { issuedProof, issuingReplay, uploadFacts, uploadSlot, usageCharge } from '../store-contract/suite.js';

/**
 * A process that writes to a store and says what was acknowledged, one line each, in the order it happened. Arguments: what to
 * do, the directory, a number.
 */
const [mode, directory, argument] = process.argv.slice(2) as [string, string, string];
const stores = await openEmbeddedStore({ directory });
/** Synchronous: what was said is in the pipe before anything else happens. */
const say = (line: string) => writeSync(1, `${line}\n`);
say('ready');

switch (mode) {
  case 'hold':
    setInterval(() => undefined, 1000);
    break;
  case 'charge-once':
    await stores.charge(usageCharge('ptr_once', 'a'));
    say('acknowledged');
    await stores.close();
    break;
  case 'charge-together':
    await Promise.all(Array.from({ length: Number(argument) }, (_, i) => stores.charge(usageCharge('ptr_group', `call-${i}`))));
    say('acknowledged');
    await stores.close();
    break;
  case 'fill':
    await fill();
    break;
  case 'everything':
    void everything(argument);
    break;
}

/** Charges until the disk takes no more, then until it does again. */
async function fill(): Promise<void> {
  let next = 0;
  let full = false;
  const charger = async () => {
    while (!full) {
      const key = `before-${next++}`;
      try {
        await stores.charge(usageCharge('ptr_full', key));
        say(`charged ${key}`);
      } catch (error) {
        if (!full) say(`full ${(error as { code: string }).code} ${(error as { reason: string }).reason}`);
        full = true;
      }
    }
  };
  await Promise.all(Array.from({ length: 32 }, charger));
  const patience = Date.now() + 10_000;
  for (let working = false; !working; ) {
    if (Date.now() > patience) throw new Error('it does not come back');
    working = await stores.ping().then(
      () => true,
      () => new Promise((resolve) => setTimeout(resolve, 50, false)),
    );
  }
  say('back');
  for (let i = 0; i < 50; i++) {
    await stores.charge(usageCharge('ptr_full', `after-${i}`));
    say(`charged after-${i}`);
  }
  await stores.close();
}

/** Charges, facts and proofs until it is killed. */
async function everything(round: string): Promise<void> {
  const counters = { charge: 0, slot: 0, proof: 0, quota: 0 };
  const workers = (count: number, work: (i: number) => Promise<void>, counter: keyof typeof counters) =>
    Array.from({ length: count }, async () => {
      for (;;) {
        const i = counters[counter]++;
        say(`begin ${counter} ${i}`);
        await work(i);
      }
    });
  await Promise.all([
    ...workers(16, async (i) => {
      const { outcome } = await stores.charge(usageCharge('ptr_kill', `${round}-${i}`));
      say(`done charge ${i} ${outcome}`);
    }, 'charge'),
    ...workers(4, async (i) => {
      const outcomes = await Promise.all(Array.from({ length: 12 }, (_, j) => stores.charge(usageCharge(`ptr_quota-${round}-${i}`, `${j}`, { monthlyQuota: 5 }))));
      say(`done quota ${i} ${outcomes.filter(({ outcome }) => outcome === 'charged').length}`);
    }, 'quota'),
    ...workers(4, async (i) => {
      const slot = uploadSlot(`upl_${round}-${i}`);
      await stores.createSlot(slot);
      const marks = ['a', 'b'];
      const outcomes = await Promise.all(marks.map((mark) => stores.putFacts(uploadFacts(slot, mark))));
      say(`done slot ${i} ${marks.filter((_, j) => outcomes[j] === 'stored').join()}`);
    }, 'slot'),
    ...workers(4, async (i) => {
      const ids = ['a', 'b'].map((letter) => `prf_${round}-${i}${letter}`);
      await Promise.all(ids.map((proofId) => stores.reserveProof(proofId, 'ptr_kill', 1000)));
      const outcomes = await Promise.all(ids.map((proofId) => stores.issueProof(issuedProof(proofId, 'ptr_kill'), issuingReplay(`replay_${round}-${i}`, proofId))));
      say(`done proof ${i} ${ids.filter((_, j) => outcomes[j] === 'issued').join()}`);
    }, 'proof'),
  ]);
}
