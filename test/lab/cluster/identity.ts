/**
 * Tests, without faults, that three processes share one identity: each process accepts what another one made.
 */
import { randomUUID } from 'node:crypto';
import { inParallel } from '../../fixtures/service.js';
import { type Answer, isLater, reasonOf } from './calls.js';
import { startAlone } from './members.js';
import { nearEndOfMonth } from './month.js';
import type { Run } from './run.js';

/** The number of units that are left, and the number of parallel calls. */
const UNITS_LEFT = 20;
const CALLS = 40;

export async function identity(run: Run, name: string): Promise<void> {
  const { calls, ledger, workload, say } = run;
  const [a, b, c] = calls.services;
  const expect = (what: string, ok: boolean, detail: unknown = ''): void => {
    say(`${ok ? 'ok' : 'NOT OK'}  ${what}`);
    ledger.count('expectations of one identity');
    if (!ok) ledger.violation(`${what} ${typeof detail === 'string' ? detail : JSON.stringify(detail)}`);
  };
  const operator = { method: 'POST', listener: 'operator' } as const;
  const { partnerId } = (
    await calls.settle(
      { ...operator, path: '/operator/v1/partners', json: { name, plan: 'volume' } },
      [201],
      { service: a! },
    )
  ).json as { partnerId: string };
  const { apiKey } = (
    await calls.settle(
      { ...operator, path: `/operator/v1/partners/${partnerId}/keys`, json: { name: 'key' } },
      [201],
      { service: a! },
    )
  ).json as { apiKey: string };
  const partner = { partnerId, apiKey };
  ledger.partner(partner);

  const keys = await calls.settle({ method: 'GET', path: '/v1/partner/keys', apiKey }, [200, 403], {
    service: b!,
  });
  expect('a key made by one process opens another', keys.status === 200, keys.status);

  const issued = [];
  for (let count = 0; count < 4; count += 1) issued.push(await workload.issue(partner));
  const first = (
    await calls.settle({ method: 'GET', path: '/v1/proofs?limit=2', apiKey }, [200], { service: a! })
  ).json as { proofs: { proofId: string }[]; nextCursor?: string };
  const second = (
    await calls.settle(
      {
        method: 'GET',
        path: `/v1/proofs?limit=2&cursor=${encodeURIComponent(first.nextCursor ?? '')}`,
        apiKey,
      },
      [200, 400],
      { service: b! },
    )
  ).json as { proofs?: { proofId: string }[] };
  const listed = [...first.proofs, ...(second.proofs ?? [])].map(({ proofId }) => proofId);
  expect(
    "a cursor of one process goes on in another's list",
    new Set(listed).size === 4 && issued.every(({ proofId }) => listed.includes(proofId)),
    listed,
  );

  const uploadId = await workload.upload(partner, issued[0]!.file, { slot: a!, post: b! });
  const verified = await calls.settle(
    { method: 'POST', path: '/v1/verify', apiKey, json: { uploadId } },
    [200, 404, 409],
    { service: c! },
  );
  ledger.bill({ partnerId, uploadId });
  expect(
    'a slot of one process, posted to a second, verified by a third',
    (verified.json as { verdict?: string }).verdict === 'valid',
    verified.json,
  );

  const { apiKey: rotating } = await workload.partner();
  const later = (answer: Answer): boolean => isLater(answer) || reasonOf(answer) === 'rotation_in_progress';
  const rotate = (key: string, service: typeof a) =>
    calls.settle(
      {
        method: 'POST',
        path: '/v1/partner/keys/rotate',
        apiKey: rotating,
        headers: { 'idempotency-key': key },
      },
      [201, 403, 409],
      { service, later },
    );
  const [mine, other] = [randomUUID(), randomUUID()];
  const made = await rotate(mine, a);
  const replayed = await rotate(mine, b);
  const refused = await rotate(other, c);
  expect(
    'a rotation of one process is replayed by another',
    made.status === 201 &&
      replayed.status === 201 &&
      JSON.stringify(made.json) === JSON.stringify(replayed.json) &&
      replayed.headers.get('idempotency-replayed') === 'true',
    [made.status, replayed.status],
  );
  expect(
    'and another Idempotency-Key gets no second successor',
    refused.status === 409 && reasonOf(refused) === 'already_rotated',
    refused.status,
  );

  await exactQuota(run, issued[0]!.file, expect);
  expect(
    'without the bundle a process does not start',
    (await startAlone(run.cluster.settings, { TAKEMARK_SECRETS_FILE: '' })).includes('TAKEMARK_SECRETS_FILE'),
  );
}

/** Uses up a plan's month except for a few units. Then calls ask three processes at once for more. */
async function exactQuota(
  run: Run,
  file: Uint8Array,
  expect: (what: string, ok: boolean, detail?: unknown) => void,
): Promise<void> {
  const { calls, workload, ledger } = run;
  const [month] = await nearEndOfMonth(run, { months: 1, unitsLeft: UNITS_LEFT });
  const { partner, waiting } = month!;
  expect('all of it is published', waiting === 0, waiting);
  const uploads: string[] = [];
  await inParallel(
    Array.from({ length: CALLS }),
    6,
    async () => void uploads.push(await workload.upload(partner, file)),
  );
  const outcomes: string[] = [];
  await inParallel(uploads, CALLS, async (uploadId) => {
    const answer = await calls.settle(
      { method: 'POST', path: '/v1/verify', apiKey: partner.apiKey, json: { uploadId } },
      [200, 429],
    );
    if (answer.status === 200) ledger.bill({ partnerId: partner.partnerId, uploadId });
    outcomes.push(answer.status === 200 ? 'charged' : 'refused');
  });
  const charged = outcomes.filter((outcome) => outcome === 'charged').length;
  expect(
    `of ${CALLS} calls at three processes for ${UNITS_LEFT} units exactly ${UNITS_LEFT} are charged`,
    charged === UNITS_LEFT && outcomes.length === CALLS,
    charged,
  );
}
