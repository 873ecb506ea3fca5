/** Tests the checkers of histories. Sound histories pass, and each kind of violation is found. */
import t from 'tap';
import {
  faultOfHistory,
  type History,
  type IssuingOperation,
  type KeyOperation,
  type PlaceOperation,
  PROOF,
  type ProofOperation,
  type QuotaOperation,
} from './history.js';
import { isLinearizable } from './linearizable.js';
import { faultsOfLog, faultsOfSet, type LogRead, type SetRead, strangersIn } from './sets.js';

type Row<Call, Result> = readonly [call: Call, sentAt: number, at?: number, result?: Result];

const operation = <Call, Result>([call, sentAt, at, result]: Row<Call, Result>) =>
  at === undefined || result === undefined ? { call, sentAt } : { call, sentAt, answer: { at, result } };

type Rows<One extends { readonly call: unknown; readonly answer?: { readonly result: unknown } }> =
  readonly Row<One['call'], NonNullable<One['answer']>['result']>[];
const proof = (...rows: Rows<ProofOperation>): History => ({
  of: 'proof',
  name: 'prf_1',
  operations: rows.map(operation),
});
const key = (...rows: Rows<KeyOperation>): History => ({
  of: 'key',
  name: 'key_1',
  operations: rows.map(operation),
});
const quota = (...rows: Rows<QuotaOperation>): History => ({
  of: 'quota',
  name: 'ptr_1',
  used: 998,
  limit: 1000,
  operations: rows.map(operation),
});
const issuing = (...rows: Rows<IssuingOperation>): History => ({
  of: 'issuing',
  name: 'idempotency',
  operations: rows.map(operation),
});
const place = (...rows: Rows<PlaceOperation>): History => ({
  of: 'place',
  name: 'prf_1',
  operations: rows.map(operation),
});

const look = { does: 'look' } as const;
const erase = { does: 'erase' } as const;
const there = { seen: true };
const gone = { seen: false };
const erasedAt = (at: number) => ({ outcome: 'erased', erasedAt: at }) as const;
const already = (at: number) => ({ outcome: 'already_erased', erasedAt: at }) as const;

const use = { does: 'use' } as const;
const revoke = { does: 'revoke' } as const;
const list = { does: 'list' } as const;
const rotate = (idempotencyKey: string) => ({ does: 'rotate', idempotencyKey }) as const;
const done = { done: true } as const;
const forbidden = { refused: 'forbidden' };
const keyIs = (status: string, ...successors: readonly string[]) => ({ status, successors });

const read = { does: 'read' } as const;
const verify = (uploadId: string) => ({ does: 'verify', uploadId }) as const;
const exceeded = { refused: 'quota_exceeded' };

const A = { song: 'A' };
const B = { song: 'B' };
const reused = { refused: 'idempotency_key_reused' };

const create = { does: 'create' } as const;
const resolve = (reviewId: string) => ({ does: 'resolve', reviewId }) as const;
const readReview = (reviewId: string) => ({ does: 'read', reviewId }) as const;
const created = (reviewId: string) => ({ reviewId });
const exists = { refused: 'review_exists' };
const notFound = { refused: 'not_found' };
const outcomeIs = (outcome: 'open' | 'accepted') => ({ outcome });
const erased = { erased: true } as const;

const SOUND: Readonly<Record<string, History>> = {
  'a proof is read, erased and not read': proof(
    [look, 0, 1, there],
    [erase, 2, 3, erasedAt(7)],
    [look, 4, 5, gone],
    [erase, 6, 7, already(7)],
  ),
  'reads during an erasure return either state': proof(
    [erase, 0, 9, erasedAt(7)],
    [look, 1, 2, there],
    [look, 3, 4, gone],
  ),
  'an unanswered erasure took effect later': proof(
    [erase, 0],
    [look, 5, 6, there],
    [look, 7, 8, gone],
    [erase, 9, 10, already(7)],
  ),
  'an unanswered erasure never took effect': proof([erase, 0], [look, 5, 6, there]),
  'an erasure ran at once with an abandoned one': proof(
    [erase, 0],
    [erase, 1, 2, erasedAt(7)],
    [look, 3, 4, gone],
  ),
  'a key is rotated, replayed, refused to another, and revoked': key(
    [use, 0, 1, done],
    [rotate('a'), 2, 3, { successor: 'key_2' }],
    [rotate('a'), 4, 5, { successor: 'key_2' }],
    [rotate('b'), 4, 5, { refused: 'already_rotated' }],
    [list, 6, 7, keyIs('expiring', 'key_2')],
    [use, 6, 7, done],
    [revoke, 8, 9, done],
    [use, 10, 11, forbidden],
    [rotate('a'), 10, 11, forbidden],
    [list, 10, 11, keyIs('revoked', 'key_2')],
  ),
  'an unanswered rotation is found in the list, and replayed': key(
    [rotate('a'), 0],
    [list, 1, 2, keyIs('active')],
    [list, 3, 4, keyIs('expiring', 'key_2')],
    [rotate('a'), 5, 6, { successor: 'key_2' }],
  ),
  'two units are left for four': quota(
    [verify('1'), 0, 9, done],
    [verify('2'), 0, 9, exceeded],
    [verify('3'), 0, 9, done],
    [verify('4'), 0, 9, exceeded],
    [read, 10, 11, { used: 1000 }],
  ),
  'an upload is billed once': quota(
    [verify('1'), 0, 1, done],
    [verify('1'), 2, 3, done],
    [read, 4, 5, { used: 999 }],
    [verify('2'), 6, 7, done],
    [verify('1'), 8, 9, done],
    [verify('3'), 8, 9, exceeded],
  ),
  'an unanswered verify took a unit': quota(
    [verify('1'), 0],
    [verify('2'), 1, 2, done],
    [verify('3'), 3, 4, exceeded],
  ),
  'one song under an Idempotency-Key': issuing(
    [A, 0, 9, { proofId: 'prf_1' }],
    [B, 0, 9, reused],
    [A, 10, 11, { proofId: 'prf_1' }],
  ),
  'a second creation is refused until the first review is resolved': place(
    [create, 0, 9, exists],
    [create, 0, 9, created('rev_1')],
    [readReview('rev_1'), 10, 11, outcomeIs('open')],
    [resolve('rev_1'), 12, 13, outcomeIs('accepted')],
    [create, 14, 15, created('rev_2')],
    [readReview('rev_1'), 16, 17, outcomeIs('accepted')],
  ),
  'a creation at once with a resolution': place(
    [create, 0, 1, created('rev_1')],
    [resolve('rev_1'), 2, 9, outcomeIs('accepted')],
    [create, 2, 8, exists],
    [create, 3, 7, created('rev_2')],
  ),
  'an unanswered creation takes the place': place([create, 0], [create, 1, 2, exists]),
  'a creation beside an erasure': place(
    [create, 0, 9, created('rev_1')],
    [erase, 0, 9, erased],
    [create, 10, 11, notFound],
    [resolve('rev_1'), 10, 11, notFound],
  ),
  'an unanswered song took the key': issuing([B, 0], [A, 1, 2, reused], [B, 3, 4, { proofId: 'prf_1' }]),
};

const UNSOUND: Readonly<Record<string, History>> = {
  'an erased proof is read': proof([erase, 0, 1, erasedAt(7)], [look, 2, 3, there]),
  'an erased proof comes back': proof([erase, 0, 9, erasedAt(7)], [look, 1, 2, gone], [look, 3, 4, there]),
  'a proof is gone without an erasure': proof([look, 0, 1, gone]),
  'a proof is gone before its erasure was asked for': proof([look, 0, 1, gone], [erase, 2, 3, erasedAt(7)]),
  'two erasures are both the first': proof([erase, 0, 9, erasedAt(7)], [erase, 0, 9, erasedAt(7)]),
  'a repeat has another time': proof([erase, 0, 1, erasedAt(7)], [erase, 2, 3, already(8)]),
  'a first erasure is a repeat': proof([erase, 0, 1, already(7)]),
  'an unanswered erasure is taken back': proof([erase, 0], [look, 1, 2, gone], [look, 3, 4, there]),
  'a key has two successors': key(
    [rotate('a'), 0, 9, { successor: 'key_2' }],
    [rotate('b'), 0, 9, { successor: 'key_3' }],
  ),
  'a replay gives another key': key(
    [rotate('a'), 0, 1, { successor: 'key_2' }],
    [rotate('a'), 2, 3, { successor: 'key_3' }],
  ),
  'a list has a successor more': key(
    [rotate('a'), 0, 1, { successor: 'key_2' }],
    [list, 2, 3, keyIs('expiring', 'key_2', 'key_3')],
  ),
  'a list has another successor than the rotation gave': key(
    [rotate('a'), 0, 1, { successor: 'key_2' }],
    [list, 2, 3, keyIs('expiring', 'key_3')],
  ),
  'a list has lost the successor': key(
    [rotate('a'), 0, 1, { successor: 'key_2' }],
    [list, 2, 3, keyIs('active')],
  ),
  'a revoked key opens': key([revoke, 0, 1, done], [use, 2, 3, done]),
  'a revoked key is rotated': key([revoke, 0, 1, done], [rotate('a'), 2, 3, { successor: 'key_2' }]),
  'a key is refused before its revocation': key([use, 0, 1, forbidden], [revoke, 2, 3, done]),
  'a rotation is refused where there is none': key([rotate('a'), 0, 1, { refused: 'already_rotated' }]),
  'a unit more than the month has': quota(
    [verify('1'), 0, 9, done],
    [verify('2'), 0, 9, done],
    [verify('3'), 0, 9, done],
  ),
  'refused with a unit left': quota([verify('1'), 0, 1, done], [verify('2'), 2, 3, exceeded]),
  'an upload is billed twice': quota(
    [verify('1'), 0, 1, done],
    [verify('1'), 2, 3, done],
    [read, 4, 5, { used: 1000 }],
  ),
  'an upload that was billed is refused': quota(
    [verify('1'), 0, 1, done],
    [verify('2'), 0, 1, done],
    [verify('1'), 2, 3, exceeded],
  ),
  'the counter goes back': quota(
    [verify('1'), 0, 9, done],
    [read, 1, 2, { used: 999 }],
    [read, 3, 4, { used: 998 }],
  ),
  'two songs under one Idempotency-Key': issuing(
    [A, 0, 9, { proofId: 'prf_1' }],
    [B, 0, 9, { proofId: 'prf_2' }],
  ),
  'a song is issued twice': issuing([A, 0, 1, { proofId: 'prf_1' }], [A, 2, 3, { proofId: 'prf_2' }]),
  'two unresolved reviews have the same bindings': place(
    [create, 0, 9, created('rev_1')],
    [create, 0, 9, created('rev_2')],
  ),
  'a place is free before the resolution': place(
    [create, 0, 1, created('rev_1')],
    [create, 2, 3, created('rev_2')],
    [resolve('rev_1'), 4, 5, outcomeIs('accepted')],
  ),
  'a place stays taken by a resolved review': place(
    [create, 0, 1, created('rev_1')],
    [resolve('rev_1'), 2, 3, outcomeIs('accepted')],
    [create, 4, 5, exists],
  ),
  'a place is taken without a creation': place([create, 0, 1, exists]),
  'a review is created after the erasure': place([erase, 0, 1, erased], [create, 2, 3, created('rev_1')]),
  'a review outlives the erasure': place(
    [create, 0, 1, created('rev_1')],
    [erase, 2, 3, erased],
    [readReview('rev_1'), 4, 5, outcomeIs('open')],
  ),
  'a resolution is lost': place(
    [create, 0, 1, created('rev_1')],
    [resolve('rev_1'), 2, 3, outcomeIs('accepted')],
    [readReview('rev_1'), 4, 5, outcomeIs('open')],
  ),
  'a key is reused without a first use': issuing([A, 0, 1, reused]),
};

t.test('a history that one order explains is sound', async (t) => {
  for (const [name, history] of Object.entries(SOUND)) t.strictSame(faultOfHistory(history), undefined, name);
});

t.test('a history that no order explains is a violation', async (t) => {
  for (const [name, history] of Object.entries(UNSOUND))
    t.match(faultOfHistory(history), /^not linearizable: \[/, name);
});

t.test('the checker agrees with every order tried one by one', async (t) => {
  // Half of the small random histories must be unsound.
  let state = 7;
  const random = (below: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
  const results = [there, gone, erasedAt(7), already(7)];
  const outcomes = { true: 0, false: 0 };
  for (let round = 0; round < 3000; round += 1) {
    const operations = Array.from({ length: 1 + random(5) }, (): ProofOperation => {
      const result = results[random(4)]!;
      const sentAt = random(10);
      const call = 'seen' in result ? look : erase;
      return random(5) === 0
        ? { call, sentAt }
        : { call, sentAt, answer: { at: sentAt + random(6), result } };
    });
    const expected = isExplained(operations, PROOF.initial);
    outcomes[`${expected}`] += 1;
    if (isLinearizable(PROOF, operations) !== expected) t.fail(JSON.stringify(operations));
  }
  t.ok(outcomes.true > 300 && outcomes.false > 300, JSON.stringify(outcomes));
});

/** Implements the definition of linearizability without any shortcut. */
function isExplained(left: readonly ProofOperation[], state: typeof PROOF.initial): boolean {
  if (left.every(({ answer }) => answer === undefined)) return true;
  return left.some((one, index) => {
    if (left.some(({ answer }) => answer !== undefined && answer.at < one.sentAt)) return false;
    const next = PROOF.next(state, one.call, one.answer?.result);
    return next !== undefined && isExplained(left.toSpliced(index, 1), next);
  });
}

t.test('the checker judges many concurrent calls, right and wrong', async (t) => {
  const calls = (units: number): History => ({
    of: 'quota',
    name: 'ptr_1',
    used: 1000 - 20,
    limit: 1000,
    operations: Array.from({ length: 60 }, (_, index) =>
      operation([verify(String(index)), index % 3, 100 + index, index < units ? done : exceeded]),
    ),
  });
  t.strictSame(faultOfHistory(calls(20)), undefined);
  t.match(faultOfHistory(calls(21)), /not linearizable/);
  t.match(faultOfHistory(calls(19)), /not linearizable/);
});

t.test('the checker judges an outage without answers, right and wrong', async (t) => {
  // Six of twenty unanswered verifies took effect. Then all twenty are repeated.
  const calls = (alsoDone: number): History => ({
    of: 'quota',
    name: 'ptr_1',
    used: 990,
    limit: 1000,
    operations: Array.from({ length: 20 }, (_, index) => index).flatMap((index) => [
      operation([verify(String(index)), index % 3]),
      operation([
        verify(String(index)),
        100 + 2 * index,
        101 + 2 * index,
        index < alsoDone || index >= 14 ? done : exceeded,
      ]),
    ]),
  });
  t.strictSame(faultOfHistory(calls(4)), undefined);
  t.match(faultOfHistory(calls(5)), /^not linearizable/);
  t.match(faultOfHistory(calls(3)), /^not linearizable/);
});

t.test('a read set is sound when it lacks, repeats and keeps no member', async (t) => {
  const members = [
    { name: 'old', addedAt: 0 },
    { name: 'new', addedAt: 15 },
    { name: 'leaving', addedAt: 0, removeAskedAt: 14 },
    { name: 'left', addedAt: 0, removeAskedAt: 3, removedAt: 5 },
  ];
  const given = (...seen: readonly string[]): SetRead => ({ sentAt: 10, at: 20, seen });
  const faults = (...seen: readonly string[]) => [...faultsOfSet(given(...seen), members)];
  t.strictSame(faults('old', 'new', 'leaving'), []);
  t.strictSame(faults('old'), []);
  t.strictSame(faults('new'), ['old is missing']);
  t.strictSame(faults('old', 'left'), ['left is there after its removal']);
  t.strictSame(faults('old', 'old'), ['old is there 2 times']);
  t.strictSame(strangersIn(given('old', 'other', 'other'), members), ['other']);
});

t.test('reads of a log are sound when they are parts of one append-only log', async (t) => {
  const log = ['a', 'b', 'c', 'd'];
  const given = (sentAt: number, from: number, ...entries: readonly string[]): LogRead => ({
    sentAt,
    at: sentAt + 5,
    from,
    entries,
    whole: true,
    serversQuietSince: -Infinity,
    quietSince: -Infinity,
  });
  const faults = (...reads: readonly LogRead[]) => [...faultsOfLog(reads, log)];
  t.strictSame(faults(), []);
  t.strictSame(faults(given(0, 0, 'a', 'b'), given(10, 1, 'b', 'c', 'd'), given(20, 4)), []);
  t.strictSame(faults(given(0, 0, 'a', 'b', 'c'), given(4, 0, 'a', 'b')), [], 'reads at once');
  t.strictSame(faults(given(0, 0, 'b', 'a')), ['entry 0 was b and is a'], 'another order');
  t.strictSame(faults(given(0, 3, 'd', 'e')), ['entry 4 was e and is not there'], 'a lost entry');
  t.strictSame(faults(given(0, 0, 'a', 'x', 'b')), ['entry 1 was x and is b'], 'an entry that was taken out');
  t.strictSame(
    faults(given(0, 0, 'a', 'b', 'c'), given(10, 1, 'b')),
    ['it had 3 entries and then 2'],
    'a shorter log afterwards',
  );
  t.strictSame(faults(given(0, 0, 'a'), given(10, 0)), ['it had 1 entries and then 0'], 'an empty one');
});

t.test('a log has an acknowledged entry at once in its process, and after a minute in any', async (t) => {
  const log = ['proof_issued prf_1', 'review_created rev_1 prf_1', 'proof_erased prf_1'];
  const issued = { entry: 'proof_issued prf_1', at: 100_000, process: 'service-1/1' };
  const created = { entry: 'review_created rev_1', at: 100_010, process: 'service-1/1' };
  const lacking = (entries: number, over: Partial<LogRead>) =>
    [
      ...faultsOfLog(
        [
          {
            sentAt: 100_020,
            at: 100_030,
            from: 0,
            entries: log.slice(0, entries),
            whole: true,
            process: 'service-1/1',
            serversQuietSince: -Infinity,
            quietSince: -Infinity,
            ...over,
          },
        ],
        log,
        [issued, created],
      ),
    ].map((fault) => fault.split(' was answered')[0]);
  t.strictSame(lacking(2, {}), []);
  t.strictSame(lacking(1, {}), ['review_created rev_1'], 'the process that answered');
  t.strictSame(lacking(0, {}), ['proof_issued prf_1', 'review_created rev_1']);
  t.strictSame(lacking(0, { sentAt: 100_005 }), ['proof_issued prf_1'], 'a read before an answer');
  t.strictSame(lacking(1, { entries: log.slice(0, 1), whole: false }), [], 'a page of it');
  for (const process of ['service-2/1', 'service-1/2', undefined]) {
    t.strictSame(lacking(0, { process }), [], `${process} has a minute`);
    t.strictSame(lacking(1, { process, sentAt: 160_020 }), ['review_created rev_1'], `${process}, later`);
    t.strictSame(
      lacking(0, { process, sentAt: 160_020, quietSince: 100_100 }),
      [],
      'a minute without faults',
    );
    t.strictSame(lacking(0, { process, sentAt: 260_020, quietSince: Infinity }), [], 'a fault under way');
  }
  t.strictSame(lacking(1, { quietSince: Infinity }), ['review_created rev_1'], 'somebody else was killed');
  t.strictSame(lacking(0, { serversQuietSince: Infinity }), [], 'a server was away');
  t.strictSame(lacking(0, { serversQuietSince: 99_000 }), [], 'a server is back just now');
});
