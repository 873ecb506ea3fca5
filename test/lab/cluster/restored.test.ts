/** Tests the checks after a restore. A sound run passes, and each kind of damage is found. */
import t from 'tap';
import type { ObservedPartner, ObservedProof } from './judge.js';
import { type Acknowledged, judgeRestored, type ObservedRestored } from './judge-restored.js';
import { AT, GONE, THERE } from './observed-proofs.js';

const partnerId = 'ptr_1';
/** The store has no proof, so the operator gets 404 too. */
const {
  state: _state,
  erasedAt: _erasedAt,
  confirmedAt: _confirmedAt,
  assetPresent: _present,
  ...gone
} = GONE;
const NOWHERE = gone as unknown as ObservedProof;
const SEEN: ObservedPartner = {
  used: [2, 2],
  daily: [3, 3],
  folded: 3,
  keys: [],
  auditOk: [true, true],
  audit: [],
  listed: new Set(),
};
const issued = (proofId: string, at: number) => ({ proofId, partnerId, sha256: 'a', at });
const erased = (proofId: string, at: number, erasedAt = AT) => ({ proofId, partnerId, erasedAt, at });

/** The backup ran from 100 to 110, the processes stopped at 200 and started at 300. */
const ACKNOWLEDGED: Acknowledged = {
  partners: [{ partnerId, apiKey: 'secret' }],
  issued: [
    issued('prf_old', 10),
    issued('prf_gone', 11),
    issued('prf_amid', 105),
    issued('prf_lost', 150),
    issued('prf_lost_gone', 151),
    issued('prf_new', 310),
  ],
  erased: [erased('prf_gone', 160), erased('prf_gone', 320), erased('prf_lost_gone', 161)],
  erasing: new Map([
    ['prf_gone', 159],
    ['prf_lost_gone', 160],
  ]),
  notFound: [{ proofId: 'prf_lost_gone', sentAt: 330 }],
  verified: [
    { partnerId, proofId: 'prf_old', sentAt: 20, at: 21, verdict: 'valid' },
    { partnerId, proofId: 'prf_lost', sentAt: 155, at: 156, verdict: 'valid' },
    { partnerId, proofId: 'prf_lost', sentAt: 340, at: 341, verdict: 'unregistered' },
    { partnerId, proofId: 'prf_gone', sentAt: 190 },
  ],
  backup: { began: 100, ended: 110 },
  closedAt: 200,
  openedAt: 300,
};
const OBSERVED: ObservedRestored = {
  proofs: new Map([
    ['prf_old', THERE],
    ['prf_gone', GONE],
    ['prf_amid', THERE],
    ['prf_lost', NOWHERE],
    ['prf_lost_gone', NOWHERE],
    ['prf_new', THERE],
  ]),
  partners: new Map([[partnerId, SEEN]]),
  verdicts: new Map([
    ['prf_old', 'valid'],
    ['prf_gone', 'unregistered'],
  ]),
  rows: [{ table: 'proof_by_partner', proofId: 'prf_old' }],
  files: new Set(['prf_old', 'prf_amid', 'prf_lost', 'prf_new']),
};

t.test('a sound restore has no violation', async (t) => {
  t.strictSame(judgeRestored(ACKNOWLEDGED, OBSERVED), []);
  t.strictSame(
    judgeRestored(ACKNOWLEDGED, {
      ...OBSERVED,
      proofs: new Map([...OBSERVED.proofs, ['prf_amid', NOWHERE]]),
    }),
    [],
    'what came amid the backup may be lost',
  );
});

t.test('every kind of damage by a restore is found', async (t) => {
  const proof = (proofId: string, seen: ObservedProof): ObservedRestored => ({
    ...OBSERVED,
    proofs: new Map([...OBSERVED.proofs, [proofId, seen]]),
  });
  const partner = (over: Partial<ObservedPartner>): ObservedRestored => ({
    ...OBSERVED,
    partners: new Map([[partnerId, { ...SEEN, ...over }]]),
  });
  const verdict = (proofId: string, word: string): ObservedRestored => ({
    ...OBSERVED,
    verdicts: new Map([...OBSERVED.verdicts, [proofId, word]]),
  });
  const { confirmedAt: _, ...unconfirmed } = GONE;
  const damages: Readonly<Record<string, ObservedRestored>> = {
    'a proof of the backup that is lost': proof('prf_old', NOWHERE),
    'a proof from after the restore that is lost': proof('prf_new', NOWHERE),
    'a proof of the backup that one process lacks': proof('prf_old', { ...THERE, statuses: [200, 404] }),
    'a deliverable that is another file': proof('prf_old', { ...THERE, assets: ['a', 'b'] }),
    'half of a proof from amid the backup': proof('prf_amid', { ...THERE, listed: false }),
    'a lost proof that is listed': proof('prf_lost', { ...NOWHERE, listed: true }),
    'a lost proof that verifies': verdict('prf_lost', 'valid'),
    'a proof of the backup that does not verify': verdict('prf_old', 'unregistered'),
    'an erased proof that verifies': verdict('prf_gone', 'valid'),
    'an erasure at another time': proof('prf_gone', { ...GONE, erasedAt: AT + 1 }),
    'an erasure that was not confirmed': proof('prf_gone', unconfirmed),
    'an erasure without a tombstone': proof('prf_gone', NOWHERE),
    'an erased proof in a list': proof('prf_gone', { ...GONE, listed: true }),
    'a file of an erased proof': { ...OBSERVED, files: new Set(['prf_gone']) },
    'a file of an erased proof that the backup lacks': { ...OBSERVED, files: new Set(['prf_lost_gone']) },
    'a row of an erased proof': { ...OBSERVED, rows: [{ table: 'proof_by_bound', proofId: 'prf_gone' }] },
    'days that lack what was acknowledged': partner({ daily: [2, 2], folded: 2 }),
    'days with more than was asked for': partner({ daily: [5, 5], folded: 5 }),
    'days that the consumers counted otherwise': partner({ folded: 4 }),
    'a quota with what the backup lacks': partner({ used: [3, 3] }),
    'a quota without what was charged again': partner({ used: [1, 1] }),
    'processes that do not agree': partner({ used: [2, 1] }),
    'a broken audit log': partner({ auditOk: [true, false] }),
  };
  for (const [name, observed] of Object.entries(damages))
    t.equal(judgeRestored(ACKNOWLEDGED, observed).length, 1, name);
  t.equal(judgeRestored(ACKNOWLEDGED, proof('prf_gone', THERE)).length, 2, 'an erased proof that came back');
  const acknowledged: Readonly<Record<string, Acknowledged>> = {
    'an issuing before the restore had ended': {
      ...ACKNOWLEDGED,
      issued: [...ACKNOWLEDGED.issued, issued('prf_amid', 250)],
    },
    'an erasure at two times': {
      ...ACKNOWLEDGED,
      erased: [...ACKNOWLEDGED.erased, erased('prf_gone', 340, AT + 9)],
    },
    'a proof of the backup that was not found': {
      ...ACKNOWLEDGED,
      notFound: [{ proofId: 'prf_old', sentAt: 330 }],
    },
    'a proof that was not found before': {
      ...ACKNOWLEDGED,
      notFound: [{ proofId: 'prf_lost', sentAt: 155 }],
    },
    'a verdict of an erased proof': {
      ...ACKNOWLEDGED,
      verified: ACKNOWLEDGED.verified.with(2, {
        partnerId,
        proofId: 'prf_gone',
        sentAt: 340,
        at: 341,
        verdict: 'valid',
      }),
    },
    'a verdict of a kept proof': {
      ...ACKNOWLEDGED,
      verified: ACKNOWLEDGED.verified.with(0, {
        partnerId,
        proofId: 'prf_old',
        sentAt: 20,
        at: 21,
        verdict: 'unregistered',
      }),
    },
  };
  for (const [name, changed] of Object.entries(acknowledged))
    t.equal(judgeRestored(changed, OBSERVED).length, 1, name);
});
