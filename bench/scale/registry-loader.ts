import { randomBytes } from 'node:crypto';
import { linkSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { eachOf } from '../../src/core/async/each-of.js';
import { ShardedDirectory } from '../../src/core/files/sharded-directory.js';
import { encryptedStores } from '../../src/service/adapters/encryption/encrypted-stores.js';
import { openKeyDirectory } from '../../src/service/adapters/encryption/key-directory.js';
import { createIds } from '../../src/service/adapters/system/system.js';
import type { IssuedProof } from '../../src/service/domain/proof.js';
import type { ProofStore } from '../../src/service/ports/stores.js';
import { openLeftStore } from '../service/left-store.js';

/** The number of proofs that are registered at once. They share the syncs of the store and of its log's heads. */
export const AT_ONCE = 2048;
/** The number of proofs whose rate is a round. */
export const SLICE = 20_000;
const SPAN_SECONDS = 365 * 86_400;
/** The age of the newest proof in seconds. An auditor looks at proofs of this age. */
const NEWEST_SECONDS = 86_400;
/**
 * The last proofs, whose digests come in no order. Those before them have digests that ascend: LevelDB then moves
 * files where it would merge them, and what it has in the end is the same.
 */
export const UNORDERED = 200_000;
/** The most loaded ids that are kept, approximately. */
const SAMPLED = 20_000;
const LOOK_MS = 500;
/** The number of looks at unchanged files of the store after which no compaction is under way. */
const SAME_LOOKS = 8;

export interface Load {
  /** The data directory of a service that has stopped. */
  readonly dataDir: string;
  /** The ids of proofs that the service issued. */
  readonly originals: readonly string[];
  /** The ids of the owners. The first one gets half of the proofs, and the others share the rest. */
  readonly owners: readonly string[];
  readonly count: number;
  readonly progress: (loaded: number) => void;
}

export interface Loaded {
  /** The ids of proofs of the first owner, from the whole time. */
  readonly sample: readonly string[];
  /** The number of proofs per second through the store, for each slice. */
  readonly rates: readonly number[];
  /** The bytes of the store's files. */
  readonly bytes: number;
}

/** A proof that the service issued, and the store that encrypts with its key. */
interface Original {
  readonly proof: IssuedProof;
  readonly stores: ProofStore;
}

/**
 * Fills a registry by the store's own calls: each proof is reserved and issued, with its code, encrypted content,
 * indexes and audit entry. It is a copy of one that the service issued, with id, owner, time, title and digests of
 * its own. It shares that one's key and file: their directories have a name for each proof, which is a hard link. No proof may be
 * erased afterwards: a key is overwritten in its place, for all that share it.
 */
export async function loadRegistry({ dataDir, originals, owners, count, progress }: Load): Promise<Loaded> {
  const { stores, close } = await openLeftStore(dataDir);
  try {
    const keys = await openKeyDirectory({ directory: join(dataDir, 'content-keys') });
    const templates = await Promise.all(
      originals.map(async (proofId): Promise<Original> => {
        const opened = encryptedStores(stores, keys);
        const proof = await opened.getProof(proofId);
        const key = await keys.read(proofId);
        if (proof?.state !== 'issued' || key === undefined) throw new Error(`${proofId} is not in the store`);
        return {
          proof,
          stores: encryptedStores(stores, { ...keys, obtain: async () => key, read: async () => key }),
        };
      }),
    );
    const places = await Promise.all([
      linksIn(join(dataDir, 'content-keys'), '.key'),
      linksIn(join(dataDir, 'assets'), '.asset'),
    ]);
    const from = Math.floor(Date.now() / 1000) - NEWEST_SECONDS - SPAN_SECONDS;
    const timeOf = (index: number): number => from + Math.floor((index * SPAN_SECONDS) / count);
    let createdAt = from;
    const ids = createIds({ now: () => createdAt * 1000 });
    const stride = 2 * Math.ceil(count / 2 / SAMPLED);
    const sample: string[] = [];
    const rates: number[] = [];
    for (let first = 0; first < count; first += SLICE) {
      const slice: Original[] = [];
      for (let place = 0; place < Math.min(SLICE, count - first); place += 1) {
        const index = first + place;
        createdAt = timeOf(index);
        const proofId = ids.next('proof');
        const template = templates[index % templates.length]!;
        for (const link of places) await link(template.proof.proofId, proofId);
        const partnerId = owners[index % 2 === 0 ? 0 : 1 + (((index - 1) / 2) % (owners.length - 1))]!;
        if (index % stride === 0) sample.push(proofId);
        slice.push({
          stores: template.stores,
          proof: copyOf(
            template.proof,
            { proofId, partnerId, createdAt },
            index,
            beginOfDigests(index, count - UNORDERED),
          ),
        });
      }
      const began = performance.now();
      await eachOf(slice, AT_ONCE, register);
      rates.push((slice.length / (performance.now() - began)) * 1000);
      progress(first + slice.length);
    }
    return { sample, rates, bytes: await settledBytes(join(dataDir, 'store')) };
  } finally {
    await close();
  }
}

/** Gives the file of one proof the name of another's, too. */
async function linksIn(
  directory: string,
  ending: string,
): Promise<(original: string, proofId: string) => Promise<void>> {
  const files = await ShardedDirectory.open(directory, [ending]);
  return async (original, proofId) => {
    await files.prepare(proofId);
    linkSync(files.path(original + ending), files.path(proofId + ending));
  };
}

async function register({ stores, proof }: Original): Promise<void> {
  const { proofId, partnerId, createdAt } = proof;
  await stores.reserveProof(proofId, partnerId, createdAt);
  await stores.issueProof(proof, {
    partnerId,
    action: 'proof_issued',
    at: createdAt,
    actor: 'operator',
    subjects: [proofId],
  });
}

/** Returns the first hex digits of a proof's digests. They ascend for the first `ordered` proofs. Others get ''. */
function beginOfDigests(index: number, ordered: number): string {
  if (index >= ordered) return '';
  return Math.floor((index / ordered) * 2 ** 32)
    .toString(16)
    .padStart(8, '0');
}

function copyOf(
  proof: IssuedProof,
  own: Pick<IssuedProof, 'proofId' | 'partnerId' | 'createdAt'>,
  index: number,
  begin: string,
): IssuedProof {
  const digits = randomBytes(128).toString('hex');
  const digest = (number: number): string =>
    begin + digits.slice(number * 64 + begin.length, (number + 1) * 64);
  return {
    ...proof,
    ...own,
    song: { title: `Take ${index}` },
    originalSha256: digest(0),
    boundAudioSha256: digest(1),
    credentialSha256: digest(2),
    asset: { ...proof.asset, sha256: digest(3) },
  };
}

/** Returns the bytes of an open store's files, once compactions have left them alone for some seconds. */
async function settledBytes(directory: string): Promise<number> {
  let before = '';
  for (let same = 0; ; ) {
    const names = await readdir(directory);
    const sizes = await Promise.all(
      names.map(async (name) => (await stat(join(directory, name)).catch(() => undefined))?.size ?? 0),
    );
    const now = JSON.stringify([names, sizes]);
    same = now === before ? same + 1 : 0;
    if (same === SAME_LOOKS) return sizes.reduce((sum, size) => sum + size, 0);
    before = now;
    await sleep(LOOK_MS);
  }
}
