import { setTimeout as delay } from 'node:timers/promises';
import { defined } from '../../../core/domain/defined.js';
import { DomainError, isRecordDamaged } from '../../../core/domain/errors.js';
import {
  AUDITED_PARTS,
  type AuditedPart,
  type AuditStep,
  type Finding,
} from '../../../core/domain/finding.js';
import { remindersOf, reviewCreated } from '../../domain/events.js';
import type { AssetEntry, AssetStore } from '../../ports/assets.js';
import type { AuditedMonth, AuditedStore, AuditPage } from '../../ports/audited-store.js';
import type { ContentKeys } from '../../ports/content-keys.js';
import type { ProofStore } from '../../ports/stores.js';
import type { Clock } from '../../ports/system.js';

export interface AuditStoresDeps {
  readonly stores: Pick<ProofStore, 'getProof'>;
  readonly assets: Pick<AssetStore, 'list' | 'size'>;
  readonly keys: Pick<ContentKeys, 'read'>;
  readonly audited: AuditedStore;
  readonly clock: Clock;
}

/** The age in seconds from which an operation counts as finished. Every recovery has run by then. */
const SETTLED_SECONDS = 600;
/**
 * The age in seconds from which a file without a proof counts as left over. The collector deletes the files
 * of a killed issuing after an hour, and again a day later.
 */
const LEFT_SECONDS = 26 * 3600;
/** The usual pause in milliseconds before a suspected finding is checked again. */
const SECOND_LOOK_MS = 1000;
const LOOKS_AT_ONCE = 16;

/** One part of a pass: how its pages are read, and how one item is checked. */
interface Part<Item> {
  readonly page: (after: string | undefined, limit: number) => Promise<AuditPage<Item>>;
  /** Returns the finding of an item, or undefined when the item is sound. */
  readonly look: (item: Item) => Promise<Finding | undefined>;
}

/**
 * Runs one step of an audit pass over the stores: one page of one part. A suspected finding is checked twice
 * with a pause between, so that changes under way are not reported.
 * @param from position where the previous step ended. Absent at the beginning
 * @param secondLookMs the pause in milliseconds before the second check
 * @throws DomainError `invalid_request` for a position that no step returned
 */
export async function auditStores(
  deps: AuditStoresDeps,
  {
    from,
    limit,
    secondLookMs = SECOND_LOOK_MS,
  }: { readonly from?: string | undefined; readonly limit: number; readonly secondLookMs?: number },
): Promise<AuditStep> {
  const now = Math.floor(deps.clock.now() / 1000);
  const [name = '', ...rest] = from?.split(':') ?? [AUDITED_PARTS[0]];
  const part = AUDITED_PARTS.find((each) => each === name);
  if (part === undefined)
    throw new DomainError(
      'invalid_request',
      'The parameter `from` is not a `next` value of an earlier step.',
      {
        reason: 'invalid_member',
      },
    );
  const step = <Item>(found: Part<Item>) =>
    stepOf(part, found, { after: rest.join(':') || undefined, limit, secondLookMs });
  switch (part) {
    case 'proofs':
      return step(proofsOf(deps, now));
    case 'objects':
      return step(objectsOf(deps, now));
    case 'reviews':
      return step(reviewsOf(deps, now));
    case 'months':
      return step(monthsOf(deps, now));
  }
}

async function stepOf<Item>(
  part: AuditedPart,
  { page, look }: Part<Item>,
  {
    after,
    limit,
    secondLookMs,
  }: { readonly after: string | undefined; readonly limit: number; readonly secondLookMs: number },
): Promise<AuditStep> {
  const { items, next } = await page(after, limit);
  /** Returns the items that have a finding, with the finding. */
  const lookAtAll = async (each: readonly Item[]): Promise<readonly (readonly [Item, Finding])[]> => {
    const found: (readonly [Item, Finding])[] = [];
    for (let first = 0; first < each.length; first += LOOKS_AT_ONCE)
      await Promise.all(
        each.slice(first, first + LOOKS_AT_ONCE).map(async (item) => {
          const finding = await look(item);
          if (finding !== undefined) found.push([item, finding]);
        }),
      );
    return found;
  };
  const suspects = (await lookAtAll(items)).map(([item]) => item);
  if (suspects.length > 0) await delay(secondLookMs);
  const findings = (await lookAtAll(suspects)).map(([, finding]) => finding);
  const following = AUDITED_PARTS[AUDITED_PARTS.indexOf(part) + 1];
  return defined({
    findings,
    looked: items.length,
    next: next !== undefined ? `${part}:${next}` : following,
  });
}

/**
 * Checks that every proof has its files. Checks that every erasure is published and confirmed, and that its
 * key is destroyed.
 */
function proofsOf({ stores, assets, keys, audited }: AuditStoresDeps, now: number): Part<string> {
  const look = async (proofId: string): Promise<Finding | undefined> => {
    const proof = await stores.getProof(proofId);
    if (proof?.state === 'erased') {
      if (now - proof.erasedAt < SETTLED_SECONDS) return undefined;
      const unfinished = (detail: string): Finding => ({
        kind: 'erasure_unfinished',
        subject: proofId,
        detail,
      });
      if (await audited.isErasureWaiting(proofId)) return unfinished('its event was not published');
      if (proof.confirmedAt === undefined) return unfinished('it was not confirmed');
      return (await keys.read(proofId)) === undefined
        ? undefined
        : { kind: 'key_left', subject: proofId, detail: 'the proof was erased' };
    }
    // An imported proof has no files.
    if (proof?.state !== 'issued' || proof.legacy !== undefined) return undefined;
    if (now - proof.createdAt < SETTLED_SECONDS) return undefined;
    const parts = (proof.evidence?.parts ?? []).filter(({ place }) => place === 'objects');
    for (const { part, bytes } of [{ part: undefined, bytes: proof.asset.bytes }, ...parts]) {
      const size = await assets.size(proofId, part);
      if (size !== bytes)
        return {
          kind: 'object_missing',
          subject: proofId,
          detail: `${part ?? 'the deliverable'} ${size === undefined ? 'is missing' : `has ${size} bytes of ${bytes}`}`,
        };
    }
    return undefined;
  };
  return {
    page: (after, limit) => audited.proofs(after, limit),
    look: (proofId) => orDamage(proofId, () => look(proofId)),
  };
}

/** Checks that every file belongs to a proof. */
function objectsOf({ stores, assets }: AuditStoresDeps, now: number): Part<AssetEntry> {
  const isLeft = async ({ proofId, writtenAt }: AssetEntry): Promise<string | undefined> => {
    const proof = await stores.getProof(proofId);
    if (proof === undefined) return now - writtenAt < LEFT_SECONDS ? undefined : 'no proof has this id';
    // Before an erasure is confirmed, the part `proofs` reports it.
    return proof.state === 'erased' && now - (proof.confirmedAt ?? now) >= SETTLED_SECONDS
      ? 'the proof was erased'
      : undefined;
  };
  return {
    page: (after, limit) => assets.list(after, limit),
    async look(entry) {
      const { proofId, part } = entry;
      // The part `proofs` reports damaged records.
      const reason = await isLeft(entry).catch((error: unknown) => {
        if (isRecordDamaged(error)) return undefined;
        throw error;
      });
      if (reason === undefined || (await assets.size(proofId, part)) === undefined) return undefined;
      return { kind: 'object_left', subject: proofId, detail: `${part ?? 'the deliverable'}: ${reason}` };
    },
  };
}

/**
 * Checks that the creation of every review was published, and that its reminders are scheduled or published.
 */
function reviewsOf({ audited }: AuditStoresDeps, now: number): Part<string> {
  const look = async (reviewId: string): Promise<Finding | undefined> => {
    const found = await audited.review(reviewId, now);
    if (found === undefined || now - found.review.createdAt < SETTLED_SECONDS) return undefined;
    const unannounced = (detail: string): Finding => ({
      kind: 'review_unannounced',
      subject: reviewId,
      detail,
    });
    if (found.isWaiting) return unannounced('the event of its creation was not published');
    for (const { kind, dueAt } of remindersOf(reviewCreated(found.review))) {
      const isScheduled = found.scheduled.includes(kind);
      if (dueAt > now && !isScheduled) return unannounced(`${kind} is not scheduled`);
      if (dueAt <= now - SETTLED_SECONDS && isScheduled) return unannounced(`${kind} was not published`);
    }
    return undefined;
  };
  return {
    page: (after, limit) => audited.reviews(after, limit),
    look: (reviewId) => orDamage(reviewId, () => look(reviewId)),
  };
}

/** Checks that every month's quota equals its sums plus the charges that wait to be added. */
function monthsOf({ audited }: AuditStoresDeps, now: number): Part<AuditedMonth> {
  return {
    page: (after, limit) => audited.months(after, limit, now),
    look: (month) => {
      const subject = `${month.partnerId}/${month.month}`;
      return orDamage(subject, async () => {
        const units = await audited.difference(month);
        if (units === 0) return undefined;
        const detail =
          units > 0
            ? `its quota has ${units} units more than the summed and the pending usage`
            : `its quota has ${-units} units less than the summed usage`;
        return { kind: 'month_differs', subject, detail };
      });
    },
  };
}

async function orDamage(
  subject: string,
  look: () => Promise<Finding | undefined>,
): Promise<Finding | undefined> {
  try {
    return await look();
  } catch (error) {
    if (!isRecordDamaged(error)) throw error;
    return {
      kind: 'record_damaged',
      subject,
      detail: 'it was not written by this installation, or was changed',
    };
  }
}
