/**
 * The parts of the partner contract that need no store: limits, cursors, state tables, audit chain,
 * derivation.
 */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { DomainError } from '../../src/core/domain/errors.js';
import { createIds } from '../../src/service/adapters/system/system.js';
import { readConfig } from '../../src/service/config/config.js';
import { type AuditEntry, type AuditHead, AuditWalk, chainAudit } from '../../src/service/domain/audit.js';
import {
  keyStatus,
  type PartnerKey,
  type Plan,
  SCOPES,
  SHIPPED_PLANS,
} from '../../src/service/domain/partner.js';
import { formatApiKey, parseApiKey } from '../../src/service/domain/partner-key.js';
import {
  EVIDENCE_KINDS,
  EVIDENCE_STATUSES,
  EVIDENCE_TRIGGERS,
  evidenceStep,
  openEvidence,
  REVIEW_OUTCOMES,
  REVIEW_STATES,
  type ReviewCase,
  resolveReview,
  reviewStep,
  stepEvidence,
} from '../../src/service/domain/review.js';
import type { Caller } from '../../src/service/operations/caller.js';
import { createKeyUses } from '../../src/service/operations/keys/authenticate.js';
import {
  createRotationLocks,
  deriveSuccessor,
  rotateKey,
} from '../../src/service/operations/keys/rotate-key.js';
import { createCursors } from '../../src/service/operations/page.js';
import { createRateLimits } from '../../src/service/operations/usage/rate-limits.js';
import { createUsageMeter } from '../../src/service/operations/usage/usage-meter.js';
import type { KeyStore, Rotation } from '../../src/service/ports/stores.js';
import { seeded } from '../fixtures/service.js';
import { secretsOf, stillClock } from './doubles.js';

const trial = SHIPPED_PLANS.find(({ name }) => name === 'trial')!;

function refusal(work: () => unknown): DomainError | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
}

t.test('a rate lets its burst pass at once and then its rate', async (t) => {
  t.test(
    '200 calls at once are admitted exactly up to the burst, and refused ones cost nothing',
    async (t) => {
      const clock = stillClock();
      const limits = createRateLimits(clock);
      const calls = await Promise.all(
        Array.from({ length: 200 }, async (_, i) => {
          await new Promise((resolve) => setTimeout(resolve, i % 3));
          return refusal(() => limits.spend('ptr_1', trial, 'standard'));
        }),
      );
      t.equal(calls.filter((error) => error === undefined).length, trial.burst);
      for (const error of calls)
        if (error !== undefined)
          t.match(error, { code: 'rate_limited', reason: 'rate_exceeded', retryAfterSeconds: 1 });
      t.equal(
        refusal(() => limits.spend('ptr_2', trial, 'standard')),
        undefined,
        'another partner is another bucket',
      );
      t.equal(
        refusal(() => limits.spend('ptr_1', trial, 'rotation')),
        undefined,
        'the rotation lane is another bucket',
      );
      clock.advanceMs(199);
      t.ok(
        refusal(() => limits.spend('ptr_1', trial, 'standard')),
        '5 a second come back every 200 ms',
      );
      clock.advanceMs(1);
      t.equal(
        refusal(() => limits.spend('ptr_1', trial, 'standard')),
        undefined,
      );
    },
  );

  t.test('each of several processes lets its share pass, and never nothing', (t) => {
    const admitted = (processes: number, lane: 'standard' | 'rotation') => {
      const limits = createRateLimits(stillClock(), () => processes);
      return Array.from({ length: 50 }, () => refusal(() => limits.spend('ptr_1', trial, lane))).filter(
        (error) => error === undefined,
      ).length;
    };
    t.strictSame(
      [1, 2, 3, 40].map((processes) => admitted(processes, 'standard')),
      [10, 5, 4, 1],
    );
    t.strictSame(
      [1, 2, 3, 40].map((processes) => admitted(processes, 'rotation')),
      [5, 3, 2, 1],
    );
    t.end();
  });

  t.test('a bucket keeps at most its share, and gains no call, when the number of processes changes', (t) => {
    const clock = stillClock();
    let processes = 1;
    const limits = createRateLimits(clock, () => processes);
    const remaining = () => limits.read('ptr_1', trial).remaining;
    t.equal(remaining(), 10);
    processes = 2;
    t.equal(remaining(), 5, 'a larger number takes calls away');
    for (let i = 0; i < 5; i += 1) limits.spend('ptr_1', trial, 'standard');
    t.match(
      refusal(() => limits.spend('ptr_1', trial, 'standard')),
      { reason: 'rate_exceeded' },
    );
    processes = 1;
    t.equal(remaining(), 0, 'a smaller number gives no call at once');
    clock.advanceMs(1000);
    t.equal(remaining(), 5, 'the whole rate refills the bucket');
    clock.advanceMs(1000);
    t.equal(remaining(), 10, 'up to the whole burst');
    t.end();
  });

  t.test('asking to rotate has a bound of its own, wide enough for a partner with many processes', (t) => {
    const limits = createRateLimits(stillClock());
    const calls = Array.from({ length: 300 }, () =>
      refusal(() => limits.spend('ptr_1', trial, 'rotation_calls')),
    );
    t.equal(calls.filter((error) => error === undefined).length, 256);
    t.match(calls.at(-1), { code: 'rate_limited', retryAfterSeconds: 1 });
    t.equal(
      refusal(() => limits.spend('ptr_1', trial, 'standard')),
      undefined,
    );
    t.equal(
      refusal(() => limits.spend('ptr_1', trial, 'rotation')),
      undefined,
    );
    t.end();
  });

  t.test(
    'a lone caller is admitted after the wait, and the bucket never gives more than burst and rate',
    async (t) => {
      const random = seeded(4);
      for (let round = 0; round < 300; round += 1) {
        const plan: Plan = {
          ...trial,
          requestsPerSecond: 1 + Math.floor(random() * 40),
          burst: 1 + Math.floor(random() * 40),
          rotationsPerDay: 1 + Math.floor(random() * 9),
        };
        const lane = random() < 0.3 ? 'rotation' : 'standard';
        const [burst, rate, period] =
          lane === 'rotation'
            ? [plan.rotationsPerDay, plan.rotationsPerDay, 86_400_000]
            : [plan.burst, plan.requestsPerSecond, 1000];
        const clock = stillClock();
        const limits = createRateLimits(clock);
        let admitted = 0;
        let elapsed = 0;
        for (let call = 0; call < 120; call += 1) {
          const error = refusal(() => limits.spend('ptr_1', plan, lane));
          if (error === undefined) admitted += 1;
          else if (random() < 0.5) {
            if (!Number.isSafeInteger(error.retryAfterSeconds) || error.retryAfterSeconds! < 1)
              t.fail('Retry-After is not a whole number of seconds');
            if (error.retryAfterSeconds! > 1) {
              clock.advanceMs((error.retryAfterSeconds! - 1) * 1000);
              if (refusal(() => limits.spend('ptr_1', plan, lane)) === undefined)
                t.fail('the wait is a second too long');
              clock.advanceMs(1000);
            } else clock.advanceMs(1000);
            elapsed += error.retryAfterSeconds! * 1000;
            if (refusal(() => limits.spend('ptr_1', plan, lane)) !== undefined)
              t.fail('refused after Retry-After');
            admitted += 1;
          }
          const step = Math.floor(random() * (period / rate));
          clock.advanceMs(step);
          elapsed += step;
          if (admitted > burst + Math.floor((elapsed * rate) / period)) t.fail('over-admission');
        }
      }
      t.pass();
    },
  );

  t.test('idle buckets are dropped; a clock set back neither gives nor locks', async (t) => {
    const clock = stillClock();
    const limits = createRateLimits(clock);
    for (let i = 0; i < 1000; i += 1) limits.spend(`ptr_${i}`, trial, 'standard');
    t.equal(limits.size, 1000);
    clock.advanceMs(61_000);
    limits.spend('ptr_1', trial, 'standard');
    t.equal(limits.size, 1);
    for (let i = 0; i < 9; i += 1) limits.spend('ptr_1', trial, 'standard');
    clock.advanceMs(-3_600_000);
    t.ok(refusal(() => limits.spend('ptr_1', trial, 'standard')));
    clock.advanceMs(200);
    t.equal(
      refusal(() => limits.spend('ptr_1', trial, 'standard')),
      undefined,
    );
    limits.giveBack('ptr_1', trial, 'standard');
    t.equal(
      refusal(() => limits.spend('ptr_1', trial, 'standard')),
      undefined,
      'what was given back can be spent',
    );
  });
});

t.test('a cursor opens its own list alone, and no altered one opens any', async (t) => {
  const secrets = secretsOf();
  const cursors = createCursors(secrets, 'production');
  const scope = { partnerId: 'ptr_1', route: 'GET /proofs', filter: [null, 1_700_000_000] };
  const position = { createdAt: 1_700_000_000, id: 'prf_01HZZZZZZZZZZZZZZZZZZZZZZZ' };
  const cursor = cursors.write(scope, position);
  const refused = { code: 'invalid_request', reason: 'invalid_member' };
  t.strictSame(cursors.read(scope, cursor), position);

  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=. \u00e9';
  let passed = 0;
  for (let i = 0; i < cursor.length; i += 1) {
    for (const other of alphabet) {
      if (other === cursor[i]) continue;
      if (refusal(() => cursors.read(scope, cursor.slice(0, i) + other + cursor.slice(i + 1))) === undefined)
        passed += 1;
    }
    if (refusal(() => cursors.read(scope, cursor.slice(0, i))) === undefined) passed += 1;
    if (refusal(() => cursors.read(scope, cursor.slice(0, i) + cursor.slice(i + 1))) === undefined)
      passed += 1;
  }
  t.equal(passed, 0, 'no changed, missing or left-out character passes, trailing bits included');
  for (const foreign of [`${cursor}=`, `${cursor} `, ` ${cursor}`, `${cursor}A`, `${cursor}\n`, '', 'x'])
    t.match(
      refusal(() => cursors.read(scope, foreign)),
      refused,
    );
  t.match(
    refusal(() => cursors.read({ ...scope, partnerId: 'ptr_2' }, cursor)),
    refused,
    'bound to the partner',
  );
  t.match(
    refusal(() => cursors.read({ ...scope, route: 'GET /partner/keys' }, cursor)),
    refused,
    'bound to the route',
  );
  t.match(
    refusal(() => cursors.read({ ...scope, filter: [1_700_000_000, null] }, cursor)),
    refused,
    'bound to the filter',
  );
  t.match(
    refusal(() => createCursors(secrets, 'beta').read(scope, cursor)),
    refused,
    'bound to the environment',
  );
  t.match(
    refusal(() => createCursors(secretsOf(), 'production').read(scope, cursor)),
    refused,
    'another service',
  );
  t.strictSame(
    createCursors(secrets.replaced(), 'production').read(scope, cursor),
    position,
    'a former secret still verifies',
  );
});

const review = (over: Partial<ReviewCase> = {}): ReviewCase => ({
  reviewId: 'rev_1',
  partnerId: 'ptr_1',
  proofId: 'prf_1',
  bindings: { creatorId: 'c', accountId: 'a', submissionId: 's', trackId: 't' },
  status: 'open',
  createdAt: 100,
  updatedAt: 100,
  expiresAt: 100 + 15_552_000,
  evidenceRequests: [],
  ...over,
});

t.test('every state takes the triggers of its table and refuses the others', async (t) => {
  const final = { refused: 'evidence_request_final' };
  const evidence = {
    requested: { supply: { to: 'supplied' }, accept: { to: 'accepted' }, decline: { to: 'declined' } },
    supplied: { supply: { to: 'supplied' }, accept: { to: 'accepted' }, decline: { to: 'declined' } },
    accepted: { supply: final, accept: final, decline: final },
    declined: { supply: final, accept: final, decline: final },
  };
  for (const status of EVIDENCE_STATUSES) {
    for (const trigger of EVIDENCE_TRIGGERS) {
      t.strictSame(evidenceStep(status, trigger), evidence[status][trigger], `${status} ${trigger}`);
      const before = review({
        evidenceRequests: [
          { requestId: 'req_1', kind: 'source_evidence', status, createdAt: 100, updatedAt: 100 },
        ],
      });
      const after = stepEvidence(before, 'req_1', trigger, 'ref', 200)!;
      const step = evidence[status][trigger];
      if ('refused' in step) t.strictSame(after, step);
      else if (step.to === status)
        t.equal((after as { review: ReviewCase }).review, before, 'said again: the same case');
      else
        t.match(after, {
          review: {
            updatedAt: 200,
            expiresAt: before.expiresAt,
            evidenceRequests: [{ status: step.to, responseReference: 'ref', createdAt: 100, updatedAt: 200 }],
          },
        });
    }
  }
  t.equal(stepEvidence(review(), 'req_1', 'accept', undefined, 200), undefined);

  const resolved = { refused: 'review_resolved' };
  const cases = {
    open: { accepted: { to: 'accepted' }, held: { to: 'held' }, rejected: { to: 'rejected' } },
    held: { accepted: { to: 'accepted' }, held: { to: 'held' }, rejected: { to: 'rejected' } },
    accepted: { accepted: { to: 'accepted' }, held: resolved, rejected: resolved },
    rejected: { accepted: resolved, held: resolved, rejected: { to: 'rejected' } },
  };
  for (const state of REVIEW_STATES) {
    const before =
      state === 'open' ? review() : review({ status: 'resolved', outcome: state, resolvedAt: 150 });
    for (const outcome of REVIEW_OUTCOMES) {
      const step = cases[state][outcome];
      t.strictSame(reviewStep(state, outcome), step, `${state} ${outcome}`);
      const after = resolveReview(before, outcome, 200);
      if ('refused' in step) t.strictSame(after, step);
      else if (step.to === state) t.equal((after as { review: ReviewCase }).review, before, 'unchanged');
      else
        t.match(after, {
          review: { status: 'resolved', outcome, resolvedAt: 200, expiresAt: before.expiresAt },
        });
      for (const status of ['requested', 'supplied'] as const) {
        const open = {
          ...before,
          evidenceRequests: [
            { requestId: 'req_1', kind: 'source_evidence' as const, status, createdAt: 100, updatedAt: 100 },
          ],
        };
        if (!('refused' in step) && step.to !== state)
          t.strictSame(
            resolveReview(open, outcome, 200),
            { refused: 'evidence_requests_open' },
            'refused while one is open',
          );
      }
    }
    for (const kind of EVIDENCE_KINDS) {
      const opened = openEvidence(before, kind, 'req_1', 200);
      if (state === 'open' || state === 'held') {
        t.match(opened, {
          review: { evidenceRequests: [{ requestId: 'req_1', kind, status: 'requested' }] },
        });
        t.strictSame(openEvidence((opened as { review: ReviewCase }).review, kind, 'req_2', 300), {
          refused: 'evidence_kind_already_open',
        });
      } else t.strictSame(opened, resolved);
    }
  }

  const key: PartnerKey = {
    keyId: 'key_1',
    partnerId: 'ptr_1',
    name: 'n',
    scopes: [],
    secretHash: '',
    pepperId: '',
    createdAt: 1,
  };
  t.equal(keyStatus(key, 10), 'active');
  t.equal(keyStatus({ ...key, expiresAt: 10 }, 9), 'expiring');
  t.equal(keyStatus({ ...key, expiresAt: 10 }, 10), 'expired');
  t.equal(keyStatus({ ...key, expiresAt: 10, revokedAt: 5 }, 9), 'revoked');
});

t.test('an audit chain shows edits, removals, another order and a cut-off end', async (t) => {
  const key = randomBytes(32);
  const entries: AuditEntry[] = [];
  for (let i = 0; i < 6; i += 1)
    entries.push(
      chainAudit(key, entries.at(-1), {
        partnerId: 'ptr_1',
        action: 'key_created',
        at: 100 + i,
        actor: 'operator',
        subjects: [`key_${i}`],
      }),
    );
  const head: AuditHead = { partnerId: 'ptr_1', sequence: 6, mac: entries[5]!.mac };
  const walk = (
    log: readonly AuditEntry[],
    against: AuditHead | null = head,
    keys: readonly Uint8Array[] = [key],
  ) => {
    const walking = new AuditWalk(keys, against ?? undefined);
    log.every((entry) => walking.take(entry));
    return walking.end();
  };
  const fault = (sequence: number, reason: string) => ({ ok: false, fault: { sequence, reason } });
  t.strictSame(walk(entries), { ok: true, entries: 6, head: 6 });
  t.strictSame(walk(entries, null), { ok: true, entries: 6 }, 'without a head that is said');
  t.strictSame(
    walk(entries, { ...head, sequence: 4, mac: entries[3]!.mac }),
    { ok: true, entries: 6, head: 4 },
    'ahead of its head',
  );
  t.match(walk(entries, head, [randomBytes(32), key]), { ok: true }, 'a former secret');
  const edits: Partial<AuditEntry>[] = [
    { partnerId: 'ptr_2' },
    { action: 'key_revoked' },
    { at: 1 },
    { actor: 'key_1' },
    { subjects: ['key_9'] },
    { subjects: [] },
    { mac: '0'.repeat(64) },
  ];
  for (const edit of edits) {
    for (let i = 0; i < 6; i += 1)
      t.match(
        walk(entries.map((entry, at) => (at === i ? { ...entry, ...edit } : entry))),
        fault(i + 1, 'mac_mismatch'),
      );
  }
  for (let i = 0; i < 6; i += 1) {
    const without = entries.filter((_, at) => at !== i);
    t.match(
      walk(without),
      i === 5 ? fault(5, 'truncated') : fault(i + 1, 'sequence_broken'),
      `entry ${i + 1} deleted`,
    );
    t.match(
      walk(without.map((entry, at) => ({ ...entry, sequence: at + 1 }))),
      i === 5 ? fault(5, 'truncated') : fault(i + 1, 'mac_mismatch'),
      'and renumbered',
    );
    t.match(walk(entries.slice(0, i)), fault(i, 'truncated'), `cut off after ${i}`);
    if (i < 5)
      t.match(
        walk([...entries.slice(0, i), entries[i + 1]!, entries[i]!, ...entries.slice(i + 2)]),
        fault(i + 1, 'sequence_broken'),
        'reordered',
      );
  }
  const other = [...entries.slice(0, 5), chainAudit(key, entries[4], { ...entries[5]!, at: 1 })];
  t.match(walk(other), fault(6, 'head_mismatch'), 'rewritten with the key');
});

t.test('every replay of a rotation derives the same successor', async (t) => {
  const secrets = secretsOf();
  const environment = 'production';
  const apiKey = 'tmk_production_key_01HZZZZZZZZZZZZZZZZZZZZZZZ_secret_check';
  const idempotencyKey = '0b6f6c9e-9d0a-4b53-8f0e-0c5f0f3f1d2a';
  const rotation = { partnerId: 'ptr_1', keyId: 'key_1', newKeyId: 'key_01HZZZZZZZZZZZZZZZZZZZZZZY' };
  const replay = { nonce: 'ab'.repeat(32), secretId: secrets.current('rotation').id };
  const sent = { apiKey, idempotencyKey };
  const made = deriveSuccessor({ environment, secrets }, rotation, replay, sent);
  t.equal(parseApiKey('production', made), rotation.newKeyId);
  t.equal(
    deriveSuccessor({ environment, secrets }, rotation, replay, sent),
    made,
    'every replay gives the same bytes',
  );
  t.equal(
    deriveSuccessor({ environment, secrets: secrets.replaced() }, rotation, replay, sent),
    made,
    'also after the secret was replaced',
  );
  const secretOf = (text: string) => text.split('_')[4];
  for (const other of [
    { partnerId: 'ptr_2' },
    { keyId: 'key_2' },
    { newKeyId: 'key_01HZZZZZZZZZZZZZZZZZZZZZZX' },
  ]) {
    t.not(
      secretOf(deriveSuccessor({ environment, secrets }, { ...rotation, ...other }, replay, sent)),
      secretOf(made),
    );
  }
  t.not(
    secretOf(
      deriveSuccessor({ environment, secrets }, rotation, { ...replay, nonce: 'ac'.repeat(32) }, sent),
    ),
    secretOf(made),
    'needs the nonce',
  );
  t.not(
    secretOf(deriveSuccessor({ environment, secrets }, rotation, replay, { ...sent, apiKey: `${apiKey}x` })),
    secretOf(made),
    "needs the caller's own key",
  );
  t.not(
    secretOf(
      deriveSuccessor({ environment, secrets }, rotation, replay, {
        ...sent,
        idempotencyKey: `${idempotencyKey}x`,
      }),
    ),
    secretOf(made),
    'needs the Idempotency-Key',
  );
  const otherService = secretsOf();
  t.not(
    secretOf(
      deriveSuccessor(
        { environment, secrets: otherService },
        rotation,
        { ...replay, secretId: otherService.current('rotation').id },
        sent,
      ),
    ),
    secretOf(made),
    "needs the service's secret",
  );
  t.throws(() => deriveSuccessor({ environment, secrets: otherService }, rotation, replay, sent));

  const locks = createRotationLocks(20);
  const release = await locks.take('key_1');
  await t.rejects(locks.take('key_1'), { code: 'conflict', reason: 'rotation_in_progress' });
  (await locks.take('key_2'))();
  const order: number[] = [];
  const waiting = [1, 2, 3].map(async (i) => {
    const done = await locks.take('key_1');
    order.push(i);
    done();
    done();
  });
  release();
  await Promise.all(waiting);
  t.strictSame(order, [1, 2, 3]);
  (await locks.take('key_1'))();
});

t.test('processes that rotate one key at once make one successor', async (t) => {
  const clock = stillClock();
  const secrets = secretsOf();
  const apiKey = formatApiKey('production', 'key_01HZZZZZZZZZZZZZZZZZZZZZZZ', randomBytes(32));
  const caller: Caller = {
    partnerId: 'ptr_1',
    keyId: 'key_01HZZZZZZZZZZZZZZZZZZZZZZZ',
    scopes: SCOPES,
    plan: { ...trial, rotationsPerDay: 1 },
  };
  const keys = new Map<string, PartnerKey>([
    [
      caller.keyId,
      {
        keyId: caller.keyId,
        partnerId: 'ptr_1',
        name: 'main',
        scopes: SCOPES,
        secretHash: '',
        pepperId: '',
        createdAt: 1,
      },
    ],
  ]);
  const rotations = new Map<string, Rotation>();
  let down = false;
  let writes = 0;
  const stores = {
    getKey: async (keyId: string) => keys.get(keyId),
    getRotation: async (keyId: string) => {
      // Both processes look before either writes.
      const found = rotations.get(keyId);
      await new Promise((resolve) => setTimeout(resolve, 5));
      return found;
    },
    rotateKey: async (rotation: Rotation, successor: PartnerKey) => {
      if (down) throw new DomainError('unavailable', 'down', { reason: 'store_unavailable' });
      writes += 1;
      const holding = rotations.get(rotation.keyId) ?? rotation;
      rotations.set(rotation.keyId, holding);
      if (holding === rotation) keys.set(successor.keyId, successor);
      return holding;
    },
  } as unknown as KeyStore;
  const process = () => {
    const deps = {
      stores,
      environment: 'production',
      secrets,
      clock,
      ids: createIds(clock),
      limits: createRateLimits(clock),
      rotationLocks: createRotationLocks(),
    } as const;
    return { deps, rotate: (idempotencyKey: string) => rotateKey(deps, caller, apiKey, idempotencyKey) };
  };
  const [one, two, three] = [process(), process(), process()];
  down = true;
  await t.rejects(one.rotate('0123456789abcdef'), { code: 'unavailable' });
  t.equal(
    refusal(() => one.deps.limits.spend('ptr_1', caller.plan, 'rotation')),
    undefined,
    'what failed gave the lane back',
  );
  one.deps.limits.giveBack('ptr_1', caller.plan, 'rotation');
  down = false;
  const [first, second, other] = await Promise.allSettled([
    one.rotate('0123456789abcdef'),
    two.rotate('0123456789abcdef'),
    three.rotate('fedcba9876543210'),
  ]);
  t.equal(writes, 3, 'all three came to the store');
  t.match(first, { status: 'fulfilled', value: { replayed: false, name: 'main' } });
  t.strictSame(
    second,
    { status: 'fulfilled', value: { ...(first as { value: object }).value, replayed: true } },
    'answered by the one that was first',
  );
  t.match(other, { status: 'rejected', reason: { code: 'conflict', reason: 'already_rotated' } });
  t.ok(
    refusal(() => one.deps.limits.spend('ptr_1', caller.plan, 'rotation')),
    'the winner spent',
  );
  t.equal(
    refusal(() => two.deps.limits.spend('ptr_1', caller.plan, 'rotation')),
    undefined,
    'the others did not',
  );
  t.equal(
    refusal(() => three.deps.limits.spend('ptr_1', caller.plan, 'rotation')),
    undefined,
  );
});

t.test(
  'journals and downloads are read from the settings, and a bad download is refused by name',
  async (t) => {
    t.strictSame([...readConfig({}).downloads], []);
    t.match(readConfig({ TAKEMARK_DATA_DIR: '/srv/takemark' }), {
      journalDirectory: '/srv/takemark/journals',
    });
    t.match(readConfig({ TAKEMARK_JOURNAL_DIR: '/mnt/journals' }), { journalDirectory: '/mnt/journals' });
    const downloads = '{"plugin/macos-arm64":"https://downloads.example/a b.pkg"}';
    t.strictSame(
      [...readConfig({ TAKEMARK_DOWNLOADS: downloads }).downloads],
      [['plugin/macos-arm64', 'https://downloads.example/a%20b.pkg']],
      'fit for a header',
    );
    for (const bad of [
      'x',
      '[]',
      '"https://x.example"',
      '{"plugin":"https://x.example"}',
      '{"a/b/c":"https://x.example"}',
      '{"a/b":"javascript:alert(1)"}',
      '{"a/b":7}',
      'null',
    ]) {
      t.throws(() => readConfig({ TAKEMARK_DOWNLOADS: bad }), {
        name: 'ConfigError',
        message: /^TAKEMARK_DOWNLOADS/,
      });
    }
  },
);

t.test('counts and last uses are gathered, and none is lost when a write fails', async (t) => {
  const clock = stillClock(Date.UTC(2026, 0, 31, 23, 59, 59));
  const written: { at: number; count: number; operation: string; partnerId: string; number: number }[] = [];
  let failing = true;
  const meter = createUsageMeter(
    {
      meter: async (counts, at, number) => {
        written.push(...counts.map((count) => ({ ...count, at, number })));
        if (failing) throw new Error('no');
      },
    },
    clock,
  );
  for (let i = 0; i < 3; i += 1) meter.count('ptr_1', 'list_proofs');
  clock.advanceMs(1000);
  meter.count('ptr_1', 'list_proofs');
  await t.rejects(meter.flush());
  meter.count('ptr_1', 'list_proofs');
  failing = false;
  await Promise.all([meter.flush(), meter.flush()]);
  await meter.flush();
  const midnight = Date.UTC(2026, 1, 1) / 1000;
  t.strictSame(
    written,
    [
      { number: 1, count: 3, at: midnight - 1 },
      { number: 1, count: 3, at: midnight - 1 },
      { number: 2, count: 1, at: midnight },
      { number: 3, count: 1, at: midnight },
    ].map((batch) => ({ partnerId: 'ptr_1', operation: 'list_proofs', ...batch })),
    'nothing is lost, each in its day, and a batch that failed comes again as it was',
  );

  const touched: unknown[] = [];
  const uses = createKeyUses({ touchKeys: async (batch) => void touched.push(...batch) });
  uses.note('ptr_1', 'key_1', 10);
  uses.note('ptr_1', 'key_1', 12);
  await uses.flush();
  await uses.flush();
  t.strictSame(touched, [{ partnerId: 'ptr_1', keyId: 'key_1', at: 12 }]);
});
