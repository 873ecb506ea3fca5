/** Tests the checks of a fault run. Sound made-up runs pass, and each kind of damage is found. */
import t from 'tap';
import {
  proofErased,
  reviewCreated,
  type ServiceEvent,
  unitsCounted,
} from '../../../src/service/domain/events.js';
import { faultOf, latenessOf } from './calls.js';
import { REVIEW, type ReviewCall, type ReviewOperation, type ReviewState } from './history.js';
import {
  judge,
  judgeCounts,
  type Observed,
  type ObservedCase,
  type ObservedPartner,
  type ObservedProof,
  PLAYED,
  textOfEntry,
} from './judge.js';
import { Ledger } from './ledger.js';
import { isLinearizable } from './linearizable.js';
import { AT, GONE, THERE } from './observed-proofs.js';

const OPEN: ReviewState = { outcome: 'open', evidence: {} };
const asked = (status: 'requested' | 'supplied' | 'accepted' | 'declined'): ReviewState => ({
  outcome: 'open',
  evidence: { source_evidence: status },
});
const open: ReviewCall = { does: 'open', kind: 'source_evidence' };
const accept: ReviewCall = { does: 'accept', kind: 'source_evidence' };
const decline: ReviewCall = { does: 'decline', kind: 'source_evidence' };
const said = (
  call: ReviewCall,
  sentAt: number,
  at: number,
  result: ReviewState | string,
): ReviewOperation => ({
  call,
  sentAt,
  answer: { at, result: typeof result === 'string' ? { refused: result } : { state: result } },
});
const ERASED: ReviewOperation = {
  call: { does: 'erase' },
  sentAt: 2,
  answer: { at: 3, result: { erased: true } },
};
const unanswered = (call: ReviewCall, sentAt: number): ReviewOperation => ({ call, sentAt });

t.comment(
  'npm test does not run the cluster tests, because they start servers and need Java: npm run test:cluster, npm run chaos.',
);

t.test('a history of a review is accepted only where one order explains it', async (t) => {
  const legal: Readonly<Record<string, readonly ReviewOperation[]>> = {
    nothing: [],
    'one after the other': [
      said(open, 0, 1, asked('requested')),
      said(accept, 2, 3, asked('accepted')),
      said(decline, 4, 5, 'evidence_request_final'),
    ],
    'at once, in either order': [
      said(open, 0, 1, asked('requested')),
      said(accept, 2, 9, 'evidence_request_final'),
      said(decline, 2, 9, asked('declined')),
    ],
    'unanswered, and it took effect': [
      unanswered(open, 0),
      said({ does: 'read' }, 5, 6, OPEN),
      said({ does: 'read' }, 7, 8, asked('requested')),
    ],
    'unanswered, and it did not': [
      unanswered(open, 0),
      said({ does: 'read' }, 5, 6, OPEN),
      said(open, 7, 8, asked('requested')),
    ],
    'gone with its proof': [
      said(open, 0, 3, asked('requested')),
      ERASED,
      said({ does: 'read' }, 2, 9, 'not_found'),
      said(accept, 4, 5, 'not_found'),
    ],
    'held, then accepted': [
      said({ does: 'resolve', outcome: 'held' }, 0, 1, { outcome: 'held', evidence: {} }),
      said({ does: 'resolve', outcome: 'accepted' }, 2, 3, { outcome: 'accepted', evidence: {} }),
    ],
  };
  for (const [name, operations] of Object.entries(legal)) t.ok(isLinearizable(REVIEW, operations), name);
  const illegal: Readonly<Record<string, readonly ReviewOperation[]>> = {
    'a kind opened twice': [said(open, 0, 1, asked('requested')), said(open, 2, 3, asked('requested'))],
    'a final answer changed': [
      said(open, 0, 1, asked('requested')),
      said(accept, 2, 3, asked('accepted')),
      said(decline, 4, 5, asked('declined')),
    ],
    'both of two that exclude each other': [
      said(open, 0, 1, asked('requested')),
      said(accept, 2, 9, asked('accepted')),
      said(decline, 2, 9, asked('declined')),
    ],
    'an acknowledged change was lost': [
      said(open, 0, 1, asked('requested')),
      said({ does: 'read' }, 2, 3, OPEN),
    ],
    'a change before it was asked for': [
      said({ does: 'read' }, 0, 1, asked('requested')),
      said(open, 2, 3, asked('requested')),
    ],
    'an unanswered one took effect and was taken back': [
      unanswered(open, 0),
      said({ does: 'read' }, 1, 2, asked('requested')),
      said({ does: 'read' }, 3, 4, OPEN),
    ],
    'resolved with an open request': [
      said(open, 0, 1, asked('requested')),
      said({ does: 'resolve', outcome: 'accepted' }, 2, 3, {
        outcome: 'accepted',
        evidence: { source_evidence: 'requested' },
      }),
    ],
    'a review that outlived its proof': [
      said(open, 0, 1, asked('requested')),
      ERASED,
      said({ does: 'read' }, 4, 5, asked('requested')),
    ],
    'a change after the erasure of its proof': [ERASED, said(open, 4, 5, asked('requested'))],
    'a review that was gone before': [said({ does: 'read' }, 0, 1, 'not_found'), ERASED],
    'refused for the wrong reason': [
      said({ does: 'resolve', outcome: 'accepted' }, 0, 1, 'evidence_requests_open'),
    ],
  };
  for (const [name, operations] of Object.entries(illegal)) t.notOk(isLinearizable(REVIEW, operations), name);
});

const WITHOUT_LOG: Omit<ObservedPartner, 'audit'> = {
  used: [2, 2],
  daily: [2, 2],
  folded: 2,
  keys: ['key_1', 'key_2'],
  auditOk: [true, true],
  listed: new Set(['prf_kept']),
};
const LOG: ObservedPartner['audit'] = [
  { action: 'key_created', subjects: ['key_1'] },
  { action: 'proof_issued', subjects: ['prf_kept'] },
  { action: 'proof_issued', subjects: ['prf_gone'] },
  { action: 'key_rotated', subjects: ['key_1', 'key_2'] },
  { action: 'review_created', subjects: ['rev_1', 'prf_kept'] },
  { action: 'proof_erased', subjects: ['prf_gone'] },
];
const found = (state: ReviewState): ObservedCase => ({
  status: 200,
  read: said({ does: 'read' }, 9, 10, state),
});
const SEEN: ObservedPartner = { ...WITHOUT_LOG, audit: LOG };

function soundRun(): { readonly ledger: Ledger; readonly observed: Observed } {
  const ledger = new Ledger();
  ledger.partner({ partnerId: 'ptr_1', apiKey: 'secret' });
  ledger.issue({ proofId: 'prf_kept', partnerId: 'ptr_1', sha256: 'a' });
  ledger.issue({ proofId: 'prf_gone', partnerId: 'ptr_1', sha256: 'b' });
  ledger.erase({ proofId: 'prf_gone', partnerId: 'ptr_1', erasedAt: AT });
  for (const uploadId of ['upl_1', 'upl_2', 'upl_2']) ledger.bill({ partnerId: 'ptr_1', uploadId });
  ledger.rotate({ partnerId: 'ptr_1', keyId: 'key_1', newKeyId: 'key_2', newApiKey: 'other' });
  ledger.review({
    reviewId: 'rev_1',
    proofId: 'prf_kept',
    partnerId: 'ptr_1',
    operations: [said(open, 0, 1, asked('requested'))],
  });
  const counted = unitsCounted(
    {
      partnerId: 'ptr_1',
      source: 'billed/2027-01',
      from: 0,
      to: 2,
      counts: [{ day: '2027-01-15', operation: 'verify', units: 2 }],
    },
    AT,
  );
  const erasure = proofErased({ proofId: 'prf_gone', partnerId: 'ptr_1', erasedAt: AT });
  const created = reviewCreated({
    reviewId: 'rev_1',
    partnerId: 'ptr_1',
    proofId: 'prf_kept',
    createdAt: AT,
    expiresAt: AT + 100,
  });
  return {
    ledger,
    observed: {
      proofs: new Map([
        ['prf_kept', THERE],
        ['prf_gone', GONE],
      ]),
      partners: new Map([['ptr_1', SEEN]]),
      verdicts: new Map([['prf_kept', 'valid']]),
      successors: new Map([['key_2', [200, 200]]]),
      reviews: new Map([['rev_1', [found(asked('requested')), found(asked('requested'))]]]),
      notices: new Map([['rev_1', ['review_expired', 'review_expiring']]]),
      rows: [{ table: 'proof_by_partner', proofId: 'prf_kept' }],
      // An event is published twice after a crash between publishing it and marking it as published.
      events: [erasure, counted, created, erasure, counted],
      deadLetters: 0,
    },
  };
}

t.test('a sound run has no violation', async (t) => {
  const { ledger, observed } = soundRun();
  t.strictSame(judge(ledger, observed), []);
});

t.test('every kind of damage to a run is found', async (t) => {
  const proof =
    (over: Partial<ObservedProof>, base = GONE) =>
    (run: Observed): Observed => ({
      ...run,
      proofs: new Map([...run.proofs, [base === GONE ? 'prf_gone' : 'prf_kept', { ...base, ...over }]]),
    });
  const partner =
    (over: Partial<ObservedPartner>) =>
    (run: Observed): Observed => ({ ...run, partners: new Map([['ptr_1', { ...SEEN, ...over }]]) });
  const events =
    (change: (events: readonly ServiceEvent[]) => readonly ServiceEvent[]) =>
    (run: Observed): Observed => ({ ...run, events: change(run.events) });
  const second = unitsCounted(
    { partnerId: 'ptr_1', source: 'billed/2027-01', from: 1, to: 3, counts: [] },
    AT,
  );
  const damages: Readonly<Record<string, (run: Observed) => Observed>> = {
    'a lost proof': proof({ statuses: [200, 404] }, THERE),
    'a proof that lists leave out': proof({ listed: false }, THERE),
    'a lost deliverable': proof({ assetPresent: false }, THERE),
    'a proof that verifies as another': (run) => ({
      ...run,
      verdicts: new Map([['prf_kept', 'unregistered']]),
    }),
    'an erased proof that one process still has': proof({ statuses: [404, 200] }),
    'an erased proof in a list': proof({ listed: true }),
    'a deliverable that stayed': proof({ assetPresent: true }),
    'an erasure at another time': proof({ erasedAt: AT + 5 }),
    'an erasure that was not confirmed': (run) => ({
      ...run,
      proofs: new Map([...run.proofs, ['prf_gone', (({ confirmedAt: _, ...rest }) => rest)(GONE)]]),
    }),
    'a row of an erased proof': (run) => ({
      ...run,
      rows: [{ table: 'proof_by_bound', proofId: 'prf_gone' }],
    }),
    'an erasure without an event': events((all) => all.filter(({ topic }) => topic !== 'erasure')),
    'two erasure events': events((all) => [
      ...all,
      { ...proofErased({ proofId: 'prf_gone', partnerId: 'ptr_1', erasedAt: AT }), id: 'proof_erased/other' },
    ]),
    'an erasure event of a proof that was not': events((all) => [
      ...all,
      proofErased({ proofId: 'prf_kept', partnerId: 'ptr_1', erasedAt: AT }),
    ]),
    'a call charged twice': partner({ used: [3, 3] }),
    'a call not charged': partner({ used: [1, 1] }),
    'processes that do not agree': partner({ used: [2, 1] }),
    'days that do not add up': partner({ daily: [2, 3] }),
    'a fold that counted twice': partner({ folded: 4 }),
    'an event that was lost': events((all) => all.filter(({ topic }) => topic !== 'usage')),
    'spans that overlap': events((all) => [...all, second]),
    'a second successor': partner({ keys: ['key_1', 'key_2', 'key_3'] }),
    'a lost successor': partner({ keys: ['key_1'] }),
    'a new secret that does not work': (run) => ({ ...run, successors: new Map([['key_2', [200, 403]]]) }),
    'a lost case': (run) => ({
      ...run,
      reviews: new Map([['rev_1', [{ status: 404 }, found(asked('requested'))]]]),
    }),
    'a case that lost what was done to it': (run) => ({
      ...run,
      reviews: new Map([['rev_1', [found(asked('requested')), found(OPEN)]]]),
    }),
    'a record that is another on one process': proof({ records: ['r', 'other'] }, THERE),
    'a document that is another on one process': proof({ documents: ['d', 'other'] }, THERE),
    'a deliverable that is another file': proof({ assets: ['other', 'other'] }, THERE),
    'an erasure event of an unknown proof': events((all) => [
      ...all,
      proofErased({ proofId: 'prf_unknown', partnerId: 'ptr_1', erasedAt: AT }),
    ]),
    'a review event of an unknown review': events((all) => [
      ...all,
      reviewCreated({
        reviewId: 'rev_unknown',
        partnerId: 'ptr_1',
        proofId: 'prf_kept',
        createdAt: AT,
        expiresAt: AT + 100,
      }),
    ]),
    'a case without an event': events((all) => all.filter(({ topic }) => topic !== 'retention')),
    'a broken audit log': partner({ auditOk: [true, false] }),
    'a proof that was never acknowledged': partner({ listed: new Set(['prf_kept', 'prf_phantom']) }),
    'an audit entry that is missing': partner({ audit: LOG.slice(0, -1) }),
    'an audit entry that is there twice': partner({ audit: [...LOG, LOG[3]!] }),
    'a case that will not be announced': (run) => ({
      ...run,
      notices: new Map([['rev_1', ['review_expired']]]),
    }),
    'a dead letter': (run) => ({ ...run, deadLetters: 1 }),
  };
  for (const [name, damage] of Object.entries(damages)) {
    const { ledger, observed } = soundRun();
    t.equal(judge(ledger, damage(observed)).length, 1, name);
  }
  const ledgers: Readonly<Record<string, (ledger: Ledger) => unknown>> = {
    'a proof that is not there': (ledger) =>
      ledger.issue({ proofId: 'prf_other', partnerId: 'ptr_1', sha256: 'c' }),
    'one billable call more': (ledger) => ledger.bill({ partnerId: 'ptr_1', uploadId: 'upl_3' }),
    'an erasure that did not happen': (ledger) =>
      ledger.erase({ proofId: 'prf_kept', partnerId: 'ptr_1', erasedAt: AT }),
    'a proof in a list that was never issued': (ledger) =>
      ledger.strangers.push({ partnerId: 'ptr_1', name: 'prf_phantom', where: 'a list' }),
    'a log that was read otherwise': (ledger) =>
      ledger.logRead('ptr_1', { sentAt: 0, from: 1, entries: ['key_created key_1'], whole: true }),
    'a log without what its process had answered': (ledger) => {
      ledger.log('ptr_1', 'review_created rev_1', 'service-1/1');
      const sentAt = ledger.now() + 1;
      const entries = LOG.slice(0, 4).map(textOfEntry);
      ledger.logRead('ptr_1', { sentAt, from: 0, entries, whole: true, process: 'service-1/1' });
    },
    'a history that no order explains': (ledger) =>
      ledger.history({
        of: 'issuing',
        name: 'idempotency',
        operations: [
          { call: { song: 'A' }, sentAt: 0, answer: { at: 1, result: { proofId: 'prf_1' } } },
          { call: { song: 'A' }, sentAt: 2, answer: { at: 3, result: { proofId: 'prf_2' } } },
        ],
      }),
    'a case in an impossible state': (ledger) =>
      ledger.review({
        reviewId: 'rev_1',
        proofId: 'prf_kept',
        partnerId: 'ptr_1',
        operations: [said(open, 0, 1, OPEN)],
      }),
  };
  for (const [name, change] of Object.entries(ledgers)) {
    const { ledger, observed } = soundRun();
    change(ledger);
    t.not(judge(ledger, observed).length, 0, name);
  }
});

t.test('a response is a violation when the contract does not define it', async (t) => {
  const headers = new Headers({ 'x-request-id': 'req_1' });
  const later = new Headers({ 'x-request-id': 'req_1', 'retry-after': '1' });
  const json = { error: 'Words.', code: 'unavailable' };
  t.equal(faultOf({ status: 200, headers, json: {} }), undefined);
  t.equal(faultOf({ status: 503, headers: later, json }), undefined);
  t.match(faultOf({ status: 503, headers, json }), /Retry-After/);
  t.match(faultOf({ status: 503, headers: later, json: undefined }), /error body/);
  t.match(faultOf({ status: 500, headers, json: { error: 'Words.', code: 'internal' } }), /internal/);
  t.match(faultOf({ status: 200, headers: new Headers(), json: {} }), /X-Request-Id/);
});

t.test('a late call is a violation, unless the machine delayed it', async (t) => {
  const partner = { path: '/v1/verify', stall: 0, waited: 0 };
  t.equal(latenessOf({ ...partner, took: 14_000 }), 'in time');
  t.equal(latenessOf({ ...partner, took: 16_000 }), 'late');
  t.equal(latenessOf({ ...partner, took: 16_000, stall: 2000 }), 'excused');
  t.equal(latenessOf({ ...partner, took: 16_000, waited: 2000 }), 'excused');
  const operator = { path: '/operator/v1/proofs', stall: 0, waited: 0 };
  t.equal(latenessOf({ ...operator, took: 58_000 }), 'in time');
  t.equal(latenessOf({ ...operator, took: 60_000 }), 'late');
  t.equal(latenessOf({ ...operator, took: 60_000, stall: 50_000 }), 'late', 'no answer came');
  t.equal(latenessOf({ ...operator, took: 60_000, waited: 30_000 }), 'late', 'it ran for long enough');
  t.equal(latenessOf({ ...operator, took: 60_000, waited: 57_600 }), 'excused', 'it hardly ran');
});

t.test('a run fails when a demanded count is zero', async (t) => {
  const demanded = [...PLAYED, 'faults: kill'];
  const counts = Object.fromEntries(demanded.map((what) => [what, 1]));
  t.strictSame(judgeCounts(counts, demanded), []);
  for (const what of demanded) {
    t.strictSame(judgeCounts({ ...counts, [what]: 0 }, demanded), [`the run has no ${what}`]);
    const { [what]: _, ...others } = counts;
    t.strictSame(judgeCounts(others, demanded), [`the run has no ${what}`]);
  }
});

t.test('a ledger reports since when no server, and since when no process, had a fault', async (t) => {
  const ledger = new Ledger();
  const read = () => {
    ledger.logRead('ptr_1', { sentAt: ledger.now(), from: 0, entries: [], whole: true });
    const { serversQuietSince, quietSince } = ledger.logReads.get('ptr_1')!.at(-1)!;
    return [serversQuietSince, quietSince].map((since) => (Number.isFinite(since) ? 'since' : since));
  };
  t.strictSame(read(), [-Infinity, -Infinity]);
  const [one, other] = [ledger.disturb('servers'), ledger.disturb('servers')];
  one();
  t.strictSame(read(), [Infinity, Infinity], 'the other one is under way');
  other();
  t.strictSame(read(), ['since', 'since']);
  const killed = ledger.disturb('members');
  t.strictSame(read(), ['since', Infinity]);
  killed();
  t.strictSame(read(), ['since', 'since']);
});
