import { createHash } from 'node:crypto';
import { eachOf } from '../../../src/core/async/each-of.js';
import { canonicalBytes } from '../../../src/core/codec/sealed-archive.js';
import type { Infrastructure } from '../../../src/service/compose/infrastructure.js';
import { dayOf } from '../../../src/service/domain/usage-window.js';
import { withInfrastructure } from './opened.js';
import { chargeOf, has, partnerOf, proofIdOf, proofOf, reviewIdOf } from './rows.js';

const LANES = 32;
const PAGE = 500;
const USAGE_SECONDS = 40 * 24 * 3600;

export interface Compared {
  /** The answers of both sides that were compared. */
  readonly answers: number;
  /** The proofs that both sides have as erased. */
  readonly erased: number;
}

/**
 * Asks both sides for everything that the machine held, through the ports that the service uses, and compares the
 * answers. Contents are decrypted on both sides.
 * @param now unix seconds of the rows
 * @param differs called for each difference
 */
export function compareSides(
  { source, target }: Readonly<Record<'source' | 'target', Readonly<Record<string, string>>>>,
  proofs: number,
  now: number,
  differs: (what: string) => void,
): Promise<Compared> {
  return withInfrastructure(source, (left) =>
    withInfrastructure(target, async (right) => {
      const counts = { answers: 0, erased: 0 };
      const same = async (
        what: string,
        ask: (side: Infrastructure) => Promise<unknown>,
      ): Promise<unknown> => {
        const [wanted, found] = await Promise.all([ask(left), ask(right)]);
        counts.answers += 1;
        if (Buffer.compare(canonicalBytes(wanted ?? null), canonicalBytes(found ?? null)) !== 0)
          differs(what);
        return wanted;
      };
      const partners = (await same('list of partners', async ({ stores }) =>
        (await stores.listPartners()).toSorted((a, b) => (a.partnerId < b.partnerId ? -1 : 1)),
      )) as readonly { readonly partnerId: string }[];
      for (const { partnerId } of partners) await comparePartner(partnerId, now, same);
      await eachOf(Array(proofs).keys(), LANES, async (i) => {
        await compareProof(i, now, same);
        if (!has(i, 'erased')) return;
        const proofId = proofIdOf(i);
        const { stores, keys, assets } = right;
        const isErased =
          (await stores.getProof(proofId))?.state === 'erased' &&
          (await keys.read(proofId)) === undefined &&
          (await assets.size(proofId)) === undefined;
        if (isErased) counts.erased += 1;
        else differs(`erasure of ${proofId}`);
      });
      return counts;
    }),
  );
}

type Same = (what: string, ask: (side: Infrastructure) => Promise<unknown>) => Promise<unknown>;

async function comparePartner(partnerId: string, now: number, same: Same): Promise<void> {
  await same(`keys of ${partnerId}`, ({ stores }) => stores.listKeys(partnerId));
  await same(`uses of keys of ${partnerId}`, async ({ stores }) => {
    const keyIds = (await stores.listKeys(partnerId)).map(({ keyId }) => keyId);
    return [...(await stores.getKeyUses(partnerId, keyIds))].toSorted();
  });
  await same(`rotations of ${partnerId}`, async ({ stores }) =>
    Promise.all(
      (await stores.listKeys(partnerId)).map(async ({ keyId }) => {
        const rotation = await stores.getRotation(keyId);
        // What a replay needs does not move.
        return rotation && { ...rotation, replay: undefined };
      }),
    ),
  );
  await same(`units of ${partnerId}`, ({ stores }) => stores.getUsed(partnerId, now));
  await same(`daily usage of ${partnerId}`, ({ stores }) =>
    stores.getDailyUsage(partnerId, dayOf(now - USAGE_SECONDS), dayOf(now)),
  );
  await same(`head of the audit log of ${partnerId}`, ({ heads }) => heads.get(partnerId));
  for (let from = 1; ; from += PAGE) {
    const entries = (await same(`audit log of ${partnerId} from entry ${from}`, ({ stores }) =>
      stores.readAudit(partnerId, from, PAGE),
    )) as readonly unknown[];
    if (entries.length < PAGE) break;
  }
  for (let before: { createdAt: number; proofId: string } | undefined; ; ) {
    const page = (await same(`list of proofs of ${partnerId} before ${before?.proofId}`, ({ stores }) =>
      stores.listProofs(partnerId, { limit: PAGE, ...(before !== undefined && { before }) }),
    )) as readonly { readonly createdAt: number; readonly proofId: string }[];
    if (page.length < PAGE) break;
    before = page.at(-1)!;
  }
}

async function compareProof(i: number, now: number, same: Same): Promise<void> {
  const [proofId, partnerId] = [proofIdOf(i), partnerOf(i)];
  await same(`proof ${proofId}`, ({ stores }) => stores.getProof(proofId));
  await same(`content key of ${proofId}`, ({ keys }) => keys.read(proofId));
  await same(`proofs by the digest of ${proofId}`, async ({ stores }) =>
    (await stores.findProofs('bound', proofOf(i, now).boundAudioSha256, 10)).map((found) => found.proofId),
  );
  if (has(i, 'evidence'))
    await same(`trace of ${proofId}`, ({ stores }) => stores.readEvidence(proofId, 'trace'));
  if (has(i, 'file'))
    await same(`file of ${proofId}`, async ({ assets }) => {
      const hash = createHash('sha256');
      for await (const chunk of (await assets.read(proofId)) ?? []) hash.update(chunk as Uint8Array);
      return hash.digest('hex');
    });
  if (has(i, 'review'))
    await same(`review ${reviewIdOf(i)}`, ({ stores }) => stores.getReview(partnerId, reviewIdOf(i), now));
  if (has(i, 'replay'))
    await same(`replay of ${proofId}`, ({ stores }) => stores.getIssuingReplay(`replay-${i}`, now));
  if (has(i, 'charge'))
    await same(`charge of ${proofId}`, ({ stores }) => stores.findCharge(chargeOf(i, now)));
}
