/** Operators whose tokens have names, and the trace of a call through the log. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { createClient } from '../../src/client/index.js';
import { readConfig } from '../../src/service/config/config.js';
import { TestService } from '../fixtures/service.js';
import { wav } from '../fixtures/wav.js';
import { takemark } from '../lab/cluster/members.js';

const ALICE = 'alice-has-a-long-token';
const BOB = 'bob-has-another-long-token';
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = `00-${TRACE}-00f067aa0ba902b7-01`;

const directory = await mkdtemp(join(tmpdir(), 'takemark-names-'));
const tokens = join(directory, 'tokens');
await writeFile(tokens, `alice ${ALICE}\n\nbob ${BOB}\n`);
const service = await TestService.start({
  TAKEMARK_DATA_DIR: join(directory, 'data'),
  TAKEMARK_OPERATOR_TOKENS_FILE: tokens,
});
t.teardown(async () => {
  await service.stop({ keep: true });
  await rm(directory, { recursive: true, force: true });
});
const { operatorToken } = service.service;

async function call(
  token: string,
  method: string,
  path: string,
  body?: object,
): Promise<Record<string, unknown>> {
  const answer = await fetch(`${service.operatorUrl}/operator/v1/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      traceparent: PARENT,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, ...((await answer.json()) as object) };
}

const lines = (): readonly Record<string, unknown>[] =>
  service.log.map((line) => JSON.parse(line) as Record<string, unknown>);

t.test('audit entries and log lines say whose token made a change', async (t) => {
  const { partnerId } = (await call(ALICE, 'POST', 'partners', { name: 'Named' })) as { partnerId: string };
  const { keyId } = (await call(BOB, 'POST', `partners/${partnerId}/keys`, { name: 'k' })) as {
    keyId: string;
  };
  await call(ALICE, 'POST', `partners/${partnerId}/keys/${keyId}/revoke`);
  await call(operatorToken, 'POST', `partners/${partnerId}/keys`, { name: 'other' });
  await call(BOB, 'PUT', `partners/${partnerId}/plan`, { plan: 'trial', effect: 'at_once' });
  t.match(await call('a-token-of-no-operator', 'GET', 'partners'), { status: 403 });
  const { entries } = (await call(ALICE, 'GET', `partners/${partnerId}/audit`)) as {
    entries: readonly { action: string; actor: string }[];
  };
  t.strictSame(
    entries.map(({ action, actor }) => [action, actor]),
    [
      ['partner_created', 'operator:alice'],
      ['key_created', 'operator:bob'],
      ['key_revoked', 'operator:alice'],
      ['key_created', 'operator'],
    ],
  );
  const plans = (await call(ALICE, 'GET', 'partners/plans/audit')) as { entries: readonly object[] };
  t.match(plans.entries.at(-1), { action: 'plan_assigned', actor: 'operator:bob' });
  t.match(await call(ALICE, 'GET', `partners/${partnerId}/audit/verification`), { ok: true });

  const named = lines().filter(({ event, operator }) => event === 'request' && operator !== undefined);
  t.strictSame(
    named.slice(0, 3).map(({ operator, traceId, status }) => [operator, traceId, status]),
    [
      ['alice', TRACE, 201],
      ['bob', TRACE, 201],
      ['alice', TRACE, 200],
    ],
  );
  t.notOk(
    service.log.some((line) => line.includes(ALICE) || line.includes(BOB)),
    'no token is logged',
  );
});

t.test('an audit entry has the id of its request, which leads to the trace in the log', async (t) => {
  const { partnerId, apiKey } = await service.partner();
  const { proofId } = await service.issue(partnerId, wav(8000));
  const { keyId } = (await call(BOB, 'POST', `partners/${partnerId}/keys`, { name: 'k' })) as {
    keyId: string;
  };
  const client = createClient({ baseUrl: service.partnerUrl, apiKey, traceparent: () => PARENT });
  await client.eraseProof(proofId);
  await client.revokeKey(keyId);
  client.close();
  const { entries } = (await call(ALICE, 'GET', `partners/${partnerId}/audit?from=4`)) as {
    entries: readonly { action: string; requestId?: string }[];
  };
  t.strictSame(
    entries.map(({ action, requestId }) => {
      const line = lines().find((each) => each['event'] === 'request' && each['requestId'] === requestId);
      return [action, line?.['method'], line?.['traceId']];
    }),
    [
      ['key_created', 'POST', TRACE],
      ['proof_erased', 'DELETE', TRACE],
      ['key_revoked', 'DELETE', TRACE],
    ],
  );
  t.match(await call(ALICE, 'GET', `partners/${partnerId}/audit/verification`), { ok: true });
});

t.test('the client sends the trace of its caller, and a call without one gets a new trace', async (t) => {
  const { apiKey } = await service.partner();
  for (const [index, traceparent] of [() => PARENT, () => 'not a trace', undefined].entries()) {
    const client = createClient({ baseUrl: service.partnerUrl, apiKey, traceparent });
    await client.readUsage();
    client.close();
    const line = lines().findLast(({ route }) => route === '/v1/partner/usage');
    if (index === 0) t.equal(line?.['traceId'], TRACE);
    else t.match(line?.['traceId'], /^(?!4bf92f35)[0-9a-f]{32}$/);
  }
});

t.test('an export prints each entry of every log once, and all of them without a state', async (t) => {
  const state = join(directory, 'state.json');
  const environment = { TAKEMARK_OPERATOR_URL: service.operatorUrl, TAKEMARK_OPERATOR_TOKEN: ALICE };
  const run = async (...words: readonly string[]) =>
    (await takemark(environment, 'operator', 'audit', 'export', ...words))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { partnerId: string; sequence: number; action: string });
  const first = await run('--state', state);
  t.ok(
    first.some(({ partnerId }) => partnerId === 'plans') &&
      first.some(({ action }) => action === 'key_created'),
  );
  t.strictSame(await run('--state', state), []);
  const { partnerId } = await service.partner();
  const later = await run('--state', state);
  t.strictSame(
    later.map((entry) => [entry.partnerId, entry.sequence, entry.action]),
    [
      [partnerId, 1, 'partner_created'],
      [partnerId, 2, 'key_created'],
    ],
  );
  t.equal((await run()).length, first.length + later.length);
  await writeFile(state, '{"plans":"all"}');
  await t.rejects(run('--state', state), /is not a state file of this command/);
  t.equal(await readFile(state, 'utf8'), '{"plans":"all"}', 'the file stays as it is');
});

t.test('a file of tokens with a wrong line is refused, and its text is in no message', async (t) => {
  for (const text of [
    'alice',
    'alice short',
    `Alice ${ALICE}`,
    `alice ${ALICE}\nalice ${BOB}`,
    `alice ${ALICE}\nbob ${ALICE}`,
    Array.from({ length: 17 }, (_, index) => `name${index} token-number-${index}-of-many`).join('\n'),
  ])
    t.match(
      refusalOf(text),
      /^TAKEMARK_OPERATOR_TOKENS: must have (?!.*(?:long-token|number-0))/,
      text.slice(0, 20),
    );
});

function refusalOf(text: string): string {
  try {
    readConfig({ TAKEMARK_OPERATOR_TOKENS: text });
    return 'it was accepted';
  } catch (error) {
    return (error as Error).message;
  }
}
