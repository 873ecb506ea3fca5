/**
 * Reads the state after a run: from every process, from the tables, and from the topics since their
 * beginning.
 */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { inParallel } from '../../fixtures/service.js';
import type { Answer, Calls } from './calls.js';
import type { Observed, ObservedCase, ObservedPartner, ObservedProof } from './judge.js';
import type { KnownPartner, Ledger } from './ledger.js';
import type { Service } from './members.js';
import type { Tables } from './tables.js';
import type { Topics } from './topics.js';
import { type Issued, reviewStateOf, type Workload } from './workload.js';

/** The number of concurrent calls. */
const WIDTH = 12;
const VERIFIED_AGAIN = 40;
/** The clock difference that a process reports, in seconds. */
const WRONG_SECONDS = 5;
/** The number of unconfirmed erasures whose events are looked up. */
const FOLLOWED = 5;
/** The time between two progress lines, in milliseconds. */
const SAID_MS = 20_000;

export interface Observers {
  readonly calls: Calls;
  readonly workload: Workload;
  readonly tables: Tables;
  readonly topics: Topics;
}

/** Verifies some of the remaining proofs again. This is billed, so it comes before anything is counted. */
export async function verifyAgain(
  ledger: Ledger,
  { calls, workload }: Observers,
): Promise<ReadonlyMap<string, string>> {
  const gone = new Set(ledger.erased.map(({ proofId }) => proofId));
  const left = ledger.issued.filter(({ proofId }) => !gone.has(proofId));
  const every = Math.max(1, Math.floor(left.length / VERIFIED_AGAIN));
  const verdicts = new Map<string, string>();
  await inParallel(
    left.filter((_, index) => index % every === 0),
    4,
    async ({ proofId, partnerId }) => {
      const partner = partnerOf(ledger, partnerId);
      const file = (
        await calls.settle(
          { method: 'GET', path: `/v1/proofs/${proofId}/asset`, apiKey: partner.apiKey },
          [200, 404],
        )
      ).bytes;
      const issued: Issued = { proofId, file };
      verdicts.set(
        proofId,
        (await workload.verify(partner, await workload.upload(partner, issued.file))).verdict,
      );
    },
  );
  return verdicts;
}

/**
 * Resolves when all outboxes are empty and the consumers have read everything, or after `limitMs`.
 * @param behindNow called whenever something still waits
 * @param afterRestore whether a backup was put back
 * @returns what still waits
 */
export async function caughtUp(
  ledger: Ledger,
  { calls, tables, topics }: Observers,
  limitMs: number,
  say: (line: string) => void,
  {
    behindNow = () => undefined,
    afterRestore = false,
  }: { readonly behindNow?: () => void; readonly afterRestore?: boolean } = {},
): Promise<string | undefined> {
  const deadline = Date.now() + limitMs;
  // Confirmed erasures stay confirmed. To query all erasures of an hour takes half a minute.
  const confirmed = new Set<string>();
  let saidAt = Date.now();
  for (;;) {
    const waiting: string[] = [];
    for (const service of calls.services) {
      const count = await waitingOf(service);
      if (count !== 0) waiting.push(`${service.name} has ${count ?? 'an unknown number'} waiting`);
    }
    const owed = new Map<string, number>();
    for (const { partnerId } of ledger.billed) owed.set(partnerId, (owed.get(partnerId) ?? 0) + 1);
    const folded = await tables.folded([...owed.keys()]);
    const behind = [...owed].filter(([partnerId, units]) => (folded.get(partnerId) ?? 0) < units);
    if (behind.length > 0) waiting.push(`the usage of ${behind.length} partners is not folded`);
    const unfinished = await tables.unfinished({ afterRestore });
    if (unfinished > 0) waiting.push(`${unfinished} operations are not finished`);
    const gone = new Set(ledger.erased.map(({ proofId }) => proofId));
    const notices = await tables.notices();
    const silent = ledger.reviews.filter(
      ({ reviewId, proofId }) => !gone.has(proofId) && notices.get(reviewId)?.length !== 2,
    );
    if (silent.length > 0) waiting.push(`${silent.length} cases have no announcements`);
    const unconfirmed: string[] = [];
    if (waiting.length > 0) behindNow();
    const open = ledger.erased.filter(({ proofId }) => !confirmed.has(proofId));
    await inParallel(open, WIDTH, async ({ proofId }) => {
      const { confirmedAt } = (
        await calls.settle(
          { method: 'GET', listener: 'operator', path: `/operator/v1/proofs/${proofId}/erasure` },
          [200],
        )
      ).json as { confirmedAt?: number };
      if (confirmedAt !== undefined) {
        confirmed.add(proofId);
        return;
      }
      unconfirmed.push(proofId);
      behindNow();
    });
    const rows = (await tables.proofRows()).filter(({ proofId }) => gone.has(proofId));
    if (rows.length > 0) {
      waiting.push(`${rows.length} rows name erased proofs`);
      behindNow();
    }
    if (unconfirmed.length > 0) waiting.push(`${unconfirmed.length} erasures are not confirmed`);
    if (waiting.length === 0) return undefined;
    if (Date.now() > deadline)
      return [...waiting, ...(await whereabouts(topics, unconfirmed.slice(0, FOLLOWED)))].join('; ');
    if (Date.now() > saidAt + SAID_MS) {
      say(`still: ${waiting.join('; ')}`);
      saidAt = Date.now();
    }
    await delay(1000);
  }
}

/** Returns the events and dead letters of proofs whose erasure is not confirmed. */
async function whereabouts(topics: Topics, proofIds: readonly string[]): Promise<readonly string[]> {
  if (proofIds.length === 0) return [];
  const events = (await topics.read()).filter(({ topic }) => topic === 'erasure');
  const letters = await topics.deadLetters();
  return [
    ...proofIds.map((id) => `${id} has ${events.filter(({ key }) => key === id).length} events`),
    `${letters} dead letters`,
  ];
}

/**
 * Returns the number of events in all outboxes when every process reports its own.
 * @throws Error if one does not within `patienceMs`
 */
export async function waitingOfAll(services: readonly Service[], patienceMs: number): Promise<number> {
  for (const deadline = Date.now() + patienceMs; ; await delay(100)) {
    const counts = await Promise.all(services.map(waitingOf));
    if (!counts.includes(undefined)) return counts.reduce<number>((sum, count) => sum + count!, 0);
    if (Date.now() > deadline) throw new Error('a process does not say how many events wait');
  }
}

/** Returns the number of events in the outbox that a process reports, or undefined if it reports none. */
function waitingOf(service: Service): Promise<number | undefined> {
  return metricOf(service, 'takemark_outbox_waiting');
}

/** Returns whether a process reports that a node's clock differs from the other nodes' or from its own. */
export async function areClocksReported(services: readonly Service[]): Promise<boolean> {
  const differences = await Promise.all(
    services.flatMap((service) =>
      ['takemark_store_clock_ahead_seconds', 'takemark_clock_ahead_seconds'].map((name) =>
        metricOf(service, name),
      ),
    ),
  );
  return differences.some((seconds) => Math.abs(seconds ?? 0) > WRONG_SECONDS);
}

async function metricOf(service: Service, name: string): Promise<number | undefined> {
  const text = await fetch(`${service.operator}/metrics`, { signal: AbortSignal.timeout(5000) })
    .then((answer) => answer.text())
    .catch(() => '');
  const value = new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1];
  return value === undefined ? undefined : Number(value);
}

export async function observe(
  ledger: Ledger,
  observers: Observers,
  verdicts: ReadonlyMap<string, string>,
): Promise<Observed> {
  const { calls, tables, topics } = observers;
  const everywhere = (apiKey: string, path: string) =>
    Promise.all(
      calls.services.map((service) =>
        calls.settle({ method: 'GET', path, apiKey }, [200, 403, 404], { service }),
      ),
    );
  const lists = new Map<string, ReadonlySet<string>>();
  const partners = new Map<string, ObservedPartner>();
  const folded = await tables.folded(ledger.partners.map(({ partnerId }) => partnerId));
  await inParallel(ledger.partners, WIDTH, async (partner) => {
    lists.set(partner.partnerId, await listOf(calls, partner));
    partners.set(
      partner.partnerId,
      await partnerAsSeen(calls, partner, folded.get(partner.partnerId) ?? 0, lists.get(partner.partnerId)!),
    );
  });
  const proofs = new Map<string, ObservedProof>();
  await inParallel(ledger.issued, WIDTH, async ({ proofId, partnerId }) => {
    const { apiKey } = partnerOf(ledger, partnerId);
    const [documents, records, assets] = await Promise.all([
      everywhere(apiKey, `/v1/proofs/${proofId}`),
      everywhere(apiKey, `/v1/records/${proofId}`),
      everywhere(apiKey, `/v1/proofs/${proofId}/asset`),
    ]);
    const statuses = [...documents, ...records, ...assets].map(({ status }) => status);
    const erasure = (
      await calls.settle(
        { method: 'GET', listener: 'operator', path: `/operator/v1/proofs/${proofId}/erasure` },
        [200, 404],
      )
    ).json as Pick<ObservedProof, 'state' | 'erasedAt' | 'confirmedAt' | 'assetPresent'>;
    const { state, erasedAt, confirmedAt, assetPresent } = erasure;
    proofs.set(proofId, {
      statuses,
      documents: digestsOf(documents),
      records: digestsOf(records),
      assets: digestsOf(assets),
      listed: lists.get(partnerId)!.has(proofId),
      state,
      assetPresent,
      ...(erasedAt === undefined ? {} : { erasedAt }),
      ...(confirmedAt === undefined ? {} : { confirmedAt }),
    });
  });
  const successors = new Map<string, readonly number[]>();
  await inParallel(
    ledger.rotated,
    WIDTH,
    async ({ newKeyId, newApiKey }) =>
      void successors.set(
        newKeyId,
        (await everywhere(newApiKey, '/v1/partner/keys?limit=1')).map(({ status }) => status),
      ),
  );
  const reviews = new Map<string, readonly ObservedCase[]>();
  await inParallel(ledger.reviews, WIDTH, async ({ reviewId, partnerId }) => {
    const sentAt = ledger.now();
    const answers = await everywhere(partnerOf(ledger, partnerId).apiKey, `/v1/partner/reviews/${reviewId}`);
    const at = ledger.now();
    reviews.set(
      reviewId,
      answers.map((answer) => ({
        status: answer.status,
        ...(answer.status === 200 && {
          read: {
            call: { does: 'read' },
            sentAt,
            answer: { at, result: { state: reviewStateOf(answer) } },
          } as const,
        }),
      })),
    );
  });
  return {
    proofs,
    partners,
    verdicts,
    successors,
    reviews,
    notices: await tables.notices(),
    rows: await tables.proofRows(),
    events: await topics.read(),
    deadLetters: await topics.deadLetters(),
  };
}

/** Returns the digests of the bodies of successful answers. */
function digestsOf(answers: readonly Answer[]): readonly string[] {
  return answers
    .filter(({ status }) => status === 200)
    .map(({ bytes }) => createHash('sha256').update(bytes).digest('hex'));
}

async function listOf(calls: Calls, { apiKey }: KnownPartner): Promise<ReadonlySet<string>> {
  const listed = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = (
      await calls.settle(
        {
          method: 'GET',
          path: `/v1/proofs?limit=100${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
          apiKey,
        },
        [200],
      )
    ).json as { proofs: readonly { proofId: string }[]; nextCursor?: string };
    for (const { proofId } of page.proofs) listed.add(proofId);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return listed;
}

async function partnerAsSeen(
  calls: Calls,
  { partnerId, apiKey }: KnownPartner,
  folded: number,
  listed: ReadonlySet<string>,
): Promise<ObservedPartner> {
  const usage = await Promise.all(
    calls.services.map(
      async (service) =>
        (await calls.settle({ method: 'GET', path: '/v1/partner/usage?days=2', apiKey }, [200], { service }))
          .json as { used: number; days: readonly { units: number }[] },
    ),
  );
  const { keys } = (await calls.settle({ method: 'GET', path: '/v1/partner/keys', apiKey }, [200])).json as {
    keys: readonly { keyId: string }[];
  };
  const audits = await Promise.all(
    calls.services.map(
      async (service) =>
        (
          await calls.settle(
            {
              method: 'GET',
              listener: 'operator',
              path: `/operator/v1/partners/${partnerId}/audit/verification`,
            },
            [200],
            { service },
          )
        ).json as { ok: boolean },
    ),
  );
  return {
    used: usage.map(({ used }) => used),
    daily: usage.map(({ days }) => days.reduce((sum, { units }) => sum + units, 0)),
    folded,
    keys: keys.map(({ keyId }) => keyId),
    auditOk: audits.map(({ ok }) => ok),
    audit: await auditOf(calls, partnerId),
    listed,
  };
}

const AUDIT_PAGE = 1000;

async function auditOf(calls: Calls, partnerId: string): Promise<ObservedPartner['audit']> {
  const entries: ObservedPartner['audit'][number][] = [];
  for (;;) {
    const path = `/operator/v1/partners/${partnerId}/audit?from=${entries.length + 1}&limit=${AUDIT_PAGE}`;
    const page = (await calls.settle({ method: 'GET', listener: 'operator', path }, [200])).json as {
      readonly entries: ObservedPartner['audit'];
    };
    entries.push(...page.entries);
    if (page.entries.length < AUDIT_PAGE) return entries;
  }
}

function partnerOf(ledger: Ledger, partnerId: string): KnownPartner {
  return ledger.partners.find((partner) => partner.partnerId === partnerId)!;
}
